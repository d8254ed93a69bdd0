"""What can be seen of a column without knowing what it means: its kind, its number of values, the shape of its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

Kind = Literal["number", "whole", "moment", "text", "list", "empty"]
Shape = Literal[
    "email", "phone", "ip", "host", "place", "comma", "code", "digits", "path", "date", "words", "set", "free"
]

MOST: Final = 0.98
"""The share of values that must have a kind or shape; the rest are errors in the data."""
_SAMPLE: Final = 2_000
_NUMBER: Final = r"^-?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"
_WHOLE: Final = r"^-?\d{1,15}$"
_MOMENT: Final = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?\s?(Z|[+-]\d{2}(:?\d{2})?)?)?$"
_SHAPES: Final[dict[Shape, re.Pattern[str]]] = {
    "email": re.compile(r"[^@\s]+@[^@\s]+\.[a-zA-Z]{2,}"),
    "phone": re.compile(r"\+\d[\d ()/-]{6,18}\d"),
    "ip": re.compile(r"\d{1,3}(\.\d{1,3}){3}|(?=.*([a-fA-F]|::|(:.*){5}))[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}"),
    "place": re.compile(r"(?=.*[.\s])[+-]?\d{1,2}(\.\d+)?\s*,\s*[+-]?\d{1,3}(\.\d+)?"),
    "comma": re.compile(r"[+-]?\d{1,3}(\.?\d{3})*,\d+"),
    "digits": re.compile(r"\d{3,9}"),
    "host": re.compile(r"(?=.*[a-zA-Z])[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)+"),
    "code": re.compile(r"[0-9a-fA-F]{12,}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"),
    "date": re.compile(r"(\d{4}[/.-]\d\d?[/.-]\d\d?|\d\d?[/.-]\d\d?[/.-]\d{4}|\d\d?/\d\d?/\d\d)([T ,].*)?"),
    "path": re.compile(r"[^\s/]*(/[^\s/]+)+/?"),
}
_SAME_LENGTH: Final = 0.7
"""The share of texts with the same number of words from which on they are names or phrases, not sets of words."""
_SEPARATORS: Final = ("|", ";", ",", "\t")
_EXACT: Final = 2**53
_TIME_NAME: Final = re.compile(r"(?i)time|date|^ts|ts$|when|moment|(^|_)(at|ns)$")
UNITS: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of times since 1970: how many of each are a second."""
_YEARS: Final = (631_152_000, 4_102_444_800)
"""Seconds from 1990 to 2100: numbers in between may be times."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One column."""

    name: str
    kind: Kind
    values: Any
    """An Arrow array of numbers, timestamps, texts or lists, as the kind says."""
    missing: int
    distinct: int
    shape: Shape = "words"
    separator: str | None = None
    """What separates the items of a text that is a set."""
    time_unit: str | None = None
    """For whole numbers that may be times since 1970."""
    is_converted: bool = False
    """Whether the file has text that reads as numbers or moments."""
    written: Any = None
    """The text from which numbers were read."""

    @property
    def rows(self) -> int:
        """All rows, also those without a value."""
        return len(self.values)

    @property
    def is_number(self) -> bool:
        """Whether ranges of it make sense."""
        return self.kind in ("number", "whole")


def look(table: pa.Table, *, converts: bool = False) -> dict[str, Facts]:
    """Facts about every column; `converts` reads numbers and moments out of text, as from CSV files."""
    return {name: _facts(name, table.column(name), converts=converts) for name in table.column_names}


def _facts(name: str, column: Any, *, converts: bool) -> Facts:
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_boolean(kind):  # two categories, as TRUE and FALSE in a CSV file are
        return _of_text(name, column.cast(pa.string()), converts=False)
    if pa.types.is_integer(kind):
        return _made(name, "whole", column, time_unit=_unit(column)) if _is_exact(column) else _of_long(name, column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _made(name, "number", pc.cast(column, pa.float64()))
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _made(name, "moment", column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Facts(name, "list", column, column.null_count, len(pc.unique(column.flatten().cast(pa.string()))))
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        return Facts(name, "empty", column, column.null_count, 0)
    return _of_text(name, column.cast(pa.string()), converts=converts)


def _is_exact(column: Any) -> bool:
    """Whether all whole numbers are exact as floats, as which ranges of them are computed."""
    bounds = pc.min_max(column).as_py()
    return bounds["min"] is None or max(-bounds["min"], bounds["max"]) <= _EXACT


def _of_long(name: str, column: Any) -> Facts:
    """Whole numbers of 17 digits and more: nanoseconds since 1970, or codes."""
    if _unit(column) == "ns" and _TIME_NAME.search(name):
        return _made(name, "moment", column.cast(pa.int64()).cast(pa.timestamp("ns")), time_unit="ns")
    return _of_text(name, column.cast(pa.string()), converts=False)


def _of_text(name: str, column: Any, *, converts: bool) -> Facts:
    known = column.drop_null()
    if not len(known):
        return Facts(name, "empty", column, column.null_count, 0)
    if converts and _share(known, _NUMBER) >= MOST and not _has_leading_zeros(known):
        if _share(known, _WHOLE) == _share(known, _NUMBER):
            numbers = _read(column, _WHOLE, pa.int64())
            return _made(name, "whole", numbers, time_unit=_unit(numbers), is_converted=True, written=column)
        return _made(name, "number", _read(column, _NUMBER, pa.float64()), is_converted=True, written=column)
    if _share(known, _MOMENT) >= MOST:
        moments = _moments(column)
        if moments is not None:
            return _made(name, "moment", moments, is_converted=True)
    shape, separator = _shape(known)
    return _made(name, "text", column, shape=shape, separator=separator)


def _made(name: str, kind: Kind, column: Any, **more: Any) -> Facts:
    return Facts(name, kind, column, column.null_count, len(pc.unique(column.drop_null())), **more)


def _share(known: Any, pattern: str) -> float:
    return float(pc.mean(pc.match_substring_regex(known, pattern)).as_py())


def _has_leading_zeros(known: Any) -> bool:
    """Whether it looks like a code: numbers do not begin with 0, postal codes do."""
    return bool(pc.any(pc.match_substring_regex(known, r"^0\d")).as_py())


def _read(column: Any, pattern: str, kind: pa.DataType) -> Any:
    fits = pc.fill_null(pc.match_substring_regex(column, pattern), fill_value=False)
    return pc.cast(pc.if_else(fits, column, pa.scalar(None, pa.string())), kind)


def _moments(column: Any) -> Any | None:
    """Texts as timestamps without a zone; None if they cannot be read. For bounds only: rows are read elsewhere."""
    plain = pc.replace_substring_regex(column, r"\s?(Z|[+-]\d{2}(:?\d{2})?)$", "")
    days = pc.if_else(pc.equal(pc.utf8_length(column), 10), column, plain)
    fits = pc.fill_null(pc.match_substring_regex(days, _MOMENT), fill_value=False)
    try:
        return pc.cast(pc.if_else(fits, days, pa.scalar(None, pa.string())), pa.timestamp("us"))
    except pa.ArrowInvalid:
        return None


def _unit(column: Any) -> str | None:
    """The unit in which most numbers are times between 1990 and 2100; None if there is none."""
    known = column.drop_null()
    if not len(known):
        return None
    middle = pc.quantile(known.cast(pa.float64(), safe=False), 0.5)[0].as_py()
    return next((unit for unit, size in UNITS.items() if _YEARS[0] <= middle / size <= _YEARS[1]), None)


def _shape(known: Any) -> tuple[Shape, str | None]:
    sample = [text.strip() for text in _spread(known)]
    for shape, pattern in _SHAPES.items():
        if sum(pattern.fullmatch(text) is not None for text in sample) >= MOST * len(sample):
            return shape, None
    separator = _separator(sample, _SEPARATORS)
    if separator is not None:
        return "set", separator
    if sum(len(text) > 40 or text.count(" ") > 5 for text in sample) > 0.3 * len(sample):
        return "free", None
    separator = _separator(sample, (" ",))
    return ("words", None) if separator is None else ("set", separator)


def _spread(known: Any) -> list[str]:
    step = max(1, len(known) // _SAMPLE)
    return [text for text in known[::step].to_pylist() if text.strip()] or [""]


def _separator(sample: list[str], tried: Sequence[str]) -> str | None:
    """What separates items: it is in many texts, and the parts recur more often than the texts do."""
    for separator in tried:
        split = [[part.strip() for part in text.split(separator)] for text in sample]
        if sum(len(parts) > 1 for parts in split) < 0.4 * len(sample):
            continue
        parts = Counter(part for one in split for part in set(one) if part)
        recurring = sum(count for count in parts.values() if count > 1)
        if separator == " " and max(Counter(map(len, split)).values()) > _SAME_LENGTH * len(sample):
            continue
        if recurring > 0.8 * sum(parts.values()) and len(parts) < 0.5 * len(set(sample)):
            return separator
    return None


def as_moments(facts: Facts) -> Facts:
    """Whole numbers since 1970 as moments; other facts as they are."""
    if facts.kind != "whole":
        return facts
    unit = facts.time_unit or "s"
    return replace(facts, kind="moment", values=facts.values.cast(pa.int64()).cast(pa.timestamp(unit)), time_unit=unit)


def texts(facts: Facts) -> Iterator[str]:
    """The different values of a text column."""
    yield from (value for value in pc.unique(facts.values.drop_null()).to_pylist() if value)
