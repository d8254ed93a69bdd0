"""Read a column as text or as nanoseconds, whatever type it came in."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

TEXT: Final = pa.large_string()
CODED_TEXT: Final = pa.dictionary(pa.int32(), TEXT)
"""Dictionary-encoded text: a repeated text takes four bytes."""
_SECOND: Final = 1_000_000_000
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)? ?(?:[Zz]|([+-])(\d\d):?(\d\d)?)?)?",
    re.ASCII,
)
_CAST_TO_TEXT: Final = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_temporal, pa.types.is_null)
_UNITS: Final = {"s": _SECOND, "ms": 1_000_000, "us": 1_000, "ns": 1}
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def as_text(column: Any) -> Any:
    """Return a column as Arrow text; numbers have one spelling, so 5 and 5.0 are the same; NaN is null."""
    if isinstance(column, list):
        return pa.array([_spell(value) for value in column], TEXT)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_text(column.cast(kind.value_type))
    if _is_bytes(kind):
        return _checked_text(column)
    if any(is_kind(kind) for is_kind in _CAST_TO_TEXT):
        return column.cast(TEXT)
    return pa.array([_spell(value) for value in column.to_pylist()], TEXT)


def _is_bytes(kind: Any) -> bool:
    types = pa.types
    text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return bool(text or types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _checked_text(column: Any) -> Any:
    """Cast to text; bytes that are not UTF-8 become null, which makes their row unusable."""
    raw = column.cast(pa.large_binary())
    try:
        return raw.cast(TEXT)
    except pa.ArrowInvalid:
        return pa.array([_decoded(value) for value in raw.to_pylist()], TEXT)


def not_text(column: Any) -> Bools:
    """Mark the rows whose bytes are not UTF-8: anything could be hidden there."""
    kind = column.type
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not _is_bytes(inner):
        return np.zeros(len(column), np.bool_)
    given = column.is_valid()
    return np.asarray(pc.and_(given, pc.is_null(as_text(column))).to_numpy(zero_copy_only=False), np.bool_)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _spell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        return _spell_number(value)
    return json.dumps(value, default=str, sort_keys=True)


def _spell_number(value: float | Decimal) -> str | None:
    if not math.isfinite(value):
        return None if math.isnan(value) else str(float(value))
    if value == int(value):
        return str(int(value))
    short = repr(float(value))
    return short if Decimal(short) == value or isinstance(value, float) else format(value, "f").rstrip("0")


def plain(text: str) -> str:
    """Return one spelling of a carried value: formats spell numbers and times differently."""
    if _WHOLE.fullmatch(text) and len(text) < 40:
        return str(int(text))
    if _NUMBER.fullmatch(text):
        return _spell_number(float(text)) or text
    moment = _iso_ns(text)
    if moment is not None:
        return f"@{moment}"
    return text.lower() if text in {"True", "False"} else text


def as_whole(column: Any) -> Ints:
    """Return a column of whole numbers; -1 for anything else."""
    if not isinstance(column, list) and pa.types.is_signed_integer(column.type):
        return np.asarray(pc.fill_null(column.cast(pa.int64()), -1).to_numpy(), np.int64)
    texts = as_text(column).to_pylist()
    numbers = (int(text) if text and _WHOLE.fullmatch(text) and len(text) < 19 else -1 for text in texts)
    return np.fromiter(numbers, np.int64, len(texts))


def as_ns(column: Any, unit: int = _SECOND) -> tuple[Ints, Bools]:
    """Return times as nanoseconds since 1970, and which rows have a time; numbers count ``unit`` nanoseconds."""
    if isinstance(column, list):
        return _each_ns(column, unit)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _coded_ns(column, unit)
    if pa.types.is_timestamp(kind):
        return _scaled(column.cast(pa.int64()), _UNITS[kind.unit])
    if pa.types.is_date(kind):
        return _scaled(column.cast(pa.date32()).cast(pa.int32()), 86_400 * _SECOND)
    if pa.types.is_integer(kind):
        return _integers(column, unit)
    if pa.types.is_floating(kind):
        return _floats(column, unit)
    if _is_bytes(kind):
        return _texts(_checked_text(column), unit)
    return _each_ns(column.to_pylist(), unit)


def _coded_ns(column: Any, unit: int) -> tuple[Ints, Bools]:
    """Read every different value once."""
    pairs = []
    for chunk in getattr(column, "chunks", [column]):
        moments, valid = as_ns(chunk.dictionary, unit)
        code = np.asarray(pc.fill_null(chunk.indices, len(moments)).to_numpy(zero_copy_only=False), np.int64)
        pairs.append((np.append(moments, 0)[code], np.append(valid, False)[code]))
    moments = np.concatenate([np.zeros(0, np.int64), *(ns for ns, _ in pairs)])
    return moments, np.concatenate([np.zeros(0, np.bool_), *(has for _, has in pairs)])


def _integers(column: Any, unit: int) -> tuple[Ints, Bools]:
    if column.type == pa.uint64():
        return _each_ns(column.to_pylist(), unit)
    return _scaled(column, unit)


def _scaled(column: Any, unit: int) -> tuple[Ints, Bools]:
    """Multiply; a product that does not fit 64 bits is not a time."""
    whole = np.asarray(pc.fill_null(column.cast(pa.int64()), 0).to_numpy(), np.int64)
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    limit = np.iinfo(np.int64).max // unit
    valid &= (whole <= limit) & (whole >= -limit)
    return np.where(valid, whole, 0) * np.int64(unit), valid


def _floats(column: Any, unit: int) -> tuple[Ints, Bools]:
    numbers = np.asarray(pc.fill_null(column.cast(pa.float64()), math.nan).to_numpy(), np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        nanoseconds = np.rint(numbers * unit)
    valid = np.abs(nanoseconds) < 2.0**63  # NaN fails
    return np.where(valid, nanoseconds, 0.0).astype(np.int64), valid


def _texts(column: Any, unit: int) -> tuple[Ints, Bools]:
    for kind in (pa.timestamp("ns", "UTC"), pa.timestamp("ns")):
        try:
            return as_ns(column.cast(kind))
        except pa.ArrowInvalid:  # some row has another form
            continue
    return _each_ns(column.to_pylist(), unit)


def _each_ns(values: list[Any], unit: int) -> tuple[Ints, Bools]:
    moments = [None if value is None else _value_ns(value, unit) for value in values]
    fits = [moment if moment is not None and -(2**63) < moment < 2**63 else None for moment in moments]
    valid = np.fromiter((moment is not None for moment in fits), np.bool_, len(fits))
    return np.fromiter((moment or 0 for moment in fits), np.int64, len(fits)), valid


def _value_ns(value: Any, unit: int) -> int | None:
    if isinstance(value, str):
        return _text_ns(value, unit)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value * unit
    if isinstance(value, Decimal):
        return round(value * unit) if value.is_finite() else None
    if isinstance(value, float):
        return _float_ns(value, unit)
    return None


def _float_ns(value: float, unit: int) -> int | None:
    nanoseconds = value * unit
    return round(nanoseconds) if math.isfinite(nanoseconds) else None


def _text_ns(text: str, unit: int) -> int | None:
    if _WHOLE.fullmatch(text):
        return int(text) * unit if len(text) < 20 else None
    if _NUMBER.fullmatch(text):
        return _float_ns(float(text), unit)
    return _iso_ns(text)


def _iso_ns(text: str) -> int | None:
    match = _ISO.fullmatch(text)
    if match is None:
        return _basic_iso_ns(text)
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups(default="")
    midnight = _day(int(year), int(month), int(day))
    clock = (int(hour or 0), int(minute or 0), int(second or 0))
    if midnight is None or clock > (23, 59, 59) or max(clock[1:]) > 59:
        return None
    shift = (int(off_hour or 0) * 60 + int(off_minute or 0)) * (-60 if sign == "-" else 60)
    seconds = midnight * 86_400 + clock[0] * 3_600 + clock[1] * 60 + clock[2] - shift
    return seconds * _SECOND + int(fraction[:9].ljust(9, "0"))


@lru_cache(maxsize=4096)
def _day(year: int, month: int, day: int) -> int | None:
    try:
        return date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None


def _basic_iso_ns(text: str) -> int | None:
    """Read the rarer spellings of ISO 8601 (no dashes, week dates)."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    apart = zoned - datetime(1970, 1, 1, tzinfo=UTC)
    return ((apart.days * 86_400 + apart.seconds) * 1_000_000 + apart.microseconds) * 1_000
