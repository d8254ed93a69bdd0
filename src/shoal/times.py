"""Event times as int64 nanoseconds: Arrow columns and single Python values, with the same result for both."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_Convert = Callable[[pa.Array, int], tuple[Ints, Bools]]

EARLIEST: Final = -(2**62)
LATEST: Final = 2**62 - 1
"""Times are between the years 1824 and 2116: the difference of any two fits 64 bits."""

_FIRST_FLOAT: Final = float(EARLIEST)
_END_FLOAT: Final = 2.0**62
_SECOND: Final = 1_000_000_000
UNITS: Final = {"s": _SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
"""Units of numeric times, in nanoseconds."""
UNIT_NAMES: Final = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_FEW: Final = 32
_WHOLE: Final = r"^[+-]?[0-9]{1,30}$"
_DECIMAL: Final = r"^[+-]?[0-9]+([.][0-9]+([eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)$"
_CLOCK: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,9})?)?"
_ZONED: Final = _CLOCK + r")(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_UNZONED: Final = _CLOCK + r")?$"
# In Python `$` also matches before a line end, in Arrow it does not.
_WHOLE_RE: Final = re.compile(_WHOLE.replace("$", r"\Z"))
_DECIMAL_RE: Final = re.compile(_DECIMAL.replace("$", r"\Z"))
_ISO_RE: Final = re.compile(
    r"^(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<minute>[0-9]{2}:[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.](?P<fraction>[0-9]{1,9}))?)?"
    r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\Z"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_time_type(kind: pa.DataType) -> bool:
    """Whether a column of this type can be a time column."""
    if pa.types.is_dictionary(kind):
        return is_time_type(kind.value_type)
    tests = (
        pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer, pa.types.is_floating,
        pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null,
    )  # fmt: skip
    return any(test(kind) for test in tests)


def column_ns(column: pa.Array, unit: int = _SECOND) -> tuple[Ints, Bools]:
    """Times of a column in nanoseconds, and which of them are usable (the others are 0).

    `unit` is the unit of numbers, in nanoseconds; timestamps, dates and ISO 8601 text do not depend on it.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _instants_ns(column)
    if pa.types.is_integer(kind):
        return _whole_ns(column, unit)
    if pa.types.is_floating(kind):
        return _float_ns(_filled(column.cast(pa.float64()), np.nan), unit)
    return _texts_ns(column.cast(pa.string()), unit)


def value_ns(value: Any, unit: int = _SECOND) -> int | None:
    """Time of one Python value in nanoseconds; None if it is not a usable time. `unit` is the unit of numbers.

    >>> value_ns("1970-01-01T00:00:01.5Z") == value_ns(1.5) == value_ns("1.5") == 1_500_000_000
    True
    """
    if isinstance(value, float | np.floating):
        scaled = float(value) * unit
        return round(scaled) if _FIRST_FLOAT <= scaled < _END_FLOAT else None  # NaN fails too
    if isinstance(value, bool | np.bool_):
        return None
    return _within(_exact_ns(value, unit))


def _exact_ns(value: Any, unit: int) -> int | None:
    if isinstance(value, int | np.integer):
        return int(value) * unit
    if isinstance(value, str):
        return _text_ns(value, unit)
    if isinstance(value, datetime):
        return _datetime_ns(value)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days * 86_400 * _SECOND
    if isinstance(value, np.datetime64):
        return _datetime64_ns(value)
    return None


def _within(nanoseconds: int | None) -> int | None:
    return nanoseconds if nanoseconds is not None and EARLIEST <= nanoseconds <= LATEST else None


def _datetime_ns(value: datetime) -> int | None:
    if value != value:  # pandas' NaT  # noqa: PLR0124
        return None
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    # pandas.Timestamp is a datetime with a nanosecond part on top
    return (aware - _EPOCH) // timedelta(microseconds=1) * 1000 + int(getattr(value, "nanosecond", 0))


def _datetime64_ns(value: np.datetime64) -> int | None:
    nanoseconds = value.astype("datetime64[ns]")
    # NumPy wraps round where a time does not fit; seconds have room for all years, and NaT equals nothing
    if np.isnat(value) or nanoseconds.astype("datetime64[s]") != value.astype("datetime64[s]"):
        return None
    return int(nanoseconds.astype(np.int64))


def _text_ns(text: str, unit: int) -> int | None:
    if _WHOLE_RE.match(text):
        return int(text) * unit
    if _DECIMAL_RE.match(text):
        return value_ns(float(text), unit)
    match = _ISO_RE.match(text)
    if match is None:
        return None
    day, clock = match["date"], f"{match['minute'] or '00:00'}:{match['second'] or '00'}"
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}+00:00")
    except ValueError:
        return None
    nanoseconds = (whole - _EPOCH) // timedelta(microseconds=1) * 1000
    offset = _zone_ns(match["zone"])
    return None if offset is None else nanoseconds + int((match["fraction"] or "").ljust(9, "0")) - offset


def _zone_ns(zone: str | None) -> int | None:
    """How far a zone is ahead of UTC; None if the zone does not exist."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:]) if len(zone) > 3 else 0
    if hours > 23 or minutes > 59:
        return None
    ahead = (hours * 60 + minutes) * 60 * _SECOND
    return -ahead if zone[0] == "-" else ahead


def _filled(column: pa.Array, value: float) -> npt.NDArray[np.float64]:
    return np.asarray(pc.fill_null(column, value).to_numpy(zero_copy_only=False), dtype=np.float64)


def _float_ns(numbers: npt.NDArray[np.float64], unit: int) -> tuple[Ints, Bools]:
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = np.rint(numbers * unit)
        usable = (scaled >= EARLIEST) & (scaled < LATEST + 1)  # a float cannot hold LATEST exactly; NaN fails too
    return np.where(usable, scaled, 0).astype(np.int64), usable


def _whole_ns(column: pa.Array, unit: int) -> tuple[Ints, Bools]:
    if not column.null_count:
        numbers = np.asarray(column)
        if not len(numbers) or -(-EARLIEST // unit) <= int(numbers.min()) <= int(numbers.max()) <= LATEST // unit:
            return numbers.astype(np.int64) * unit, np.ones(len(numbers), dtype=np.bool_)
    present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    numbers = np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
    usable = present & (numbers <= LATEST // unit)
    if numbers.dtype.kind == "i":
        usable &= numbers >= -(-EARLIEST // unit)
    return np.where(usable, numbers, 0).astype(np.int64) * unit, usable


def _instants_ns(column: pa.Array) -> tuple[Ints, Bools]:
    kind = column.type
    if pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    per_unit = UNITS[kind.unit]
    present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    units = np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False))
    usable = present & (units <= LATEST // per_unit) & (units >= -(-EARLIEST // per_unit))
    if per_unit == 1 and bool(usable.all()):
        return units, usable
    return np.where(usable, units, 0) * per_unit, usable


def _texts_ns(column: pa.StringArray, unit: int) -> tuple[Ints, Bools]:
    """Convert whole groups of texts of one form."""
    times = np.zeros(len(column), dtype=np.int64)
    usable = np.zeros(len(column), dtype=np.bool_)
    for pattern, convert in _FORMS:
        matches = pc.fill_null(pc.match_substring_regex(column, pattern), fill_value=False)
        chosen = np.flatnonzero(matches.to_numpy(zero_copy_only=False))
        if len(chosen):
            times[chosen], usable[chosen] = _group_ns(column.take(pa.array(chosen)), convert, unit)
    return times, usable


def _group_ns(texts: pa.StringArray, convert: _Convert, unit: int) -> tuple[Ints, Bools]:
    """Convert a group at once; if Arrow refuses one of its texts, bisect down to the bad ones."""
    try:
        return convert(texts, unit)
    except pa.ArrowInvalid:
        half = len(texts) // 2
    if half < _FEW:
        return _singly_ns(texts, unit)
    parts = [_group_ns(part, convert, unit) for part in (texts.slice(0, half), texts.slice(half))]
    return np.concatenate([times for times, _ in parts]), np.concatenate([usable for _, usable in parts])


def _singly_ns(texts: pa.StringArray, unit: int) -> tuple[Ints, Bools]:
    values = [_within(_text_ns(text, unit)) for text in texts.to_pylist()]
    usable = np.array([value is not None for value in values], dtype=np.bool_)
    return np.array([value or 0 for value in values], dtype=np.int64), usable


_FORMS: Final[tuple[tuple[str, _Convert], ...]] = (
    (_ZONED, lambda texts, _: _instants_ns(texts.cast(pa.timestamp("ns", tz="UTC")))),
    (_UNZONED, lambda texts, _: _instants_ns(texts.cast(pa.timestamp("ns")))),
    (_WHOLE, lambda texts, unit: _whole_ns(texts.cast(pa.int64()), unit)),
    (_DECIMAL, lambda texts, unit: _float_ns(_filled(texts.cast(pa.float64()), np.nan), unit)),
)


def now_ns(value: Any, *, name: str) -> int:
    """Time of a value given by a caller; raises InputError if it is not a time."""
    nanoseconds = value_ns(value)
    if nanoseconds is None:
        raise InputError(f"{name}: not a time; give seconds, a datetime or ISO 8601 text between 1824 and 2116")
    return nanoseconds
