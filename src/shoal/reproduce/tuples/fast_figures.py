"""Figures 3 to 8 of the FAST paper."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Final

from shoal.figures.lines import Panel, Record, draw_panels, lines_by, values_of

PARAMETERS: Final = {
    "rows": "rows of the stream",
    "k": "k",
    "deadline": "δ",
    "reuse": "age at which clusters are dropped",
    "threads": "threads",
}


def draw_sweeps(path: str | PathLike[str], records: Sequence[Record], *, measure: str, title: str) -> None:
    """Figures 3 and 7: a measure against every parameter, the others held."""
    panels = [
        Panel(f"varying {parameter}", says, f"average {measure}", lines_by(chosen, "method", x="value", y=measure))
        for parameter, says in PARAMETERS.items()
        if (chosen := [record for record in records if record["parameter"] == parameter])
    ]
    draw_panels(path, panels, title=title, names=values_of(records, "method"))


def draw_pool(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 4: clusters that stand ready for reuse as the stream goes by."""
    lines = lines_by(records, "method", x="arrival", y="clusters")
    draw_panels(path, [Panel("", "arrivals", "clusters ready for reuse", lines)], title=title, names=list(lines))


def draw_published(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 5: how many rows left while so many clusters stood ready."""
    lines = lines_by(records, "method", x="clusters", y="rows")
    draw_panels(path, [Panel("", "clusters ready for reuse", "rows published", lines)], title=title, names=list(lines))


def draw_times(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 6: seconds against threads, a panel a setting."""
    panels = []
    for setting in values_of(records, "setting"):
        chosen = [record for record in records if record["setting"] == setting]
        panels.append(Panel(setting, "threads", "seconds", lines_by(chosen, "method", x="threads", y="seconds")))
    draw_panels(path, panels, title=title, names=values_of(records, "method"))


def draw_rounds(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 8: in how many rounds of FADS rows take part, a panel a reading of δ."""
    panels = []
    for reading in values_of(records, "reading"):
        chosen = [{**record, "method": "FADS"} for record in records if record["reading"] == reading]
        lines = lines_by(chosen, "method", x="rounds", y="share")
        panels.append(Panel(reading, "rounds a row takes part in", "share of rows", lines, as_bars=True))
    draw_panels(path, panels, title=title, names=["FADS"])
