"""What every study shares: its tables, its claims, and how it reports progress."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError

Record = Mapping[str, Any]
Progress = Callable[[int, int, str], None]
"""Takes the steps done, the steps in all, and a description of the next step."""


@dataclass(frozen=True, slots=True)
class Table:
    """Records with the same keys, written to a CSV file and shown on the page as the same text."""

    name: str
    """Name of the file, without extension."""
    caption: str
    records: Sequence[Record]
    digits: int | None = None
    """Significant digits of floats; four decimal places if None."""

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
    """Format a cell: floats with four decimal places or `digits` significant digits, None as empty text.

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


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of a paper, our numbers, whether they agree, and the reason if not."""

    paper: str
    found: str
    agrees: bool | None
    """None where the paper makes no statement."""
    why: str


def claims_table(name: str, claims: Iterable[Claim]) -> Table:
    """One row per claim."""
    records = [
        {"the_paper": claim.paper, "we_find": claim.found, "agrees": claim.agrees, "what_to_know": claim.why}
        for claim in claims
    ]
    return Table(name, "What the paper says, and what we find", records)


def from_to(values: Iterable[float], spec: str = ".1%") -> str:
    """Format the smallest and the largest value.

    >>> from_to([0.031, 0.09]), from_to([2, 2], "d")
    ('3.1% to 9.0%', '2')
    """
    found = list(values)
    low, high = format(min(found), spec), format(max(found), spec)
    return low if low == high else f"{low} to {high}"


def where(records: Iterable[Record], **wanted: Any) -> list[Any]:
    """Return the records with these values.

    >>> where([{"k": 2, "z": 1}, {"k": 3, "z": 1}], k=3)
    [{'k': 3, 'z': 1}]
    """
    return [record for record in records if all(record[key] == value for key, value in wanted.items())]
