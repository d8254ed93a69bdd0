"""Tell whether the first record of a file has the names of the columns, by comparing it with the records below.

Each cell is weighed by how much likelier it is in a header than in a record: words above numbers, names that do not
occur below, numbers that are like those below. Weights are logarithms of these ratios and add up.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

Record = Sequence[str]

_LIKELY_HEADER: Final = 2.0
"""Where nothing is known of the records, a CSV file has a header: the weight of that."""
_MOST_OF_A_COLUMN: Final = 5.0
_NO_NAME: Final = -7.0
"""The weight of numbers that are in no order, where there are numbers below: hardly ever names of columns."""
_NUMBER: Final = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?%?")
_MOMENT: Final = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?|\d{4}-\d{2}")
_NAME: Final = re.compile(r"[^\W\d_][\w .\-()/%#?&']*|_\w+")
_MISSING: Final = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "?", "-", ".")
_WORDS: Final = ("a", "Aa", "A")
"""Shapes that names and values often share."""
_LONGEST_NAME: Final = 60
_PLAIN: Final = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
_NUMBERED: Final = {"years": 0.05, "rising": 0.05, "ordered": 0.005, "pair": 0.002}
"""How often names of columns are numbers in such an order."""
_YEARS: Final = (1800, 2200)


def has_header(records: Sequence[Record], *, is_csv: bool) -> bool:
    """Whether the first of these records names the columns; `is_csv`: where unsure, it does."""
    first, rest = [cell.strip() for cell in records[0]], records[1:]
    if not rest:
        return not any(_kind(cell) for cell in first)
    if not any(first):
        return False
    columns = [[row[place].strip() for row in rest if place < len(row)] for place in range(len(first))]
    weight = _LIKELY_HEADER if is_csv else 0.0
    weight += _of_first(first[0], columns[0])
    weight += sum(_of_text(cell, column) for cell, column in zip(first, columns, strict=True))
    weight += _of_numbers(first, columns) + _of_repetition(first, rest)
    return weight > 0


def is_short(records: Sequence[Record]) -> bool:
    """Whether the first record has one cell fewer than all others, as R's `write.table` writes a header."""
    return len(records) > 1 and {len(record) for record in records[1:]} == {len(records[0]) + 1}


def _kind(cell: str) -> str:
    """What a cell is; nothing for text."""
    if _NUMBER.fullmatch(cell):
        return "number"
    return "moment" if _MOMENT.fullmatch(cell) else ""


def _usual_kind(column: Sequence[str]) -> str:
    """The kind of nearly all values that are there."""
    kinds = Counter(_kind(cell) for cell in column if cell)
    kind, count = kinds.most_common(1)[0] if kinds else ("", 0)
    return kind if count >= 0.8 * kinds.total() else ""


def _ratio(in_header: float, in_record: float) -> float:
    return max(-_MOST_OF_A_COLUMN, min(_MOST_OF_A_COLUMN, math.log(in_header / in_record)))


def _of_first(cell: str, column: Sequence[str]) -> float:
    """The weight of a first cell that is empty, as pandas and R write it above row numbers and names."""
    if cell:
        return 0.0
    if column[:2] in (["0", "1"], ["1", "2"]):
        return _MOST_OF_A_COLUMN
    return max(0.0, _ratio(0.1, (column.count("") + 1) / (len(column) + 2)))


def _of_text(cell: str, column: Sequence[str]) -> float:
    """The weight of one cell that is not a number."""
    seen, kind = Counter(column), _usual_kind(column)
    own, rows = _kind(cell), len(column)
    if cell in _MISSING:
        return min(0.0, _ratio(0.1, (seen[cell] + 1) / (rows + 2)))
    if own == "number" or not rows:
        return 0.0  # weighed with the others in `_of_numbers`
    if cell in seen:
        return _ratio(0.01, 1 - _singles(seen))
    if own:
        return _ratio(0.02, _of_kind(own, column))
    if kind:
        others = sum(count for value, count in seen.items() if value and not _kind(value))
        return _ratio(0.97, (others + 1) / (rows + 2))
    return _ratio(_as_name(cell, seen), _singles(seen) * _of_shape(cell, seen))


def _singles(seen: Counter[str]) -> float:
    """The share of values that occur once: the chance that a further record has one that does not occur at all."""
    return (sum(count == 1 for count in seen.values()) + 1) / (seen.total() + 2)


def _as_name(cell: str, seen: Counter[str]) -> float:
    """How likely a name of a column has the form of this cell, which may be that of the values below."""
    if len(cell) > _LONGEST_NAME or not _NAME.fullmatch(cell):
        return 0.05
    is_alike = _of_shape(cell, seen) > 0.5
    return 0.5 if not is_alike else 0.3 if _shape(cell) in _WORDS else 0.05


def _of_shape(cell: str, seen: Counter[str]) -> float:
    """How likely a value of the column has the shape of this cell: `Aa 9` is a word and a number."""
    shapes: Counter[str] = Counter()
    for value, count in seen.items():
        shapes[_shape(value)] += count
    same = shapes[_shape(cell)]
    return (same + 1) / (shapes.total() + 2) if same else _singles(shapes)


def _shape(text: str) -> str:
    text = re.sub(r"\d+", "9", text)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"[^\W\d_]+", _letters, text)


def _letters(found: re.Match[str]) -> str:
    word = found[0]
    return "A" if word.isupper() else "a" if word.islower() else "Aa"


def _of_numbers(first: Record, columns: Sequence[Sequence[str]]) -> float:
    """The weight of all cells that are numbers; if one is a name, others are likely to be names too."""
    places = [place for place, cell in enumerate(first) if _kind(cell) == "number"]
    if not places:
        return 0.0
    numbers = [first[place] for place in places]
    if any(_continues(first[place], columns[place]) for place in places):
        return 2 * _NO_NAME
    if order := _order(numbers):
        rows = list(zip(*(columns[place] for place in places), strict=False))
        alike = sum(_order(row) == order for row in rows)
        return _ratio(_NUMBERED[order], (alike + 1) / (len(rows) + 2))
    if numbers == ["0"] and first[-1] == "0" and len(first) > 1:  # a column without a name, as pandas writes it
        column = columns[places[0]]
        return _ratio(0.02, (column.count("0") + 1) / (len(column) + 2))
    return _NO_NAME + sum(_ratio(0.5, _of_kind("number", columns[place])) for place in places)


def _continues(cell: str, column: Sequence[str]) -> bool:
    """Whether a number and the values below are consecutive, as row numbers are."""
    following = column[:2]
    if len(following) < 2 or not all(value.isdecimal() for value in (cell, *following)):
        return False
    return [int(value) - int(cell) for value in following] == [1, 2]


def _order(cells: Sequence[str]) -> str:
    """How numbers follow each other, as names of columns do; nothing if they do not."""
    if len(cells) < 2 or not all(_PLAIN.fullmatch(cell) for cell in cells):
        return ""
    numbers = [float(cell) for cell in cells]
    steps = {after - before for before, after in pairwise(numbers)}
    is_ordered = min(steps) > 0 or max(steps) < 0
    if is_ordered and all(_YEARS[0] <= number <= _YEARS[1] for number in numbers):
        return "years"
    if len(cells) == 2:
        return "pair" if steps in ({1}, {-1}) else ""
    if not is_ordered:
        return ""
    return "rising" if min(steps) > 0 and all(number.is_integer() for number in numbers) else "ordered"


def _of_kind(kind: str, column: Sequence[str]) -> float:
    """How likely a value of the column is of a kind."""
    return (sum(_kind(value) == kind for value in column) + 1) / (len(column) + 2)


def _of_repetition(first: Record, rest: Sequence[Record]) -> float:
    """Cells of a record repeat each other as often as those below; names of columns rarely do."""
    alike = sum(_repeats(row) for row in rest)
    own = (alike + 1) / (len(rest) + 2)
    return _ratio(0.05, own) if _repeats(first) else _ratio(0.95, 1 - (alike / (len(rest) + 2)))


def _repeats(row: Record) -> bool:
    cells = [cell for cell in row if cell.strip()]
    return len(set(cells)) < len(cells)
