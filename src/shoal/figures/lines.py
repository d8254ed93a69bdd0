"""Figures made of panels with lines, bands, points and error bars, as in papers."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError, missing_extra

# Okabe and Ito's colours, distinguishable with any colour blindness; lines also differ in style and marker.
_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#333333")
_MARKERS: Final = ("o", "s", "^", "D", "v", "P")
_DASHES: Final = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (1, 1)))
_LARGE: Final = 1e6
"""Numbers from here on are written as powers of ten."""
_MOST_MARKED: Final = 20
"""Points; a longer line has no markers."""


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


def draw_panels(
    path: str | PathLike[str], panels: Sequence[Panel], *, title: str, names: Sequence[str], measured: str = "measured"
) -> None:
    """Draw panels side by side, three per row, as a PNG.

    The position of a line in `names` decides its look; `measured` labels points with error bars in the legend.
    """
    figure = make_figure(panels)
    for axis, panel in zip(figure.axes, panels, strict=False):
        _draw(axis, panel, names)
    for axis in figure.axes[len(panels) :]:
        axis.remove()
    handles = {
        label: line for axis in figure.axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    shown = [name for name in names if name in handles]
    if any(panel.measured for panel in panels):
        handles[measured] = _grey_point()
        shown.append(measured)
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, fontweight="bold")
    if len(shown) > 1:
        figure.legend(
            [handles[name] for name in shown], shown, loc="outside lower left", ncols=3, frameon=False, fontsize=9.5
        )
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


def _draw(axis: Any, panel: Panel, names: Sequence[str]) -> None:
    for name, (x, y) in panel.lines.items():
        look = names.index(name) % len(_COLOURS)
        if panel.as_bars:
            axis.bar(x, y, color=_COLOURS[look], label=name, alpha=0.7)
            continue
        axis.plot(
            x, y, label=name, color=_COLOURS[look], linestyle=_DASHES[look], linewidth=1.5,
            marker=_MARKERS[look] if len(x) <= _MOST_MARKED and not panel.measured else None, markersize=4.5,
        )  # fmt: skip
    _draw_uncertainty(axis, panel, names)
    axis.set_title(panel.title, loc="left", fontsize=10.5)
    axis.set_xlabel(panel.x, fontsize=9.5)
    axis.set_ylabel(panel.y, fontsize=9.5)
    axis.tick_params(labelsize=8.5)
    style_axis(axis)
    if panel.is_log_x:
        axis.set_xscale("log")
    elif all(float(at).is_integer() for x, _ in panel.lines.values() for at in x):
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.xaxis.set_major_formatter(
        lambda at, _: f"$10^{{{math.log10(at):.3g}}}$" if panel.is_log_x and at >= _LARGE else f"{at:,g}"
    )
    _scale(axis, panel)


def _draw_uncertainty(axis: Any, panel: Panel, names: Sequence[str]) -> None:
    """Draw the bands around lines and the points with error bars."""
    for name, (x, low, high) in panel.bands.items():
        axis.fill_between(x, low, high, color=_COLOURS[names.index(name) % len(_COLOURS)], alpha=0.25, linewidth=0)
    for name, (x, y, low, high) in panel.measured.items():
        look = names.index(name) % len(_COLOURS)
        below = [max(value - least, 0.0) for value, least in zip(y, low, strict=True)]
        above = [max(most - value, 0.0) for value, most in zip(y, high, strict=True)]
        axis.errorbar(
            x, y, yerr=(below, above), color=_COLOURS[look], linestyle="none", marker=_MARKERS[look], markersize=4,
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
        axis.set_yscale("symlog", linthresh=1) if any(0 in y for _, y in panel.lines.values()) else axis.set_yscale(
            "log"
        )
        return
    axis.set_ylim(bottom=0)
    if panel.is_share:
        axis.set_ylim(0, 1.02)
        axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
