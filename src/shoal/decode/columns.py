"""Converts columns to their types and finds the rows that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.decode.base import Refused

NOT_UTF8 = "not valid UTF-8; convert the file to UTF-8"
_HAS_ZONE: Final = r"[T ].*(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


def fit(column: Any, kind: pa.DataType) -> tuple[Any, npt.NDArray[np.int64]]:
    """Cast a column; return it with the indices of values that do not fit, which become null."""
    whole = _cast(column, kind)
    if whole is not None:
        return whole, np.empty(0, dtype=np.int64)
    misfits = np.array(_misfits(column, kind, 0), dtype=np.int64)
    return _cast(without(column, misfits), kind), misfits


def without(column: Any, rows: npt.NDArray[np.int64]) -> Any:
    """The column with null in these rows."""
    if not len(rows):
        return column
    mask = np.zeros(len(column), dtype=np.bool_)
    mask[rows] = True
    return pc.if_else(pa.array(mask), pa.scalar(None, column.type), column)


def as_text(column: Any) -> tuple[Any, npt.NDArray[np.int64]]:
    """Decode binary as text; return it with the indices of values that are not UTF-8, which become null."""
    try:
        return column.cast(pa.string()), np.empty(0, dtype=np.int64)
    except pa.ArrowInvalid:
        bad = np.array([row for row, value in enumerate(column.to_pylist()) if not _is_utf8(value)], dtype=np.int64)
        return without(column, bad).cast(pa.string()), bad


def trimmed(text: Any) -> Any:
    """Strip white space; blank text becomes null."""
    if not _may_hold_blanks(text):
        return text
    bare = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.string()), bare)


def _may_hold_blanks(text: Any) -> bool:
    """Whether any byte is an ASCII blank or part of a character beyond ASCII, which may be white space."""
    data = text.buffers()[2]
    codes = np.frombuffer(data or b"", dtype=np.uint8)
    return bool(len(codes)) and bool(codes.min() <= 0x20 or codes.max() >= 0x80)


def without_spellings(text: Any, spellings: Sequence[str]) -> Any:
    """Replace words that mean a missing value, such as NA, by null; spaces around them are ignored."""
    if not spellings:
        return text
    is_missing = pc.is_in(pc.utf8_trim_whitespace(text), value_set=pa.array(spellings, pa.string()))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), text)


def refused_misfits(rows: npt.NDArray[np.int64], name: str, kind: pa.DataType) -> list[Refused]:
    """Refuse the records whose value does not fit the type."""
    return [Refused(int(row), name, misfit_reason(kind)) for row in rows]


def misfit_reason(kind: pa.DataType) -> str:
    """Why a value does not fit a type, without the value."""
    if pa.types.is_timestamp(kind):
        return "not a time in ISO 8601; correct it (numbers are times only in the column of [stream] time)"
    return f"not a value of type {kind}; correct it, or [source] types"


def cast_text(text: Any, kind: pa.DataType) -> Any:
    """Convert text to a type; a time without a zone is UTC."""
    if not pa.types.is_timestamp(kind) or kind.tz != "UTC":
        return text.cast(kind)
    nothing = pa.scalar(None, pa.string())
    has_zone = pc.match_substring_regex(text, _HAS_ZONE)
    zoned = pc.if_else(has_zone, text, nothing).cast(kind)
    local = pc.if_else(has_zone, nothing, text).cast(pa.timestamp(kind.unit))
    return pc.coalesce(zoned, pc.assume_timezone(local, "UTC"))


def _cast(column: Any, kind: pa.DataType) -> Any:
    try:
        if column.type == kind:
            return column
        return cast_text(column, kind) if column.type == pa.string() else column.cast(kind)
    except pa.ArrowInvalid:
        return None


def _misfits(column: Any, kind: pa.DataType, first: int) -> list[int]:
    """Bisect down to single values: cheap when few do not fit."""
    if _cast(column, kind) is not None:
        return []
    if len(column) == 1:
        return [first]
    half = len(column) // 2
    return _misfits(column[:half], kind, first) + _misfits(column[half:], kind, first + half)


def _is_utf8(value: bytes | None) -> bool:
    try:
        return value is None or value.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False
