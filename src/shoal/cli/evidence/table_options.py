"""The options of `shoal audit` that describe a plain table, in place of a policy."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

_NAMES = Parameter(consume_multiple=True, json_list=False, negative="")
_PAIR = Parameter(negative="")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """A plain table of any tool, without a policy: its columns, and what is promised of every class."""

    quasi: Annotated[list[str] | None, _NAMES] = None
    """A table of any tool, without a policy: the columns that others may know, separated by spaces or commas."""
    sensitive: Annotated[list[str] | None, _NAMES] = None
    """The columns that others must not learn."""
    person: str | None = None
    """The column that names people, if there is one; else rows are counted."""
    population: Path | None = None
    """A table of everyone who could be in it: measures how likely each of them is."""
    suppressed: str | None = None
    """Rows whose quasi-identifiers all are this text ("*") do not count."""
    k: int | None = None
    """Promised: people (rows) in every class."""
    m: int | None = None
    """With --k: it also holds for anyone who knows only m of the values."""
    l: int | None = None  # noqa: E741
    """Promised: different sensitive values in every class."""
    entropy_l: float | None = None
    """Promised: e to the entropy of the sensitive values of every class."""
    recursive_l: Annotated[tuple[float, int] | None, _PAIR] = None
    """Promised: c and l; the most frequent value is rarer than c times all values from number l on, by frequency."""
    t: float | None = None
    """Promised: largest distance of a class's sensitive values from the table's."""
    t_distance: str | None = None
    """How t is measured: ordered (between ranks of numbers) or equal; by default ordered if all are numbers."""
    alpha: float | None = None
    """Promised: largest share of one sensitive value in a class."""
    beta: float | None = None
    """Promised: largest relative gain of a sensitive value in a class."""
    presence: Annotated[tuple[float, float] | None, _PAIR] = None
    """Promised, with --population: least and largest share of a class of the population that is in the table."""

    def policy(self) -> dict[str, Any] | None:
        """Return what the options say as a policy; None if none was given."""
        given = {key: value for key, value in asdict(self).items() if value is not None}
        for key in ("quasi", "sensitive"):
            if key in given:
                given[key] = [name for names in given[key] for name in names.split(",") if name]
        return {"table": given} if given else None
