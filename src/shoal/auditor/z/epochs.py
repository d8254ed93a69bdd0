"""Epochs: how many people share the set of values that was released of them, and which z was in force."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.checks import Answer, Found, check, find, look
from shoal.auditor.counting import sum_by
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Notes, Severity
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.report.released_sets import group_sets
from shoal.auditor.sorting import dense, distinct, firsts, order_of
from shoal.auditor.z.crowds import held_back
from shoal.auditor.z.evidence import NO_EPOCH
from shoal.auditor.z.order import Clock
from shoal.auditor.z.people import Counts
from shoal.auditor.z.promise import Target, ZPromise

_WORST: Final = 10
_Test = Callable[[Ints], Bools]
_TESTS: Final[dict[str, _Test]] = {
    "1 (unique)": lambda size: np.equal(size, 1),
    **{f"{level} or more": partial(np.less_equal, level) for level in (2, 3, 4)},
}
of_epochs = partial(check, families=("z",), by="group")


def check_epochs(place: Place, promise: ZPromise, rows: Table, counts: Counts, notes: Notes) -> None:
    """Measure how many people share a set of values in every epoch, and check what is promised of that."""
    metrics, target = notes.metrics, promise.target
    if promise.k is not None:
        found = find(place, rows, ("shown epoch",), partial(_check_sets, promise, promise.k), notes)
        metrics["smallest_k"] = found.least.get("smallest_k")
        for what in ("rows", "people"):
            metrics[f"{what}_below_k_share"] = _ratio(found.sums.get(f"{what} below", 0), found.sums.get(what, 0))
    parts = place.divide(rows, ("shown epoch",), partial(_set_sizes, promise))
    shown = np.concatenate([np.zeros((4, 0), np.int64), *parts], axis=1)
    metrics["epochs"] = _describe(promise, shown, counts)
    if target is not None:
        epoch, size, people, _ = shown
        at = dense(epoch)
        met = int((sum_by(at, people * (size >= target.k), 0) >= target.p * sum_by(at, people, 0)).sum())
        epochs = len(distinct(epoch))
        metrics["target"] = {"k": target.k, "p": target.p, "epochs_shown": epochs, "epochs_met": met}
        notes.findings += target_missed(epochs, met)


# ---- sets of values


def _set_sizes(promise: ZPromise, rows: Relation) -> npt.NDArray[np.int64]:
    """Group the pseudonyms of every epoch by their sets of values.

    Returns rows of epoch, size (how many share a set), people with a set of this size, whether the set is empty.
    """
    rows = rows.take(rows["readable"] & (rows.codes("pseudonym") >= 0))
    numbers, epoch = distinct(rows["shown epoch"]), dense(rows["shown epoch"])
    groups = group_sets(epoch, rows.codes("pseudonym"), _items(promise, rows))
    is_empty = (groups.length == 0).astype(np.int64)
    of_kind = dense(groups.epoch, groups.people, is_empty)
    first, size = firsts(of_kind), groups.people[firsts(of_kind)]
    return np.stack((numbers[groups.epoch[first]], size, size * np.bincount(of_kind), is_empty[first]))


def _items(promise: ZPromise, rows: Relation) -> list[Ints]:
    """The values of every row, numbered without overlap."""
    items, offset = [], 0
    for attribute in promise.attributes:
        codes = rows.codes(f"released {attribute.name}")
        items.append(np.where(codes >= 0, codes + offset, -1))
        offset += int(codes.max(initial=-1)) + 1
    return items


def _describe(promise: ZPromise, shown: npt.NDArray[np.int64], counts: Counts) -> dict[str, Any]:
    """Return the shares of people by how many others have the same released set in the epoch.

    Over (a) all people of the truth, those without a released row sharing the empty set; (b) people active in
    the epoch, the same way; (c) people with a released row. Within an epoch a pseudonym is a person.
    """
    epoch, size, people, is_empty = shown
    numbers = distinct(np.append(epoch, np.array(list(counts.active), np.int64)))
    if not len(numbers):
        return {}
    at, visible = np.searchsorted(numbers, epoch), is_empty == 0
    seen = sum_by(at[visible], people[visible], len(numbers))
    active = np.array([counts.active.get(number, 0) for number in numbers.tolist()])

    def share(test: _Test, population: Ints) -> float | None:
        silent = np.maximum(population - seen, 0)
        hits = int(people[visible & test(size)].sum()) + int(silent[test(silent)].sum())
        return _ratio(hits, int(population.sum())) if counts.people else None

    shares = {
        name: {
            "all": share(test, np.full(len(numbers), counts.people)),
            "active": share(test, active),
            "shown": _ratio(int(people[test(size)].sum()), int(people.sum())),
        }
        for name, test in _TESTS.items()
    }
    everyone = sum_by(at, people, len(numbers))
    unique = sum_by(at, people * (size == 1), len(numbers))
    lone = np.divide(unique, everyone, out=np.zeros(len(numbers)), where=everyone > 0)
    worst = [
        {
            "start_s": int(numbers[place]) * (promise.rotation_ns / 1e9),
            "active": int(active[place]) if counts.people else None,
            "shown": int(everyone[place]),
            "unique_share": float(lone[place]),
        }
        for place in np.lexsort((-unique, -lone))[:_WORST].tolist()
        if unique[place]
    ]
    return {"count": len(numbers), "shares": shares, "worst": worst}


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


# ---- combine


def shared_sets(promise: ZPromise, k: int, rows: Relation) -> Relation:
    """Add to released rows how many pseudonyms have the set of values of theirs in the epoch; -1 if it has no value."""
    someone = dense(rows["shown epoch"], rows.codes("pseudonym"))
    items = [np.where(rows["readable"], item, -1) for item in _items(promise, rows)]
    has_value = np.logical_or.reduce([item >= 0 for item in items])
    having = np.flatnonzero(np.isin(someone, someone[has_value]))
    epoch = dense(rows["shown epoch"][having])
    groups = group_sets(epoch, rows.codes("pseudonym")[having] + 1, [item[having] for item in items])
    people, size = dense(someone[having]), np.full(len(rows), -1, np.int64)
    size[having] = groups.people[groups.of_person][people] if len(having) else people
    is_first = np.zeros(len(rows), np.bool_)
    is_first[firsts(someone)] = True
    return rows.having(size=size, below=(size >= 0) & (size < k), is_first=is_first)


@of_epochs(
    "set-below-k",
    "All values released of a person in an epoch, taken as a set, were released of fewer than k people.",
    advice="Whoever knows the values of such a person finds the pseudonym: do not publish this.")  # fmt: skip
def set_below_k(rows: Relation) -> Any:
    return rows["below"]


def _check_sets(promise: ZPromise, k: int, rows: Relation) -> Found:
    rows = shared_sets(promise, k, rows)
    has_set, below, first = rows["size"] >= 0, rows["below"], rows["is_first"]
    marks = {"people": first & has_set, "people below": first & below, "rows below": below}
    sums = {"rows": len(rows)} | {name: int(which.sum()) for name, which in marks.items()}
    smallest = int(rows["size"][has_set].min()) if has_set.any() else None
    return Found(look(rows, (set_below_k,)), sums, {"smallest_k": smallest})


def suppressed_at_once(promise: ZPromise, clock: Clock, rows: Relation) -> Found:
    """Find rows that passed z and were suppressed before their epoch was decided: before the first that waited."""
    stage = dense(clock.starts(rows["record"]), rows["epoch"])
    has_waited = rows["waited"] != NO_EPOCH
    decided = np.full(len(rows), np.iinfo(np.int64).max)
    np.minimum.at(decided, stage[has_waited], rows["entry"][has_waited])
    may_pass = np.logical_or.reduce([rows[f"level {attribute.name}"] >= 0 for attribute in promise.attributes])
    held = ~has_waited & (may_pass | promise.keeps_rows) & (rows["entry"] < decided[stage])
    return Found(held_back(rows.having(held=held)))


# ---- a target


@of_epochs(
    "z-missing", "The trace does not record the z of a record.", needs=("truth", "trace"),
    advice="Give the trace as it was written: without the z in force values cannot be judged.")  # fmt: skip
def z_missing(rows: Relation, promise: ZPromise, *_: Any) -> int:
    return int(np.logical_or.reduce([z < 0 for z in _z_of(rows, promise)]).sum())


def _z_of(rows: Relation, promise: ZPromise) -> list[Ints]:
    return [rows[f"z {attribute.name}"] for attribute in promise.attributes]


@of_epochs(
    "z-within-epoch", "z changed within an epoch, or differs between columns.", needs=("truth", "trace"),
    advice="A z that follows single records says something about them: do not publish this release.")  # fmt: skip
def z_within_epoch(rows: Relation, promise: ZPromise, clock: Clock) -> int:
    start = clock.starts(rows["record"])
    rows, start = rows.take(order := order_of(start, rows["time"], rows["record"])), start[order]
    same = (rows["epoch"][1:] == rows["epoch"][:-1]) & (start[1:] == start[:-1])
    columns = _z_of(rows, promise)
    changes = sum(int((same & (z[1:] != z[:-1])).sum()) for z in columns)
    return changes + sum(int((z != columns[0]).sum()) for z in columns[1:])


def low_z(promise: ZPromise, target: Target, clock: Clock, rows: Relation) -> dict[tuple[int, int], tuple[int, int]]:
    """By start and epoch: how many records have a z below the one at the start, and the first time."""
    low = np.logical_or.reduce([(z >= 0) & (z < target.start) for z in _z_of(rows, promise)])
    start = clock.starts(rows["record"])
    order = order_of(start, rows["time"])
    start, epoch, time, low = start[order], rows["epoch"][order], rows["time"][order], low[order]
    first = np.flatnonzero(np.append(True, (np.diff(start) != 0) | (np.diff(epoch) != 0))[: len(start)])
    counts = np.add.reduceat(low.astype(np.int64), first) if len(first) else first
    figures = zip(start[first].tolist(), epoch[first].tolist(), counts.tolist(), time[first].tolist(), strict=True)
    return {(own, number): (count, earliest) for own, number, count, earliest in figures}


@of_epochs(
    "z-too-early",
    "z fell before a window and a whole epoch of the stream had been seen (with learn: before they began).",
    needs=("truth", "trace"),
    advice="z must not follow too few people: run it again with the policy that you audit with.")  # fmt: skip
def z_too_early(promise: ZPromise, target: Target, low: Iterable[dict[tuple[int, int], tuple[int, int]]]) -> int:
    of_starts: dict[int, dict[int, tuple[int, int]]] = {}
    for part in low:
        for (start, epoch), own in part.items():
            of_starts.setdefault(start, {})[epoch] = own
    count = 0
    for epochs in of_starts.values():
        free = first_free_epoch(sorted(epochs), min(first for _, first in epochs.values()), promise, target)
        count += sum(lower for epoch, (lower, _) in epochs.items() if free is None or epoch < free)
    return count


def first_free_epoch(epochs: Iterable[int], first: int, promise: ZPromise, target: Target) -> int | None:
    """Return the epoch from which on z may be lower than at the start; None if there is none.

    It follows the first of the epochs (rising) that began after the stream did, at `first`, and saw a full window. It
    is that epoch itself if z was learnt from an earlier stream.
    """
    window = max(attribute.window_ns for attribute in promise.attributes)
    # Python integers: the end of an epoch may not fit 64 bits.
    seen = (one for one in epochs if one > first // promise.rotation_ns)
    whole = next((one for one in seen if (one + 1) * promise.rotation_ns - first >= window), None)
    return whole if whole is None or target.learns else whole + 1


@of_epochs(
    "target-missed",
    "In an epoch fewer of the people shown are k-anonymous than z aims at; the target is not a promise.",
    severity=Severity.WARNING,
    advice="More people than hoped for stand out by their values: raise start, floor or k.")  # fmt: skip
def target_missed(shown: int, met: int) -> Answer:
    return Answer(count=shown - met)
