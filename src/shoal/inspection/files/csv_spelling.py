"""How a CSV file spells characters, numbers and dates, found in its content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

import pyarrow.compute as pc

from shoal.decode.spellings import DATE_FORMS, DateForm, Encoding, as_iso, with_points

_MOST: Final = 0.98
_NO_TEXT: Final = re.compile(rb"[\x00-\x08\x0e-\x19\x1c-\x1f]")
_COMMA: Final = r"^[+-]?(\d{1,3}(\.\d{3})+|\d+)?,\d+$"
_WITH_COMMAS: Final = r"^[+-]?((\d{1,3}(\.\d{3})+|\d+)?,\d+|\d{1,3}(\.\d{3})+|\d+)$"
_POINT: Final = r"^[+-]?\d+\.\d+$"
_DAY: Final = r"^\d{4}-\d\d-\d\d(T\d\d?(:\d\d){1,2}(\.\d+)?)?$"
_YEARS: Final = range(1850, 2101)
_FEW: Final = 3
"""Different days from which on eight digits are taken for dates."""


@dataclass(frozen=True, slots=True)
class CsvSpelling:
    """What [source] must say of numbers and dates."""

    has_commas: bool = False
    commas: frozenset[str] = frozenset()
    """The columns whose numbers have a decimal comma."""
    dates: Mapping[str, DateForm] = field(default_factory=dict)

    @property
    def source(self) -> dict[str, Any]:
        """The keys of [source]."""
        found: dict[str, Any] = {"decimal": ","} if self.has_commas else {}
        return found | ({"dates": dict(self.dates)} if self.dates else {})

    def apply(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """The columns as a run reads them."""
        return {name: self._read(name, column) for name, column in columns.items()}

    def _read(self, name: str, column: Any) -> Any:
        if name in self.dates:
            return as_iso(column, self.dates[name])
        return with_points(column) if name in self.commas else column


def encoding_of(head: bytes) -> Encoding | None:
    """The encoding of the beginning of a text; None if it is none."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16, which the decoder names
        return "utf-8"
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4 or error.reason != "unexpected end of data":
            return None if _NO_TEXT.search(head) else _one_byte(head)
    return "utf-8"


def _one_byte(text: bytes) -> Encoding:
    """Latin-1 has control characters where the code page of Windows has quotes, dashes and the euro sign."""
    return "cp1252" if any(0x80 <= byte < 0xA0 for byte in text) else "latin-1"


def spelling_of(columns: Mapping[str, Any]) -> CsvSpelling:
    """How numbers and dates of these columns of text are written."""
    different = {name: pc.unique(column.drop_null()) for name, column in columns.items()}
    dates = {name: form for name, values in different.items() if (form := _date_form(values)) is not None}
    rest = {name: values for name, values in different.items() if name not in dates and len(values)}
    has_commas = any(
        _share(values, _COMMA) >= 0.5 and _share(values, _WITH_COMMAS) >= _MOST for values in rest.values()
    )
    if not has_commas or any(_share(values, _POINT) > 0.5 and not _are_thousands(values) for values in rest.values()):
        return CsvSpelling(dates=dates)
    commas = {name for name, values in rest.items() if _share(values, _WITH_COMMAS) >= _MOST}
    return CsvSpelling(has_commas, frozenset(commas), dates)


def _share(values: Any, pattern: str) -> float:
    return float(pc.mean(pc.match_substring_regex(values, pattern)).as_py())


def _are_thousands(values: Any) -> bool:
    return _share(values, _WITH_COMMAS) >= _MOST


def _date_form(values: Any) -> DateForm | None:
    """The only form in which nearly all values are days; None if there is none, or more than one."""
    if not len(values):
        return None
    found = [form for form in DATE_FORMS if _are_days(as_iso(values, form), values, form)]
    return found[0] if len(found) == 1 else None


def _are_days(read: Any, values: Any, form: DateForm) -> bool:
    if _share(values, _DAY) > 1 - _MOST or _share(read, _DAY) < _MOST:
        return False
    if form == "YYYYMMDD" and len(values) < _FEW:
        return False
    days = pc.unique(pc.utf8_slice_codeunits(read, 0, 10)).to_pylist()
    return sum(map(_is_day, days)) >= _MOST * len(days)


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).year in _YEARS
    except ValueError:
        return False
