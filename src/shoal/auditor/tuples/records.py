"""The records of the truth: whose they are, when they came, and which can be used at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.auditor.aligned import is_someone
from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.tables import Rows
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import DEAD, Decisions
from shoal.auditor.tuples.values import Attribute


@dataclass(frozen=True, slots=True)
class Known:
    """The truth's records; without the truth there are none."""

    person: Ints
    """-1 where there is nobody."""
    usable: Bools
    time: Ints | None


def read_known(promise: TuplePromise, truth: Rows, attributes: Sequence[Attribute]) -> Known:
    """Read who and when; a record is usable when it has a person (and a time, if needed) and no value it must not."""
    persons, (person,) = shared_codes(truth.text(promise.person))
    someone = is_someone(person, persons)
    usable = np.logical_and.reduce([someone, ~truth.broken, *(attribute.usable for attribute in attributes)])
    time = None
    if promise.is_timed and promise.time is not None and len(truth):
        time, has_time = truth.moments(promise.time)
        usable &= has_time
    return Known(np.where(someone, person, -1), usable, time)


def check_dead(trace: Rows, decisions: Decisions, known: Known, notes: Notes) -> None:
    """Check that unusable records, and only those, were put among the dead."""
    unusable = decisions.counted.copy()
    unusable[unusable] = ~known.usable[decisions.row[unusable]]
    notes.violation(
        "unusable-accepted",
        "A record without a person, or with a value outside its domain or hierarchy, was not put among the dead ones.",
        rows=decisions.marked(unusable, int(decisions.leaves.sum())),
        count=int(unusable.sum()),
    )
    reasons, (code,) = shared_codes(trace.text("reason"))
    silent = int(((decisions.verdict == DEAD) & (code < 0)).sum())
    notes.unchecked("Why records were put away was not checked: the trace has no reason for them.", count=silent)
    unseen = {"null-time", "bad-time", "ahead"}  # reasons that the truth cannot be asked about
    told = np.array([*(reason.split(":")[0] not in unseen for reason in reasons), False])
    dead = (decisions.verdict == DEAD) & told[code] & decisions.exists
    dead[dead] = known.usable[decisions.row[dead]]
    notes.warning(
        "dead-without-cause",
        "A record was put among the dead ones for a reason it does not have.",
        count=int(dead.sum()),
    )
