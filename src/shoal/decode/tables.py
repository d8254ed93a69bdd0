"""What decoders of typed formats share: their columns have types already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import BATCH_ROWS, Decoded, Decoder, Position, Refused, plain_type
from shoal.decode.columns import NOT_UTF8, as_text, fit, refused_misfits
from shoal.errors import InputError

_VIEWS: Final = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}


class TableDecoder(Decoder):
    """Reads columns of a format that stores their types.

    Encoded and large variants become basic types. A column is converted to its declared type if numbers stay
    numbers and text stays text; a value that does not fit is refused, a column of another kind is an InputError.
    """

    def _resolve(self, found: pa.Schema) -> pa.Schema:
        """The schema of the batches, checked against the file's."""
        indices = self._indices(found.names, remedy="correct the policy or the file")
        return pa.schema([(found.field(at).name, self._target(found.field(at))) for at in indices])

    def _target(self, field: pa.Field) -> pa.DataType:
        kind = self._declared.get(field.name, plain_type(field.type))
        if not is_widening(field.type, kind):
            raise InputError(
                f"{self._file.name}: column {field.name!r} has type {field.type} where {kind} is expected; "
                "convert the file or read it separately"
            )
        return kind

    def _decode(self, batch: pa.RecordBatch, schema: pa.Schema, position: Position) -> Decoded:
        refused: list[Refused] = []
        columns = []
        for field in schema:
            column, wrong = self._column(batch.column(field.name), field)
            columns.append(column)
            refused += wrong
        return Decoded.of(columns, schema, refused, position)

    def _column(self, column: Any, field: pa.Field) -> tuple[Any, list[Refused]]:
        refused: list[Refused] = []
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            column, bad = self._repair(column, field.name)
            refused = [Refused(int(row), field.name, NOT_UTF8) for row in bad]
        column, misfits = fit(_plain(column), field.type)
        return column, refused + refused_misfits(misfits, field.name, field.type)

    def _repair(self, column: Any, name: str) -> tuple[Any, Any]:
        """Refuse rows whose text is not UTF-8; any other invalid content means that the file is damaged."""
        try:
            raw = _as_bytes(column)
            raw.validate(full=True)
            return as_text(_plain(raw).cast(pa.binary()))
        except (KeyError, pa.ArrowInvalid):
            raise InputError(f"{self._file.name}: column {name!r} is damaged; fetch the file again") from None


def pieces(batch: pa.RecordBatch, skip: int, rows: int = BATCH_ROWS) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Split a large batch, without its first `skip` rows; yields each part and the row after it."""
    for start in range(skip, batch.num_rows, rows):
        part = batch.slice(start, rows)
        yield part, start + part.num_rows


def _as_bytes(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _as_bytes(column.dictionary), safe=False)
    return column.view(_VIEWS[column.type])


def _plain(column: Any) -> Any:
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage)
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode())
    if pa.types.is_run_end_encoded(column.type):
        return _plain(pc.run_end_decode(column))
    return column


def is_widening(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether one type can be converted to the other: numbers stay numbers, text stays text."""
    source = plain_type(source)
    if source == target or pa.types.is_null(source):
        return True
    if pa.types.is_integer(source):
        return bool(pa.types.is_integer(target) or pa.types.is_floating(target))
    kinds = (pa.types.is_floating, pa.types.is_timestamp)
    return any(is_kind(source) and is_kind(target) for is_kind in kinds) or _is_text(source, target)


def _is_text(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(plain_type(target) == pa.string() and source == pa.string())
