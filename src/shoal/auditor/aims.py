"""Judge a z that follows the stream: was it the same throughout each epoch, and was its aim met?"""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.auditor.columns import Ints
from shoal.auditor.exposure import sizes_by_epoch
from shoal.auditor.facts import Facts
from shoal.auditor.ledger import Ledger
from shoal.auditor.promise import Aim, ZPromise
from shoal.auditor.report import Notes


def check_following(facts: Facts, promise: ZPromise, ledger: Ledger, notes: Notes) -> None:
    """Check that z changed at the starts of epochs alone."""
    epoch = facts.time[ledger.accepted] // promise.rotation_ns
    columns = list(ledger.z.values())
    unknown = np.logical_or.reduce([z < 0 for z in columns])
    notes.violation("z-missing", "The trace does not say which z was in force for a record.", count=int(unknown.sum()))
    # A stream that starts anew may come back to an epoch, with another z.
    stretch = epoch + ledger.start * (int(np.ptp(epoch)) + 1 if len(epoch) else 1)
    several = sum(_changes_within(stretch, z) for z in columns) + sum(int((z != columns[0]).sum()) for z in columns[1:])
    notes.violation("z-within-epoch", "z changed within an epoch, or differs between columns.", count=several)


def _changes_within(epoch: Ints, z: Ints) -> int:
    order = np.argsort(epoch, kind="stable")
    same = epoch[order[1:]] == epoch[order[:-1]]
    return int((same & (z[order[1:]] != z[order[:-1]])).sum())


def measure_aim(facts: Facts, promise: ZPromise, aim: Aim, notes: Notes) -> None:
    """Count the epochs in which the aim was met; missing it is a warning, because it is no promise."""
    shown, anonymous = sizes_by_epoch(facts, promise, aim.k)
    missed = anonymous < aim.p * shown
    found: dict[str, Any] = {"k": aim.k, "p": aim.p, "epochs_shown": len(shown), "epochs_met": int((~missed).sum())}
    notes.metrics["target"] = found
    notes.warning(
        "target-missed",
        "In an epoch fewer of the people shown are k-anonymous than z aims at; that is no promise.",
        count=int(missed.sum()),
    )
