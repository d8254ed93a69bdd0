"""A day under z-anonymity in one picture: what came in, what left, what was held back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from os import PathLike
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import OutputError, PolicyError, RunError

SECOND: Final = 1_000_000_000
BIN: Final = 600 * SECOND
_BIN_HOURS: Final = BIN / (3600 * SECOND)
# Okabe and Ito's colours, told apart with any kind of colour blindness; the lines also differ in style.
_RELEASED, _SUPPRESSED, _DEAD, _INK = "#0072B2", "#E69F00", "#CC79A7", "#333333"

Counts = NDArray[np.int64]
Hours = NDArray[np.float64]


def draw_day(
    path: str | PathLike[str],
    *,
    times: ArrayLike,
    verdicts: Sequence[str] | NDArray[Any],
    title: str = "A day of events under z-anonymity",
    unique_share: tuple[ArrayLike, ArrayLike] | None = None,
) -> None:
    """Draw events per ten minutes by verdict and the share released, as a PNG.

    Parameters
    ----------
    times
        Event times in nanoseconds since 1970 UTC, one for each verdict.
    verdicts
        ``released``, ``suppressed`` or ``dead``; dead events without a usable time are left out by the caller.
    unique_share
        Starts of epochs (nanoseconds) and the share of people shown in each whose released set of attributes
        no one else has; drawn as a third panel.
    """
    moments, kinds = np.asarray(times, dtype=np.int64), np.asarray(verdicts, dtype=np.str_)
    if len(moments) == 0 or moments.shape != kinds.shape:
        raise PolicyError("draw_day: times and verdicts must have one entry an event, and at least one event")
    midnight = int(moments.min()) // (86_400 * SECOND) * (86_400 * SECOND)
    counts = count_by_verdict(moments - midnight, kinds)
    figure = _figure(rows=3 if unique_share else 2)
    axes = figure.axes
    day = datetime.fromtimestamp(midnight // SECOND, UTC).date().isoformat()
    axes[0].set_title(f"{title}, {day}", loc="left", fontsize=13, fontweight="bold", pad=26)
    _draw_events(axes[0], counts)
    _draw_share(axes[1], counts)
    if unique_share:
        starts, shares = (np.asarray(side, dtype=np.float64) for side in unique_share)
        _draw_unique(axes[2], (starts - midnight) / (3600 * SECOND), shares)
    _finish(axes, hours=len(counts["released"]) * _BIN_HOURS)
    _save(figure, path)


def count_by_verdict(since_midnight: Counts, verdicts: NDArray[np.str_]) -> dict[str, Counts]:
    """Events of each verdict in each ten minutes; a whole day at least, more if events go on."""
    bins = since_midnight // BIN
    size = max(86_400 * SECOND // BIN, int(bins.max()) + 1)
    return {
        verdict: np.bincount(bins[verdicts == verdict], minlength=size)
        for verdict in ("released", "suppressed", "dead")
    }


def _figure(*, rows: int) -> Any:
    try:
        # The object interface with Agg: no display, no global state of pyplot.
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise RunError(
            "figures need matplotlib, which is not installed; run: pip install shoal[figures]"
        ) from None
    figure = Figure(figsize=(10, 2.6 + 1.9 * rows), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    figure.subplots(rows, 1, sharex=True, height_ratios=[2.2, 1.2, 1][:rows])
    return figure


def _steps(counts: Counts) -> Hours:
    """Left edges of the bins, in hours."""
    return np.arange(len(counts)) * _BIN_HOURS


def _draw_events(axis: Any, counts: dict[str, Counts]) -> None:
    released, suppressed, dead = counts["released"], counts["suppressed"], counts["dead"]
    hours = _steps(released)
    held_back = released + suppressed
    arrived = held_back + dead
    area = {"step": "post", "linewidth": 0}
    axis.fill_between(hours, released, color=_RELEASED, label=_label("released", released), **area)
    axis.fill_between(
        hours, released, held_back, color=_SUPPRESSED, label=_label("suppressed", suppressed), **area
    )
    if dead.any():
        axis.fill_between(hours, held_back, arrived, color=_DEAD, label=_label("dead letters", dead), **area)
    axis.step(hours, arrived, where="post", color=_INK, linewidth=1.2, label=_label("arrived", arrived))
    axis.set_ylabel("events in 10 minutes")
    axis.set_ylim(bottom=0)
    axis.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, borderaxespad=0.2, fontsize=9.5
    )


def _label(name: str, counts: Counts) -> str:
    return f"{name} ({int(counts.sum()):,})"


def _draw_share(axis: Any, counts: dict[str, Counts]) -> None:
    decided = counts["released"] + counts["suppressed"]
    share = np.divide(counts["released"], decided, out=np.full(len(decided), np.nan), where=decided > 0)
    overall = counts["released"].sum() / max(1, decided.sum())
    axis.step(_steps(decided), share, where="post", color=_RELEASED, linewidth=1.6)
    axis.axhline(overall, color=_INK, linewidth=1, linestyle="--")
    axis.annotate(
        f"whole day {overall:.0%}", (1, overall), xycoords=("axes fraction", "data"), xytext=(4, 0),
        textcoords="offset points", ha="left", va="center", fontsize=9, color=_INK, annotation_clip=False,
    )  # fmt: skip
    axis.set_ylabel("share released")


def _draw_unique(axis: Any, hours: Hours, shares: Hours) -> None:
    axis.plot(hours, shares, color=_DEAD, linewidth=1.6, marker="o", markersize=4, drawstyle="steps-post")
    axis.set_ylabel("people with a\nunique set")


def _finish(axes: Sequence[Any], *, hours: float) -> None:
    for axis in axes:
        axis.grid(axis="y", color="#dddddd", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[1:]:
        axis.set_ylim(0, 1.02)
        axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    step = 2 if hours <= 24 else max(2, round(hours / 12))
    axes[-1].set_xlim(0, hours)
    axes[-1].set_xticks(np.arange(0, hours + 0.01, step))
    axes[-1].set_xlabel("hour of the day (UTC)")
    figure = axes[0].figure
    figure.align_ylabels(axes)


def _save(figure: Any, path: str | PathLike[str]) -> None:
    try:
        # No software version in the file: the same day gives the same bytes.
        figure.savefig(path, format="png", metadata={"Software": None})
    except OSError as error:
        raise OutputError(f"the figure cannot be written ({error.strerror}); choose another path") from None
