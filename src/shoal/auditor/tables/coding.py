"""Turn the columns of a table into numbers, batch by batch: equal values have equal numbers, other values others.

Quasi-identifiers that a reader of the table can tell apart are not equal: 5 and "5", 1 and 1.0, NaN and a missing
value. People and sensitive values are compared the other way round: what may be the same counts once, because two
spellings of one person or one illness hide nobody.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.lines import ABSENT
from shoal.auditor.reading.memory import current
from shoal.auditor.tuples.diversity.sensitive import meaning
from shoal.errors import InputError

_BYTES_PER_VALUE: Final = 200
"""Memory for a different value: its text and its place in the dictionary."""
Key = str | tuple[str, str] | None
"""A text; of another type the name of the type and the value as text; None for a missing value."""
Entry = tuple[Key, str | None]
"""A different value: its key, and itself as text."""
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+", re.ASCII)


def exact_key(value: Any) -> Key:
    """Return equal keys only for values that no reader can tell apart."""
    return value if value is None or type(value) is str else (type(value).__name__, repr(value))


def person_key(value: Any) -> Key:
    """Return equal keys for all ways to write a person: 7, 7.0 and " 7"; None if the person is missing."""
    text = _text(value)
    if text is None:
        return None
    text = unicodedata.normalize("NFC", text.strip())
    whole = _WHOLE.fullmatch(text)
    return (whole.group(1) if whole else text) or None


def _text(value: Any) -> str | None:
    """Return a value as text; None for a missing one."""
    if value is None or isinstance(value, str):
        return value
    if value is ABSENT or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value) if isinstance(value, int | Decimal) else repr(value)


class Codes:
    """The numbers of a column's values, in order of first appearance; a missing value is a value of its own."""

    def __init__(self, name: str, key: Callable[[Any], Key] = exact_key, known: Iterable[Entry] = ()) -> None:
        self.name = name
        self._key = key
        self._numbers: dict[Key, int] = {}
        self.texts: list[str | None] = []
        """The values by number, as text."""
        self.add(known)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def entries(self) -> list[Entry]:
        """The values by number."""
        return list(zip(self._numbers, self.texts, strict=True))

    def add(self, entries: Iterable[Entry]) -> Ints:
        """Number values that are known to differ."""
        found = []
        for key, text in entries:
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
                self.texts.append(text)
            found.append(self._numbers[key])
        return np.array(found, np.int64)

    def of(self, text: str | None) -> int:
        """Return the number of a text; -1 if no row has it."""
        return self._numbers.get(text, -1)

    def meanings(self) -> npt.NDArray[np.int32]:
        """Return, for every number, the number of the first value that means the same."""
        first: dict[str | None, int] = {}
        return np.array(
            [first.setdefault(None if text is None else meaning(text), at) for at, text in enumerate(self.texts)],
            np.int32,
        )

    def missing(self) -> npt.NDArray[np.bool_]:
        """Mark the numbers of values that are none: null and blank texts."""
        return np.array([text is None or meaning(text) is None for text in self.texts], np.bool_)

    def encode(self, column: Any) -> Ints:
        """Number the values of a batch."""
        values, places = self._different(column)
        before = len(self._numbers)
        known = np.empty(len(values) + 1, np.int64)
        for place, value in enumerate(values):
            known[place] = self._number(value)
        if (places < 0).any():
            known[-1] = self._number(None)
        current().take(f"column {self.name}", (len(self._numbers) - before) * _BYTES_PER_VALUE)
        found: Ints = known[places]
        return found

    def _number(self, value: Any) -> int:
        key = self._key(value)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self.texts.append(_text(value))
        return number

    def _different(self, column: Any) -> tuple[list[Any], Ints]:
        """Return the different values of a batch, and where each row's value is among them; -1 if it is missing."""
        if isinstance(column, list):
            return _of_objects(column)
        try:
            coded = _coded(column)
        except pa.ArrowNotImplementedError:  # lists, structs and the like
            return _of_objects(column.to_pylist())
        try:
            values = _objects(coded.dictionary)
        except UnicodeDecodeError:
            raise InputError(f"column {self.name}: has texts that are not UTF-8; write the file again") from None
        return values, pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)


class FineTime(str):
    """A time, moment or duration as text, because Python's own types stop at microseconds."""

    __slots__ = ()


def _objects(column: Any) -> list[Any]:
    """Return the values of a column; times in nanoseconds exactly, also where pandas is not installed."""
    kind = column.type
    if not pa.types.is_temporal(kind) or getattr(kind, "unit", "") != "ns":
        return list(column.to_pylist())
    if pa.types.is_timestamp(kind):
        coarse = pa.timestamp("us", kind.tz)
    else:
        coarse = pa.time64("us") if pa.types.is_time(kind) else pa.duration("us")
    numbers, texts = column.cast(pa.int64()).to_pylist(), column.cast(pa.string()).to_pylist()
    rounded = column.cast(coarse, safe=False).to_pylist()
    return [
        FineTime(text) if number is not None and number % 1000 else value
        for number, text, value in zip(numbers, texts, rounded, strict=True)
    ]


def _of_objects(values: list[Any]) -> tuple[list[Any], Ints]:
    places: dict[Key, int] = {}
    different: list[Any] = []
    found = np.full(len(values), -1, np.int64)
    for at, value in enumerate(values):
        if value is None:
            continue
        key = exact_key(value)
        if key not in places:
            places[key] = len(different)
            different.append(value)
        found[at] = places[key]
    return different, found


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
