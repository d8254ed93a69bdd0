"""A release in one figure: what was lost of each column, how many rows look alike, and what an attacker learns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final

from shoal.figures.lines import add_title, new_figure, save, style_axis

# Okabe and Ito's colours, distinguishable with any colour blindness; marks also differ in shape.
_COLOURS: Final = {"released": "#0072B2", "suppressed": "#E69F00", "refused": "#999999", "pending": "#56B4E9"}
_LOSS, _CLASS, _GAIN, _NO_GAIN, _GUESS, _RAW = "#0072B2", "#0072B2", "#D55E00", "#0072B2", "#333333", "#999999"
_QUESTIONS: Final = {
    "singling out": "finds a person's row", "linking": "links rows of a person", "inference": "learns a value",
}  # fmt: skip
_MOST: Final = 3
"""Attacks shown for each question: those that gain most over guessing."""
_WIDE: Final = 26
"""Characters of labels below an axis from which on they are slanted."""
_LONGEST: Final = 24
"""Characters of a column's name."""


def draw_release(
    title: str,
    counts: Mapping[str, int],
    losses: Mapping[str, float],
    classes: Mapping[str, Any],
    attacks: Sequence[Mapping[str, Any]],
    path: str | PathLike[str] | None = None,
) -> Any:
    """Draw three panels and return the figure; write it as a PNG if a path is given.

    `classes` and `attacks` are those of an evidence report. Without losses the first panel has the counts of rows.
    """
    shown = _chosen(attacks)
    lines = max(len(losses), len(shown) + len({one["question"] for one in shown}), 6)
    figure = new_figure(1, 3, size=(15, 1.7 + 0.36 * lines), dpi=120, width_ratios=[1, 1, 1.25])
    first, middle, last = figure.axes
    if losses:
        _draw_losses(first, losses, "sets" in counts)
    else:
        _draw_counts(first, counts)
    _draw_classes(middle, classes)
    _draw_attacks(last, shown)
    first.set_ylim(lines - 0.4, -0.6)
    last.set_ylim(lines - 0.4, -0.6)
    for axis in figure.axes:
        axis.tick_params(labelsize=9)
    figure.legend(handles=_key(), loc="outside lower right", ncols=4, frameon=False, fontsize=9, handletextpad=0.2)
    add_title(figure, title)
    if path is not None:
        save(figure, path)
    return figure


def _draw_losses(axis: Any, losses: Mapping[str, float], are_items: bool) -> None:  # noqa: FBT001
    names = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in losses]
    _draw_bars(axis, names, list(losses.values()), [_LOSS] * len(names), [f"{loss:.0%}" for loss in losses.values()])
    axis.set_xlim(0, 1)
    axis.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    title, words = (
        ("What is generalized", "share") if are_items else ("What each column lost", "0%: exact; 100%: all lost")
    )
    axis.set_title(title, loc="left", fontsize=11)
    axis.set_xlabel(words, fontsize=9.5)


def _draw_counts(axis: Any, counts: Mapping[str, int]) -> None:
    shown = {name: counts[name] for name in _COLOURS if counts.get(name)}
    texts = [f"{count:,}" for count in shown.values()]
    _draw_bars(axis, list(shown), list(shown.values()), [_COLOURS[name] for name in shown], texts)
    axis.xaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    axis.set_title("What became of the input", loc="left", fontsize=11)
    axis.set_xlabel("rows", fontsize=9.5)


def _draw_bars(axis: Any, names: list[str], values: list[Any], colours: list[str], texts: list[str]) -> None:
    bars = axis.barh(range(len(names)), values, color=colours, height=0.7)
    axis.bar_label(bars, texts, padding=3, fontsize=9)
    axis.set_yticks(range(len(names)), names, parse_math=False)  # a name may have dollar signs
    axis.tick_params(axis="y", length=0)
    style_axis(axis)
    axis.grid(visible=False, axis="y")
    axis.margins(x=0.15)


def _draw_classes(axis: Any, classes: Mapping[str, Any]) -> None:
    names, counts = classes["names"], classes["counts"]
    bars = axis.bar(range(len(names)), counts, color=_CLASS, width=0.7)
    axis.bar_label(bars, [f"{count:,}" if count else "" for count in counts], padding=2, fontsize=9)
    labels = [name.replace(" or more", "+") for name in names]
    axis.set_xticks(range(len(names)), labels, rotation=30 if sum(map(len, labels)) > _WIDE else 0)
    middle = (len(names) - 1) / 2
    axis.set_xlim(middle - max(len(names), 4) / 2, middle + max(len(names), 4) / 2)
    axis.margins(y=0.12)
    sizes = f"smallest {classes['smallest']:,}, median {classes['median']:,.0f}" if counts else "nothing is published"
    axis.set_title(f"How many look alike: {sizes}", loc="left", fontsize=11)
    axis.set_xlabel(f"number of {classes['what']}", fontsize=9.5)
    axis.set_ylabel("people" if classes["what"].startswith("people") else "rows", fontsize=9.5)
    axis.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    style_axis(axis)


# ---- what an attacker learns


def _chosen(attacks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The attacks that gain most over guessing, some for each question, in the order of questions."""
    tried = [one for one in attacks if one["success"] is not None]
    found = []
    for question in _QUESTIONS:
        asked = [one for one in tried if one["question"] == question]
        found += sorted(asked, key=lambda one: (one["guess"] or 0) - one["success"]["rate"])[:_MOST]
    return found


def _draw_attacks(axis: Any, attacks: Sequence[Mapping[str, Any]]) -> None:
    labels, place = [], 0
    for question, words in _QUESTIONS.items():
        asked = [one for one in attacks if one["question"] == question]
        if asked:
            labels.append((place, words))
            place += 1
        for one in asked:
            labels.append((place, one["name"]))
            _draw_attack(axis, place, one)
            place += 1
    axis.set_yticks([at for at, _ in labels], [words for _, words in labels])
    for tick, (_, words) in zip(axis.get_yticklabels(), labels, strict=True):
        if words in _QUESTIONS.values():
            tick.set_fontweight("bold")
    axis.tick_params(axis="y", length=0)
    axis.set_xlim(-0.02, 1.02)
    axis.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axis.set_title("What an attacker learns: share of tries that succeed", loc="left", fontsize=11)
    style_axis(axis)
    axis.grid(visible=False, axis="y")
    axis.grid(axis="x", color="#eeeeee", linewidth=0.8)


def _key() -> list[Any]:
    from matplotlib.lines import Line2D

    marks = (("o", _GAIN, "with the release: more than by guessing"),
             ("o", _NO_GAIN, "with the release: no clear gain"),
             ("|", _GUESS, "guessing without it"), ("x", _RAW, "with the raw data"))  # fmt: skip
    return [Line2D([], [], color=colour, marker=marker, linestyle="none", label=words, markeredgewidth=1.8)
            for marker, colour, words in marks]  # fmt: skip


def _draw_attack(axis: Any, place: int, one: Mapping[str, Any]) -> None:
    rate, colour = one["success"], _GAIN if one["gains"] else _NO_GAIN
    axis.plot([rate["low"], rate["high"]], [place, place], color=colour, linewidth=2.5, solid_capstyle="round")
    if one["raw"] is not None:
        axis.plot(one["raw"], place, marker="x", color=_RAW, markersize=7, markeredgewidth=1.8, linestyle="none")
    if one["guess"] is not None:
        axis.plot(one["guess"], place, marker="|", color=_GUESS, markersize=13, markeredgewidth=1.8, linestyle="none")
    axis.plot(rate["rate"], place, marker="o", color=colour, markersize=7, linestyle="none")
