"""Read numbers and published ranges, whatever their type or spelling."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.reading.columns import TEXT, Bools, Ints, as_ns, as_text

Floats = npt.NDArray[np.float64]
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_NOT_FINITE: Final = {"nan": np.nan, "inf": np.inf, "+inf": np.inf, "-inf": -np.inf, "infinity": np.inf}
_RANGE = re.compile(r"\s*\[\s*([^,\[\]]+?)\s*,\s*([^,\[\]]+?)\s*\]\s*")
_ENDS: Final = ("lo", "hi")


@dataclass(frozen=True, slots=True)
class Numbers:
    """A column of numbers; moments are counted in microseconds since 1970."""

    value: Floats
    """NaN for no value. A moment between two microseconds counts as halfway."""
    rest: Ints
    """For moments the nanoseconds above whole microseconds, so that no two look equal; else 0."""
    unreadable: Bools
    """Which values are not numbers."""
    are_moments: bool

    @classmethod
    def of(cls, value: Floats, unreadable: Bools | None = None) -> Numbers:
        """Make a column of numbers that are not moments."""
        marks = np.zeros(len(value), np.bool_) if unreadable is None else unreadable
        return cls(value, np.zeros(len(value), np.int64), marks, are_moments=False)

    def in_microseconds(self) -> Numbers:
        """Return moments as they are, numbers as seconds since 1970."""
        return self if self.are_moments else replace(self, value=self.value * 1e6, are_moments=True)


@dataclass(frozen=True, slots=True)
class Ranges:
    """A column of published ranges; both ends are NaN for null."""

    low: Numbers
    high: Numbers

    @property
    def unreadable(self) -> Bools:
        """Which values are not ranges."""
        half: Bools = np.isnan(self.low.value) != np.isnan(self.high.value)
        return self.low.unreadable | self.high.unreadable | half

    @property
    def are_moments(self) -> bool:
        """Whether the ends are moments."""
        return self.low.are_moments or self.high.are_moments


def read_numbers(pieces: Iterable[Any]) -> Numbers:
    """Read a column of numbers part by part."""
    return _joined([_numbers(piece) for piece in pieces])


def _joined(parts: list[Numbers]) -> Numbers:
    if any(part.are_moments for part in parts):
        # A part without any value may be of either kind.
        parts = [part.in_microseconds() for part in parts]
    return Numbers(
        np.concatenate([np.zeros(0), *(part.value for part in parts)]),
        np.concatenate([np.zeros(0, np.int64), *(part.rest for part in parts)]),
        np.concatenate([np.zeros(0, np.bool_), *(part.unreadable for part in parts)]),
        are_moments=any(part.are_moments for part in parts),
    )


def _numbers(column: Any) -> Numbers:
    if isinstance(column, list):
        return _each([_Text(value) if isinstance(value, str) and _number(value.strip()) is not None else value
                      for value in column])  # fmt: skip
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _numbers(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _moments(column)
    if pa.types.is_decimal(kind):
        return _plain(column.cast(pa.string()))  # from text: Arrow's own conversion to floats is not exact
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _plain(column)
    if pa.types.is_null(kind):
        return _plain(column.cast(pa.float64()))
    if pa.types.is_boolean(kind) or pa.types.is_nested(kind):
        valid = _valid(column)
        return Numbers.of(np.full(len(valid), np.nan), valid)
    return _texts(as_text(column))


def _valid(column: Any) -> Bools:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _plain(column: Any) -> Numbers:
    value = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
    return Numbers.of(value)


def _moments(column: Any) -> Numbers:
    nanoseconds, valid = as_ns(column)
    value, rest = _microseconds(nanoseconds)
    return Numbers(np.where(valid, value, np.nan), rest, _valid(column) & ~valid, are_moments=True)


def _microseconds(nanoseconds: Ints) -> tuple[Floats, Ints]:
    """Return microseconds, halfway if there are extra nanoseconds, and these nanoseconds."""
    rest = nanoseconds % 1000
    return (nanoseconds // 1000).astype(np.float64) + np.where(rest > 0, 0.5, 0.0), rest


def _texts(column: Any) -> Numbers:
    """Read every different text once."""
    texts, code = _different(column)
    return _picked(_each(texts), code)


def _different(column: Any) -> tuple[list[str], Ints]:
    chunks = getattr(column, "chunks", [column])
    encoded = pa.chunked_array(chunks, TEXT).combine_chunks().dictionary_encode()
    code = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
    return encoded.dictionary.to_pylist(), code


def _picked(numbers: Numbers, code: Ints) -> Numbers:
    value, unreadable = np.append(numbers.value, np.nan), np.append(numbers.unreadable, False)
    rest = np.append(numbers.rest, 0)
    return Numbers(value[code], rest[code], unreadable[code], numbers.are_moments)  # code -1 picks the last


def _each(values: list[Any]) -> Numbers:
    values = [value.strip() if type(value) is str else value for value in values]  # numbers are stripped
    found = [_number(value) for value in values]
    value = np.array([np.nan if number is None else number for number in found], np.float64)
    missing = np.array([value is None for value in values], np.bool_)
    unreadable = np.array([number is None for number in found], np.bool_) & ~missing
    numbers = Numbers.of(value, unreadable)
    return _each_moment(values, numbers) if unreadable.any() else numbers


class _Text(str):
    """JSON text that looks like a number but is text."""

    __slots__ = ()


def _number(value: Any) -> float | None:
    if isinstance(value, bool | _Text):
        return None
    if isinstance(value, int | float | Decimal):
        return float(value)
    if not isinstance(value, str):
        return None
    if _NUMBER.fullmatch(value):
        return float(value)
    return _NOT_FINITE.get(value.lower())


def _each_moment(values: list[Any], numbers: Numbers) -> Numbers:
    """Read values that are not numbers as moments; one moment makes it a column of moments."""
    nanoseconds, valid = as_ns([value if type(value) is str else None for value in values])
    valid &= numbers.unreadable
    if not valid.any():
        return numbers
    seconds = numbers.in_microseconds()
    value, rest = _microseconds(nanoseconds)
    value, rest = np.where(valid, value, seconds.value), np.where(valid, rest, 0)
    return Numbers(value, rest, numbers.unreadable & ~valid, are_moments=True)


def read_ranges(pieces: Iterable[Any]) -> Ranges:
    """Read a column of ranges part by part: struct<lo, hi>, or ``[lo, hi]`` as text or JSON."""
    parts = [_ranges(piece) for piece in pieces]
    return Ranges(_joined([part.low for part in parts]), _joined([part.high for part in parts]))


def _ranges(column: Any) -> Ranges:
    if isinstance(column, list):
        return _each_range(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _ranges(column.cast(kind.value_type))
    if pa.types.is_struct(kind) and sorted(field.name for field in kind) == sorted(_ENDS):
        return _struct(column)
    if pa.types.is_nested(kind):
        return _each_range(column.to_pylist())
    texts, code = _different(as_text(column))
    found = _each_range(texts)
    return Ranges(_picked(found.low, code), _picked(found.high, code))


def _struct(column: Any) -> Ranges:
    low, high = (_numbers(pc.struct_field(column, name)) for name in _ENDS)
    # A range must have two ends.
    holed = _valid(column) & np.isnan(low.value) & np.isnan(high.value)
    return Ranges(replace(low, unreadable=low.unreadable | holed), high)


def _each_range(values: list[Any]) -> Ranges:
    ends = [_two_ends(value) for value in values]
    low, high = (_each([pair[at] if pair else None for pair in ends]) for at in (0, 1))
    there = np.array([value is not None for value in values], np.bool_)
    holed = there & np.isnan(low.value) & np.isnan(high.value)
    return Ranges(replace(low, unreadable=low.unreadable | holed), high)


def _two_ends(value: Any) -> tuple[Any, Any] | None:
    if isinstance(value, str):
        match = _RANGE.fullmatch(value)
        return (_unquoted(match[1]), _unquoted(match[2])) if match else None
    if isinstance(value, dict) and sorted(value) == sorted(_ENDS):
        return value["lo"], value["hi"]
    if isinstance(value, list | tuple) and len(value) == 2:
        return value[0], value[1]
    return None


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') and text.endswith('"') and len(text) > 1 else text
