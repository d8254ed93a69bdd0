"""Figures 3 to 8 of the FAST paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

from shoal.figures.lines import Panel, draw_panels

Record = Mapping[str, Any]
PARAMETERS: Final = {
    "rows": "rows of the stream",
    "k": "k",
    "deadline": "δ",
    "reuse": "age at which clusters are dropped",
    "threads": "threads",
}


def draw_sweeps(path: str | PathLike[str], records: Sequence[Record], *, measure: str, title: str) -> None:
    """Figures 3 and 7: a measure against every parameter, the others held."""
    methods = list(dict.fromkeys(record["method"] for record in records))
    panels = []
    for parameter, says in PARAMETERS.items():
        chosen = [record for record in records if record["parameter"] == parameter]
        lines = _lines(chosen, methods, key="method", x="value", y=measure)
        panels.append(Panel(f"varying {parameter}", says, f"average {measure}", lines))
    draw_panels(path, panels, title=title, names=methods)


def draw_pool(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 4: clusters that stand ready for reuse as the stream goes by."""
    names = list(dict.fromkeys(record["method"] for record in records))
    lines = _lines(records, names, key="method", x="arrival", y="clusters")
    draw_panels(path, [Panel("", "arrivals", "clusters ready for reuse", lines)], title=title, names=names)


def draw_published(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 5: how many rows left while so many clusters stood ready."""
    names = list(dict.fromkeys(record["method"] for record in records))
    lines = _lines(records, names, key="method", x="clusters", y="rows")
    draw_panels(path, [Panel("", "clusters ready for reuse", "rows published", lines)], title=title, names=names)


def draw_times(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 6: seconds against threads, a panel a setting."""
    names = list(dict.fromkeys(record["method"] for record in records))
    settings = dict.fromkeys(record["setting"] for record in records)
    panels = [
        Panel(
            setting, "threads", "seconds", _lines(_of(records, setting), names, key="method", x="threads", y="seconds")
        )
        for setting in settings
    ]
    draw_panels(path, panels, title=title, names=names)


def draw_rounds(path: str | PathLike[str], records: Sequence[Record], *, title: str) -> None:
    """Figure 8: in how many rounds rows take part, a panel a reading of δ."""
    names = ["FADS"]
    panels = [
        Panel(
            reading, "rounds a row takes part in", "share of rows", as_bars=True,
            lines={"FADS": ([r["rounds"] for r in records if r["reading"] == reading],
                            [r["share"] for r in records if r["reading"] == reading])},
        )
        for reading in dict.fromkeys(record["reading"] for record in records)
    ]  # fmt: skip
    draw_panels(path, panels, title=title, names=names)


def _of(records: Sequence[Record], setting: str) -> list[Record]:
    return [record for record in records if record["setting"] == setting]


def _lines(
    records: Sequence[Record], names: Sequence[str], *, key: str, x: str, y: str
) -> dict[str, tuple[list[float], list[float]]]:
    lines = {}
    for name in names:
        points = [(record[x], record[y]) for record in records if record[key] == name]
        if points:
            lines[name] = ([at for at, _ in points], [value for _, value in points])
    return lines
