"""Normal quasi-identifiers as groups: categorical values as they are, numbers and moments by the cell of a grid."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_SECOND: Final = 1_000_000_000
_MOST_DECIMALS: Final = 9
_LOOKED_AT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Normal:
    """A column that tells groups apart, or only a number that must stay in its cell."""

    name: str
    low: float = 0.0
    grid: float | None = None
    """Width of a cell; None: every value is a cell of its own."""
    is_grouped: bool = True
    """False for a time that orders records and is no quasi-identifier."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Which group each record is in, and a name for each that only the key gives."""

    of: Ints
    names: Ints


def group(key: bytes, data: pa.Table, normals: Sequence[Normal]) -> Groups:
    """Groups of the records of a table."""
    texts = [
        pc.fill_null(_cell_texts(column_of(data, normal.name), normal), "-") for normal in normals if normal.is_grouped
    ]
    coded = pc.binary_join_element_wise(*texts, pa.repeat("", data.num_rows), "\x1f").dictionary_encode()
    names = [
        int.from_bytes(hashlib.blake2b(text.encode(), key=key, digest_size=8).digest(), signed=True)
        for text in coded.dictionary.to_pylist()
    ]
    return Groups(coded.indices.to_numpy().astype(np.int64), np.array(names, dtype=np.int64))


def _cell_texts(column: pa.Array, normal: Normal) -> pa.Array:
    if normal.grid is None or not is_number(column.type):
        text = column.cast(pa.string())
        return pc.binary_join_element_wise(pc.binary_length(text).cast(pa.string()), text, ":")
    values, is_there = numbers(column)
    cells = cells_of(values, column.type, normal)
    return pc.if_else(pa.array(is_there), pa.array(cells).cast(pa.string()), None)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column has cells."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def numbers(column: pa.Array) -> tuple[Any, npt.NDArray[np.bool_]]:
    """The values, whole numbers where they are, and which are there; those that are not are 0."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        usable = np.isfinite(values)
        return np.where(usable, values, 0.0), is_there & usable
    return values.astype(np.int64), is_there


def low_of(kind: pa.DataType, normal: Normal) -> Any:
    """Where cells begin, in the unit of the column."""
    return round(normal.low * _SECOND) if pa.types.is_timestamp(kind) else normal.low


def width_of(kind: pa.DataType, normal: Normal) -> Any:
    """How wide they are."""
    grid = normal.grid or 1.0
    return max(1, round(grid * _SECOND)) if pa.types.is_timestamp(kind) else grid


def shifted(values: Any, kind: pa.DataType, normal: Normal, shifts: Any) -> Any:
    """Numbers moved on within their cells, round and round; where rounding would leave the cell they stay."""
    low, width = low_of(kind, normal), width_of(kind, normal)
    cells = cells_of(values, kind, normal)
    moved = low + cells * width + np.mod(values - low - cells * width + shifts, width)
    moved = like(moved, values)
    return np.where(cells_of(moved, kind, normal) == cells, moved, values)


def cells_of(values: Any, kind: pa.DataType, normal: Normal) -> Any:
    """Numbers of the cells that numbers are in."""
    return np.floor_divide(values - low_of(kind, normal), width_of(kind, normal))


def offsets(values: Any, kind: pa.DataType, normal: Normal) -> Any:
    """How far into their cells numbers are."""
    return np.mod(values - low_of(kind, normal), width_of(kind, normal))


def like(made: Any, real: Any) -> Any:
    """Numbers with as many decimals as the real ones have."""
    if real.dtype.kind != "f":
        return np.rint(made).astype(np.int64)
    decimals = decimals_of(real)
    return made if decimals is None else np.round(made, decimals)


def decimals_of(values: Floats) -> int | None:
    """Decimals that are enough to write every value; None where up to nine are not."""
    looked = values[:_LOOKED_AT]
    for decimals in range(_MOST_DECIMALS + 1):
        if np.array_equal(np.round(looked, decimals), looked):
            return decimals
    return None


def as_column(values: Any, is_there: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Numbers as a column of the type they came from."""
    if pa.types.is_timestamp(kind):
        made = pa.array(values.astype(np.int64), mask=~is_there)
        return made.cast(pa.timestamp("ns", kind.tz)).cast(kind, safe=False)
    return pa.array(values, mask=~is_there).cast(kind, safe=False)


def column_of(data: pa.Table, name: str) -> pa.Array:
    """A column in one piece."""
    column = data.column(name).combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
