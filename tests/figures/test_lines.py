"""Panels of lines: the same look for the same k, nothing cut off, nothing hidden, points that are not joined."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import OutputError, RunError
from shoal.figures import lines as drawing
from shoal.figures.lines import Panel, draw_panels, lines_by, looks_of


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that are drawn, instead of files."""
    drawn: list[Any] = []
    monkeypatch.setattr(drawing, "save", lambda figure, _path: drawn.append(figure))
    return drawn


def test_panels_of_lines(tmp_path: Path) -> None:
    records = [{"method": name, "x": x, "y": x * size} for size, name in enumerate("ab") for x in range(3)]
    lines = lines_by(records, "method", x="x", y="y")
    assert lines == {"a": ([0, 1, 2], [0, 0, 0]), "b": ([0, 1, 2], [0, 1, 2])}
    panels = [
        Panel("one", "x", "y", lines), Panel("two", "x", "y", lines, is_log=True),
        Panel("three", "x", "y", {"a": ([0.5], [0.5])}, is_share=True),
        Panel("four", "x", "y", {"b": ([1], [2])}, is_log=True),
    ]  # fmt: skip
    for name in ("first.png", "again.png"):
        draw_panels(tmp_path / name, panels, title="All", names=["a", "b"])
    assert (tmp_path / "first.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "again.png").read_bytes()
    with pytest.raises(OutputError):
        draw_panels(tmp_path / "no" / "a.png", panels, title="", names=["a", "b"])


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(RunError, match=r"pip install matplotlib"):
        draw_panels(tmp_path / "a.png", [Panel("", "", "", {})], title="", names=[])


def test_a_k_has_the_same_look_in_every_figure() -> None:
    alone, among = looks_of(["k = 4"]), looks_of(["z = 10", "z = 20", "FADS", "k = 2", "k = 3", "k = 4"])
    assert alone["k = 4"] == among["k = 4"]
    colours = [look.colour for look in looks_of([f"k = {k}" for k in (2, 3, 4, 6, 10, 12, 20)]).values()]
    assert len(set(colours)) == 7
    assert among["z = 10"].colour not in colours


def test_long_titles_and_legends_are_not_cut_off(figures: list[Any], tmp_path: Path) -> None:
    title = "Figure 5: rows published by the number of clusters ready for reuse when the title is rather long"
    names = [f"a line with a rather long name, number {at}" for at in range(4)]
    lines = {name: ([0.0, 1.0], [0.0, float(at)]) for at, name in enumerate(names)}
    draw_panels(tmp_path / "a.png", [Panel("", "x", "y", lines)], title=title, names=names)
    (figure,) = figures
    figure.canvas.draw()
    for text in (figure._suptitle, figure.legends[0]):
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.x1 <= figure.bbox.width
    assert figure._suptitle.get_text().replace("\n", " ") == title


def test_lines_on_top_of_each_other_are_nested(figures: list[Any], tmp_path: Path) -> None:
    steps = [0.0, 1.0, 2.0]
    lines = {"a": (steps, [1.0, 2.0, 3.0]), "b": (steps, [1.0, 2.0, 3.01]), "c": (steps, [3.0, 1.0, 0.0])}
    draw_panels(tmp_path / "a.png", [Panel("", "x", "y", lines)], title="", names=list(lines))
    widths = {line.get_label(): line.get_linewidth() for line in figures[0].axes[0].lines}
    assert widths["a"] > 2 * widths["b"]
    assert widths["c"] == drawing._LINE
    assert figures[0].axes[0].get_ylim()[0] < 0


def test_a_level_line_is_not_cut_at_the_top(figures: list[Any], tmp_path: Path) -> None:
    lines = {name: ([0.0, 1.0], [0.28, 0.281]) for name in "ab"}
    draw_panels(tmp_path / "a.png", [Panel("", "x", "y", lines)], title="", names=list(lines))
    assert figures[0].axes[0].get_ylim()[1] > 1.05 * 0.281


def test_points_are_not_joined_and_a_second_axis(figures: list[Any], tmp_path: Path) -> None:
    lines = {"found": ([10.0, 1000.0], [0.1, 0.9]), "the paper": ([100.0, 1000.0], [0.2, 0.8])}
    panel = Panel("", "U", "p", lines, is_log_x=True, points=frozenset({"the paper"}), top=("z = U/25", 25.0))
    draw_panels(tmp_path / "a.png", [panel], title="", names=list(lines))
    axis = figures[0].axes[0]
    styles = {line.get_label(): line.get_linestyle() for line in axis.lines}
    assert (styles["found"], styles["the paper"]) == ("-", "None")
    (above,) = axis.child_axes
    figures[0].canvas.draw()
    assert above.get_xlabel() == "z = U/25"
    assert above.get_xlim() == pytest.approx([limit / 25 for limit in axis.get_xlim()])
