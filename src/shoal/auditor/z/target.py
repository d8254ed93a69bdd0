"""Check a z that follows the stream: was it constant within each epoch, and was its target met?"""

from __future__ import annotations

from typing import Any

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
    unknown = np.logical_or.reduce([z < 0 for z in columns])
    notes.violation("z-missing", "The trace does not record the z of a record.", count=int(unknown.sum()))
    stretch = stretches(epoch, decisions.start)
    several = sum(_changes_within(stretch, z) for z in columns) + sum(int((z != columns[0]).sum()) for z in columns[1:])
    notes.violation("z-within-epoch", "z changed within an epoch, or differs between columns.", count=several)
    if promise.target is not None:
        early = _is_early(aligned.time[decisions.accepted], decisions.start, promise, promise.target)
        low = np.logical_or.reduce([(z >= 0) & (z < promise.target.start) for z in columns])
        notes.violation(
            "z-too-early",
            "z fell before a window and a whole epoch of the stream had been seen (with learn: before they began).",
            count=int((early & low).sum()),
        )


def stretches(epoch: Ints, start: Ints) -> Ints:
    """A number for each epoch of each start: a restarted stream may return to an epoch with another z."""
    return epoch + start * (int(np.ptp(epoch)) + 1 if len(epoch) else 1)


def _is_early(time: Ints, start: Ints, promise: ZPromise, target: Target) -> Bools:
    """Mark records up to the end of the first epoch that began after the stream did and saw a full window.

    Up to its start, if z was learnt from an earlier stream.
    """
    window = max(attribute.window_ns for attribute in promise.attributes)
    early = np.ones(len(time), np.bool_)
    for number in np.unique(start).tolist():
        own = start == number
        epoch, first = time[own] // promise.rotation_ns, int(time[own].min())
        # Python integers: the end of an epoch may not fit 64 bits.
        seen = (one for one in np.unique(epoch).tolist() if one > first // promise.rotation_ns)
        whole = next((one for one in seen if (one + 1) * promise.rotation_ns - first >= window), None)
        early[own] = True if whole is None else (epoch < whole if target.learns else epoch <= whole)
    return early


def _changes_within(epoch: Ints, z: Ints) -> int:
    order = np.argsort(epoch, kind="stable")
    same = epoch[order[1:]] == epoch[order[:-1]]
    return int((same & (z[order[1:]] != z[order[:-1]])).sum())


def measure_target(aligned: Aligned, promise: ZPromise, target: Target, notes: Notes) -> None:
    """Count the epochs in which the target was met; missing it is a warning, because it is not a promise."""
    shown, anonymous = sizes_by_epoch(aligned, promise, target.k)
    missed = anonymous < target.p * shown
    found: dict[str, Any] = {
        "k": target.k,
        "p": target.p,
        "epochs_shown": len(shown),
        "epochs_met": int((~missed).sum()),
    }
    notes.metrics["target"] = found
    notes.warning(
        "target-missed",
        "In an epoch fewer of the people shown are k-anonymous than z aims at; the target is not a promise.",
        count=int(missed.sum()),
    )
