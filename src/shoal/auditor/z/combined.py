"""Check `combine = "k"`: rows wait for the end of their epoch, and k people share every set of values."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import RELEASED, Verdicts, note_lost
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.clock import check_lateness
from shoal.auditor.z.promise import ZPromise

_NO_EPOCH = np.iinfo(np.int64).min


def read_passed(trace: Rows, promise: ZPromise, notes: Notes) -> dict[str, Ints] | None:
    """Return the level at which each row's values passed z, by attribute, according to the trace."""
    found = {}
    for attribute in promise.attributes:
        name = next((name for name in (f"level.{attribute.name}", "level") if name in trace.columns), None)
        if name is None:
            notes.unchecked(
                "Values that passed z and were removed later cannot be distinguished from values suppressed by z: "
                "the trace has no column level, the level at which values passed."
            )
            return None
        found[attribute.name] = trace.numbers(name)
    return found


def order_combined(
    trace: Rows,
    verdicts: Verdicts,
    counted: Ints,
    start: Ints,
    passed: dict[str, Ints] | None,
    aligned: Aligned,
    promise: ZPromise,
    notes: Notes,
) -> tuple[Ints, Ints]:
    """Sort the ``counted`` entries as z counted them, and check that the trace agrees.

    Rows suppressed by z are decided at once, the others at the end of their epoch. So each of the two kinds is in
    the order of time, and no row of an epoch comes after one of a later epoch.
    """
    rows = verdicts.row[counted]
    time, epoch = aligned.time[rows], aligned.time[rows] // promise.rotation_ns
    group = np.full(len(trace), _NO_EPOCH, np.int64)  # the epoch at whose end each entry was decided
    if "group" in trace.columns:
        group = np.where(shared_codes(trace.text("group"))[1][0] >= 0, trace.numbers("group"), _NO_EPOCH)
    waited = group[counted]
    order = np.lexsort((rows, time, start))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    _check_order(rank, waited != _NO_EPOCH, start, epoch, notes)
    check_lateness(rows, time, start, promise, notes)
    wrong = (waited != _NO_EPOCH) & (waited != epoch)
    wrong |= (waited == _NO_EPOCH) & (verdicts.verdict[counted] == RELEASED)
    sentence = "A released row did not wait for the end of its epoch, or a row waited for another epoch."
    notes.violation("trace-group", sentence, count=int(wrong.sum()))
    if passed is not None:
        may_pass = np.logical_or.reduce([level[counted] >= 0 for level in passed.values()])
        _check_held_back(may_pass | promise.keeps_rows, waited, start, epoch, notes)
    return counted[order], start[order]


def _check_order(rank: Ints, waited: Bools, start: Ints, epoch: Ints, notes: Notes) -> None:
    stage = np.unique(np.stack((start, epoch), axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    wrong = _is_behind(stage) | (_is_behind(rank) & ~waited)
    wrong[waited] |= _is_behind(rank[waited])
    sentence = "Records were not decided in the order of time (equal times in order of arrival), epoch by epoch."
    notes.violation("decision-order", sentence, count=int(wrong.sum()))


def _is_behind(numbers: Ints) -> Bools:
    """Mark numbers that come after a larger one."""
    return np.maximum.accumulate(np.append(-1, numbers))[:-1] > numbers


def _check_held_back(may_pass: Bools, waited: Ints, start: Ints, epoch: Ints, notes: Notes) -> None:
    """Warn of rows that passed z and were suppressed before their epoch was decided."""
    closed: set[tuple[int, int]] = set()
    held_back = 0
    epochs = zip(start.tolist(), epoch.tolist(), strict=True)
    for has_waited, may, own in zip((waited != _NO_EPOCH).tolist(), may_pass.tolist(), epochs, strict=True):
        if has_waited:
            closed.add(own)
        elif may and own not in closed:
            held_back += 1
    notes.warning("held-back", "A value was suppressed although z people had shown it.", count=held_back)


def check_waiting(
    decided: Ints, accepted: Ints, start: Ints, aligned: Aligned, promise: ZPromise, notes: Notes
) -> None:
    """Distinguish records that wait for the end of their epoch (or were not read yet) from lost ones."""
    undecided = np.setdiff1d(np.arange(len(aligned.time)), decided)
    overtaken = ~aligned.usable[undecided]
    last = aligned.time[accepted[start == start.max(initial=0)]]
    if len(last):
        overtaken |= aligned.time[undecided] // promise.rotation_ns < last.max() // promise.rotation_ns
    note_lost(overtaken, undecided, decided, notes)


def check_sets(aligned: Aligned, promise: ZPromise, k: int, notes: Notes) -> None:
    """Collect the set of every pseudonym in every epoch, and count how many pseudonyms have the same set."""
    epochs = (aligned.shown_time // promise.rotation_ns).tolist()
    people = list(zip(epochs, aligned.shown_person.tolist(), strict=True))
    found: dict[tuple[int, int], set[tuple[str, int]]] = defaultdict(set)
    for name, values in aligned.values.items():
        shown = np.where(aligned.shown_readable, values.shown, -1).tolist()
        for someone, value in zip(people, shown, strict=True):
            if value >= 0:
                found[someone].add((name, value))
    sets = {someone: (someone[0], frozenset(values)) for someone, values in found.items()}
    sizes = Counter(sets.values())
    alone = {someone for someone, own in sets.items() if sizes[own] < k}
    below = np.array([someone in alone for someone in people], np.bool_)
    notes.violation(
        "set-below-k",
        "All values released of a person in an epoch, taken as a set, were released of fewer than k people.",
        rows=below,
    )
    notes.metrics["smallest_k"] = min(sizes.values(), default=None)
    notes.metrics["rows_below_k_share"] = float(below.mean()) if len(below) else None
    notes.metrics["people_below_k_share"] = len(alone) / len(sets) if sets else None
