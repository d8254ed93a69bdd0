"""What columns of the table are called where their cells in the header are empty or repeated, by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.first_release.cases import Case
from tests.first_release.expected import Expected

_REPEATED = {"repeated_names.csv": ["participant", "age", "group", "score", "score_2", "score_3"]}


def names_read(case: Case) -> list[str]:
    """The names of all columns."""
    written = [column.name or f"column{place}" for place, column in enumerate(case.expected.columns, 1)]
    names = _REPEATED.get(case.name, written)
    assert len(names) == len(written)
    return names


def as_read(case: Case) -> Expected:
    """What is expected, with these names."""
    names = names_read(case)
    columns = [replace(column, name=name) for column, name in zip(case.expected.columns, names, strict=True)]
    persons = tuple(person or names[0] for person in case.expected.persons)
    return replace(case.expected, columns=tuple(columns), persons=persons)
