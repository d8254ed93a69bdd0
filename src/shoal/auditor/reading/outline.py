"""What the files of a release, a truth or a trace show before any row is looked at; outlines of files add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import NOTHING_HIDDEN, Rows, has_row_column


@dataclass(frozen=True, slots=True)
class Outline:
    """The outline of a file, or of all files of a role."""

    rows: int = 0
    columns: tuple[str, ...] = ()
    """Columns that some file has."""
    claims: tuple[bytes, ...] = ()
    """The metadata under the key ``shoal`` of every file's schema, unparsed."""
    hidden: Hidden = NOTHING_HIDDEN
    """What a release contains besides the values of its rows."""
    odd_rows: int = 0
    """Rows of text files that are laid out differently from the others."""
    has_row_column: bool = False
    """Whether a file has a column named "row"."""
    is_numbered: bool = False
    """Whether a column "row" was added, because the policy counts rows, not people."""

    def __len__(self) -> int:
        return self.rows

    @staticmethod
    def of(rows: Rows) -> Outline:
        """The outline of what was read."""
        is_own = not rows.is_numbered and has_row_column(rows)
        return Outline(
            len(rows), tuple(rows.columns), rows.claims, rows.hidden, rows.odd_rows, is_own, rows.is_numbered
        )  # fmt: skip

    def as_read(self, role: str, stream: Mapping[str, Any]) -> Outline:
        """The outline of all files of a role; rows of the truth are numbered if the policy counts them."""
        if role != "truth" or stream.get("person") != "row" or self.has_row_column:
            return self
        return replace(self, columns=(*self.columns, "row"), is_numbered=True)

    def __add__(self, other: Outline) -> Outline:
        """The outline of the files of both."""
        return Outline(
            self.rows + other.rows,
            tuple(dict.fromkeys((*self.columns, *other.columns))),
            tuple(dict.fromkeys((*self.claims, *other.claims))),
            self.hidden + other.hidden,
            self.odd_rows + other.odd_rows,
            self.has_row_column or other.has_row_column,
            self.is_numbered or other.is_numbered,
        )
