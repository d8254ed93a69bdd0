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
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.reading.lines import ABSENT
from shoal.auditor.reading.memory import current
from shoal.auditor.relation import Texts
from shoal.errors import InputError

_BYTES_PER_VALUE: Final = 200
"""Memory for a different value: its text and its place in the dictionary."""
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+", re.ASCII)
_MARK: Final = "\0"


def exact(value: Any) -> str | None:
    """Spell a value so that only values that no reader can tell apart are equal; None for a missing one.

    A text follows a mark; before the mark stand the type of any other value and the value as Python writes it.
    """
    if value is None:
        return None
    if type(value) is str:
        return f"{_MARK}{value}"
    own, text = f"{type(value).__name__} {value!r}", as_text(value)
    return own if text is None else f"{own}{_MARK}{text}"


def text_of(spelt: str | None) -> str | None:
    """The text of a value that `exact` spelt; None for a missing one and for NaN."""
    if spelt is None:
        return None
    _, mark, text = spelt.partition(_MARK)
    return text if mark else None


def person(value: Any) -> str | None:
    """Spell a person in one way for all ways to write it: 7, 7.0 and " 7"; None if the person is missing."""
    text = as_text(value)
    if text is None:
        return None
    text = unicodedata.normalize("NFC", text.strip())
    whole = _WHOLE.fullmatch(text)
    return (whole.group(1) if whole else text) or None


def as_text(value: Any) -> str | None:
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
    """The numbers of a column's values, in order of first appearance; -1 for a missing one."""

    def __init__(self, name: str, spell: Callable[[Any], str | None] = exact) -> None:
        self.name = name
        self._spell = spell
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []

    def encode(self, pieces: Iterable[Any]) -> Texts:
        """Number the values of some pieces of the column."""
        before = len(self._texts)
        codes = np.concatenate([np.zeros(0, np.int32), *map(self._encoded, pieces)])
        current().take(f"column {self.name}", (len(self._texts) - before) * _BYTES_PER_VALUE)
        return Texts(codes, self._texts)

    def _encoded(self, column: Any) -> Any:
        if isinstance(column, list):
            return np.array([self._number(value) for value in column], np.int32)
        try:
            coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        except pa.ArrowNotImplementedError:  # lists, structs and the like
            return self._encoded(column.to_pylist())
        place = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        used = np.flatnonzero(np.bincount(place + 1, minlength=len(coded.dictionary) + 1)[1:])
        values = coded.dictionary if len(used) == len(coded.dictionary) else coded.dictionary.take(pa.array(used))
        known = np.full(len(coded.dictionary) + 1, -1, np.int32)  # place -1, a missing value, picks the last
        try:
            known[used] = [self._number(value) for value in _objects(values)]
        except UnicodeDecodeError:
            raise InputError(f"column {self.name}: has texts that are not UTF-8; write the file again") from None
        return known[place]

    def _number(self, value: Any) -> int:
        spelt = self._spell(value)
        if spelt is None:
            return -1
        number = self._numbers.setdefault(spelt, len(self._texts))
        if number == len(self._texts):
            self._texts.append(spelt)
        return number


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
