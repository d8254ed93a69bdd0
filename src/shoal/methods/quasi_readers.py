"""Reads quasi-identifiers as numbers, from columns and from single values, with the same result."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.hierarchies import Hierarchy
from shoal.kernels.columns import LARGEST, read_numbers
from shoal.methods.schema_arrays import Leaves
from shoal.methods.text_keys import is_text_like
from shoal.methods.text_ranks import TextRanks
from shoal.schema import Categorical, Numeric, Quasi, grid_units

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

_MICRO: Final = 1e6
_MICROS: Final = 10**6
_BETWEEN: Final = 0.2
"""Least distance from a whole microsecond of a time that was read as half of one.

A float of seconds is exact to 0.24 µs until 2038, so no whole microsecond looks like a half, and to 0.48 µs until 2106:
there one may, and its range ends one microsecond further out.
"""
_MOMENT: Final = pa.timestamp("us", tz="UTC")
REFUSED: Final = object()
"""Instead of a number: the value is outside the domain, or unknown."""


class Reader(ABC):
    """Turns one column into numbers, and generalized numbers into published values."""

    name: str
    leaves: Leaves | None = None
    labels: pa.Array = pa.array([], type=pa.string())
    """The labels of all nodes of a hierarchy."""

    @abstractmethod
    def check_type(self, kind: pa.DataType) -> None:
        """Raise InputError where a column of this type cannot be used."""

    def read(self, column: pa.Array) -> tuple[Floats, Bools]:
        """The numbers of a column, NaN where missing, and which rows are refused."""
        raws = np.empty((2, len(column)))
        refused = self.read_into(column, raws[0], raws[1])
        return raws[0], refused

    @abstractmethod
    def read_into(self, column: pa.Array, raws: Floats, values: Floats) -> Bools:
        """Write the numbers of a column, and the same scaled, in one pass; return which rows are refused."""

    @abstractmethod
    def read_one(self, value: Any) -> Any:
        """The number of one value, NaN where missing, REFUSED where it is refused."""

    @abstractmethod
    def scaled(self, raws: Floats) -> Floats:
        """Numbers scaled as the kernels measure them."""

    @abstractmethod
    def output_type(self, kind: pa.DataType) -> pa.DataType:
        """The published type of a column of this type."""

    @abstractmethod
    def publish(self, low: Floats, high: Floats, node: Ints, hidden: Bools, kind: pa.DataType) -> pa.Array:
        """The published values, a range or a label for each row; `kind` is the published type."""

    @abstractmethod
    def publish_one(self, low: float, high: float, node: int, kind: pa.DataType) -> Any:
        """The published value of one row."""

    @abstractmethod
    def root(self) -> tuple[float, float, int]:
        """The whole domain."""


def reader_of(role: Quasi) -> Reader:
    """The reader of a quasi-identifier."""
    return NumericReader(role) if isinstance(role, Numeric) else CategoricalReader(role)


class NumericReader(Reader):
    """Numbers, and times as seconds."""

    def __init__(self, role: Numeric) -> None:
        self.name = role.name
        self._role = role

    def check_type(self, kind: pa.DataType) -> None:
        if not _is_number(kind) and not _is_moment(kind) and not pa.types.is_null(kind):
            raise InputError(f"column {self.name!r}: {kind} is not a number; give numbers or timestamps")
        role = self._role
        units = grid_units(role.low, role.high, role.grid) if role.grid and _is_moment(kind) else None
        if units is not None and _MICROS % units[0]:
            raise InputError(f"column {self.name!r}: low and grid of moments must be whole microseconds; round them")

    def read_into(self, column: pa.Array, raws: Floats, values: Floats) -> Bools:
        refused, role = np.empty(len(column), dtype=np.bool_), self._role
        read_numbers(_as_floats(column), float(role.low), float(role.high), self.clamps, raws, values, refused)
        return refused

    @property
    def clamps(self) -> bool:
        """Whether values outside the domain are moved to its ends."""
        return self._role.outside == "clamp"

    def count_clamped(self, column: pa.Array, usable: Bools) -> int:
        """How many usable rows had a value outside the domain that was clamped."""
        if self._role.outside != "clamp":
            return 0
        raws = _as_floats(column)[usable]
        outside = (raws < self._role.low) | (raws > self._role.high) | (np.abs(raws) >= LARGEST)
        return int(np.count_nonzero(outside))

    def is_clamped(self, value: Any) -> bool:
        """Whether one value is outside the domain and clamped."""
        number = _as_float(value) if self._role.outside == "clamp" else math.nan
        return number < self._role.low or number > self._role.high

    def read_one(self, value: Any) -> Any:
        number = _as_float(value)
        if number != number or self._role.low <= number <= self._role.high:  # noqa: PLR0124
            return number
        return min(max(number, self._role.low), self._role.high) if self._role.outside == "clamp" else REFUSED

    def scaled(self, raws: Floats) -> Floats:
        found: Floats = raws - self._role.low
        found /= self._role.high - self._role.low
        return found

    def output_type(self, kind: pa.DataType) -> pa.DataType:
        bound = pa.int64() if pa.types.is_integer(kind) else _MOMENT if _is_moment(kind) else pa.float64()
        return pa.struct([("lo", bound), ("hi", bound)])

    def publish(self, low: Floats, high: Floats, node: Ints, hidden: Bools, kind: pa.DataType) -> pa.Array:
        bound = kind.field(0).type
        # A range of whole numbers has those between its ends: rounding inward loses none.
        ends = [_bounds(np.where(hidden, 0.0, end), bound, is_low=at == 0) for at, end in enumerate((low, high))]
        return pa.StructArray.from_arrays(ends, fields=list(kind), mask=pa.array(hidden))

    def publish_one(self, low: float, high: float, node: int, kind: pa.DataType) -> Any:
        bound = kind.field(0).type
        return {"lo": _bound(low, bound, is_low=True), "hi": _bound(high, bound, is_low=False)}

    def root(self) -> tuple[float, float, int]:
        return float(self._role.low), float(self._role.high), 0


class CategoricalReader(Reader):
    """Values that are leaves of a hierarchy."""

    def __init__(self, role: Categorical) -> None:
        self.name = role.name
        self.leaves = Leaves(cast(Hierarchy, role.hierarchy))
        self.ranks = TextRanks(self.leaves.ranks)
        self.labels = pa.array(self.leaves.labels, type=pa.string())

    def check_type(self, kind: pa.DataType) -> None:
        if not is_text_like(kind):
            raise InputError(f"column {self.name!r}: {kind} has no labels; give text, whole numbers or truth values")

    def read_into(self, column: pa.Array, raws: Floats, values: Floats) -> Bools:
        return self.ranks.read_into(column, raws, values)

    def read_one(self, value: Any) -> Any:
        if value is None:
            return math.nan
        rank = self.ranks.of(value)
        return REFUSED if rank is None else float(rank)

    def scaled(self, raws: Floats) -> Floats:
        return raws

    def output_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.string()

    def publish(self, low: Floats, high: Floats, node: Ints, hidden: Bools, kind: pa.DataType) -> pa.Array:
        return self.labels.take(pa.array(node, mask=hidden))

    def publish_one(self, low: float, high: float, node: int, kind: pa.DataType) -> Any:
        assert self.leaves is not None
        return self.leaves.labels[node]

    def root(self) -> tuple[float, float, int]:
        assert self.leaves is not None
        return 0.0, float(len(self.leaves) - 1), 0


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _as_floats(column: pa.Array) -> Floats:
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if _is_moment(column.type):
        zone = getattr(column.type, "tz", None)
        is_fine = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
        moments = column.cast(pa.timestamp("ns" if is_fine else "us", tz=zone), safe=False).cast(pa.int64())
        whole = np.asarray(pc.fill_null(moments, 0).to_numpy(zero_copy_only=False))
        seconds = _fine_seconds(whole) if is_fine else whole / _MICRO
        return np.where(np.asarray(column.is_valid().to_numpy(zero_copy_only=False)), seconds, np.nan)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # a direct cast does not always give the nearest float
    return np.asarray(_filled(column.cast(pa.float64(), safe=False)))


def _fine_seconds(nanoseconds: Ints) -> Floats:
    """Seconds to half a microsecond: every time between two microseconds counts as halfway.

    Ends of ranges are whole microseconds; the half tells that an end must be rounded outward.
    """
    micros = np.floor_divide(nanoseconds, 1000)  # rounds down, also before 1970
    between: Floats = (micros * 1000 != nanoseconds) * 0.5
    seconds: Floats = (micros + between) / _MICRO
    return seconds


def _filled(column: pa.Array) -> npt.NDArray[Any]:
    whole = pc.fill_null(column, math.nan) if column.null_count else column
    return cast("npt.NDArray[Any]", whole.to_numpy(zero_copy_only=False))


def _as_float(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        between = 0.5 if getattr(moment, "nanosecond", 0) else 0.0  # pandas timestamps have nanoseconds
        return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds + between) / _MICRO
    if isinstance(value, int | float | Decimal | np.number) and not isinstance(value, bool):
        number = float(value)
        return math.copysign(math.inf, number) if abs(number) >= LARGEST else number
    raise InputError("a value is not a number")  # the caller names the column


def _bounds(ends: Floats, kind: pa.DataType, *, is_low: bool) -> pa.Array:
    if pa.types.is_timestamp(kind):
        micros = ends * _MICRO
        whole = np.rint(micros)
        between = np.abs(micros - whole) > _BETWEEN
        outward = np.where(between, np.floor(micros) if is_low else np.ceil(micros), whole)
        return pa.array(outward.astype(np.int64)).cast(kind)
    if pa.types.is_integer(kind):
        return pa.array((np.ceil(ends) if is_low else np.floor(ends)).astype(np.int64))
    return pa.array(ends + 0.0)  # -0.0 becomes 0.0: two spellings of one number would distinguish rows


def _bound(end: float, kind: pa.DataType, *, is_low: bool) -> Any:
    if pa.types.is_timestamp(kind):
        return _bounds(np.array([end]), kind, is_low=is_low)[0].as_py()
    if pa.types.is_integer(kind):
        return math.ceil(end) if is_low else math.floor(end)
    return end + 0.0
