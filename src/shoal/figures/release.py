"""What became of rows, and what was lost of each column, in one small figure."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Final

from shoal.figures.lines import new_figure, save, style_axis

# Okabe and Ito's colours, distinguishable with any colour blindness.
_COLOURS: Final = {"released": "#0072B2", "suppressed": "#E69F00", "refused": "#999999", "pending": "#56B4E9"}


def draw_release(
    counts: Mapping[str, int], losses: Mapping[str, float], path: str | PathLike[str] | None = None
) -> Any:
    """Draw counts of rows and the loss of each column; return the figure, and write it as a PNG if a path is given."""
    shown = {name: counts[name] for name in _COLOURS if counts.get(name)}
    figure = new_figure(2 if losses else 1, size=(8, 2 + 0.35 * len(losses)), dpi=120)
    first, *rest = figure.axes
    first.barh(list(shown), list(shown.values()), color=[_COLOURS[name] for name in shown])
    first.bar_label(first.containers[0], [f"{count:,}" for count in shown.values()], padding=3)
    first.set_xlabel("rows")
    for axis in rest:
        axis.barh(list(losses), [1 - loss for loss in losses.values()], color=_COLOURS["released"])
        axis.set_xlim(0, 1)
        axis.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axis.set_xlabel("kept of each column")
    for axis in figure.axes:
        axis.invert_yaxis()
        style_axis(axis)
        axis.grid(visible=False, axis="y")
    if path is not None:
        save(figure, path)
    return figure
