"""Choosing z in one figure: predictions of the model and counts on data, against z."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Final

from shoal.figures.lines import new_figure, save, style_axis
from shoal.models.z.tuning import Target, Tuning, WindowTuning

_MODEL, _LATER, _EARLIER, _INK = "#0072B2", "#D55E00", "#009E73", "#333333"
_MOST_WINDOWS: Final = 4
_ROWS: Final = ("people shown who are k-anonymous", "rows released", "entropy of a person, nats")


def draw_tuning(path: str | PathLike[str], tuning: Tuning, *, private: bool = False) -> None:
    """Draw p with its bounds, the share released and the entropy against z, a column for each window, as a PNG."""
    windows = tuning.windows[:_MOST_WINDOWS]
    figure = _figure(len(windows))
    for column, window in enumerate(windows):
        axes = figure.axes[column :: len(windows)]
        _draw_share(axes[0], window, tuning.target)
        _draw_released(axes[1], window)
        _draw_entropy(axes[2], window)
        axes[0].set_title(f"window {window.window}", loc="left", fontsize=10.5)
        axes[-1].set_xlabel("z", fontsize=9.5)
        for axis in axes:
            _mark(axis, window)
    for axis, label in zip(figure.axes[:: len(windows)], _ROWS, strict=True):
        axis.set_ylabel(label, fontsize=9.5)
    found = {label: line for axis in figure.axes for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(found.values(), found.keys(), loc="outside lower left", ncols=3, frameon=False, fontsize=9)
    best = tuning.best
    result = f"z = {best[1].z}, window {best[0].window}" if best else "not reached on unused data"
    title = f"{tuning.target.p:g} of people shown {tuning.target.k}-anonymous: {result}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    save(figure, path, private=private)


def _figure(columns: int) -> Any:
    figure = new_figure(3, columns, size=(max(7.0, 4.0 * columns), 8.4))
    from matplotlib.ticker import LogLocator, NullLocator

    for axis in figure.axes:
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter(lambda at, _: f"{at:,g}")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.tick_params(labelsize=8.5)
        style_axis(axis)
    return figure


def _z(window: WindowTuning) -> list[int]:
    return [model.z for model, _, _ in window.curve]


def _draw_share(axis: Any, window: WindowTuning, target: Target) -> None:
    z, shown = _z(window), [model.shown for model, _, _ in window.curve]
    axis.fill_between(
        z, [one.lower for one in shown], [one.upper for one in shown], color=_MODEL, alpha=0.25, linewidth=0
    )
    axis.plot(z, [one.value for one in shown], color=_MODEL, linewidth=1.6, label="model, with its bounds")
    _draw_counted(axis, z, [before.over_shown for _, before, _ in window.curve], _EARLIER, "^", "counted, used windows")
    _draw_counted(axis, z, [after.over_shown for _, _, after in window.curve], _LATER, "o", "counted, unused windows")
    axis.axhline(target.p, color=_INK, linewidth=1, linestyle=":", label="target")
    _percent(axis)


def _draw_released(axis: Any, window: WindowTuning) -> None:
    z = _z(window)
    axis.plot(z, [model.released for model, _, _ in window.curve], color=_MODEL, linewidth=1.6)
    _draw_counted(axis, z, [before.released for _, before, _ in window.curve], _EARLIER, "^", None)
    _draw_counted(axis, z, [after.released for _, _, after in window.curve], _LATER, "o", None)
    _percent(axis)


def _draw_entropy(axis: Any, window: WindowTuning) -> None:
    axis.plot(_z(window), [model.entropy for model, _, _ in window.curve], color=_MODEL, linewidth=1.6)
    axis.set_ylim(bottom=0)


def _draw_counted(
    axis: Any, z: Sequence[int], shares: Sequence[float | None], colour: str, marker: str, label: str | None
) -> None:
    points = [(at, share) for at, share in zip(z, shares, strict=True) if share is not None]
    axis.plot(
        [at for at, _ in points], [share for _, share in points], color=colour, linestyle="none", marker=marker,
        markersize=3, label=label,
    )  # fmt: skip


def _mark(axis: Any, window: WindowTuning) -> None:
    best = window.best
    if best is not None:
        axis.axvline(best.z, color=_INK, linewidth=1, linestyle="--", label="smallest z that reached the target")


def _percent(axis: Any) -> None:
    axis.set_ylim(0, 1.02)
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
