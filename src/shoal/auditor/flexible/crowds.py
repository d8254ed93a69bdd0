"""How many people share what a row shows, in the normal quasi-identifiers and in all of them, and how many must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Found, look
from shoal.auditor.findings import Notes
from shoal.auditor.flexible.calibration import Calibration
from shoal.auditor.flexible.checks import below_k, below_k_s
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.classes import look_at_shares, note_shares, with_classes
from shoal.auditor.rows.quasi import Quasi

CROWDS: Final[Shape] = {
    "class": int, "size": int, "people_s": int, "needed_s": int, "block": int, "people": int, "needed": int
}  # fmt: skip
"""The class of a row by all quasi-identifiers, its rows, its people and how many must be; its block by the normal
ones, and the people of that."""


def with_crowds(normal: Sequence[Quasi], quasi: Sequence[Quasi], calibration: Calibration, rows: Relation) -> Relation:
    """Add the crowds of every row. A block needs the largest k of its rows, and all its labels the K_s of that."""
    blocks, classes = with_classes(normal, rows), with_classes(quasi, rows)
    numbers, block = np.unique(blocks["class"], return_inverse=True)
    needed = np.zeros(len(numbers), np.int64)
    np.maximum.at(needed, block, np.where(rows["judged"], rows["own_k"], 0))
    return classes.having(
        people_s=classes["people"],
        needed_s=calibration.k_s(needed)[block],
        block=blocks["class"],
        people=blocks["people"],
        needed=needed[block],
    )


def count_people(rows: Relation) -> Found:
    """Count the people of a part that has all rows of each: all, of checked rows, and of rows in too small blocks."""
    person, judged = rows.codes("person"), rows["judged"]
    small = judged & (rows["people"] < rows["needed"])
    some = {"released people": person >= 0, "judged people": judged, "exposed people": small}
    counts = {name: np.bincount(person[marked & (person >= 0)]) for name, marked in some.items()}
    return Found(sums={name: int(np.count_nonzero(rows_of)) for name, rows_of in counts.items()})


@dataclass(slots=True)
class Crowds:
    """What was found in the blocks and classes of a part."""

    found: Found
    sizes: Mapping[str, Counter[int]]
    """How many blocks (``block``) and classes (``class``) have each number of people."""


def look_at_crowds(rows: Relation) -> Crowds:
    """Check and measure all blocks and classes of a part."""
    judged = rows.take(rows["judged"])
    found = look_at_shares(rows, None) if "person" in rows else Found()
    found.findings += look(judged, (below_k, below_k_s))
    few = judged["people"] < judged["needed"], judged["people_s"] < judged["needed_s"]
    found.sums |= {"judged": len(judged), "block": int(few[0].sum()), "class": int(few[1].sum())}
    return Crowds(found, {"block": _sizes(judged, "block", "people"), "class": _sizes(judged, "class", "people_s")})


def _sizes(rows: Relation, group: str, people: str) -> Counter[int]:
    first = np.unique(rows[group], return_index=True)[1]
    return counted(rows[people][first])


def counted(numbers: Any) -> Counter[int]:
    """How often there is each number."""
    different, counts = np.unique(numbers, return_counts=True)
    return Counter(dict(zip(different.tolist(), counts.tolist(), strict=True)))


def median(counts: Counter[int]) -> float | None:
    """The median of numbers of which there are so many each."""
    if not counts:
        return None
    values = sorted(counts)
    ends = np.cumsum([counts[value] for value in values])
    middle = (ends[-1] - 1) // 2, ends[-1] // 2
    return sum(values[int(np.searchsorted(ends, at, side="right"))] for at in middle) / 2


def note_crowds(parts: Iterable[Crowds], found: Found, notes: Notes, *, are_people: bool) -> None:
    """Note the sizes of blocks and classes, and how many rows are in too small ones."""
    some = list(parts)
    sizes = {name: sum((part.sizes[name] for part in some), Counter[int]()) for name in ("block", "class")}
    rows = found.sums.get("judged", 0)
    below = {name: found.sums.get(name, 0) / rows if rows else None for name in sizes}
    notes.metrics["counted_in_classes"] = "people" if are_people else "rows (at least as many as people)"
    notes.metrics["smallest_k"] = min(sizes["block"], default=None)
    notes.metrics["rows_below_k_share"] = below["block"]
    notes.metrics["normal_groups"] = _described(sizes["block"], below["block"])
    notes.metrics["groups"] = _described(sizes["class"], below["class"])
    if are_people:
        people, exposed = (found.sums.get(f"{name} people", 0) for name in ("released", "exposed"))
        notes.metrics["released_people"] = people
        notes.metrics["people_below_k_share"] = exposed / people if people else None
        note_shares(found, notes)


def _described(sizes: Counter[int], below: float | None) -> dict[str, Any]:
    least = min(sizes, default=None)
    return {"count": sizes.total(), "smallest": least, "median": median(sizes), "rows_below_share": below}
