"""Turn the columns of a table into numbers, batch by batch: equal values have equal numbers, other values others.

What a reader of the table can tell apart is not equal: 5 and "5", 1 and 1.0, NaN and a missing value.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.memory import current
from shoal.errors import InputError

_BYTES_PER_VALUE: Final = 200
"""Memory for a different value: its text and its place in the dictionary."""
_Key = str | tuple[str, str] | None
"""A text; of another type the name of the type and the value as text; None for a missing value."""


class Codes:
    """The numbers of a column's values, in order of first appearance; a missing value is a value of its own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers: dict[_Key, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def texts(self) -> list[str | None]:
        """The values by number, as text."""
        return [key[1] if isinstance(key, tuple) else key for key in self._numbers]

    def of(self, text: str | None) -> int:
        """Return the number of a text; -1 if no row has it."""
        return self._numbers.get(text, -1)

    def encode(self, column: Any) -> Ints:
        """Number the values of a batch."""
        values, places = self._different(column)
        before = len(self._numbers)
        known = np.empty(len(values) + 1, np.int64)
        numbers = self._numbers
        for place, key in enumerate(values):
            known[place] = numbers.setdefault(key, len(numbers))
        if (places < 0).any():
            known[-1] = numbers.setdefault(None, len(numbers))
        current().take(f"column {self.name}", (len(numbers) - before) * _BYTES_PER_VALUE)
        found: Ints = known[places]
        return found

    def _different(self, column: Any) -> tuple[list[_Key], Ints]:
        """Return the different values of a batch, and where each row's value is among them; -1 if it is missing."""
        if isinstance(column, list):
            return _of_objects(column)
        try:
            coded = _coded(column)
        except pa.ArrowNotImplementedError:  # lists, structs and the like
            return _of_objects(column.to_pylist())
        try:
            values = coded.dictionary.to_pylist()
        except UnicodeDecodeError:
            raise InputError(f"column {self.name}: has texts that are not UTF-8; write the file again") from None
        return [_key(value) for value in values], pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)


def _key(value: Any) -> _Key:
    return value if value is None or isinstance(value, str) else (type(value).__name__, repr(value))


def _of_objects(values: list[Any]) -> tuple[list[_Key], Ints]:
    places: dict[_Key, int] = {}
    found = [-1 if value is None else places.setdefault(_key(value), len(places)) for value in values]
    return list(places), np.array(found, np.int64)


def _coded(column: Any) -> Any:
    """Return a column dictionary-encoded, without dictionary entries that no row has."""
    if not pa.types.is_dictionary(column.type):
        return column.dictionary_encode()
    indices = column.indices
    used = np.unique(indices.drop_null().to_numpy(zero_copy_only=False))
    if len(used) == len(column.dictionary):
        return column
    places = np.full(len(column.dictionary) + 1, -1, np.int32)
    places[used] = np.arange(len(used))
    moved = places[pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)]
    return pa.DictionaryArray.from_arrays(pa.array(moved, mask=moved < 0), column.dictionary.take(pa.array(used)))
