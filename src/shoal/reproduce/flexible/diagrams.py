"""Drawings for flexible k-anonymity: the process, the ontology, and blocks of a few people."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Final

from shoal.figures.lines import Record, add_title, new_figure, save
from shoal.reproduce.flexible.worked import S6, SAME_SYSTEM, Block, Worked

_INK, _PALE, _LINE = "#333333", "#f2f2f2", "#999999"
_FILLS: Final = ("#cfe3f3", "#fbe3c4", "#d5eee3", "#f3dbe8", "#fbf5c8", "#e5d9f2")
_PHONES: Final = (SAME_SYSTEM[0], SAME_SYSTEM[2], SAME_SYSTEM[3], SAME_SYSTEM[1], S6, "Apple iPhone 6")
_LABELS: Final = ("Android", "iOS", "Taiwan", "China", "South Korea", "United States", "East Asia", "Asia")
"""Labels above phones by other properties than "is a"."""


def draw_process(path: str | PathLike[str], steps: Sequence[Record]) -> None:
    """Figure 1: the steps, with the number of records that each concerns."""
    count = {(one["step"], at): f"{one['records']:,}" for at, one in enumerate(steps)}
    real, alike, place, device, below_k, below_k_s, published, pending = count.values()
    few, fewer = (one["what"].split(": ", 1)[1] for one in steps if one["step"] == "12")
    inside = (
        ("1 to 3", "Identifiers are hashed\nwith a key and sealed"),
        ("4 to 7", "Decoys are added\nuntil k people are alike"),
        ("8", "Internal database:\nreal records and decoys"),
        ("9", f"Real records are\nfiltered: {real}"),
    )
    outside = (
        ("10", f"Already alike to k\npeople in all columns:\n{alike}"),
        ("11", f"Place generalized: {place}\nDevice under a common\ncriterion: {device}"),
        ("12", f"Without device,\n{few}: {below_k}\nWith device,\n{fewer}: {below_k_s}"),
        ("13", f"External database:\n{published} published,\n{pending} pending"),
    )
    figure = new_figure(1, size=(10.5, 4.6))
    axis = _empty(figure, (0, 4), (0, 2.35))
    for row, boxes, fill, name in ((1.2, inside, _FILLS[1], "internal"), (0.05, outside, _FILLS[0], "external")):
        axis.text(0.02, row + 0.98, name, fontsize=10, color=_INK, style="italic")
        for at, (step, text) in enumerate(boxes):
            _box(axis, (at + 0.03, row), (0.86, 0.9), f"step {step}\n{text}", fill, size=9)
            if at:
                _arrow(axis, (at - 0.11, row + 0.45), (at + 0.03, row + 0.45))
    axis.plot([3.46, 3.46, 0.46, 0.46], [1.2, 1.07, 1.07, 0.97], color=_INK, linewidth=1.2)
    _arrow(axis, (0.46, 1.07), (0.46, 0.95))
    add_title(figure, "Figure 1: the process, with the records of this run")
    save(figure, path)


def draw_ontology(path: str | PathLike[str], worked: Worked) -> None:
    """Figure 2: normal and sparse attributes, and what stands above the paper's phones."""
    figure = new_figure(1, 2, size=(12.5, 5.4), gridspec_kw={"width_ratios": [1.6, 1]})
    _draw_tree(figure.axes[0], worked)
    _draw_cover(figure.axes[1], worked)
    add_title(figure, "Figure 2: the ontology of devices, for the paper's phones")
    save(figure, path)


def _draw_tree(axis: Any, worked: Worked) -> None:
    """Attributes and classes from left to right, by "is a"."""
    rows = len(_PHONES)
    _clear(axis, (-0.05, 5.0), (-3.6, rows - 0.4))
    axis.set_title('By "is a"', loc="left", fontsize=10.5)
    height = {phone: float(rows - 1 - at) for at, phone in enumerate(_PHONES)}
    levels: list[dict[str, list[str]]] = [{}, {}]
    for phone in _PHONES:
        for level, label in enumerate((worked.brand(phone), worked.own(phone, "is a"))):
            levels[level].setdefault(label, []).append(phone)
    middle = [{label: sum(map(height.__getitem__, own)) / len(own) for label, own in one.items()} for one in levels]
    device = (rows - 1) / 2
    nodes: dict[str, tuple[float, float]] = {"sparse attribute": (0.0, device), "device": (1.05, device)}
    edges = [("sparse attribute", "device")]
    brands = {f"brand {name}": name for name in middle[0]}
    for phone in _PHONES:
        brand, family = worked.brand(phone), worked.own(phone, "is a")
        nodes |= {f"brand {brand}": (1.85, middle[0][brand]), phone: (3.95, height[phone])}
        edges.append(("device", f"brand {brand}"))
        if family != brand:
            nodes[family] = (2.7, middle[1][family])
            edges += [(f"brand {brand}", family), (family, phone)]
        else:
            edges.append((f"brand {brand}", phone))
    nodes["normal attribute"] = (0.0, -2.1)
    for at, name in enumerate(("place", "network", "time")):
        nodes[name] = (1.05, -1.3 - 0.8 * at)
        edges.append(("normal attribute", name))
    widths = {0.0: 0.85, 1.05: 0.62, 1.85: 0.7, 2.7: 1.1, 3.95: 1.02}
    for left, right in dict.fromkeys(edges):
        (x, y), (to_x, to_y) = nodes[left], nodes[right]
        axis.plot([x + widths[x], to_x], [y, to_y], color=_LINE, linewidth=1, zorder=1)
    for name, (x, y) in nodes.items():
        is_normal = y < -1
        fill = _FILLS[2] if is_normal else _FILLS[0] if x > 3.5 else _FILLS[4]
        _box(axis, (x, y - 0.3), (widths[x], 0.6), _folded(brands.get(name, name)), fill, size=8)


def _draw_cover(axis: Any, worked: Worked) -> None:
    """Which labels by other properties cover which phones."""
    labels = [label for label in _LABELS if label in worked.concepts]
    rows = len(_PHONES)
    _clear(axis, (-0.6, len(labels) - 0.4), (-3.6, rows - 0.4))
    axis.set_title("By system and country (models covered in all)", loc="left", fontsize=10.5)
    for column, label in enumerate(labels):
        covered = len(worked.concepts.covered(label))
        axis.text(column, -0.65, f"{label} ({covered})", rotation=60, ha="right", va="top", fontsize=9,
                  rotation_mode="anchor")  # fmt: skip
        for at, phone in enumerate(_PHONES):
            is_covered = worked.concepts.subsumes(label, phone)
            fill = _FILLS[1] if is_covered else "white"
            _box(axis, (column - 0.4, rows - 1 - at - 0.3), (0.8, 0.6), "●" if is_covered else "", fill, size=8)


def draw_blocks(path: str | PathLike[str], blocks: Sequence[Block]) -> None:
    """Blocks of people: the model of each person, and the label under which it was published."""
    most = max(len(block.models) for block in blocks)
    columns = 4
    rows = -(-len(blocks) // columns)
    figure = new_figure(rows, columns, size=(15, 0.8 + 2.9 * rows))
    labels = dict.fromkeys(label for block in blocks for label in block.labels if label)
    fills = {label: _FILLS[at % len(_FILLS)] for at, label in enumerate(labels)}
    for axis, block in zip(figure.axes, blocks, strict=False):
        _clear(axis, (0, 2), (-most, 0.1))
        axis.set_title(f"{block.name}: k = {block.k}, K_s = {block.k_s}", loc="left", fontsize=10.5)
        for at, (model, label) in enumerate(zip(block.models, block.labels, strict=True)):
            _box(axis, (0.0, -at - 0.92), (0.92, 0.8), model, _PALE, size=8)
            _arrow(axis, (0.92, -at - 0.52), (1.07, -at - 0.52))
            _box(axis, (1.07, -at - 0.92), (0.92, 0.8), label or "pending", fills[label] if label else "white", size=8)
    for axis in figure.axes[len(blocks) :]:
        axis.remove()
    add_title(figure, "Sections 2.2 and 5.3: the paper's blocks, model (left) and published label (right)")
    save(figure, path)


def _empty(figure: Any, x: tuple[float, float], y: tuple[float, float]) -> Any:
    axis = figure.axes[0]
    _clear(axis, x, y)
    return axis


def _clear(axis: Any, x: tuple[float, float], y: tuple[float, float]) -> None:
    axis.set_axis_off()
    axis.set_xlim(x)
    axis.set_ylim(y)


def _box(
    axis: Any, corner: tuple[float, float], extent: tuple[float, float], text: str, fill: str, size: float
) -> None:
    from matplotlib.patches import Rectangle

    (x, y), (width, height) = corner, extent
    axis.add_patch(Rectangle((x, y), width, height, facecolor=fill, edgecolor=_LINE, linewidth=0.8, zorder=2))
    axis.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=size, color=_INK, zorder=3)


def _arrow(axis: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axis.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": _INK, "linewidth": 1.2})


def _folded(text: str) -> str:
    """In two lines if long."""
    words = text.split(" ")
    if len(text) <= 12 or len(words) == 1:
        return text
    half = (len(words) + 1) // 2
    return f"{' '.join(words[:half])}\n{' '.join(words[half:])}"
