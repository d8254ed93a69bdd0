"""Figures 2 to 8 and C.10 of the z-anonymity paper: the model, its bounds, and simulations with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Final

from shoal.figures.lines import (
    Bands,
    Bars,
    Lines,
    Panel,
    Record,
    add_legend,
    add_title,
    draw_panels,
    make_figure,
    save,
    style_axis,
    values_of,
)

Path = str | PathLike[str]
_BY_K, _BY_Z, _BY_RULE, _BY_PEOPLE = "k = {k}", "z = {z}", "z = {rule}", "{people}"
"""Templates of line names, filled from a record."""
_SHARE, _SHARE_OF_2 = "k-anonymous people p", "k-anonymous people p, k = 2"
_RANGE: Final = (1e-7, 1.5)
_LEAST, _TINY = 1e-5, 1e-12
"""Smallest 1 - p that is drawn, and the smallest a logarithm is taken of."""
_COMPLEMENT: Final = {
    "model": "model", "lower": "upper", "upper": "lower", "simulated": "simulated", "low": "high", "high": "low",
}  # fmt: skip


def draw_publishing(path: Path, records: Sequence[Record], *, title: str, measured: str) -> None:
    """Figure 2: one panel per window."""
    panels = []
    for window in values_of(records, "window"):
        chosen = [one for one in records if one["window"] == window and one["model"] > 0]
        panel = _panel(
            f"Δt = {window:g}", "rank of the attribute", "probability of publishing it", chosen, "rank", _BY_Z
        )
        panel.measured.update(_above(panel.measured, _RANGE[0]))
        panels.append(_logarithmic(panel))
    draw_panels(path, panels, title=title, names=_names(records, _BY_Z), measured=measured)


def draw_by_z(path: Path, records: Sequence[Record], *, title: str, measured: str) -> None:
    """Figure 3, and on a log scale the share of people who are not k-anonymous."""
    panel = _panel("k-anonymous", "z", _SHARE, records, "z", _BY_K, is_share=True)
    others = [
        {**one, **{name: None if one[at] is None else max(1 - one[at], _TINY) for name, at in _COMPLEMENT.items()}}
        for one in records
        if one["method"] != "lattice"
    ]
    zoomed = _panel("not k-anonymous", "z", "1 - p: not k-anonymous, k = 2", others, "z", _BY_K)
    zoomed.measured.update(_above(zoomed.measured, _LEAST))
    panels = [panel, _logarithmic(zoomed, (_LEAST, 1.2), is_log_x=False)]
    draw_panels(path, panels, title=title, names=_names(records, _BY_K), measured=measured)


def draw_by_window(path: Path, records: Sequence[Record], *, title: str, measured: str) -> None:
    """Figure 4."""
    panel = _panel("z = 150", "Δt: length of the window", _SHARE, records, "window", _BY_K, is_share=True)
    draw_panels(path, [panel], title=title, names=_names(records, _BY_K), measured=measured)


def draw_by_attributes(path: Path, records: Sequence[Record], *, title: str, measured: str) -> None:
    """Figure 5: a and b."""
    share = _panel(
        "a: p", "A: number of attributes", _SHARE_OF_2, records, "attributes", _BY_Z, is_share=True, is_log_x=True
    )
    entropies = [
        {**one, "model": one["entropy"], "lower": one["entropy"], "upper": one["entropy"], "simulated": None}
        for one in records
    ]
    entropy = _panel(
        "b: entropy",
        "A: number of attributes",
        "entropy of a person in nats",
        entropies,
        "attributes",
        _BY_Z,
        is_log_x=True,
    )
    draw_panels(path, [share, entropy], title=title, names=_names(records, _BY_Z), measured=measured)


def draw_by_users(path: Path, records: Sequence[Record], *, title: str, measured: str) -> None:
    """Figure 6: a and b."""
    fixed = [one for one in records if not one["rule"].startswith("U")]
    growing = [one for one in records if one["rule"].startswith("U")]
    divisor = float(growing[0]["rule"].removeprefix("U/"))
    x = "U: number of people"
    panels = [
        _panel("a: z fixed", x, _SHARE_OF_2, fixed, "users", _BY_RULE, is_share=True, is_log_x=True),
        replace(
            _panel("b: z grows with U", x, _SHARE, growing, "users", _BY_K, is_share=True, is_log_x=True),
            top=(f"z = U/{divisor:g}", divisor),
        ),
    ]
    names = [*_names(fixed, _BY_RULE), *_names(growing, _BY_K)]
    draw_panels(path, panels, title=title, names=names, measured=measured)


def draw_activity(path: Path, records: Sequence[Record], *, title: str, measured: str) -> None:
    """Figure 7."""
    x = "rates of class 2 over those of class 1"
    panel = _panel("z = 50", x, _SHARE_OF_2, records, "ratio", _BY_PEOPLE, is_share=True, is_log_x=True)
    draw_panels(path, [panel], title=title, names=_names(records, _BY_PEOPLE), measured=measured)


def draw_interest(path: Path, records: Sequence[Record], *, title: str, measured: str) -> None:
    """Figure 8: one panel per reading of the rates."""
    panels = []
    for rule in values_of(records, "rule"):
        chosen = [one for one in records if one["rule"] == rule]
        x = "class separation 2η - 1"
        panels.append(_panel(f"{rule}, z = 50", x, _SHARE_OF_2, chosen, "separation", _BY_PEOPLE, is_share=True))
    draw_panels(path, panels, title=title, names=_names(records, _BY_PEOPLE), measured=measured)


def draw_seeds(path: Path, shares: Sequence[float], *, exact: float, tree: float, title: str) -> None:
    """Figure C.10: the runs as points, their mean and deviation, and the model."""
    figure = make_figure([Panel("", "", "", {})])
    (axis,) = figure.axes
    mean = sum(shares) / len(shares)
    deviation = (sum((one - mean) ** 2 for one in shares) / (len(shares) - 1)) ** 0.5
    runs = range(1, len(shares) + 1)
    axis.plot(runs, shares, ".", color="#777777", markersize=5, label="a run", zorder=3)
    axis.axhline(mean, color="#0072B2", linewidth=1.5, label=f"mean of runs {mean:.3f}")
    # They are equal to four digits: a broad line below a thin one.
    axis.axhline(exact, color="#F0B27A", linewidth=6, label=f"model, exact {exact:.4f}")
    axis.axhline(tree, color="#333333", linewidth=1.2, linestyle="--", label=f"model, approximated {tree:.4f}")
    axis.errorbar(
        [len(shares) + max(2, len(shares) // 25)], [mean], yerr=[deviation], color="#D55E00", capsize=4, linewidth=1.5,
        label=f"deviation of a run {deviation:.3f}",
    )  # fmt: skip
    axis.set_xlabel("run", fontsize=9.5)
    axis.set_ylabel(_SHARE_OF_2, fontsize=9.5)
    axis.tick_params(labelsize=8.5)
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.1%}")
    style_axis(axis)
    add_title(figure, title)
    add_legend(figure, {label: handle for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)})
    save(figure, path)


def _names(records: Sequence[Record], name: str) -> list[str]:
    return list(dict.fromkeys(name.format(**one) for one in records))


def _panel(
    title: str,
    x: str,
    y: str,
    records: Sequence[Record],
    key: str,
    name: str,
    *,
    is_share: bool = False,
    is_log_x: bool = False,
) -> Panel:
    """Lines with bands, and points with error bars where there are simulations."""
    lines: Lines = {}
    bands: Bands = {}
    bars: Bars = {}
    for one in records:
        line = name.format(**one)
        _add(lines.setdefault(line, ([], [])), one[key], one["model"])
        _add(bands.setdefault(line, ([], [], [])), one[key], one["lower"], one["upper"])
        if one["simulated"] is not None:
            _add(bars.setdefault(line, ([], [], [], [])), one[key], one["simulated"], one["low"], one["high"])
    return Panel(title, x, y, lines, is_share, bands=bands, measured=bars, is_log_x=is_log_x)


def _add(lists: Sequence[list[float]], *values: float) -> None:
    for one, value in zip(lists, values, strict=True):
        one.append(value)


def _above(bars: Bars, least: float) -> Bars:
    """Drop points that a logarithmic axis cannot show."""
    found: Bars = {}
    for name, points in bars.items():
        kept = [point for point in zip(*points, strict=True) if point[1] > least]
        x, y, low, high = ([point[i] for point in kept] for i in range(4))
        found[name] = (x, y, [max(value, least) for value in low], high)
    return found


def _logarithmic(panel: Panel, y_range: tuple[float, float] = _RANGE, *, is_log_x: bool = True) -> Panel:
    return replace(panel, is_log=True, is_share=False, is_log_x=is_log_x, y_range=y_range)
