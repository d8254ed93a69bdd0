"""Figures 5 to 10 of the K-VARP paper, and one it does not have: who can be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from shoal.figures.lines import Panel, draw_panels

Record = Mapping[str, Any]


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
    names = list(dict.fromkeys(record["method"] for record in records))
    panels = [
        Panel(data, "at most missing", says, _lines(records, data, names, measure), is_share=is_share, is_log=is_log)
        for data in dict.fromkeys(record["data"] for record in records)
    ]
    draw_panels(path, panels, title=title, names=names)


def _lines(
    records: Sequence[Record], data: str, names: Sequence[str], measure: str
) -> dict[str, tuple[list[float], list[float]]]:
    lines = {}
    for name in names:
        points = [(r["at_most"], r[measure]) for r in records if r["data"] == data and r["method"] == name]
        if points:
            lines[name] = ([at for at, _ in points], [value for _, value in points])
    return lines
