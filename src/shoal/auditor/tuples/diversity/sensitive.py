"""Sensitive columns as numbers; values that mean the same count as one, however they are spelled."""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.engine import Place, Table
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.rows.reading import shown, true
from shoal.auditor.tuples.promise import TuplePromise

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?(?: ?([Zz]|[+-]\d\d(?::?\d\d)?))?", re.ASCII)
_TRUTH: Final = {"1": "true", "0": "false"}
_NUMBERS: Final = ("int64", "float64")
_INFINITE: Final = ("inf", "-inf")
_REMEMBERED: Final = 2**16
"""Texts whose meaning is kept: every part of an audit asks for them again."""


@lru_cache(maxsize=_REMEMBERED)
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
    """One sensitive column, and what all values of it say together."""

    name: str
    column: str
    """The column of relations that has the values of released rows."""
    true: str
    """The column that has those of records."""
    kind: str | None
    """The type that the policy declares for the column."""
    is_ordered: bool = False
    """Whether all values are numbers."""
    declared: Mapping[str | None, float] = field(default_factory=dict)
    """The distribution that t is measured against, if the policy declares it."""
    overall: Mapping[str | None, int] = field(default_factory=dict)
    """How often each meaning is in the whole release."""

    def numbers(self, *columns: Texts, further: Iterable[str | None] = ()) -> tuple[dict[str | None, int], list[Ints]]:
        """Number all meanings, in their order if they have one; a missing value is 0. Return those of columns, too."""
        meanings = [[meaning(text, self.kind) for text in column.texts] for column in columns]
        every = list(dict.fromkeys(one for one in itertools.chain(*meanings, further) if one is not None))
        if self.is_ordered:
            every.sort(key=lambda one: exact(one) or Decimal(0))
        number_of: dict[str | None, int] = {None: 0} | {text: at for at, text in enumerate(every, 1)}
        codes = [
            np.array([*(number_of[one] for one in own), 0], np.int64)[column.codes]  # code -1 picks the last
            for own, column in zip(meanings, columns, strict=True)
        ]
        return number_of, codes


def sensitive_columns(
    place: Place, promise: TuplePromise, names: Sequence[str], tables: Iterable[tuple[Table, str]],
    values: Iterable[tuple[str, str]],
) -> tuple[Sensitive, ...]:  # fmt: skip
    """Some sensitive columns, after a look at all rows and records, and at the values of recorded references.

    Columns that are published generalized have their values in the truth.
    """
    kinds = {name: promise.declared_types.get(name) for name in names}
    says = {name for name, kind in kinds.items() if kind in _NUMBERS}
    for role in ("release", "truth"):
        own = promise.sensitive if role == "release" else names
        says.update(*place.facts(role, partial(_numeric, own)))
    exact_ones = dict.fromkeys(names, True)
    for table, key in tables:
        for words in place.divide(table, (key,), partial(_words, kinds)):
            exact_ones = {name: is_exact and name not in words for name, is_exact in exact_ones.items()}
    declared = ((name, text) for name in names for text in promise.diversity.declared.get(name, ()))
    for name, text in (*(pair for pair in values if pair[0] in kinds), *declared):
        exact_ones[name] &= _is_number(meaning(text, kinds[name]))
    return tuple(
        Sensitive(
            name,
            shown(name) if name in promise.sensitive else true(name),
            true(name),
            kinds[name],
            name in says and exact_ones[name],
            _meanings(promise.diversity.declared.get(name, {}), kinds[name]),
        )
        for name in names
    )


def _meanings(shares: Mapping[str, float], kind: str | None) -> dict[str | None, float]:
    found: dict[str | None, float] = {}
    for text, share in shares.items():
        own = meaning(text, kind)
        found[own] = found.get(own, 0.0) + share
    return found


def _numeric(names: Sequence[str], rows: Rows) -> set[str]:
    """Columns that have numbers, not texts."""
    return {name for name in names if any(map(_is_numeric, rows.pieces(name)))}


def _words(kinds: Mapping[str, str | None], rows: Relation) -> set[str]:
    """Columns with a value that is not a number."""
    found = set()
    for name, kind in kinds.items():
        for column in {shown(name), true(name)} & set(rows):
            used = np.flatnonzero(np.bincount(rows.codes(column) + 1, minlength=1)[1:]).tolist()
            if not all(_is_number(meaning(rows[column].texts[at], kind)) for at in used):
                found.add(name)
    return found


def _is_number(meant: str | None) -> bool:
    return meant is None or exact(meant) is not None


@lru_cache(maxsize=_REMEMBERED)
def exact(meant: str) -> Decimal | None:
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
