"""Columns that are published unchanged: kept while their rows are pending, without values hidden under nulls."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
_FEW: Final = 4096


class CarriedColumns:
    """Rows by row number: batches one after another, and single records."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._chunks: list[tuple[Ints, pa.RecordBatch]] = []
        self._singles: dict[int, tuple[Any, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self.schema.names)

    def add(self, rows: Ints, batch: pa.RecordBatch) -> None:
        """Keep rows; their numbers ascend and are larger than all before."""
        if self and len(rows):
            self._gather_singles()
            # Values hidden under nulls would be published with the rows; take() drops those that are not in structs.
            columns = [with_null_children(column) for column in batch.cast(self.schema).columns]
            self._chunks.append((rows, pa.RecordBatch.from_arrays(columns, schema=self.schema)))

    def add_one(self, row: int, values: tuple[Any, ...]) -> None:
        """Keep a single record."""
        if self:
            self._singles[row] = values

    def take(self, rows: Ints) -> pa.RecordBatch:
        """The columns of some rows, in this order."""
        if not self:
            return pa.RecordBatch.from_pylist([], schema=self.schema)
        numbers, batch = self._joined()
        return batch.take(pa.array(np.searchsorted(numbers, rows)))

    def take_one(self, row: int) -> tuple[Any, ...]:
        """The values of one row, which is not needed again."""
        if row in self._singles:
            return self._singles.pop(row)
        numbers, batch = self._joined_batches()
        place = int(np.searchsorted(numbers, row))
        return tuple(column[place].as_py() for column in batch.columns)

    def keep_only(self, pending: Ints) -> None:
        """Forget rows that are no longer pending, once there are many."""
        if not self or sum(len(rows) for rows, _ in self._chunks) <= 2 * len(pending) + _FEW:
            return
        self.forget_all_but(pending)

    def forget_all_but(self, rows: Ints) -> pa.RecordBatch:
        """Forget all but these rows; return them."""
        batch = self.take(rows)
        self._chunks = [(rows, batch)] if len(rows) and self else []
        return batch

    def _joined(self) -> tuple[Ints, pa.RecordBatch]:
        self._gather_singles()
        return self._joined_batches()

    def _joined_batches(self) -> tuple[Ints, pa.RecordBatch]:
        if len(self._chunks) != 1:
            nothing = (np.empty(0, dtype=np.int64), pa.RecordBatch.from_pylist([], schema=self.schema))
            parts = [nothing, *self._chunks]
            whole = np.concatenate([rows for rows, _ in parts]), pa.concat_batches([batch for _, batch in parts])
            self._chunks = [whole]
        return self._chunks[0]

    def _gather_singles(self) -> None:
        """Turn single records into a batch; they arrived after all batches kept so far."""
        if not self._singles:
            return
        rows = np.array(list(self._singles), dtype=np.int64)
        columns = zip(*self._singles.values(), strict=True)
        arrays = [pa.array(values, type=field.type) for values, field in zip(columns, self.schema, strict=True)]
        self._singles = {}
        self._chunks.append((rows, pa.RecordBatch.from_arrays(arrays, schema=self.schema)))


# ---- values under nulls: Arrow keeps them in its buffers and would publish them


def picked(column: pa.Array, rows: pa.Array) -> pa.Array:
    """Some rows of a column, without values under nulls.

    Arrow clears values under nulls when it takes rows, but not in the children of a null struct.
    """
    return with_null_children(column).take(rows)


def with_null_children(column: pa.Array) -> pa.Array:
    """The same column; where a struct is null, however deep inside, its children are null as well."""
    if not has_struct(column.type):
        return column
    if pa.types.is_struct(column.type):
        children = [with_null_children(child) for child in column.flatten()]  # the struct's nulls become theirs
        return pa.StructArray.from_arrays(children, fields=list(column.type), mask=column.is_null())
    whole = column.take(pa.array(np.arange(len(column))))  # a slice shares its buffers with other rows
    values, nulls = with_null_children(whole.values), whole.is_null()
    if pa.types.is_fixed_size_list(column.type):
        return pa.FixedSizeListArray.from_arrays(values, type=column.type, mask=nulls)
    return type(whole).from_arrays(whole.offsets, values, type=column.type, mask=nulls)


def has_struct(kind: pa.DataType) -> bool:
    """Whether there is a struct in a type, at the top or in its lists."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return pa.types.is_struct(kind) or (is_list and has_struct(kind.value_type))
