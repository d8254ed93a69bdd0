"""Check the layout of text files: quotes, blanks, line ends and the order of names must not distinguish rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from shoal.auditor.checks import check, look
from shoal.auditor.findings import Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.files import text_files
from shoal.auditor.reading.lines import once, split_fields
from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.paths import Format

_AT_ONCE: Final = 4 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_QUOTE, _LINE_END, _RETURN = 34, 10, 13
_STYLES: Final = (((",", ":"), False), ((", ", ": "), False), ((",", ":"), True), ((", ", ": "), True))
"""Separators, and whether characters beyond ASCII are escaped."""
_EXTREME: Final = re.compile(rb"[:\[,]-?(?:\d{16}|\d+(?:\.(?:0000|\d{16})|(?:\.\d+)?[eE]))")
"""Matches numbers, in JSON without blanks, that writers spell differently: very large or very small ones."""


# ---- CSV


@dataclass(slots=True)
class _Counts:
    """How often each form of a field was used, by column."""

    bare: Ints
    needless: Ints
    """Quoted although the field does not need it."""
    nothing: Ints
    quoted_nothing: Ints
    with_return: int = 0
    without_return: int = 0
    untidy: int = 0
    """Blank lines, quotes within a field or text after a closing quote."""

    @classmethod
    def of(cls, columns: int) -> _Counts:
        """Start at zero."""
        bare, needless, nothing, quoted = np.zeros((4, columns), np.int64)
        return cls(bare, needless, nothing, quoted)


def odd_csv_rows(data: bytes, delimiter: str, *, header: list[str] | None, unchanged: frozenset[str]) -> int:
    """Return a lower bound for the rows of a CSV file that are laid out differently from the others.

    A column quotes all values or only those that need it; all lines end the same; a missing value has one form, except
    in columns published unchanged, where an empty text is not a missing value.
    """
    data = data.removeprefix(_BOM)
    first = data.split(b"\n", 1)[0].removesuffix(b"\r").decode("utf-8", "replace")
    names = header or split_fields(first, delimiter) or [first]
    counts = _Counts.of(len(names))
    is_header = header is None
    for chunk in _csv_chunks(data):
        _count(chunk, ord(delimiter), counts, is_header=is_header)
        is_header = False
    mixed = np.minimum(counts.bare, counts.needless)
    kept = np.array([name in unchanged for name in names], np.bool_)
    nulls = np.where(kept, 0, np.minimum(counts.nothing, counts.quoted_nothing))
    return int(mixed.sum() + nulls.sum()) + min(counts.with_return, counts.without_return) + counts.untidy


def _csv_chunks(data: bytes) -> Iterator[bytes]:
    """Split after records, at line ends outside quotes."""
    at = 0
    while at < len(data):
        end = min(at + _AT_ONCE, len(data))
        while end < len(data):
            piece = np.frombuffer(data, np.uint8, end - at, at)
            outside = ~np.logical_xor.accumulate(piece == _QUOTE) & (piece == _LINE_END)
            last = np.flatnonzero(outside)
            if len(last):
                end = at + int(last[-1]) + 1
                break
            end = min(end + _AT_ONCE, len(data))
        yield data[at:end]
        at = end


def _count(chunk: bytes, delimiter: int, counts: _Counts, *, is_header: bool) -> None:
    text = np.frombuffer(chunk if chunk.endswith(b"\n") else chunk + b"\n", np.uint8)
    quote = text == _QUOTE
    inside = np.logical_xor.accumulate(quote)
    line_end = (text == _LINE_END) & ~inside
    end = np.flatnonzero(line_end | ((text == delimiter) & ~inside))
    begin = np.append(0, end[:-1] + 1)
    is_last = line_end[end]
    record = np.append(0, np.cumsum(is_last)[:-1])
    column = np.arange(len(end)) - np.flatnonzero(np.append(True, is_last[:-1]))[record]
    returned = is_last & (end > begin) & (text[np.maximum(end - 1, 0)] == _RETURN)
    end = end - returned
    judged = column < len(counts.bare)
    if is_header:
        judged &= record > 0
        is_last = is_last & (record > 0)
    empty = end == begin
    quoted = ~empty & quote[np.minimum(begin, len(text) - 1)]
    special = np.append(0, np.cumsum((text == delimiter) | (text == _LINE_END) | (text == _RETURN)))
    quotes = np.append(0, np.cumsum(quote))
    own_quotes = quotes[end] - quotes[begin]
    needed = (special[end] - special[begin] > 0) | (own_quotes > 2)
    blank = empty & (column == 0) & is_last & (len(counts.bare) > 1)
    untidy = (quoted & ~quote[np.maximum(end - 1, 0)]) | (~quoted & (own_quotes > 0)) | blank
    no_text = quoted & (end - begin == 2)
    for marks, into in (
        (~quoted & ~empty, counts.bare),
        (quoted & ~needed & ~no_text, counts.needless),
        (empty, counts.nothing),
        (no_text, counts.quoted_nothing),
    ):
        into += np.bincount(column[marks & judged & ~blank], minlength=len(into))
    counts.untidy += int((untidy & judged).sum())
    counts.with_return += int((returned & is_last).sum())
    counts.without_return += int((is_last & ~returned).sum())


# ---- JSON lines


@dataclass(slots=True)
class _JsonStyle:
    """The style of the first row, and the writers that may have written the numbers so far."""

    separators: tuple[str, str]
    is_ascii: bool
    names: tuple[str, ...]
    writers: set[str] = field(default_factory=lambda: {"orjson", "arrow", "python"})

    @classmethod
    def of(cls, line: bytes) -> _JsonStyle:
        """Detect the style of a row; the publisher's if it is none of the usual ones."""
        for separators, is_ascii in _STYLES:
            style = cls(separators, is_ascii, ())
            written = style.parsed(line)
            if written is not None and style.spelt(written) == line.decode():
                return cls(separators, is_ascii, tuple(written))
        written = cls(*_STYLES[0], ()).parsed(line) or {}
        return cls(*_STYLES[0], tuple(written))

    @staticmethod
    def parsed(line: bytes) -> dict[str, Any] | None:
        """Parse a row but keep its numbers as text; None if it is not a JSON object."""
        try:
            found = json.loads(line.decode(), parse_float=_Number, parse_int=_Number, object_pairs_hook=once)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def spelt(self, value: Any) -> str:
        """Write a value in this style, keeping the text of numbers."""
        if isinstance(value, _Number):
            return str(value)
        between, after = self.separators
        if isinstance(value, dict):
            return (
                "{" + between.join(f"{self.spelt(name)}{after}{self.spelt(own)}" for name, own in value.items()) + "}"
            )
        if isinstance(value, list):
            return "[" + between.join(map(self.spelt, value)) + "]"
        return json.dumps(value, ensure_ascii=self.is_ascii)

    def is_odd(self, line: bytes) -> bool:
        """Return whether a row has another style; rows that are not JSON objects are reported elsewhere."""
        if self.separators == (",", ":") and not self.is_ascii and self._is_plain(line):
            return False
        written = self.parsed(line)
        if written is None:
            return False
        # Every number narrows down which writer wrote the file, so check all.
        differing = sum(self._differs(number) for number in _numbers(written))
        return differing > 0 or tuple(written) != self.names or self.spelt(written) != line.decode()

    def _is_plain(self, line: bytes) -> bool:
        """Return quickly whether orjson writes the row like this and no number is spelled differently by others."""
        try:
            found = orjson.loads(line)
        except ValueError:
            return False
        return (
            isinstance(found, dict)
            and tuple(found) == self.names
            and orjson.dumps(found) == line
            and (_EXTREME.search(line) is None)
        )

    def _differs(self, number: str) -> bool:
        if not any(mark in number for mark in ".eE"):
            return number == "-0"
        value = float(number)
        arrow = pa.scalar(value).cast(pa.string()).as_py()
        spellings = {
            "orjson": orjson.dumps(value).decode(),
            "python": repr(value),
            "arrow": f"{arrow}.0" if arrow.lstrip("-").isdigit() else arrow,
        }
        fitting = {writer for writer in self.writers if spellings[writer] == number}
        self.writers = fitting or self.writers
        return not fitting


class _Number(str):
    """The text of a number."""

    __slots__ = ()


def _numbers(value: Any) -> Iterator[_Number]:
    if isinstance(value, _Number):
        yield value
    for own in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _numbers(own)


def odd_json_rows(data: bytes) -> int:
    """Count the rows of JSON lines with another style than the first, and line ends that differ."""
    lines = data.removeprefix(_BOM).split(b"\n")
    if not lines[-1]:
        lines.pop()
    returned = sum(line.endswith(b"\r") for line in lines)
    rows = [row for line in lines if (row := line.removesuffix(b"\r")).strip(b" \t")]
    if not rows:
        return 0
    style = _JsonStyle.of(rows[0])
    blank = len(lines) - len(rows)
    return sum(map(style.is_odd, rows)) + min(returned, len(lines) - returned) + blank


# ---- a release


def count_odd_rows(release: Any, policy: Policy, expected: Format) -> int:
    """Return a lower bound for the rows of a release's text files that are laid out differently from the others."""
    stream, rules = policy.section("stream"), policy.section("anonymize")
    generalized = quasi if isinstance(quasi := rules.get("quasi"), Mapping) else {}
    kept = [
        name for names in (stream.get("carry"), rules.get("sensitive")) if isinstance(names, list)
        for name in names if name not in generalized
    ]  # fmt: skip
    found = 0
    for kind, data, delimiter in text_files(release, "release", expected):
        if kind == "jsonl":
            found += odd_json_rows(data)
        else:
            found += odd_csv_rows(data, delimiter, header=expected.header, unchanged=frozenset(kept))
    return found


@check(
    "layout",
    "Rows differ in layout (quotes, blanks, line ends, order of names); this distinguishes them.",
    advice="Write the whole file with one writer. The count is a lower bound.",
    families=("z", "tuples", "flexible"),
    by="none",
)
def layout(release: Outline) -> int:
    """Count the rows of text files that are laid out differently from the others."""
    return release.odd_rows


def check_layout(odd_rows: int, notes: Notes) -> None:
    """Report rows whose layout distinguishes them."""
    notes.findings += look(Outline(odd_rows=odd_rows), (layout,))
