"""How a text file of records is laid out: its delimiter, its header line, or lines that are sets of items."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from shoal.decode.header_names import SHORT, unique_names
from shoal.errors import InputError
from shoal.inspection.files.header_line import Record, has_header, is_short

_DELIMITERS: Final = (",", ";", "\t", "|")
_LINES: Final = 200
_RECORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """What [source] must say of a file."""

    delimiter: str
    names: tuple[str, ...]
    """Of all columns."""
    has_header: bool
    lacks_first_name: bool = False
    separator: str | None = None
    """What stands between the items of a line, if each line is a set; `delimiter` is then a sign that no line has."""

    @property
    def source(self) -> dict[str, Any]:
        """The keys of [source]."""
        found: dict[str, Any] = {"kind": "csv"}
        found |= {"delimiter": self.delimiter} if self.delimiter != "," else {}
        if not self.has_header:
            found["header"] = list(self.names)
        elif self.lacks_first_name:
            found["header"] = SHORT
        return found | ({"separator": self.separator} if self.separator is not None else {})


def layout_of(head: str, *, is_cut: bool, is_csv: bool, header: bool | None, name: str) -> CsvLayout:
    """The layout of the file that begins with this text.

    `header`: whether the first record names the columns; None: as it looks. `is_csv`: a header is usual. `is_cut`: the
    last line may be incomplete.
    """
    lines = [line for line in head.splitlines() if line.strip()][: -1 if is_cut else None][:_LINES]
    if not lines:
        raise InputError(f"{name}: has no rows; give a file with data")
    delimiter = _delimiter(lines)
    cells = [_cells(line, delimiter) for line in lines]
    if '"' not in head and _is_ragged(cells):
        return _of_items(head, cells, delimiter, header=header, name=name)
    return _of_records(_records(head, delimiter, is_cut=is_cut), delimiter, is_csv=is_csv, header=header, name=name)


def _of_records(records: list[Record], delimiter: str, *, is_csv: bool, header: bool | None, name: str) -> CsvLayout:
    usual = Counter(map(len, records)).most_common(1)[0][0]
    lacks_first = is_short(records)
    if lacks_first:
        if all(not record[-1].strip() for record in records[1:]):
            raise InputError(f"{name}: all lines but the first end with a delimiter; add one to the first line")
        records = [["", *records[0]], *records[1:]]
    before = next(place for place, record in enumerate(records) if len(record) == usual)
    if before and usual > 1:
        many = "first line has" if before == 1 else f"first {before} lines have"
        raise InputError(f"{name}: its {many} more or fewer cells than the others; correct or remove what is not data")
    is_named = has_header(records, is_csv=is_csv) if header is None else header
    if not is_named:
        return CsvLayout(delimiter, tuple(f"column{place}" for place in range(1, usual + 1)), has_header=False)
    names = unique_names([cell.strip() for cell in records[0]])
    return CsvLayout(delimiter, names, has_header=True, lacks_first_name=lacks_first)


def _of_items(head: str, cells: list[Record], separator: str, *, header: bool | None, name: str) -> CsvLayout:
    """One column of sets, read with a delimiter that no line has."""
    free = next((sign for sign in ("\t", "|", ";", "\x1f") if sign not in head), None)
    if free is None:
        raise InputError(f"{name}: its lines have different numbers of cells; write one set of items per line")
    first = separator.join(cells[0]).strip()
    is_named = _names_items(first, cells[1:]) if header is None else header
    return CsvLayout(free, (first or "column1",) if is_named else ("items",), is_named, separator=separator)


def _names_items(first: str, rest: list[Record]) -> bool:
    """Whether a first line is the name of the column: one word, which is no item, where lines are longer."""
    items = {cell.strip() for record in rest for cell in record}
    few = sum(len(record) == 1 for record in rest) < 0.1 * len(rest)
    return few and first.isidentifier() and first not in items


def _records(head: str, delimiter: str, *, is_cut: bool) -> list[Record]:
    """The records of the text; quoted cells may have line ends."""
    try:
        found: list[Record] = [
            record for record in csv.reader(io.StringIO(head, newline=""), delimiter=delimiter) if record
        ]
    except csv.Error:  # a quote that is never closed
        found = [_cells(line, delimiter) for line in head.splitlines() if line.strip()]
    return found[: -1 if is_cut and len(found) > 1 else None][: _RECORDS + 1]


def _cells(line: str, delimiter: str) -> Record:
    try:
        return next(csv.reader(io.StringIO(line), delimiter=delimiter), [])
    except csv.Error:  # a cell longer than the module allows, as a long line is for a sign that it does not contain
        return [line]


def _is_ragged(cells: Sequence[Record]) -> bool:
    """Whether lines have many different numbers of cells: each line is then a set of items."""
    sizes = [len(line) for line in cells]
    return max(map(sizes.count, set(sizes))) < 0.6 * len(sizes)


def _delimiter(lines: list[str]) -> str:
    """The sign that splits most lines, as many as possible into the same number of cells; a blank if none is there."""

    def fit(sign: str) -> tuple[float, int]:
        counts = [len(_cells(line, sign)) for line in lines[:50]]
        several = [count for count in counts if count > 1]
        if len(several) < 0.5 * len(counts):
            return (0.0, 1)
        usual = max(sorted(set(several)), key=several.count)
        return (several.count(usual) / len(counts), usual)

    if not any(sign in line for line in lines for sign in _DELIMITERS) and _is_blank_separated(lines):
        return " "
    return max(_DELIMITERS, key=fit)


def _is_blank_separated(lines: list[str]) -> bool:
    """Whether single blanks stand between cells that are not the words of a text: most of them have digits."""
    cells = [cell for line in lines for cell in _cells(line, " ")]
    if any("" in _cells(line.strip(), " ") for line in lines) or max(len(_cells(line, " ")) for line in lines) < 2:
        return False
    with_digits = sum(any(sign.isdigit() for sign in cell) for cell in cells)
    return with_digits >= 0.8 * len(cells) or ('"' in lines[-1] and with_digits > 0)
