"""CSV text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Literal, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import BATCH_ROWS, Decoded, Position, Readable, Refused
from shoal.decode.columns import NOT_UTF8, as_text, fit, refused_misfits, trimmed, without_spellings
from shoal.decode.header_names import SHORT, Header, unique_names
from shoal.decode.spellings import DateForm, Encoding, Recoded, as_iso, with_points
from shoal.decode.text import BLOCK_BYTES, HAS_NUL, MAX_RECORD_BYTES, TOO_LONG, Blocks, TextDecoder
from shoal.errors import InputError, PolicyError
from shoal.kernels import csv_records
from shoal.kernels.csv_records import AT, BREAKS, LINE, OPEN_UNTIL

_DELIMITERS: Final = ",;\t|"
_REMEDY: Final = (
    "correct the policy; if the first line is a record and no header, name the columns in [source], such as "
    'header = ["first", "second"]'
)
_MAX_COLUMNS: Final = 65_536
_REASONS: Final = {
    csv_records.HAS_NUL: HAS_NUL,
    csv_records.TOO_LONG: TOO_LONG,
    csv_records.UNCLOSED: "a quoted field is never closed; close it",
}


class CsvDecoder(TextDecoder["_RecordFinder"]):
    """Delimited text, with or without a header line.

    An empty field, quoted or not, is null, and so are the words in `nulls`. Columns are text unless `types` declares
    another type; then spaces around a value are ignored. A quote is special only at the start of a field. Blank lines
    are skipped.

    Parameters
    ----------
    header
        Names of the columns if the file has no header line; None: the first line has them. "short": the first line
        has them but for the first column's. A column whose name is missing is named by its position, such as
        ``column1``; a repeated name gets a number, such as ``score_2``.
    trim
        Remove blanks (Unicode white space) around every value and every name of the header line, quoted or not. A
        blank value is null.
    nulls
        Words that mean a missing value, in every column; or those of each column by its name.
    encoding
        How characters are written: UTF-8, or an encoding of one byte a character.
    decimal
        What stands before the decimals of numbers; with a comma, points separate thousands.
    dates
        By column, the form of dates that are not ISO 8601.
    max_record_bytes
        A longer record is refused and skipped up to the end of its line. If a quoted field is still open after that,
        or at the end of the file, only its first line is refused.
    """

    def __init__(  # noqa: PLR0913 - one for every setting
        self,
        file: Readable,
        *,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType] | None = None,
        delimiter: str = ",",
        quote: str = '"',
        header: Header = None,
        nulls: Sequence[str] | Mapping[str, Sequence[str]] = (),
        trim: bool = False,
        encoding: Encoding = "utf-8",
        decimal: Literal[".", ","] = ".",
        dates: Mapping[str, DateForm] | None = None,
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = BLOCK_BYTES,
        optional: Collection[str] = (),
    ) -> None:
        super().__init__(file, columns=columns, types=types, optional=optional)
        self._table = _byte_table(delimiter, quote)
        self._delimiter, self._quote = delimiter, ord(quote)
        self._is_short = header == SHORT
        self._header = None if header is None or isinstance(header, str) else tuple(header)
        self._nulls = {name: tuple(nulls.get(name, ()) if isinstance(nulls, Mapping) else nulls) for name in columns}
        self._trim, self._encoding = trim, encoding
        self._has_commas, self._dates = decimal == ",", dates or {}
        self._longest = max_record_bytes
        self._block_bytes = block_bytes
        self._kinds = {name: self._type_of(name) for name in self._columns}
        self._slots: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)

    def _type_of(self, name: str) -> pa.DataType:
        kind = self._declared.get(name, pa.string())
        try:
            pa.array([], type=pa.string()).cast(kind)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise InputError(f"{self._file.name}: column {name!r} of a CSV file cannot be read as {kind}") from None
        return kind

    def _begin(self, blocks: Blocks) -> _RecordFinder:
        finder = _RecordFinder(blocks, self._table, self._longest)
        names = self._names(finder)
        self._slots = np.full(len(names), -1, dtype=np.int64)
        indices = self._indices(names, remedy=self._remedy(names))
        self._slots[indices] = np.arange(len(indices))
        self._schema = pa.schema([(name, self._kinds[name]) for name in self._columns])
        return finder

    def _stream(self) -> BinaryIO:
        found = super()._stream()
        return found if self._encoding == "utf-8" else cast(BinaryIO, Recoded(found, self._encoding))

    def _decoded(self, window: _RecordFinder) -> Iterator[Decoded]:
        for found in window.records(self._slots):
            yield self._decode(found, window.position)

    def _names(self, finder: _RecordFinder) -> tuple[str, ...]:
        if self._header is not None:
            return self._header
        cells = finder.header(self._quote)
        cells = ("", *cells) if self._is_short else cells
        return unique_names([cell.strip() for cell in cells] if self._trim else cells)

    def _remedy(self, names: Sequence[str]) -> str:
        """What to do about a missing column; the file's own names are not shown, they may be a person's record."""
        if self._header is not None:
            return "correct [source] header or the name of the column"
        line = self._delimiter.join(names)
        for sign in _DELIMITERS.replace(self._delimiter, ""):
            found = {name.strip().strip('"') for name in line.split(sign)}
            if found.issuperset(self._needed):
                written = sign.replace("\t", "\\t")
                return f'its header line is separated by "{written}": set delimiter = "{written}" in [source]'
        known = {"".join(name.split()).casefold() for name in names}
        if all("".join(name.split()).casefold() in known for name in self._needed):
            return "names are compared exactly and differ here in case or spaces; write them as the file does"
        return _REMEDY

    @property
    def _needed(self) -> frozenset[str]:
        return frozenset(self._columns) - self._optional

    def _decode(self, found: _FoundRecords, position: Position) -> Decoded:
        refused = [
            Refused(int(row), None, _REASONS.get(int(found.codes[row])) or self._wrong_count(int(found.counts[row])))
            for row in np.flatnonzero(found.codes)
        ]
        columns = []
        for slot, field in enumerate(self.schema):
            text, bad = as_text(_field_column(found, slot, self._quote))
            refused += [Refused(int(row), field.name, NOT_UTF8) for row in bad]
            text = without_spellings(trimmed(text) if self._trim else text, self._nulls[field.name])
            if field.name in self._dates:
                text = as_iso(text, self._dates[field.name])
            if field.type != pa.string():
                text, bad = fit(self._bare(text, field.type), field.type)
                refused += refused_misfits(bad, field.name, field.type)
            columns.append(text)
        return Decoded.of(columns, self._schema, refused, position, found.lines)

    def _bare(self, text: Any, kind: pa.DataType) -> Any:
        """Values without spaces around them, numbers with a decimal point."""
        bare = pc.utf8_trim_whitespace(text)
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        return with_points(bare) if self._has_commas and is_number else bare

    def _wrong_count(self, fields: int) -> str:
        header = "the header has" if self._header is None else "[source] header names"
        remedy = "quote fields that contain the delimiter"
        if fields == 1:
            remedy = "complete the record, or set [source] delimiter if another character separates fields"
        elif self._header is not None:
            remedy += ", or name every column of the file"
        return f"{fields} field{'s' * (fields != 1)} where {header} {len(self._slots)}; {remedy}"


def _byte_table(delimiter: str, quote: str) -> npt.NDArray[np.uint8]:
    """The class of each of the 256 bytes."""
    if not all(len(sign) == 1 and sign.isascii() and sign not in "\0\r\n" for sign in (delimiter, quote)):
        raise PolicyError("delimiter and quote: each must be one ASCII character and no line end")
    if delimiter == quote:
        raise PolicyError("delimiter and quote: must differ")
    table = np.zeros(256, dtype=np.uint8)
    signs = [0, ord("\n"), ord("\r"), ord(delimiter), ord(quote)]
    table[signs] = [csv_records.NUL, csv_records.LF, csv_records.CR, csv_records.DELIMITER, csv_records.QUOTE]
    return table


@dataclass(frozen=True, slots=True)
class _FoundRecords:
    """Records of one window: bounds of the needed fields, and an error code for each record."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    codes: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]


class _RecordFinder:
    """Finds records in the blocks of one file and remembers how far it came."""

    def __init__(self, blocks: Blocks, table: npt.NDArray[np.uint8], longest: int) -> None:
        self.blocks = blocks
        self._table = table
        self._longest = longest
        self._cursor = np.array([blocks.mark_bytes(), 1, -1, 0], dtype=np.int64)
        self._record = 0

    @property
    def position(self) -> Position:
        at, line = int(self._cursor[AT]), int(self._cursor[LINE])
        return {"byte": self.blocks.offset + at, "record": self._record, "line": line}

    def go_to(self, position: Position) -> None:
        """Continue at a position given earlier, which is never before the first record."""
        self._drop()
        self.blocks.skip_to(position["byte"])
        self._cursor[:] = (0, position["line"], -1, 0)
        self._record = position["record"]

    def header(self, quote: int) -> tuple[str, ...]:
        """Names in the first record."""
        found = next(self._found(np.arange(_MAX_COLUMNS), width=0, rows=1), None)
        self._record = 0
        if found is None:
            raise self.blocks.failure or InputError(f"{self.blocks.name}: is empty; it has no header line")
        code, width = int(found.codes[0]), int(found.counts[0])
        if code or width > _MAX_COLUMNS:
            reason = _REASONS.get(code, f"it has more than {_MAX_COLUMNS} columns")
            raise InputError(f"{self.blocks.name}: the header line cannot be used: {reason}")
        fields = [_field_column(found, slot, quote)[0].as_py() or b"" for slot in range(width)]
        return tuple(field.decode("utf-8", errors="replace") for field in fields)

    def records(self, slots: Any) -> Iterator[_FoundRecords]:
        """All records from here on."""
        return self._found(slots, width=len(slots), rows=BATCH_ROWS)

    def _found(self, slots: npt.NDArray[np.int64], *, width: int, rows: int) -> Iterator[_FoundRecords]:
        while True:
            found, why = self._split(slots, width=width, rows=rows)
            self._record += len(found.codes)
            if len(found.codes):
                yield found
            if why == csv_records.ENDLESS:
                line = int(self._cursor[LINE])
                if not self._skip_line():
                    return
                self._record += 1
                yield _one_bad(csv_records.TOO_LONG, line, columns=len(found.starts))
            elif why == csv_records.NEEDS_MORE:
                if self.blocks.is_complete:
                    return
                self._drop()
                self.blocks.grow()

    def _split(self, slots: npt.NDArray[np.int64], *, width: int, rows: int) -> tuple[_FoundRecords, int]:
        data = np.frombuffer(self.blocks.data, dtype=np.uint8)
        # A record is a byte and a line end at least.
        rows = min(rows, len(data) // 2 + 1)
        starts, ends = np.zeros((2, int(slots.max(initial=-1)) + 1, rows), dtype=np.int64)
        codes = np.empty(rows, dtype=np.uint8)
        counts, lines = np.empty((2, rows), dtype=np.int64)
        used, why = csv_records.split_records(
            data,
            self._is_final(),
            self._table,
            self._longest,
            width,
            slots,
            self._cursor,
            starts,
            ends,
            codes,
            counts,
            lines,
        )
        found = _FoundRecords(data, starts[:, :used], ends[:, :used], codes[:used], counts[:used], lines[:used])
        return found, int(why)

    def _is_final(self) -> bool:
        # Of a stream that breaks off, the last record may be a part only: it never counts as complete.
        return self.blocks.is_complete and self.blocks.failure is None

    def _drop(self) -> None:
        self.blocks.drop(int(self._cursor[AT]))
        self._cursor[OPEN_UNTIL] -= self._cursor[AT]
        self._cursor[AT] = 0

    def _skip_line(self) -> bool:
        """Skip a record that is too long, without storing it; False if the stream breaks off in it."""
        self._drop()
        self.blocks.drop(self._longest + 1)
        while (after := self._line_end()) < 0:
            if self.blocks.failure is not None:
                return False
            # The last byte may be the first half of a line end.
            self.blocks.drop(max(0, len(self.blocks.data) - 1))
            self.blocks.grow()
        self._cursor[:] = (after, self._cursor[LINE] + self._cursor[BREAKS] + 1, -1, 0)
        return True

    def _line_end(self) -> int:
        data = np.frombuffer(self.blocks.data, dtype=np.uint8)
        return int(csv_records.next_line(data, 0, self._is_final()))


def _one_bad(code: int, line: int, *, columns: int) -> _FoundRecords:
    bounds = np.zeros((columns, 1), dtype=np.int64)
    codes = np.array([code], dtype=np.uint8)
    return _FoundRecords(np.empty(0, np.uint8), bounds, bounds, codes, np.zeros(1, np.int64), np.array([line]))


def _field_column(found: _FoundRecords, slot: int, quote: int) -> Any:
    """One field of every record as binary; null where it is empty."""
    starts, ends = found.starts[slot], found.ends[slot]
    out = np.empty(int((ends - starts).sum()), dtype=np.uint8)
    offsets = np.empty(len(starts) + 1, dtype=np.int32)
    csv_records.gather_fields(found.data, starts, ends, quote, out, offsets)
    is_valid = np.packbits(np.diff(offsets) > 0, bitorder="little")
    buffers = [pa.py_buffer(is_valid), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), len(starts), buffers)
