"""Figures 5 to 10 of the K-VARP paper, and one it does not have: who can be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

from shoal.figures.lines import Panel, Record, draw_panels, lines_by, values_of


def draw_by_missing(
    path: str | PathLike[str],
    records: Sequence[Record],
    *,
    measure: str,
    says: str,
    title: str,
    is_share: bool = False,
    is_log: bool = False,
) -> None:
    """A measure against the largest number of missing values, a panel a data set."""
    panels = []
    for data in values_of(records, "data"):
        chosen = [record for record in records if record["data"] == data]
        lines = lines_by(chosen, "method", x="at_most", y=measure)
        panels.append(Panel(data, "at most missing", says, lines, is_share=is_share, is_log=is_log))
    draw_panels(path, panels, title=title, names=values_of(records, "method"))
