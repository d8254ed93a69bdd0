"""Group records by normal quasi-identifiers: by categorical value, or by the grid cell of a number or moment."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.policy import Policy
from shoal.schema import Numeric

Ints = npt.NDArray[np.int64]


Floats = npt.NDArray[np.float64]


_SECOND: Final = 1_000_000_000


_MOST_DECIMALS: Final = 9


_LOOKED_AT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Normal:
    """A column that defines groups, or a number that must stay in its cell."""

    name: str
    low: float = 0.0
    grid: float | None = None
    """Width of a cell; None: every value is its own cell."""
    is_grouped: bool = True
    """False for a time that only orders records."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The group of every record, and a keyed name for every group."""

    of: Ints
    names: Ints


def group(key: bytes, data: pa.Table, normals: Sequence[Normal]) -> Groups:
    """Group the records of a table."""
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
    """Return whether a column has cells."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def numbers(column: pa.Array) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return the values (integers stay integers, null becomes 0), and which are not null."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        usable = np.isfinite(values)
        return np.where(usable, values, 0.0), is_there & usable
    return values.astype(np.int64), is_there


def low_of(kind: pa.DataType, normal: Normal) -> Any:
    """Return where cells begin, in the unit of the column."""
    return round(normal.low * _SECOND) if pa.types.is_timestamp(kind) else normal.low


def width_of(kind: pa.DataType, normal: Normal) -> Any:
    """Return the width of cells, in the unit of the column."""
    grid = normal.grid or 1.0
    return max(1, round(grid * _SECOND)) if pa.types.is_timestamp(kind) else grid


def shifted(values: Any, kind: pa.DataType, normal: Normal, shifts: Any) -> Any:
    """Shift numbers cyclically within their cells; a number that rounding would move to another cell stays."""
    low, width = low_of(kind, normal), width_of(kind, normal)
    cells = cells_of(values, kind, normal)
    moved = low + cells * width + np.mod(values - low - cells * width + shifts, width)
    moved = like(moved, values)
    return np.where(cells_of(moved, kind, normal) == cells, moved, values)


def cells_of(values: Any, kind: pa.DataType, normal: Normal) -> Any:
    """Return the cell of every number."""
    return np.floor_divide(values - low_of(kind, normal), width_of(kind, normal))


def offsets(values: Any, kind: pa.DataType, normal: Normal) -> Any:
    """Return the offset of every number in its cell."""
    return np.mod(values - low_of(kind, normal), width_of(kind, normal))


def like(made: Any, real: Any) -> Any:
    """Round numbers to as many decimals as the real ones have."""
    if real.dtype.kind != "f":
        return np.rint(made).astype(np.int64)
    decimals = decimals_of(real)
    return made if decimals is None else np.round(made, decimals)


def decimals_of(values: Floats) -> int | None:
    """Return the number of decimals that all values need; None if more than nine."""
    looked = values[:_LOOKED_AT]
    for decimals in range(_MOST_DECIMALS + 1):
        if np.array_equal(np.round(looked, decimals), looked):
            return decimals
    return None


def as_column(values: Any, is_there: npt.NDArray[np.bool_], kind: pa.DataType) -> pa.Array:
    """Return numbers as a column of the original type."""
    if pa.types.is_timestamp(kind):
        made = pa.array(values.astype(np.int64), mask=~is_there)
        return made.cast(pa.timestamp("ns", kind.tz)).cast(kind, safe=False)
    return pa.array(values, mask=~is_there).cast(kind, safe=False)


def column_of(data: pa.Table, name: str) -> pa.Array:
    """Return a column as one array."""
    column = data.column(name).combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


_HOUR: Final = 3600.0


def normals_of(policy: Policy, schema: pa.Schema) -> list[Normal]:
    """Return all quasi-identifiers except sparse ones; a time that only orders records stays in its hour, too."""
    sparse = sparse_columns(policy)
    found = [_normal(role, schema) for role in policy.parameters()["schema"].quasi if role.name not in sparse]
    time = policy.stream.time
    has_role = time in sparse or any(own.name == time for own in found)
    if time is not None and not has_role and is_number(schema.field(time).type):
        found.append(Normal(time, grid=_HOUR, is_grouped=False))
    return found


def sparse_columns(policy: Policy) -> set[str]:
    """Return the sparse columns: those named by the policy, else those with an ontology."""
    named = getattr(policy.anonymize, "sparse", ())
    if isinstance(named, tuple | list):
        return set(named)
    quasi: dict[str, Any] = getattr(policy.anonymize, "quasi", {})
    return {name for name, own in quasi.items() if getattr(own, "kind", "") == "ontology"}


def _normal(role: Any, schema: pa.Schema) -> Normal:
    if not isinstance(role, Numeric):
        return Normal(role.name)
    is_moment = pa.types.is_timestamp(schema.field(role.name).type)
    grid = role.grid if role.grid is not None else (_HOUR if is_moment else None)
    return Normal(role.name, low=float(role.low), grid=None if grid is None else float(grid))
