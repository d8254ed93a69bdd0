"""Small numbers for sensitive values, so that kernels can count them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.methods.tuples.sensitive_meaning import meaning

Ints = npt.NDArray[np.int64]
MOST_VALUES: Final = 4096
"""Every cluster that may be reused has a count for each value."""
_NO_SUCH_TIME: Final = (
    "column {!r}: holds times that cannot be compared: finer than a microsecond, or not in the years 1 to 9999; "
    "round them to microseconds"
)


class SensitiveCodes:
    """The values of one sensitive column, numbered as they first came; no value at all is a value too.

    Values that mean the same have one number; see shoal.methods.tuples.sensitive_meaning.
    """

    def __init__(self, name: str, declared: Mapping[Any, float] | None) -> None:
        self.name = name
        self._declared = dict(sorted((declared or {}).items(), key=lambda entry: str(entry[0])))
        self.version = 0
        """Changes when numbers are given anew."""
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
        """What is declared of the values; they have the first numbers."""
        return self._declared

    @property
    def seen(self) -> list[Any]:
        """Values that came up and were not declared."""
        return self.values[self._known :]

    def fit_to(self, kind: pa.DataType) -> None:
        """Turn declared values into the column's type: a policy file can write text only."""
        if self._declared:
            self._declared = self.fitted(kind)
            self._begin()

    def fitted(self, kind: pa.DataType) -> dict[Any, float]:
        """The declared shares by values of the column's type; raise InputError where they have another."""
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        try:
            return _summed((_in_type(value, kind), share) for value, share in self._declared.items())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError, TypeError):
            raise InputError(
                f"column {self.name!r}: is {kind}, and values declared for it in reference are not"
            ) from None

    def check_room(self, values: list[Any]) -> None:
        """Raise InputError where new values would be too many; nothing changes."""
        new = {key for value in values if (key := meaning(value)) not in self._codes}
        if len(self.values) + len(new) > MOST_VALUES:
            raise InputError(
                f"column {self.name!r}: more than {MOST_VALUES:,} different values; l, entropy_l and t are for "
                "columns whose values repeat"
            )

    def code_all(self, values: list[Any]) -> Ints:
        """The numbers of values; new ones are numbered as they come."""
        for value in values:
            if (key := meaning(value)) not in self._codes:
                self._codes[key] = len(self.values)
                self.values.append(None if key is None else value)
        return np.array([self._codes[meaning(value)] for value in values], dtype=np.int64)

    def texts(self, kind: pa.DataType) -> list[str | None]:
        """The values as the trace spells them: as Arrow does where Python spells a type in its own way."""
        if pa.types.is_time(kind) or pa.types.is_duration(kind):
            return list(pa.array(self.values, kind).cast(pa.string()).to_pylist())
        return [None if value is None else str(value) for value in self.values]

    def order(self) -> Ints:
        """The numbers in the order of their values, no value first."""
        nothing = [code for code, value in enumerate(self.values) if value is None]
        rest = [code for code, value in enumerate(self.values) if value is not None]
        return np.array(nothing + sorted(rest, key=self.values.__getitem__), dtype=np.int64)

    def share(self, code: int) -> float:
        """What is declared of a value; 0 where it was not declared."""
        return self._shares.get(meaning(self.values[code]), 0.0)


class Coded:
    """A column's different values and which of them each row has."""

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
    """The values as Python has them; raise InputError where a text is none, or Python has no such time."""
    try:
        found = list(values.to_pylist())
    except UnicodeDecodeError:
        raise InputError(f"column {name!r}: holds text that is not UTF-8; write it as UTF-8") from None
    except (ValueError, OverflowError):
        raise InputError(_NO_SUCH_TIME.format(name)) from None
    if values.type == pa.time64("ns") and not values.equals(pa.array(found, values.type)):
        raise InputError(_NO_SUCH_TIME.format(name))
    return found


def _summed(shares: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    """Shares by value; two spellings of one value add up."""
    found: dict[Any, float] = {}
    for value, share in shares:
        found[value] = found.get(value, 0.0) + share
    return found


def _in_type(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str(value)
    given = pa.scalar(value)
    return given.as_py() if given.type == kind else given.cast(kind).as_py()


def is_ordered(kind: pa.DataType) -> bool:
    """Whether a column's values have distances by rank: numbers do."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return any(test(kind) for test in tests)
