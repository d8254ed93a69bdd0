"""A file of the table: its generator, how it is written, what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np

from tests.first_release.expected import ASK, Expected, Reading, read_columns
from tests.first_release.writing import write

SEED = 20_240_601
FORMATS = {".jsonl": "jsonl", ".parquet": "parquet"}

Table = Mapping[str, Iterable] | list[tuple[str, Iterable]] | list[str]
"""Columns by name, pairs if names repeat, or whole lines."""

CASES: list[Case] = []


@dataclass(frozen=True)
class Case:
    """One file: what it contains, how it is written, what is right for it."""

    name: str
    expected: Expected
    reading: Reading
    traits: frozenset[str]
    generate: Callable[[np.random.Generator], Table]

    def make(self) -> Table:
        """The content of the file; the same in every process."""
        return self.generate(np.random.default_rng([SEED, crc32(self.name.encode())]))

    def write(self, folder: Path) -> Path:
        path = folder / self.name
        write(path, self.make(), self.reading)
        return path


def case(
    name: str,
    *,
    person: str,
    columns: str,
    reason: str,
    traits: str,
    method: str = "tuples",
    about_people: bool | None = True,
    missing: dict[str, tuple[str, ...]] | None = None,
    may_ask: bool = False,
    may_refuse: bool = False,
    **reading,
) -> Callable:
    """Register the decorated generator; `person`, `method` and `traits` list alternatives with `|`."""
    form = reading.pop("format", FORMATS.get(Path(name).suffix, "csv"))
    has_header = reading.pop("has_header", True if form == "csv" else None)
    persons = _split(person)

    def register(generate: Callable[[np.random.Generator], Table]) -> Callable:
        expected = Expected(
            persons=persons,
            about_people=about_people,
            methods=_split(method),
            columns=read_columns(columns, missing or {}),
            reason=reason,
            may_ask=may_ask or ASK in persons,
            may_refuse=may_refuse,
        )
        described = Reading(format=form, has_header=has_header, **reading)
        CASES.append(Case(name, expected, described, frozenset(_split(traits)), generate))
        return generate

    return register


def _split(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split("|"))
