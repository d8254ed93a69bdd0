"""Name the columns of a CSV file from its header line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from shoal.auditor.reading.paths import Format
from shoal.errors import InputError


def column_names(cells: Sequence[str], expected: Format, where: str) -> list[str]:
    """Return one name for every column.

    A name belongs to the first column that has it; other columns of that name are ``name_2``, ``name_3`` and so on. A
    column without a name is called by its position, ``column1``. InputError if a release repeats a name.
    """
    written = ["", *cells] if expected.lacks_first_name else list(cells)
    if expected.trims:
        written = [name.strip() for name in written]
    owners: dict[str, int] = {}
    for place, name in enumerate(written):
        if name.strip():
            owners.setdefault(name, place)
    if expected.names_once and len(owners) < sum(bool(name.strip()) for name in written):
        raise InputError(f"{where}: the header names a column twice; write the release again")
    further: dict[str, Iterator[int]] = {}
    names = []
    for place, name in enumerate(written):
        base = own = name if name.strip() else f"column{place + 1}"
        while owners.setdefault(own, place) != place:
            own = f"{base}_{next(further.setdefault(base, count(2)))}"
        names.append(own)
    return names
