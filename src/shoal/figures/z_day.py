"""A day under z-anonymity in one figure: events that arrived, were released, and were suppressed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from os import PathLike
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.errors import PolicyError
from shoal.figures.lines import new_figure, save, style_axis

SECOND: Final = 1_000_000_000
BIN, HOUR, DAY = 600 * SECOND, 3600 * SECOND, 86_400 * SECOND
# Okabe and Ito's colours, distinguishable with any colour blindness; lines also differ in style.
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
    timeless: int = 0,
) -> None:
    """Draw events per ten minutes by verdict and the share released, as a PNG.

    The legend counts all events; a note gives the number of those that are not drawn.

    Parameters
    ----------
    times
        Event times in nanoseconds since 1970 UTC, one for each verdict.
    verdicts
        ``released``, ``suppressed`` or ``dead``; the caller leaves out dead events without a time.
    timeless
        Number of dead events without a time that were left out.
    unique_share
        Starts of epochs (nanoseconds) and the share of people in each whose released set of attributes is unique;
        drawn as a third panel.
    """
    moments, kinds = np.asarray(times, dtype=np.int64), np.asarray(verdicts, dtype=np.str_)
    if len(moments) == 0 or moments.shape != kinds.shape:
        raise PolicyError("draw_day: times and verdicts need one entry per event, and at least one event")
    midnight = int(np.median(moments)) // DAY * DAY  # the median: one wrong clock must not decide the day
    counts = count_by_verdict(moments - midnight, kinds)
    rows = 3 if unique_share else 2
    figure = new_figure(
        rows, size=(10, 2.6 + 1.9 * rows), dpi=150, sharex=True, height_ratios=[2.2, 1.2, 1][:rows]
    )  # fmt: skip
    axes = figure.axes
    date = datetime.fromtimestamp(midnight // SECOND, UTC).date().isoformat()
    axes[0].set_title(f"{title}, {date}", loc="left", fontsize=13, fontweight="bold", pad=26)
    _draw_events(axes[0], counts, _totals(kinds, timeless))
    _draw_share(axes[1], counts)
    if unique_share:
        starts, shares = (np.asarray(side, dtype=np.float64) for side in unique_share)
        _draw_unique(axes[2], (starts - midnight) / HOUR, shares)
    _finish(axes, outside=len(moments) - sum(int(count.sum()) for count in counts.values()), timeless=timeless)
    save(figure, path)


def count_by_verdict(since_midnight: Counts, verdicts: NDArray[np.str_]) -> dict[str, Counts]:
    """Events of each verdict in each ten minutes of the day; events of other days are left out."""
    is_today = (since_midnight >= 0) & (since_midnight < DAY)
    return {
        verdict: np.bincount(since_midnight[is_today & (verdicts == verdict)] // BIN, minlength=DAY // BIN)
        for verdict in ("released", "suppressed", "dead")
    }


def _totals(verdicts: NDArray[np.str_], timeless: int) -> dict[str, int]:
    """All events by verdict, drawn or not."""
    totals = {name: int(np.count_nonzero(verdicts == name)) for name in ("released", "suppressed", "dead")}
    totals["dead"] += timeless
    return totals


def _edges(values: NDArray[Any]) -> tuple[Hours, NDArray[Any]]:
    """Edges of equal bins over the day in hours; the last value is repeated, so that its bin has full width."""
    return np.linspace(0, 24, len(values) + 1), np.append(values, values[-1:])


def _draw_events(axis: Any, counts: dict[str, Counts], totals: dict[str, int]) -> None:
    released, suppressed, dead = counts["released"], counts["suppressed"], counts["dead"]
    hours, top = _edges(released)
    _fill(axis, 0, top, _RELEASED, _label("released", totals["released"]))
    shown = ((suppressed, _SUPPRESSED, "suppressed", "suppressed"), (dead, _DEAD, "dead", "refused"))
    for count, colour, verdict, name in shown:
        bottom, top = top, top + _edges(count)[1]
        if totals[verdict]:
            _fill(axis, bottom, top, colour, _label(name, totals[verdict]))
    arrived = _label("arrived", sum(totals.values()))
    axis.step(hours, top, where="post", color=_INK, linewidth=1.2, label=arrived)
    axis.set_ylabel("events in 10 minutes")
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, borderaxespad=0.2, fontsize=9.5)


def _fill(axis: Any, bottom: Any, top: Counts, colour: str, label: str) -> None:
    hours = np.linspace(0, 24, len(top))
    axis.fill_between(hours, bottom, top, step="post", linewidth=0, color=colour, label=label)


def _label(name: str, count: int) -> str:
    return f"{name} ({count:,})"


def _draw_share(axis: Any, counts: dict[str, Counts]) -> None:
    decided = counts["released"] + counts["suppressed"]
    share = np.divide(counts["released"], decided, out=np.full(len(decided), np.nan), where=decided > 0)
    overall = counts["released"].sum() / max(1, decided.sum())
    axis.step(*_edges(share), where="post", color=_RELEASED, linewidth=1.6)
    axis.axhline(overall, color=_INK, linewidth=1, linestyle="--")
    axis.annotate(
        f"whole day {overall:.0%}", (1, overall), xycoords=("axes fraction", "data"), xytext=(4, 0),
        textcoords="offset points", ha="left", va="center", fontsize=9, color=_INK, annotation_clip=False,
    )  # fmt: skip
    axis.set_ylabel("share released")


def _draw_unique(axis: Any, hours: Hours, shares: Hours) -> None:
    if len(shares):
        axis.step(np.append(hours, 24), np.append(shares, shares[-1:]), where="post", color=_DEAD, linewidth=1.6)
    axis.set_ylabel("people with a\nunique set")


def _finish(axes: Sequence[Any], *, outside: int, timeless: int) -> None:
    for axis in axes:
        style_axis(axis)
    for axis in axes[1:]:
        axis.set_ylim(0, 1.02)
        axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes[-1].set_xlim(0, 24)
    axes[-1].set_xticks(range(0, 25, 2))
    missing = [f"{outside:,} events of other days"] if outside else []
    missing += [f"{timeless:,} refused rows without a usable time"] if timeless else []
    note = f"; not drawn: {', '.join(missing)}" if missing else ""
    axes[-1].set_xlabel(f"hour of the day (UTC{note})")
    axes[0].figure.align_ylabels(axes)
