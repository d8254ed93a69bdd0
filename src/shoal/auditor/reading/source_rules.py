"""Read the truth as the policy's [stream] says: rows as persons, and what numbers in the time column count."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.promise import Policy
from shoal.auditor.reading.columns import Bools, as_ns
from shoal.auditor.reading.lines import Part
from shoal.auditor.reading.tables import Rows
from shoal.errors import PolicyError

_ROW: Final = "row"
_UNITS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_FARTHEST: Final = 2**62
"""The largest distance of a time from 1970, in nanoseconds: times lie between 1824 and 2116."""
_LOOKED_AT: Final = 1_000
"""How many first records of JSON lines are searched; a key that none of them has counts as absent."""


def by_stream(truth: Rows, policy: Policy) -> Rows:
    """Return the truth with times as timestamps and a column of row numbers, where the policy asks for them."""
    stream = policy.section("stream")
    unit, time = stream.get("time_unit"), stream.get("time")
    if unit is not None and unit not in _UNITS:
        raise PolicyError(f"[stream] time_unit: must be one of {', '.join(_UNITS)}")
    parts = truth.parts
    if unit is not None and isinstance(time, str):
        parts = tuple(_in_unit(part, time, _UNITS[unit]) for part in parts)
    if stream.get("person") == _ROW and not any(_has_rows(columns) for columns, _ in parts):
        parts = _numbered(parts)
    return Rows(parts, truth.name, truth.claims)


def _in_unit(part: Part, time: str, unit: int) -> Part:
    """Turn numbers into timestamps; a record whose time is there and none cannot be read."""
    columns, broken = part
    if time not in columns or _is_instant(columns[time]):
        return part
    column = columns[time]
    nanoseconds, valid = as_ns(column, unit)
    valid &= (nanoseconds >= -_FARTHEST) & (nanoseconds < _FARTHEST)
    present = _present(column)
    moments = pa.array(np.where(valid, nanoseconds, 0), mask=~valid).cast(pa.timestamp("ns", "UTC"))
    return {**columns, time: moments}, broken | (present & ~valid)


def _is_instant(column: Any) -> bool:
    if isinstance(column, list):
        return False
    return bool(pa.types.is_timestamp(column.type) or pa.types.is_date(column.type))


def _present(column: Any) -> Bools:
    if isinstance(column, list):
        return np.array([value is not None for value in column], np.bool_)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _has_rows(columns: dict[str, Any]) -> bool:
    """Tell whether there is a real column named like the rows."""
    found = columns.get(_ROW)
    return any(value is not None for value in found[:_LOOKED_AT]) if isinstance(found, list) else found is not None


def _numbered(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Number the rows over all parts; a record that cannot be read is nobody's."""
    found, start = [], 0
    for columns, broken in parts:
        numbers = np.arange(start, start + len(broken), dtype=np.int64)
        found.append(({**columns, _ROW: pa.array(numbers, mask=broken)}, broken))
        start += len(broken)
    return tuple(found)
