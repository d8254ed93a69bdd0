"""How a CSV file spells characters, missing values, numbers and dates, by [source]; and what a run refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.reading.columns import TEXT, Bools, as_ns
from shoal.errors import PolicyError

_ENCODINGS: Final = ("utf-8", "latin-1", "cp1252")
_WITH_COMMA = re.compile(r"([+-]?)((?:\d{1,3}(?:\.\d{3})+|\d+)?)((?:,\d+)?)((?:[eE][+-]?\d+)?)", re.ASCII)
_DATE_PARTS: Final = {"YYYY": r"(?P<year>\d{4})", "MM": r"(?P<month>\d\d?)", "DD": r"(?P<day>\d\d?)"}
_DATE_FORM = re.compile(r"(YYYY|MM|DD)([./-]?)(YYYY|MM|DD)\2(YYYY|MM|DD)")
_TIME: Final = r"(?:,?[ T]+(?P<time>\d.*))?"
_WHOLE = re.compile(r"-?\d+", re.ASCII)
_HEX = re.compile(r"-?0[xX][0-9a-fA-F]{1,16}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE)
_ENDLESS: Final = {r"(?i)^[+]?inf(?:inity)?$": "inf", r"(?i)^-inf(?:inity)?$": "-inf"}
_NO_NUMBER: Final = r"(?i)^[+-]?nan(?:\([a-z0-9_]*\))?$"
"""How C, Java and others write NaN, which a run reads as a missing value."""
_TRUTH: Final = ("true", "false", "0", "1")
NUMBERS: Final = ("int64", "float64")


@dataclass(frozen=True, slots=True)
class Spelling:
    """How values of a CSV file are written, by column where columns differ."""

    encoding: str = "utf-8"
    words: tuple[str, ...] = ()
    """Words that mean a missing value, in every column."""
    words_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same, of single columns."""
    has_commas: bool = False
    """Whether decimals of numbers stand behind a comma."""
    dates: Mapping[str, str] = field(default_factory=dict)
    """The form of dates, by column."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The declared types of the columns that a run reads: a value of another type is refused."""
    numbers: frozenset[str] = frozenset()
    """The columns that a run reads as numbers."""

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> Spelling:
        """Read ``[source]``."""
        encoding, nulls = section.get("encoding", "utf-8"), section.get("nulls", [])
        if encoding not in _ENCODINGS:
            raise PolicyError(f"[source] encoding: must be one of {', '.join(_ENCODINGS)}")
        dates = section.get("dates", {})
        return cls(
            encoding,
            _words(nulls) if isinstance(nulls, list | tuple) else (),
            {str(name): _words(words) for name, words in nulls.items()} if isinstance(nulls, Mapping) else {},
            has_commas=section.get("decimal") == ",",
            dates={str(name): str(form) for name, form in dates.items()} if isinstance(dates, Mapping) else {},
        )

    def clean(self, name: str, column: Any) -> Any:
        """Return a column of text with numbers and dates in their usual form, missing values as null."""
        words = (*self.words, *self.words_of.get(name, ()))
        if words:
            is_word = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(words, TEXT))
            column = pc.if_else(is_word, pa.scalar(None, TEXT), column)
        if name in self.dates:
            pattern = _date_pattern(self.dates[name])
            column = pa.chunked_array([[_iso(text, pattern) for text in column.to_pylist()]], TEXT)
        if name in self.numbers and self.types.get(name) != "int64":
            column = _finite(column)
        if self.has_commas and name in self.numbers:
            column = pa.chunked_array([[_with_point(text) for text in column.to_pylist()]], TEXT)
        return column

    def misfits(self, columns: Mapping[str, Any], rows: int) -> Bools:
        """Mark the records with a value that is not of the declared type of its column: a run refuses them."""
        found = np.zeros(rows, np.bool_)
        for name in self.types.keys() & columns.keys():
            text = columns[name].cast(TEXT)
            different = pc.unique(text.drop_null()).to_pylist()
            bad = [value for value in different if not _fits(value.strip(), self.types[name])]
            if bad:
                is_bad = pc.is_in(text, value_set=pa.array(bad, TEXT))
                found |= np.asarray(is_bad.to_numpy(zero_copy_only=False), np.bool_)
        return found


PLAIN: Final = Spelling()


def _words(given: Any) -> tuple[str, ...]:
    return (given.strip(),) if isinstance(given, str) else tuple(str(word).strip() for word in given)


def _fits(text: str, kind: str) -> bool:
    if kind == "int64":
        return bool(_HEX.fullmatch(text)) or bool(_WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63)
    if kind == "float64":
        return _DECIMAL.fullmatch(text) is not None
    if kind == "bool":
        return text.lower() in _TRUTH
    if kind == "timestamp":
        return _DECIMAL.fullmatch(text) is None and bool(as_ns([text])[1][0])
    return True


def _finite(column: Any) -> Any:
    """Return a column of floats with one spelling of infinity, NaN as null."""
    if not pc.any(pc.match_substring(column, "n", ignore_case=True)).as_py():
        return column
    bare = pc.utf8_trim_whitespace(column)
    for pattern, spelling in _ENDLESS.items():
        column = pc.if_else(pc.match_substring_regex(bare, pattern), pa.scalar(spelling, TEXT), column)
    return pc.if_else(pc.match_substring_regex(bare, _NO_NUMBER), pa.scalar(None, TEXT), column)


def _with_point(text: str | None) -> str | None:
    """Return a number with a decimal comma with a point; a point that separates no thousands makes it no number."""
    match = None if text is None else _WITH_COMMA.fullmatch(text.strip())
    if text is None or match is None:
        return text and text.replace(".", ",")
    sign, whole, decimals, power = match.groups()
    return f"{sign}{whole.replace('.', '')}{decimals.replace(',', '.')}{power}"


def _date_pattern(form: str) -> re.Pattern[str]:
    match = _DATE_FORM.fullmatch(form)
    if match is None or len({match[1], match[3], match[4]}) != 3:
        raise PolicyError('[source] dates: give a form such as "DD.MM.YYYY"')
    parts = [_DATE_PARTS[part] for part in match.group(1, 3, 4)]
    if not match[2]:
        parts = [part.replace(r"\d?", r"\d") for part in parts]
    return re.compile(re.escape(match[2]).join(parts) + _TIME, re.ASCII)


def _iso(text: str | None, pattern: re.Pattern[str]) -> str | None:
    match = None if text is None else pattern.fullmatch(text)
    if match is None:
        return text
    day = f"{match['year']}-{int(match['month']):02d}-{int(match['day']):02d}"
    return day if match["time"] is None else f"{day}T{match['time']}"
