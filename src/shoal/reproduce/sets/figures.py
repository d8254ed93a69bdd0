"""Figures 2 to 6 of the paper on probabilistic k^m-anonymity: maps of blocks, and their error and area."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

from shoal.figures.lines import Panel, Record, add_title, draw_panels, lines_by, make_figure, save, values_of
from shoal.hierarchies.neighbourhood import METRES_A_DEGREE
from shoal.hierarchies.places import Places

Blocks = Mapping[str, Sequence[str]]
PAPER: Final = "the paper, k = 20"
_SCALE_KM: Final = 2
"""Length of the scale bar of a map."""
_FILLS: Final = ("#cfe3f3", "#fbe3c4", "#d5eee3", "#f3dbe8", "#fbf5c8", "#e3e3e3", "#e5d9f2")
_INK: Final = "#444444"
_MANY: Final = 600
"""With more blocks than this, borders are thin."""


def draw_maps(path: str | PathLike[str], places: Places, maps: Mapping[str, Blocks], *, title: str) -> None:
    """Draw one map of blocks per panel; adjacent blocks have different colours."""
    figure = make_figure([Panel(name, "", "", {}) for name in maps])
    for axis, (name, blocks) in zip(figure.axes, maps.items(), strict=False):
        _draw_map(axis, places, blocks)
        axis.set_title(name, loc="left", fontsize=10)
    for axis in figure.axes:
        axis.set_axis_off()
    add_title(figure, title)
    save(figure, path)


def draw_uniqueness(path: str | PathLike[str], records: Sequence[Record], paper: Mapping[int, float]) -> None:
    """Figure 2, right: the share of unique itemsets."""
    lines = lines_by(records, "when", x="m", y="unique")
    lines |= {
        f"{name}, a person picked first": line
        for name, line in lines_by(records, "when", x="m", y="unique_by_person").items()
    }
    lines["the paper, before"] = (list(paper), list(paper.values()))
    panel = Panel(
        "", "m: items known", "share of unique itemsets", lines, is_share=True, points=frozenset({"the paper, before"})
    )
    draw_panels(path, [panel], title="Figure 2: uniqueness of itemsets", names=list(lines))


def draw_by_m(
    path: str | PathLike[str], records: Sequence[Record], paper: Mapping[float, Mapping[int, float]], *, measure: str,
    label: str, title: str,
) -> None:  # fmt: skip
    """Draw a measure against m, one panel per σ, next to the paper's numbers."""
    panels, names = [], [f"k = {k}" for k in values_of(records, "k")]
    for sigma in values_of(records, "sigma"):
        if sigma == 1:
            continue
        chosen = [{**one, "line": f"k = {one['k']}"} for one in records if one["sigma"] in (sigma, 1)]
        lines = lines_by(chosen, "line", x="m", y=measure)
        lines[PAPER] = (list(paper[sigma]), list(paper[sigma].values()))
        panels.append(Panel(f"σ = {sigma}", "m: items known", label, lines, points=frozenset({PAPER})))
    draw_panels(path, panels, title=title, names=[*names, PAPER])


def _draw_map(axis: Any, places: Places, blocks: Blocks) -> None:
    import shapely
    from matplotlib.collections import PolyCollection

    number = {name: place for place, name in enumerate(places.names)}
    cells = [[places.cells[places.site_of[number[item]]] for item in items] for items in blocks.values()]
    shapes = [shapely.union_all(of_block) for of_block in cells]
    fills = _fills(places, blocks, number)
    parts = [(part, fill) for shape, fill in zip(shapes, fills, strict=True) for part in shapely.get_parts(shape)]
    parts.sort(key=lambda one: -one[0].area)  # small ones last, on top of blocks that enclose them
    corners = [part.exterior.coords for part, _ in parts]
    width = 0.3 if len(blocks) > _MANY else 0.6
    axis.add_collection(
        PolyCollection(corners, facecolors=[fill for _, fill in parts], edgecolors=_INK, linewidths=width)
    )
    axis.autoscale_view()
    axis.set_aspect(1 / _degree_ratio(places))
    _draw_scale(axis, places)


def _draw_scale(axis: Any, places: Places) -> None:
    """A bar with its length in kilometres, below the left corner of the map."""
    metre = 1 / (METRES_A_DEGREE * _degree_ratio(places)) if places.geographic else 1.0
    (left, _), (low, high) = axis.get_xlim(), axis.get_ylim()
    end, height = left + 1000 * _SCALE_KM * metre, low + 0.02 * (high - low)
    axis.plot([left, end], [height, height], color=_INK, linewidth=2.5, solid_capstyle="butt")
    axis.annotate(
        f"{_SCALE_KM} km", ((left + end) / 2, height), (0, 3), textcoords="offset points", ha="center", fontsize=8
    )


def _degree_ratio(places: Places) -> float:
    """Return the ratio of a degree of longitude to a degree of latitude in the middle of the map."""
    return math.cos(math.radians(float(places.y.mean()))) if places.geographic else 1.0


def _fills(places: Places, blocks: Blocks, number: Mapping[str, int]) -> list[str]:
    """Return a colour per block: the first that no neighbour has, or the last if all are taken."""
    block_at = {
        int(places.site_of[number[item]]): block for block, items in enumerate(blocks.values()) for item in items
    }
    neighbours: list[set[int]] = [set() for _ in blocks]
    for one, other in places.edges.tolist():
        first, second = block_at[one], block_at[other]
        if first != second:
            neighbours[first].add(second)
            neighbours[second].add(first)
    chosen: list[int] = []
    for block in range(len(blocks)):
        taken = {chosen[other] for other in neighbours[block] if other < block}
        chosen.append(next((fill for fill in range(len(_FILLS)) if fill not in taken), len(_FILLS) - 1))
    return [_FILLS[fill] for fill in chosen]
