"""CSV text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Decoded, Decoder, Position, Readable, Refused
from shoal.decode.blocks import BLOCK_BYTES, MAX_RECORD_BYTES, Blocks
from shoal.decode.columns import NOT_UTF8, as_text, fit, refused_misfits, trimmed, without_spellings
from shoal.decode.csv_finder import REASONS, FoundRecords, RecordFinder, field_column
from shoal.errors import InputError, PolicyError
from shoal.kernels import csv_records

_DELIMITERS: Final = ",;\t|"
_REMEDY: Final = (
    "correct the policy; if the first line is a record and no header, name the columns in [source], such as "
    'header = ["first", "second"]'
)


class CsvDecoder(Decoder):
    """Delimited text in UTF-8, with or without a header line.

    An empty field, quoted or not, is null, and so is one of the words of `nulls`. Columns are text unless `types` says
    otherwise; then spaces around a value do not count. A quote is special at the start of a field only. Blank lines
    are no records.

    Parameters
    ----------
    header
        Names of the columns of a file without a header line; None: the first line has them.
    trim
        Remove blanks (Unicode white space) around every value and every name of the header line, quoted or not. A value
        of nothing but blanks is null.
    nulls
        Words that stand for a missing value, in every column.
    max_record_bytes
        A longer record is refused and skipped to its line's end. For a quoted field still open after that many
        bytes, or at the end of the file, only its first line is refused.
    """

    def __init__(  # noqa: PLR0913 - one for every setting
        self,
        file: Readable,
        *,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType] | None = None,
        delimiter: str = ",",
        quote: str = '"',
        header: Sequence[str] | None = None,
        nulls: Sequence[str] = (),
        trim: bool = False,
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = BLOCK_BYTES,
        optional: Collection[str] = (),
    ) -> None:
        super().__init__(file, columns=columns, types=types, optional=optional)
        self._table = _byte_table(delimiter, quote)
        self._delimiter, self._quote = delimiter, ord(quote)
        self._header = None if header is None else tuple(header)
        self._nulls = tuple(nulls)
        self._trim = trim
        self._longest = max_record_bytes
        self._block_bytes = block_bytes
        self._schema = pa.schema([(name, self._type_of(name)) for name in self._columns])
        self._pending: RecordFinder | None = None
        self._slots: npt.NDArray[np.int64] | None = None

    @property
    def schema(self) -> pa.Schema:
        if self._slots is None:
            self._pending = self._begin()
        return self._schema

    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        window = self._take_pending() or self._begin()
        try:
            if position is not None:
                window.go_to(position)
            for found in window.records(self._slots):
                yield self._decode(found, window.position)
            if window.blocks.failure is not None:
                raise window.blocks.failure
        finally:
            window.blocks.close()

    def close(self) -> None:
        pending = self._take_pending()
        if pending is not None:
            pending.blocks.close()

    def _take_pending(self) -> RecordFinder | None:
        pending, self._pending = self._pending, None
        return pending

    def _type_of(self, name: str) -> pa.DataType:
        kind = self._declared.get(name, pa.string())
        try:
            pa.array([], type=pa.string()).cast(kind)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise InputError(f"{self._file.name}: column {name!r} of a CSV file cannot be read as {kind}") from None
        return kind

    def _begin(self) -> RecordFinder:
        blocks = Blocks(self._file.open(), name=self._file.name, block_bytes=self._block_bytes)
        try:
            window = RecordFinder(blocks, self._table, self._longest)
            names = self._names(window)
            self._slots = np.full(len(names), -1, dtype=np.int64)
            indices = self._indices(names, remedy=self._remedy(names))
            self._slots[indices] = np.arange(len(indices))
            self._schema = pa.schema([self._schema.field(name) for name in self._columns])
        except BaseException:
            blocks.close()
            raise
        return window

    def _names(self, window: RecordFinder) -> tuple[str, ...]:
        if self._header is not None:
            return self._header
        names = window.header(self._quote)
        return tuple(name.strip() for name in names) if self._trim else names

    def _remedy(self, names: Sequence[str]) -> str:
        """What to do where a column is missing; names of the file's columns are not shown, they may be a record."""
        if self._header is not None:
            return "correct [source] header or the name of the column"
        if any(names.count(name) > 1 for name in self._needed):
            return "give every column a name of its own, in the file or by header = [names] in [source]"
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

    def _decode(self, found: FoundRecords, position: Position) -> Decoded:
        refused = [
            Refused(int(row), None, REASONS.get(int(found.codes[row])) or self._wrong_count(int(found.counts[row])))
            for row in np.flatnonzero(found.codes)
        ]
        columns = []
        for slot, field in enumerate(self._schema):
            text, bad = as_text(field_column(found, slot, self._quote))
            refused += [Refused(int(row), field.name, NOT_UTF8) for row in bad]
            text = without_spellings(trimmed(text) if self._trim else text, self._nulls)
            if field.type != pa.string():
                text, bad = fit(pc.utf8_trim_whitespace(text), field.type)
                refused += refused_misfits(bad, field.name, field.type)
            columns.append(text)
        return Decoded.of(columns, self._schema, refused, position, found.lines)

    def _wrong_count(self, fields: int) -> str:
        assert self._slots is not None
        header = "the header has" if self._header is None else "[source] header names"
        remedy = "quote what holds the delimiter"
        if fields == 1:
            remedy = "complete the record, or set [source] delimiter if another character stands between fields"
        elif self._header is not None:
            remedy += ", or name every column of the file"
        return f"{fields} field{'s' * (fields != 1)} where {header} {len(self._slots)}; {remedy}"


def _byte_table(delimiter: str, quote: str) -> npt.NDArray[np.uint8]:
    """What each of the 256 bytes means."""
    if not all(len(sign) == 1 and sign.isascii() and sign not in "\0\r\n" for sign in (delimiter, quote)):
        raise PolicyError("delimiter and quote: each must be one ASCII character and no line end")
    if delimiter == quote:
        raise PolicyError("delimiter and quote: must differ")
    table = np.zeros(256, dtype=np.uint8)
    signs = [0, ord("\n"), ord("\r"), ord(delimiter), ord(quote)]
    table[signs] = [csv_records.NUL, csv_records.LF, csv_records.CR, csv_records.DELIMITER, csv_records.QUOTE]
    return table
