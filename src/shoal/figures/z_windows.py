"""A z-anonymous release window by window: the share of k-anonymous people, and the number of the others."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import PolicyError
from shoal.figures.lines import new_figure, save, style_axis

# Okabe and Ito's colours, distinguishable with any colour blindness; lines also differ in style.
_SHOWN, _EXPOSED, _INK = "#0072B2", "#D55E00", "#333333"

Counts = NDArray[np.int64]
Points = NDArray[np.float64]


def draw_windows(
    path: str | PathLike[str],
    *,
    starts: ArrayLike,
    length: int,
    shown: ArrayLike,
    anonymous: ArrayLike,
    k: int,
    target: float | None = None,
    private: bool = False,
) -> None:
    """Draw the share of k-anonymous people, and below it the numbers of people shown and not k-anonymous, as a PNG.

    Parameters
    ----------
    starts
        Starts of the windows in nanoseconds since 1970 UTC, in ascending order.
    length
        Length of a window in nanoseconds.
    shown, anonymous
        People with a released row in each window, and those of them who are k-anonymous.
    target
        Target share, drawn as a line.
    private
        Make the file readable only by its owner.
    """
    begins, people, safe = (np.asarray(side, np.int64) for side in (starts, shown, anonymous))
    if not len(begins) or not begins.shape == people.shape == safe.shape:
        raise PolicyError("draw_windows: give a start, people shown and people k-anonymous for at least one window")
    figure = new_figure(2, size=(10, 6), dpi=150, sharex=True, height_ratios=[1.4, 1])
    upper, lower = figure.axes
    _draw_share(upper, begins, length, people, safe)
    if target is not None:
        upper.axhline(target, color=_INK, linewidth=1, linestyle="--", label=f"target {target:.0%}")
    upper.set_title(
        f"People who share all that was released of them with at least {k - 1:,} other" + ("s" if k > 2 else ""),
        loc="left", fontsize=13, fontweight="bold", pad=12,
    )  # fmt: skip
    _draw_counts(lower, begins, length, people, people - safe)
    _finish(figure, k)
    save(figure, path, private=private)


def stairs(starts: Counts, length: int, values: Points) -> tuple[NDArray[np.datetime64], Points]:
    """Return both ends of every window with its value, and NaN (a gap) where the next window is not adjacent."""
    ends = starts + length
    places = np.stack((starts, ends, ends), axis=1).astype("datetime64[ns]").astype("datetime64[us]")
    follows = np.append(starts[1:] == ends[:-1], False)
    heights = np.stack((values, values, np.where(follows, values, np.nan)), axis=1)
    return places.ravel(), heights.ravel()


def _draw_share(axis: Any, starts: Counts, length: int, shown: Counts, anonymous: Counts) -> None:
    share = np.divide(anonymous, shown, out=np.full(len(shown), np.nan), where=shown > 0)
    axis.plot(*stairs(starts, length, share), color=_SHOWN, linewidth=1.6, label="k-anonymous of the people shown")
    axis.set_ylim(0, 1.02)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axis.set_ylabel("share")


def _draw_counts(axis: Any, starts: Counts, length: int, shown: Counts, exposed: Counts) -> None:
    for counts, colour, style, name in (
        (shown, _SHOWN, "-", "shown"),
        (exposed, _EXPOSED, "--", "not k-anonymous"),
    ):
        places, heights = stairs(starts, length, counts.astype(np.float64))
        label = f"{name} ({int(counts.sum()):,} over all windows)"
        axis.plot(places, heights, color=colour, linestyle=style, linewidth=1.4, label=label)
        axis.fill_between(places, heights, color=colour, alpha=0.15, linewidth=0)
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axis.set_ylabel("people")


def _finish(figure: Any, k: int) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    for axis in figure.axes:
        style_axis(axis)
        axis.legend(loc="best", frameon=False, fontsize=9.5)
    bottom = figure.axes[-1]
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    bottom.xaxis.set_major_locator(locator)
    bottom.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    bottom.set_xlabel(f"window of pseudonyms (UTC); k = {k}")
    figure.align_ylabels(figure.axes)
