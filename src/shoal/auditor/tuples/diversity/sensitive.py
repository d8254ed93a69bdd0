"""Sensitive columns as numbers; values that mean the same count as one, however they are spelled."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import shared_codes
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import Recorded

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?: ?([Zz]|[+-]\d\d(?::?\d\d)?))?", re.ASCII)
_TRUTH: Final = {"1": "true", "0": "false"}
_NUMBERS: Final = ("int64", "float64")
_INFINITE: Final = ("inf", "-inf")


def meaning(text: str, kind: str | None = None) -> str | None:
    """Return one spelling for all texts with the same meaning; None for no value.

    ``kind`` is the type that the policy declares for the column: text that is no number is no value of a type of
    numbers, because a run refuses its record. Without one, and for text: whatever reads as a number, a boolean or an
    ISO 8601 moment is one; any other text is itself, stripped.
    """
    text = unicodedata.normalize("NFC", text.strip())
    if not text or (kind in _NUMBERS and not _DECIMAL.fullmatch(text) and text not in _INFINITE):
        return None
    if kind == "bool":
        text = _TRUTH.get(text, text)
    if text.lower() in {"true", "false"}:
        return text.lower()
    if _DECIMAL.fullmatch(text):
        return _number(
            Decimal(repr(float(text))) if kind == "float64" and math.isfinite(float(text)) else Decimal(text)
        )
    moment = _moment(text)
    return f"'{text}" if moment is None else f"@{moment}"


def _number(number: Decimal) -> str:
    """Spell a number exactly: its digits, then the power of ten."""
    sign, places, exponent = number.as_tuple()
    digits = "".join(map(str, places)).lstrip("0")  # kept as text: Python refuses to convert very long numbers
    whole = digits.rstrip("0")
    return f"{'-' * sign}{whole}e{int(exponent) + len(digits) - len(whole)}" if whole else "0e0"


def _moment(text: str) -> int | None:
    """Return nanoseconds since 1970; UTC if no zone is given."""
    day = _DAY.match(text)
    if day is None:
        return None
    try:
        midnight = (date(*map(int, day.groups())) - date(1970, 1, 1)).days * 86_400
    except ValueError:
        return None
    rest = text[day.end() :]
    if not rest:
        return midnight * 10**9
    clock = _CLOCK.fullmatch(rest, 1)
    if clock is None or rest[0] not in "Tt ":
        return None
    hour, minute, second, fraction, zone = clock.groups(default="")
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        return None
    ahead = _ahead(zone)
    if ahead is None:
        return None
    seconds = midnight + int(hour) * 3600 + int(minute) * 60 + int(second or 0) - ahead
    return seconds * 10**9 + int(f"{fraction:0<9}")


def _ahead(zone: str) -> int | None:
    """Return the offset of a zone from UTC in seconds."""
    if zone in {"", "Z", "z"}:
        return 0
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)


_NUMBER = re.compile(r"-?[0-9]+e-?[0-9]+")
_ENDLESS: Final = ("'inf", "'-inf")
"""How shoal.auditor.tuples.meaning spells numbers that are infinite."""


@dataclass(frozen=True, slots=True)
class Sensitive:
    """One sensitive column: values as numbers, in their order if they have one; null is the first."""

    name: str
    number_of: dict[str, int]
    is_ordered: bool
    true: Ints
    shown: Ints
    kind: str | None
    """The type that the policy declares for the column."""

    @property
    def width(self) -> int:
        """How many numbers there are."""
        return len(self.number_of) + 1

    def number(self, text: str | None) -> int:
        """Return the number of a value as any side spells it."""
        meant = None if text is None else meaning(text, self.kind)
        return 0 if meant is None else self.number_of[meant]


@dataclass(frozen=True, slots=True)
class SensitiveFacts:
    """What all values of a sensitive column together say: whether they have an order, and how often each is shown."""

    says_numbers: bool = False
    are_numbers: bool = True
    shown: Mapping[str | None, int] = field(default_factory=dict)

    def __or__(self, other: SensitiveFacts) -> SensitiveFacts:
        """The facts of both parts of a column."""
        shown = Counter(self.shown)
        shown.update(other.shown)
        return SensitiveFacts(
            self.says_numbers or other.says_numbers, self.are_numbers and other.are_numbers, dict(shown)
        )


def read_sensitive_facts(name: str, promise: TuplePromise, release: Rows, truth: Rows) -> SensitiveFacts:
    """Read the facts of a part of the rows."""
    kind = promise.declared_types.get(name)
    texts, (_, shown) = shared_codes(truth.text(name), release.text(name))
    meant = (meaning(text, kind) for text in texts)
    count = np.bincount(shown + 1, minlength=len(texts) + 1).tolist()
    return SensitiveFacts(
        _says_numbers(name, kind, release, truth),
        all(text is None or _exact(text) is not None for text in meant),
        {text: times for text, times in zip((None, *texts), count, strict=True) if times},
    )


def read_sensitive(
    promise: TuplePromise,
    release: Rows,
    truth: Rows,
    recorded: Recorded | None,
    facts: Mapping[str, SensitiveFacts] | None = None,
    row: Ints | None = None,
) -> tuple[Sensitive, ...]:
    """Read the sensitive columns of both sides and all values of their references.

    Of a part of the rows, with the facts of all of them. ``row``: the record of each released row, if it is known;
    sensitive columns that are published generalized are then read, too.
    """
    hidden = () if row is None else promise.generalized
    further: dict[str, set[str]] = {
        name: set(promise.diversity.declared.get(name, ())) for name in (*promise.sensitive, *hidden)
    }
    for name, known in (facts or {}).items():
        further[name] |= {text for text in known.shown if text is not None}
    if recorded is not None:
        for column, value in zip(recorded.column, recorded.value, strict=True):
            if value is not None and column in further:
                further[column].add(value)
    found = [
        _sensitive(name, promise, release, truth, further[name], None if facts is None else facts[name])
        for name in promise.sensitive
    ]
    for name in hidden:
        of_records = _sensitive(name, promise, truth, truth, further[name], None)
        found.append(replace(of_records, shown=np.append(of_records.true, 0)[row]))  # row -1 picks the last, no value
    return tuple(found)


def _sensitive(
    name: str, promise: TuplePromise, release: Rows, truth: Rows, further: set[str], facts: SensitiveFacts | None
) -> Sensitive:
    kind = promise.declared_types.get(name)
    texts, (true, shown) = shared_codes(truth.text(name), release.text(name))
    meant = [meaning(text, kind) for text in texts]
    known = {meaning(text, kind) for text in further} - {None}
    every = list(dict.fromkeys(text for text in (*meant, *sorted(map(str, known))) if text is not None))
    numbers = [_exact(text) for text in every]
    known_numbers = [number for number in numbers if number is not None]
    says_numbers = _says_numbers(name, kind, release, truth) if facts is None else facts.says_numbers
    is_ordered = says_numbers and len(known_numbers) == len(every) and (facts is None or facts.are_numbers)
    order = sorted(range(len(every)), key=known_numbers.__getitem__) if is_ordered else list(range(len(every)))
    place = np.empty(len(every) + 1, np.int64)
    place[order] = 1 + np.arange(len(every))
    place[-1] = 0  # null
    number_of = {text: int(place[at]) for at, text in enumerate(every)}
    of_text = np.array([*(0 if text is None else number_of[text] for text in meant), 0], np.int64)  # -1 picks the last
    return Sensitive(name, number_of, is_ordered, of_text[true], of_text[shown], kind)


def _says_numbers(name: str, kind: str | None, release: Rows, truth: Rows) -> bool:
    return kind in _NUMBERS or any(map(_is_numeric, (*truth.pieces(name), *release.pieces(name))))


def _exact(meant: str) -> Decimal | None:
    """Return a meaning as an exact number; None if it is not a number."""
    if meant in _ENDLESS:
        return Decimal(meant[1:])
    return Decimal(meant) if _NUMBER.fullmatch(meant) else None


def _is_numeric(piece: Any) -> bool:
    if isinstance(piece, list):
        filled = [value for value in piece if value is not None]
        return bool(filled) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in filled)
    kind = piece.type.value_type if pa.types.is_dictionary(piece.type) else piece.type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
