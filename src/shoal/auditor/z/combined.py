"""Check `combine = "k"`: rows wait for the end of their epoch, and k people share every set of values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import RELEASED, Verdicts, note_lost
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.clock import cannot_wait, check_lateness
from shoal.auditor.z.promise import ZPromise

NO_EPOCH: Final = np.iinfo(np.int64).min


def read_passed(trace: Rows, promise: ZPromise, notes: Notes) -> dict[str, Ints] | None:
    """Return the level at which each row's values passed z, by attribute, according to the trace."""
    names = level_columns(trace.columns, promise, notes)
    return None if names is None else {attribute: trace.numbers(name) for attribute, name in names.items()}


def level_columns(columns: Collection[str], promise: ZPromise, notes: Notes) -> dict[str, str] | None:
    """Return the columns of a trace that say at which level values passed z, by attribute; None if one is missing."""
    found = {}
    for attribute in promise.attributes:
        name = next((name for name in (f"level.{attribute.name}", "level") if name in columns), None)
        if name is None:
            notes.unchecked(
                "Values that passed z and were removed later cannot be distinguished from values suppressed by z: "
                "the trace has no column level, the level at which values passed."
            )
            return None
        found[attribute.name] = name
    return found


def read_waited(trace: Rows) -> Ints:
    """Return the epoch at whose end each entry was decided; NO_EPOCH if it was decided at once."""
    if "group" not in trace.columns:
        return np.full(len(trace), NO_EPOCH, np.int64)
    return np.where(shared_codes(trace.text("group"))[1][0] >= 0, trace.numbers("group"), NO_EPOCH)


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
    waited = read_waited(trace)[counted]
    note_misplaced(int(is_misplaced(rows, time, start, waited != NO_EPOCH, promise).sum()), notes)
    check_lateness(rows, time, start, promise, notes)
    check_groups(waited, epoch, verdicts.verdict[counted], notes)
    if passed is not None:
        may_pass = np.logical_or.reduce([level[counted] >= 0 for level in passed.values()])
        check_let_wait(may_pass | promise.keeps_rows, waited, start, epoch, notes)
    order = np.lexsort((rows, time, start))
    return counted[order], start[order]


def is_misplaced(rows: Ints, time: Ints, start: Ints, waited: Bools, promise: ZPromise) -> Bools:
    """Mark the records, in the order decided, that belong before others that came before them."""
    rank = np.empty(len(rows), np.int64)
    rank[np.lexsort((rows, time, start))] = np.arange(len(rows))
    stages = np.stack((start, time // promise.rotation_ns), axis=1)
    stage = np.unique(stages, axis=0, return_inverse=True)[1].reshape(-1)
    wrong = _is_behind(stage) | (_is_behind(rank) & ~waited)
    wrong[waited] |= _is_behind(rank[waited])
    return wrong


def note_misplaced(count: int, notes: Notes) -> None:
    """Report records that were decided too late or too early."""
    sentence = "Records were not decided in the order of time (equal times in order of arrival), epoch by epoch."
    notes.violation("decision-order", sentence, count=count)


def check_groups(waited: Ints, epoch: Ints, verdict: Ints, notes: Notes) -> None:
    """Check that released rows waited for the end of their own epoch."""
    wrong = (waited != NO_EPOCH) & (waited != epoch)
    wrong |= (waited == NO_EPOCH) & (verdict == RELEASED)
    sentence = "A released row did not wait for the end of its epoch, or a row waited for another epoch."
    notes.violation("trace-group", sentence, count=int(wrong.sum()))


def _is_behind(numbers: Ints) -> Bools:
    """Mark numbers that come after a larger one."""
    return np.maximum.accumulate(np.append(-1, numbers))[:-1] > numbers


def check_let_wait(may_pass: Bools, waited: Ints, start: Ints, epoch: Ints, notes: Notes) -> None:
    """Warn of rows, in the order decided, that passed z and were suppressed before their epoch was decided."""
    closed: set[tuple[int, int]] = set()
    held_back = 0
    epochs = zip(start.tolist(), epoch.tolist(), strict=True)
    for has_waited, may, own in zip((waited != NO_EPOCH).tolist(), may_pass.tolist(), epochs, strict=True):
        if has_waited:
            closed.add(own)
        elif may and own not in closed:
            held_back += 1
    notes.warning("held-back", "A value was suppressed although z people had shown it.", count=held_back)


def check_waiting(
    decided: Ints, accepted: Ints, start: Ints, waited: Bools, restarts: Ints, aligned: Aligned, promise: ZPromise,
    notes: Notes,
) -> None:  # fmt: skip
    """Distinguish records that wait for the end of their epoch (or were not read yet) from lost ones."""
    undecided = np.setdiff1d(np.arange(len(aligned.time)), decided)
    overtaken, by_time, last = ~aligned.usable[undecided], np.zeros(len(undecided), np.bool_), -1
    if len(accepted):  # in order
        epoch, last = aligned.time[accepted] // promise.rotation_ns, int(start[-1])
        closed = last_closed(accepted, start, epoch, waited)
        by_time = is_overtaken(undecided, aligned.time[undecided] // promise.rotation_ns, int(epoch[-1]), closed)
    overtaken |= cannot_wait(undecided, by_time, last, restarts, int(decided.max(initial=-1)))
    note_lost(overtaken, undecided, decided, notes)


def last_closed(rows: Ints, start: Ints, epoch: Ints, waited: Bools) -> int:
    """Return the newest of the accepted records, in order, that waited for the end of the last epoch (-1: none)."""
    return int(rows[waited & (start == start[-1]) & (epoch == epoch[-1])].max(initial=-1))


def is_overtaken(rows: Ints, epoch: Ints, last: int, closed: int) -> Bools:
    """Mark records that cannot wait: their epoch is over, or it is the last one and was decided after they came."""
    found: Bools = (epoch < last) | ((epoch == last) & (rows < closed))
    return found


@dataclass(slots=True)
class SharedSets:
    """How many people share the sets of values released of them in an epoch."""

    smallest: int | None = None
    rows: int = 0
    rows_below: int = 0
    """Rows of people whose set fewer than k have."""
    people: int = 0
    """In each epoch anew."""
    people_below: int = 0

    def add(self, other: SharedSets) -> None:
        """Add other epochs."""
        found = [one for one in (self.smallest, other.smallest) if one is not None]
        self.smallest = min(found, default=None)
        self.rows, self.rows_below = self.rows + other.rows, self.rows_below + other.rows_below
        self.people, self.people_below = self.people + other.people, self.people_below + other.people_below

    def note(self, notes: Notes) -> None:
        """Report the measures."""
        notes.metrics["smallest_k"] = self.smallest
        notes.metrics["rows_below_k_share"] = self.rows_below / self.rows if self.rows else None
        notes.metrics["people_below_k_share"] = self.people_below / self.people if self.people else None


def check_sets(aligned: Aligned, promise: ZPromise, k: int, notes: Notes) -> SharedSets:
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
    return SharedSets(min(sizes.values(), default=None), len(below), int(below.sum()), len(sets), len(alone))
