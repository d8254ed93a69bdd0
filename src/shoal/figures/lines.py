"""Figures made of panels with lines, bands, points and error bars, as in papers."""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError, missing_extra

# Okabe and Ito's colours, distinguishable with any colour blindness; lines also differ in style and marker.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C510A", "#333333")
_MARKERS: Final = ("o", "s", "^", "D", "v", "X", "p", "P")
_DASHES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (4, 2)), (0, (2, 1)), (0, (1, 1)))
_OF_K: Final = {"2": 0, "3": 1, "4": 2, "6": 5, "10": 3, "12": 6, "20": 4}
"""Place among the colours of a line named "k = …": the same k has the same look in all figures."""
_SHADES: Final = ("#440154", "#31688E", "#35B779", "#90A000", "#B8860B", "#777777", "#C05A8E", "#111111")
"""Colours of lines named "z = …", so that none looks like a k."""
_LARGE: Final = 1e4
"""Numbers from here on are written as powers of ten on a logarithmic axis."""
_MOST_MARKED: Final = 20
"""Points; a longer line has no markers."""
_THICKEST, _THINNEST = 4.5, 1.2
"""Widths in points of lines that run on top of each other: the first is the widest, so that all are visible."""
_LINE: Final = 1.5
_SAME: Final = 0.01
"""Lines closer than this part of the y axis cannot be distinguished."""
_OFTEN: Final = 0.5
"""Lines are hidden if this share of their common points is that close."""
_CHARACTERS_PER_INCH: Final = 8.6
"""Of a title, at least."""
_FULL: Final = 0.97
"""Largest part of the width of a figure that a legend may take."""


Record = Mapping[str, Any]
Lines = dict[str, tuple[list[float], list[float]]]
Bands = dict[str, tuple[list[float], list[float], list[float]]]
"""x, lower and upper bound."""
Bars = dict[str, tuple[list[float], list[float], list[float], list[float]]]
"""x, value, lower and upper bound."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    lines: Lines
    """Points by the name of their line."""
    is_share: bool = False
    """Whether y is a share, shown in percent from 0 to 100."""
    is_log: bool = False
    """Whether the y axis is logarithmic."""
    as_bars: bool = False
    bands: Bands = field(default_factory=dict)
    """Shaded areas around lines, by the name of the line."""
    measured: Bars = field(default_factory=dict)
    """Points with error bars, by the name of their line."""
    is_log_x: bool = False
    y_range: tuple[float, float] | None = None
    points: frozenset[str] = frozenset()
    """Names of lines of which only the points are drawn, because nothing is known between them."""
    top: tuple[str, float] | None = None
    """A second x axis at the top: its label, and the number by which x is divided."""


class Look(NamedTuple):
    """Colour, line style and marker of a line."""

    colour: str
    dashes: Any
    marker: str


def looks_of(names: Sequence[str]) -> dict[str, Look]:
    """The look of every line: by k if it is named "k = …", black for the paper, otherwise by its place.

    >>> looks_of(["k = 20"]) == looks_of(["k = 10", "k = 20"][1:]), looks_of(["k = 2"])["k = 2"].colour
    (True, '#0072B2')
    """
    looks = {}
    for at, name in enumerate(names):
        k = re.fullmatch(r"k = (\d+)", name)
        place = (_OF_K.get(k[1], at) if k else at) % len(_COLOURS)
        if name.startswith("the paper"):
            place = len(_COLOURS) - 1
        colours = _SHADES if name.startswith("z = ") else _COLOURS
        looks[name] = Look(colours[place], _DASHES[place], _MARKERS[place])
    return looks


def draw_panels(
    path: str | PathLike[str], panels: Sequence[Panel], *, title: str, names: Sequence[str], measured: str = "measured"
) -> None:
    """Draw panels side by side, three per row, as a PNG.

    `names` lists all lines in the order of the legend; `measured` labels points with error bars.
    """
    figure, looks, widths = make_figure(panels), looks_of(names), _widths(panels, names)
    for axis, panel in zip(figure.axes, panels, strict=False):
        _draw(axis, panel, looks, widths)
    for axis in figure.axes[len(panels) :]:
        axis.remove()
    handles = {
        label: line for axis in figure.axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    shown = [name for name in names if name in handles]
    if any(panel.measured for panel in panels):
        handles[measured] = _grey_point()
        shown.append(measured)
    add_title(figure, title)
    if len(shown) > 1:
        add_legend(figure, {name: handles[name] for name in shown})
    save(figure, path)


def lines_by(records: Sequence[Record], key: str, *, x: str, y: str) -> Lines:
    """A line for every value of a key, through the points of its records."""
    lines: Lines = {}
    for record in records:
        at, value = lines.setdefault(record[key], ([], []))
        at.append(record[x])
        value.append(record[y])
    return lines


def panels_by(
    records: Sequence[Record], key: str, *, line: str, x: tuple[str, str], y: tuple[str, str], **options: Any
) -> list[Panel]:
    """A panel for every value of a key, with a line for every value of `line`; `x` and `y` are a column and a label."""
    panels = []
    for value in values_of(records, key):
        lines = lines_by([one for one in records if one[key] == value], line, x=x[0], y=y[0])
        panels.append(Panel(str(value), x[1], y[1], lines, **options))
    return panels


def values_of(records: Sequence[Record], key: str) -> list[Any]:
    """The different values of a key, in order."""
    return list(dict.fromkeys(record[key] for record in records))


def make_figure(panels: Sequence[Panel]) -> Any:
    """An empty figure with axes for these panels."""
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    return new_figure(rows, columns, size=(max(6.5, 4.2 * columns), 1.0 + 3.1 * rows))


def new_figure(rows: int, columns: int = 1, *, size: tuple[float, float], dpi: int = 130, **options: Any) -> Any:
    """An empty figure with rows and columns of axes; `size` is in inches, `options` go to ``Figure.subplots``."""
    require_matplotlib()
    # The object interface with Agg: no display, no global state of pyplot.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    figure.subplots(rows, columns, squeeze=False, **options)
    return figure


def add_title(figure: Any, title: str) -> None:
    """Write the title of a figure, in several lines if it is too long for one."""
    text = textwrap.fill(title, int(figure.get_figwidth() * _CHARACTERS_PER_INCH))
    figure.suptitle(text, x=0.01, ha="left", fontsize=13, fontweight="bold")


def add_legend(figure: Any, handles: Mapping[str, Any]) -> None:
    """Write a legend below the panels, in as many columns as fit, at most three."""
    for columns in (3, 2, 1):
        legend = figure.legend(
            handles.values(), handles.keys(), loc="outside lower left", ncols=columns, frameon=False, fontsize=9.5
        )
        if columns == 1 or legend.get_window_extent(figure.canvas.get_renderer()).width < _FULL * figure.bbox.width:
            return
        legend.remove()


def style_axis(axis: Any) -> None:
    """Horizontal grid lines behind the data, no frame at the top and right."""
    axis.grid(axis="y", color="#dddddd", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def require_matplotlib() -> None:
    """Raise before minutes of work if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_extra("drawing figures", package="matplotlib", extra="figures") from None


def save(figure: Any, path: str | PathLike[str], *, private: bool = False) -> None:
    """Write a figure as a PNG, readable only by its owner if `private`; equal figures give equal bytes."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", metadata={"Software": None})
    try:
        write_file(Path(path), picture.getvalue(), private=private)
    except OSError as error:
        raise OutputError(f"{path}: the figure cannot be written ({error.strerror}); choose another path") from None


def _draw(axis: Any, panel: Panel, looks: Mapping[str, Look], widths: Mapping[str, float]) -> None:
    for name, (x, y) in panel.lines.items():
        look = looks[name]
        if panel.as_bars:
            axis.bar(x, y, color=look.colour, label=name, alpha=0.7)
            continue
        is_marked = name in panel.points or (len(x) <= _MOST_MARKED and not panel.measured)
        axis.plot(
            x, y, label=name, color=look.colour, linewidth=widths.get(name, _LINE),
            linestyle="none" if name in panel.points else "-" if name in widths else look.dashes,
            marker=look.marker if is_marked else None,
            markersize=7 if name in panel.points else 4.5 + widths.get(name, 0),
            markerfacecolor="none" if name in widths and widths[name] > _THINNEST else None,
        )  # fmt: skip
    _draw_uncertainty(axis, panel, looks)
    axis.set_title(panel.title, loc="left", fontsize=10.5)
    axis.set_xlabel(panel.x, fontsize=9.5)
    axis.set_ylabel(panel.y, fontsize=9.5)
    axis.tick_params(labelsize=8.5)
    style_axis(axis)
    if panel.is_log_x:
        axis.set_xscale("log")
    elif all(float(at).is_integer() for x, _ in panel.lines.values() for at in x):
        axis.xaxis.get_major_locator().set_params(integer=True)
    _format_x(axis.xaxis, is_log=panel.is_log_x)
    if panel.top:
        label, divisor = panel.top
        above = axis.secondary_xaxis("top", functions=(lambda x: x / divisor, lambda z: z * divisor))
        above.set_xlabel(label, fontsize=9.5)
        above.tick_params(labelsize=8.5)
        _format_x(above.xaxis, is_log=panel.is_log_x)
    _scale(axis, panel)
    if not panel.is_log and any(name in widths for name in panel.lines):
        axis.set_ylim(bottom=-0.03 * axis.get_ylim()[1])  # nested lines at 0 stay visible


def _format_x(axis: Any, *, is_log: bool) -> None:
    from matplotlib.ticker import NullFormatter

    axis.set_major_formatter(lambda at, _: f"$10^{{{math.log10(at):.3g}}}$" if is_log and at >= _LARGE else f"{at:,g}")
    axis.set_minor_formatter(NullFormatter())


def _widths(panels: Sequence[Panel], names: Sequence[str]) -> dict[str, float]:
    """Return widths for lines that hide each other in some panel: nested, the first line the widest."""
    hidden = {name for panel in panels if not panel.as_bars for name in _hidden(panel)}
    shown = [name for name in names if name in hidden]
    step = (_THICKEST - _THINNEST) / max(1, len(shown) - 1)
    return {name: _THICKEST - at * step for at, name in enumerate(shown)}


def _hidden(panel: Panel) -> set[str]:
    lines = {name: points for name, points in panel.lines.items() if name not in panel.points}
    values = [value for _, y in lines.values() for value in y if value > 0 or not panel.is_log]
    if not values:
        return set(lines)
    low, high = panel.y_range or (min(values) if panel.is_log else 0, max(values))

    def height(value: float) -> float:
        return math.log10(max(value, low)) if panel.is_log else value

    near = _SAME * (height(high) - height(low))
    heights = {name: dict(zip(x, map(height, y), strict=True)) for name, (x, y) in lines.items()}
    hidden: set[str] = set()
    for (one, first), (other, second) in combinations(heights.items(), 2):
        common = first.keys() & second.keys()
        if common and sum(abs(first[x] - second[x]) <= near for x in common) >= _OFTEN * len(common):
            hidden |= {one, other}
    return hidden


def _draw_uncertainty(axis: Any, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Draw the bands around lines and the points with error bars."""
    for name, (x, low, high) in panel.bands.items():
        axis.fill_between(x, low, high, color=looks[name].colour, alpha=0.25, linewidth=0)
    for name, (x, y, low, high) in panel.measured.items():
        look = looks[name]
        below = [max(value - least, 0.0) for value, least in zip(y, low, strict=True)]
        above = [max(most - value, 0.0) for value, most in zip(y, high, strict=True)]
        axis.errorbar(
            x, y, yerr=(below, above), color=look.colour, linestyle="none", marker=look.marker, markersize=4,
            markerfacecolor="white", markeredgewidth=1, elinewidth=1, capsize=2,
        )  # fmt: skip


def _grey_point() -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], color="#777777", linestyle="none", marker="o", markersize=4, markerfacecolor="white")


def _scale(axis: Any, panel: Panel) -> None:
    if panel.is_log and panel.y_range:
        axis.set_yscale("log")
        axis.set_ylim(panel.y_range)
        return
    if panel.is_log:
        if any(0 in y for _, y in panel.lines.values()):
            axis.set_yscale("symlog", linthresh=1)
            axis.set_ylim(bottom=-0.25)  # a line at 0 stays visible
        else:
            axis.set_yscale("log")
        return
    axis.set_ylim(0, max(axis.get_ylim()[1], 1.06 * axis.dataLim.y1))  # a level line is not cut at the top
    if panel.is_share:
        axis.set_ylim(0, 1.02)
        axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
