"""Numbers for sensitive values, so that kernels can count them; values that mean the same have one number."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.methods.arrow_input import plain_type

Ints = npt.NDArray[np.int64]
MOST_VALUES: Final = 4096
"""Every cluster that may be reused has a counter for each value."""
_NO_SUCH_TIME: Final = (
    "column {!r}: holds times that cannot be compared: finer than a microsecond, or not in the years 1 to 9999; "
    "round them to microseconds"
)


class SensitiveCodes:
    """The values of one sensitive column, numbered in order of first appearance; null gets its own number.

    Values that mean the same have one number; see meaning().
    """

    def __init__(self, name: str, declared: Mapping[Any, float] | None) -> None:
        self.name = name
        self._declared = dict(sorted((declared or {}).items(), key=lambda entry: str(entry[0])))
        self.kind = pa.string()
        self._is_bound = False
        self.is_ordered = False
        """Whether the distance of two values is a distance of ranks: numbers have ranks."""
        self.version = 0
        """Changes when the values get new numbers."""
        self._begin()

    def _begin(self) -> None:
        self.version += 1
        self.values: list[Any] = []
        self._codes: dict[Any, int] = {}
        self._shares: dict[Any, float] = {}
        for value, share in self._declared.items():
            self._shares[meaning(value)] = self._shares.get(meaning(value), 0.0) + share
        self.code_all(list(self._declared))
        self._known = len(self.values)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def declared(self) -> Mapping[Any, float]:
        """The declared shares; their values have the first numbers."""
        return self._declared

    @property
    def seen(self) -> list[Any]:
        """Values seen that are not declared."""
        return self.values[self._known :]

    @property
    def missing(self) -> int:
        """The number of the missing value; -1 if none has been missing so far."""
        return self._codes.get(None, -1)

    def check_type(self, kind: pa.DataType) -> None:
        """Raise InputError where a column of this type has no diversity, or declared values have another type."""
        if pa.types.is_nested(plain_type(kind)):
            raise InputError(f"column {self.name!r}: lists and structs have no diversity; give plain values")
        if not self._is_bound:
            self._fitted(kind)

    def set_type(self, kind: pa.DataType, *, is_bound: bool) -> None:
        """Prepare for a column of this type; declared values become values of it once the type is certain."""
        self.kind, self.is_ordered, self._is_bound = kind, is_ordered(kind), is_bound
        if is_bound and self._declared:  # a policy file can write text only
            self._declared = self._fitted(kind)
            self._begin()

    def _fitted(self, kind: pa.DataType) -> dict[Any, float]:
        """The declared shares by values of the column's type; raise InputError where they have another."""
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        found: dict[Any, float] = {}
        try:
            for value, share in self._declared.items():
                fitted = _in_type(value, kind)
                found[fitted] = found.get(fitted, 0.0) + share  # two spellings of one value add up
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError, TypeError):
            raise InputError(
                f"column {self.name!r}: is {kind}, and values declared for it in reference are not"
            ) from None
        return found

    def check_room(self, values: list[Any]) -> None:
        """Raise InputError where new values would be too many; nothing changes."""
        new = {key for value in values if (key := meaning(value)) not in self._codes}
        if len(self.values) + len(new) > MOST_VALUES:
            raise InputError(
                f"column {self.name!r}: more than {MOST_VALUES:,} different values; l, entropy_l and t are for "
                "columns whose values repeat"
            )

    def code_all(self, values: list[Any]) -> Ints:
        """The numbers of values; new values get the next numbers."""
        for value in values:
            if (key := meaning(value)) not in self._codes:
                self._codes[key] = len(self.values)
                self.values.append(None if key is None else value)
        return np.array([self._codes[meaning(value)] for value in values], dtype=np.int64)

    def texts(self) -> list[str | None]:
        """The values as the trace spells them: as Arrow does where Python has its own spelling."""
        if pa.types.is_time(self.kind) or pa.types.is_duration(self.kind):
            return list(pa.array(self.values, self.kind).cast(pa.string()).to_pylist())
        return [None if value is None else str(value) for value in self.values]

    def order(self) -> Ints:
        """The numbers in the order of their values, null first."""
        nothing = [code for code, value in enumerate(self.values) if value is None]
        rest = [code for code, value in enumerate(self.values) if value is not None]
        return np.array(nothing + sorted(rest, key=self.values.__getitem__), dtype=np.int64)

    def share(self, code: int) -> float:
        """The declared share of a value; 0 where none is declared."""
        return self._shares.get(meaning(self.values[code]), 0.0)


class Coded:
    """A column's distinct values, and which of them each row has."""

    def __init__(self, column: pa.Array, name: str) -> None:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        encoded = column.dictionary_encode(null_encoding="encode")
        self.values = readable(encoded.dictionary, name)
        self._places = np.asarray(pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False), dtype=np.int64)

    def codes(self, known: SensitiveCodes) -> Ints:
        """The numbers of the rows' values."""
        numbers = known.code_all(self.values)
        return numbers[self._places] if len(numbers) else self._places


def readable(values: Any, name: str) -> list[Any]:
    """The values as Python objects; raise InputError for invalid text and for times Python cannot hold."""
    try:
        found = list(values.to_pylist())
    except UnicodeDecodeError:
        raise InputError(f"column {name!r}: holds text that is not UTF-8; write it as UTF-8") from None
    except (ValueError, OverflowError):
        raise InputError(_NO_SUCH_TIME.format(name)) from None
    if values.type == pa.time64("ns") and not values.equals(pa.array(found, values.type)):
        raise InputError(_NO_SUCH_TIME.format(name))
    return found


def _in_type(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str(value)
    given = pa.scalar(value)
    return given.as_py() if given.type == kind else given.cast(kind).as_py()


def is_ordered(kind: pa.DataType) -> bool:
    """Whether a column's values have distances by rank: numbers have."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in tests)


_NUMBER: Final = re.compile(r"([+-]?)(?:([0-9]+)\.?([0-9]*)|\.([0-9]+))(?:[eE]([+-]?[0-9]{1,3}))?")
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)? ?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def meaning(value: Any) -> Hashable:
    """What a value counts as for l, entropy_l and t; None for a missing value.

    Values of a typed column count as they are. Text is trimmed, and text that spells a number, a truth value or an ISO
    8601 time counts as that. So spelling never makes a class look more diverse than it is.

    >>> meaning("1") == meaning(" 01.0") != meaning("one")
    True
    """
    if isinstance(value, str):
        return _meaning_of_text(value)
    if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN counts as missing
        return None
    return None if value is None else (isinstance(value, bool), value)  # True and 1 are two values


@lru_cache(maxsize=65_536)
def _meaning_of_text(text: str) -> Hashable:
    text = unicodedata.normalize("NFC", text.strip())
    if not text:
        return None
    if text.lower() in ("true", "false"):
        return "truth value", text.lower()
    if (number := _NUMBER.fullmatch(text)) is not None:
        return "number", *_number(*number.groups(default=""))
    if (moment := _MOMENT.fullmatch(text)) is not None:
        nanoseconds = _moment(*moment.groups(default=""))
        if nanoseconds is not None:
            return "moment", nanoseconds
    return "text", text


def _number(sign: str, whole: str, fraction: str, only_fraction: str, exponent: str) -> tuple[str, int]:
    """Sign and significant digits, and the power of ten to multiply them with."""
    fraction = fraction or only_fraction
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) - len(fraction) + len(digits) - len(digits.rstrip("0"))
    digits = digits.rstrip("0")
    return ("-" if sign == "-" else "") + digits if digits else "0", power if digits else 0


def _moment(day: str, minute: str, second: str, fraction: str, zone: str) -> int | None:
    """Nanoseconds since 1970; UTC where no zone is given. None for an invalid day or time."""
    try:
        begin = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}+00:00")
        offset = _offset(zone)
    except ValueError:
        return None
    return ((begin - _EPOCH - offset) // timedelta(seconds=1)) * 10**9 + int(fraction.ljust(9, "0"))


def _offset(zone: str) -> timedelta:
    if zone in ("", "Z", "z"):
        return timedelta(0)
    hours, minutes = int(zone[1:3]), int(zone[3:].removeprefix(":") or 0)
    if hours > 23 or minutes > 59:
        raise ValueError("no such zone")
    ahead = timedelta(hours=hours, minutes=minutes)
    return -ahead if zone[0] == "-" else ahead
