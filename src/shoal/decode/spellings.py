"""Numbers with a decimal comma and dates in the order of a country, rewritten as a run reads them."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import pyarrow.compute as pc

DateForm = Literal["DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "YYYY/MM/DD", "YYYYMMDD"]
Encoding = Literal["utf-8", "latin-1", "cp1252"]
DATE_FORMS: Final[tuple[DateForm, ...]] = get_args(DateForm)
_PARTS: Final = {"YYYY": r"(\d{4})", "MM": r"(\d\d?)", "DD": r"(\d\d?)"}
_CLOCK: Final = r"(?:,?[\x20T]+(\d.*))?$"
_COMMA: Final = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)?(,\d+)?([eE][+-]?\d+)?$"


def with_points(text: Any) -> Any:
    """Numbers with a decimal comma, with a point: `1.234,5` is 1234.5.

    A point that does not separate thousands becomes a comma, so that no number is read from it.
    """
    fits = pc.match_substring_regex(text, _COMMA)
    bare = pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")
    return pc.if_else(fits, bare, pc.replace_substring(text, ".", ","))


def as_iso(text: Any, form: DateForm) -> Any:
    """Dates in a form, with the time of day that follows, as ISO 8601; other text as it is."""
    pattern, places = _pattern(form)
    year, month, day = (places[part] for part in ("YYYY", "MM", "DD"))
    fits = pc.match_substring_regex(text, pattern)
    found = pc.replace_substring_regex(text, pattern, rf"\{year}-0\{month}-0\{day}T\4")
    found = pc.replace_substring_regex(found, r"^(\d{4})-0?(\d\d)-0?(\d\d)", r"\1-\2-\3")
    return pc.if_else(fits, pc.replace_substring_regex(found, "^(.{10})T$", r"\1"), text)


def _pattern(form: DateForm) -> tuple[str, dict[str, int]]:
    """What matches a form, and the number of the group of each part."""
    order = sorted(_PARTS, key=form.index)
    pattern = form.replace(".", r"\.")
    for part in order:
        pattern = pattern.replace(part, _PARTS[part] if not form.isalpha() else _PARTS[part].replace(r"\d\d?", r"\d\d"))
    return f"^{pattern}{_CLOCK}", {part: place for place, part in enumerate(order, 1)}


class Recoded:
    """A stream of text in an encoding of one byte a character, as UTF-8."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding

    def read(self, size: int = -1) -> bytes:
        """Read, and encode again; a byte that stands for nothing becomes U+FFFD."""
        return self._recoded(self._stream.read(size))

    def read_some(self, size: int) -> bytes:
        """Read what is there of a live stream."""
        return self._recoded(getattr(self._stream, "read_some", self._stream.read)(size))

    @property
    def is_live(self) -> bool:
        """Whether the stream may fall silent."""
        return bool(getattr(self._stream, "is_live", False))

    def _recoded(self, part: bytes) -> bytes:
        return bytes(part).decode(self._encoding, "replace").encode()

    def seekable(self) -> bool:
        """Positions are those of the text in UTF-8."""
        return False

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
