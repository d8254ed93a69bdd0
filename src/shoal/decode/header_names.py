"""Names of columns from the cells of a header line, of which some may be empty or repeated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Final, Literal

SHORT: Final = "short"
Header = Sequence[str] | Literal["short"] | None
"""Names of a file without a header line; "short" if its header line lacks the name of the first column."""


def unique_names(cells: Sequence[str]) -> tuple[str, ...]:
    """One name for every column: an empty cell is named by its position, a repeated one gets a number.

    A name that is written in the header is never given to another column.

    >>> unique_names(["", "name", "score", "score"])
    ('column1', 'name', 'score', 'score_2')
    """
    taken = {cell for cell in cells if cell.strip()}
    used, named = set[str](), []
    numbers: dict[str, count[int]] = {}
    for position, cell in enumerate(cells, 1):
        name = base = cell if cell.strip() else f"column{position}"
        while name in taken and (name != cell or name in used):
            name = f"{base}_{next(numbers.setdefault(base, count(2)))}"
        taken.add(name)
        used.add(name)
        named.append(name)
    return tuple(named)
