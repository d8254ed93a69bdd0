"""Results as tables: the same text in the CSV file and on the page."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """Records with the same keys."""

    name: str
    """Of the file, without its ending."""
    caption: str
    records: Sequence[Record]
    digits: int | None = None
    """Of numbers that are not whole; without it four places after the point."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Keys of the records."""
        return tuple(self.records[0]) if self.records else ()

    @property
    def file(self) -> str:
        """Name of the CSV file."""
        return f"{self.name}.csv"

    def lines(self) -> list[list[str]]:
        """Every record as text."""
        return [[as_text(record[column], self.digits) for column in self.columns] for record in self.records]

    def write(self, folder: Path) -> None:
        """Write the CSV file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.lines())
        try:
            write_file(folder / self.file, text.getvalue())
        except OSError as error:
            raise OutputError(f"{folder / self.file}: cannot be written ({error.strerror})") from None


def as_text(value: object, digits: int | None = None) -> str:
    """A cell: four places after the point, or so many digits; nothing for nothing.

    >>> [as_text(value) for value in (0.61, 12, None, True, "FADS", 3.5e9)]
    ['0.6100', '12', '', 'yes', 'FADS', '3.5e+09']
    >>> as_text(0.0000123456, 3)
    '1.23e-05'
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if digits is not None:
            return f"{value:.{digits}g}"
        return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4g}"
    return str(value)
