"""Small numbers for sensitive values, so that kernels can count them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError

Ints = npt.NDArray[np.int64]
MOST_VALUES: Final = 65_536


class SensitiveCodes:
    """The values of one sensitive column, numbered as they first came; no value at all is a value too."""

    def __init__(self, name: str, declared: Mapping[Any, float] | None) -> None:
        self.name = name
        self.values: list[Any] = []
        self._codes: dict[Any, int] = {}
        self.declared = declared
        for value in declared or ():
            self.code(value)

    def __len__(self) -> int:
        return len(self.values)

    def code(self, value: Any) -> int:
        """The number of a value."""
        if isinstance(value, float) and value != value:  # noqa: PLR0124 - NaN is no value
            value = None
        key = (isinstance(value, bool), value)  # True and 1 are two values
        found = self._codes.get(key)
        if found is None:
            if len(self.values) == MOST_VALUES:
                raise InputError(
                    f"column {self.name!r}: more than {MOST_VALUES:,} different values; l, entropy_l and t are for "
                    "columns whose values repeat"
                )
            found = self._codes[key] = len(self.values)
            self.values.append(value)
        return found

    def codes(self, column: pa.Array) -> Ints:
        """The numbers of a column's values."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        encoded = column.dictionary_encode(null_encoding="encode")
        known = np.array([self.code(value) for value in encoded.dictionary.to_pylist()], dtype=np.int64)
        places = np.asarray(pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False), dtype=np.int64)
        return known[places] if len(known) else places

    def order(self) -> Ints:
        """The numbers in the order of their values, no value first."""
        return np.array(
            sorted(range(len(self)), key=lambda code: (self.values[code] is not None, self.values[code] or 0)),
            dtype=np.int64,
        )

    def share(self, code: int) -> float:
        """What is declared of a value; 0 where it was not declared."""
        return float(self.declared.get(self.values[code], 0.0)) if self.declared else 0.0


def is_ordered(kind: pa.DataType) -> bool:
    """Whether a column's values have distances by rank: numbers and times do."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_temporal)
    return any(test(kind) for test in tests)
