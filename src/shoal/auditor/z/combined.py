"""Check `combine = "k"`: rows wait for the end of their epoch, and k people share every set of values."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import ZPromise

_NO_EPOCH = np.iinfo(np.int64).min
_RELEASED = 0


@dataclass(frozen=True, slots=True)
class Decided:
    """Which lines of a trace count, and what all its lines say."""

    counted: Ints
    row: Ints
    verdict: Ints
    passed: dict[str, Ints] | None


def read_passed(trace: Rows, promise: ZPromise, notes: Notes) -> dict[str, Ints] | None:
    """Return the level at which z let each row's values pass, by attribute, as the trace has it."""
    found = {}
    for attribute in promise.attributes:
        name = next((name for name in (f"level.{attribute.name}", "level") if name in trace.columns), None)
        if name is None:
            notes.unchecked(
                "What z let pass and was taken out later cannot be told from what z held back: "
                "the trace has no column level, which says at which level values passed."
            )
            return None
        found[attribute.name] = trace.numbers(name)
    return found


def order_combined(
    trace: Rows, decided: Decided, aligned: Aligned, promise: ZPromise, notes: Notes
) -> tuple[Ints, Ints]:
    """Put records in the order in which z counted them, and check that the trace fits it.

    Rows that z held back are decided when their turn comes, the others at the end of their epoch. So each of the
    two kinds stands in the order of time, and no row of an epoch comes after one of a later epoch.
    """
    counted, rows = decided.counted, decided.row[decided.counted]
    time, epoch = aligned.time[rows], aligned.time[rows] // promise.rotation_ns
    waited = _epochs(trace)[counted]
    start = _starts(rows, time, aligned.person[rows], max(promise.max_gap_ns, promise.lateness_ns))
    order = np.lexsort((rows, time, start))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    _check_order(rank, waited != _NO_EPOCH, start, epoch, notes)
    _check_lateness(rows, time, start, promise, notes)
    _check_epochs(decided.verdict[counted], waited, epoch, notes)
    if decided.passed is not None:
        may_leave = np.logical_or.reduce([level[counted] >= 0 for level in decided.passed.values()])
        _check_held_back(may_leave | promise.keeps_rows, waited, start, epoch, notes)
    return counted[order], start[order]


def _epochs(trace: Rows) -> Ints:
    """Return the epoch at whose end each line was decided."""
    if "group" not in trace.columns:
        return np.full(len(trace), _NO_EPOCH, np.int64)
    _, (codes,) = shared_codes(trace.text("group"))
    return np.where(codes >= 0, trace.numbers("group"), _NO_EPOCH)


def _starts(rows: Ints, time: Ints, person: Ints, max_gap: int) -> Ints:
    """Number the starts of the stream: while one person alone was seen, another's much older record starts anew."""
    arrival = np.argsort(rows)
    time, person = time[arrival], person[arrival]
    changes = np.flatnonzero(np.diff(person)) + 1
    begin, places = 0, []
    for change in changes.tolist():
        if int(time[begin:change].max()) - int(time[change]) <= max_gap:
            break
        begin = change
        places.append(change)
    start = np.empty(len(rows), np.int64)
    start[arrival] = np.searchsorted(np.array(places, np.int64), np.arange(len(rows)), side="right")
    return start


def _check_order(rank: Ints, waited: Bools, start: Ints, epoch: Ints, notes: Notes) -> None:
    later = np.maximum.accumulate(np.append(-1, rank))[:-1] > rank
    stage = np.unique(np.stack((start, epoch), axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    wrong = np.maximum.accumulate(np.append(-1, stage))[:-1] > stage
    wrong |= later & ~waited
    closing = rank[waited]
    wrong[waited] |= np.maximum.accumulate(np.append(-1, closing))[:-1] > closing
    notes.violation(
        "decision-order",
        "Records were not decided in the order of time (equal times in order of arrival), epoch by epoch.",
        count=int(wrong.sum()),
    )


def _check_lateness(rows: Ints, time: Ints, start: Ints, promise: ZPromise, notes: Notes) -> None:
    late = 0
    for number in range(int(start.max(initial=-1)) + 1):
        own = start == number
        times = time[own][np.argsort(rows[own])]
        late += int((times < np.maximum.accumulate(times) - promise.lateness_ns).sum())
    notes.violation("late-accepted", "A record was counted although it came later than lateness allows.", count=late)


def _check_epochs(verdict: Ints, waited: Ints, epoch: Ints, notes: Notes) -> None:
    wrong = (waited != _NO_EPOCH) & (waited != epoch)
    wrong |= (waited == _NO_EPOCH) & (verdict == _RELEASED)
    notes.violation(
        "trace-group",
        "A released row did not wait for the end of its epoch, or a row waited for another one.",
        count=int(wrong.sum()),
    )


def _check_held_back(may_leave: Bools, waited: Ints, start: Ints, epoch: Ints, notes: Notes) -> None:
    """Warn of rows that z let pass and that were not let wait although their epoch was not decided yet."""
    closed: set[tuple[int, int]] = set()
    held_back = 0
    places = list(zip(start.tolist(), epoch.tolist(), strict=True))
    at_once = (waited == _NO_EPOCH).tolist()
    for is_now, may, place in zip(at_once, may_leave.tolist(), places, strict=True):
        if not is_now:
            closed.add(place)
        elif may and place not in closed:
            held_back += 1
    notes.warning("held-back", "A value was held back although z people had shown it.", count=held_back)


def check_waiting(
    decided: Ints, accepted: Ints, start: Ints, aligned: Aligned, promise: ZPromise, notes: Notes
) -> None:
    """Tell records that wait for the end of their epoch (or were not read yet) from records that got lost."""
    open_rows = np.setdiff1d(np.arange(len(aligned.time)), decided)
    passed = ~aligned.usable[open_rows]
    last = aligned.time[accepted[start == start.max(initial=0)]]
    if len(last):
        passed |= aligned.time[open_rows] // promise.rotation_ns < last.max() // promise.rotation_ns
    lost = passed & (open_rows < decided.max(initial=-1))
    notes.violation("lost", "The trace has no verdict on a record that others have overtaken.", count=int(lost.sum()))
    notes.info("held", "Records had no verdict yet when the trace ended.", count=len(open_rows) - int(lost.sum()))


_Someone = tuple[int, int]


def check_sets(aligned: Aligned, promise: ZPromise, k: int, notes: Notes) -> None:
    """Collect the set of every pseudonym of every epoch, one by one, and count how many have the same."""
    epochs = (aligned.shown_time // promise.rotation_ns).tolist()
    people = list(zip(epochs, aligned.shown_person.tolist(), strict=True))
    sets = _sets(aligned, people)
    shared = Counter((someone[0], shown) for someone, shown in sets.items())
    alone = {someone for someone, shown in sets.items() if shown and shared[someone[0], shown] < k}
    notes.violation(
        "set-below-k",
        "All that was released of a person in an epoch, taken as a set, was released of fewer than k people.",
        rows=np.array([someone in alone for someone in people], np.bool_),
    )
    sizes = [shared[someone[0], shown] for someone, shown in sets.items() if shown]
    notes.metrics["smallest_shared_set"] = min(sizes, default=None)


def _sets(aligned: Aligned, people: list[_Someone]) -> dict[_Someone, frozenset[tuple[str, int]]]:
    found: dict[_Someone, set[tuple[str, int]]] = defaultdict(set)
    for name, values in aligned.values.items():
        for someone, value, is_readable in zip(
            people, values.shown.tolist(), aligned.shown_readable.tolist(), strict=True
        ):
            if value >= 0 and is_readable:
                found[someone].add((name, value))
    return {someone: frozenset(shown) for someone, shown in found.items()}
