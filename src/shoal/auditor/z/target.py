"""Check a z that follows the stream: was it constant within each epoch, and was its target met?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.exposure import sizes_by_epoch
from shoal.auditor.z.promise import Target, ZPromise
from shoal.auditor.z.trace import Decisions


def check_following(aligned: Aligned, promise: ZPromise, decisions: Decisions, notes: Notes) -> None:
    """Check that z changed only at the starts of epochs."""
    epoch = aligned.time[decisions.accepted] // promise.rotation_ns
    columns = list(decisions.z.values())
    check_recorded(stretches(epoch, decisions.start), columns, notes)
    if promise.target is not None:
        early = _is_early(aligned.time[decisions.accepted], decisions.start, promise, promise.target)
        note_early(int((early & is_low(columns, promise.target)).sum()), notes)


def check_recorded(stretch: Ints, columns: Sequence[Ints], notes: Notes) -> None:
    """Check that the z of every record is in the trace, one for each epoch; records come in the order decided."""
    unknown = np.logical_or.reduce([z < 0 for z in columns])
    notes.violation("z-missing", "The trace does not record the z of a record.", count=int(unknown.sum()))
    several = sum(_changes_within(stretch, z) for z in columns) + sum(int((z != columns[0]).sum()) for z in columns[1:])
    notes.violation("z-within-epoch", "z changed within an epoch, or differs between columns.", count=several)


def is_low(columns: Sequence[Ints], target: Target) -> Bools:
    """Mark the records with a z below the one at the start."""
    found: Bools = np.logical_or.reduce([(z >= 0) & (z < target.start) for z in columns])
    return found


def note_early(count: int, notes: Notes) -> None:
    """Report records whose z was lower than at the start although too little had been seen."""
    notes.violation(
        "z-too-early",
        "z fell before a window and a whole epoch of the stream had been seen (with learn: before they began).",
        count=count,
    )


def stretches(epoch: Ints, start: Ints) -> Ints:
    """A number for each epoch of each start: a restarted stream may return to an epoch with another z."""
    return epoch + start * (int(np.ptp(epoch)) + 1 if len(epoch) else 1)


def _is_early(time: Ints, start: Ints, promise: ZPromise, target: Target) -> Bools:
    early = np.ones(len(time), np.bool_)
    for number in np.unique(start).tolist():
        own = start == number
        epoch = time[own] // promise.rotation_ns
        free = first_free_epoch(np.unique(epoch).tolist(), int(time[own].min()), promise, target)
        early[own] = True if free is None else epoch < free
    return early


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


def _changes_within(epoch: Ints, z: Ints) -> int:
    order = np.argsort(epoch, kind="stable")
    same = epoch[order[1:]] == epoch[order[:-1]]
    return int((same & (z[order[1:]] != z[order[:-1]])).sum())


def measure_target(aligned: Aligned, promise: ZPromise, target: Target, notes: Notes) -> None:
    """Count the epochs in which the target was met; missing it is a warning, because it is not a promise."""
    note_target(target, *epochs_met(aligned, promise, target), notes)


def epochs_met(aligned: Aligned, promise: ZPromise, target: Target) -> tuple[int, int]:
    """Count the epochs with a released row, and those of them in which the target was met."""
    shown, anonymous = sizes_by_epoch(aligned, promise, target.k)
    return len(shown), int((anonymous >= target.p * shown).sum())


def note_target(target: Target, shown: int, met: int, notes: Notes) -> None:
    """Report the epochs in which the target was met and those in which it was missed."""
    notes.metrics["target"] = {"k": target.k, "p": target.p, "epochs_shown": shown, "epochs_met": met}
    notes.warning(
        "target-missed",
        "In an epoch fewer of the people shown are k-anonymous than z aims at; the target is not a promise.",
        count=shown - met,
    )
