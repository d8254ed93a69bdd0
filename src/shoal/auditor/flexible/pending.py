"""Check that records wait for people only: enough of them with the same values could have left as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.flexible.calibration import Records
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.flexible.trace import Trace
from shoal.auditor.flexible.values import finest_codes
from shoal.auditor.tuples.values import Attribute, combined


def check_pending(
    promise: FlexiblePromise,
    attributes: Sequence[Attribute],
    trace: Trace,
    records: Records,
    notes: Notes,
) -> None:
    """Warn of waiting records that a round of grouping had before it, and that would have made a group.

    There is a round after every window of records, and one at the end of a stream that was flushed.
    """
    person, waiting = records.person, records.usable.copy()
    waiting[trace.decided] = False
    arrivals = np.flatnonzero(records.usable)
    seen = len(arrivals) // promise.window * promise.window
    if len(arrivals) > seen and (trace.waited >= arrivals[seen]).any():
        seen = len(arrivals)  # some of the last ones waited and left, so there was a round for them
    rows = arrivals[:seen][waiting[arrivals[:seen]]]
    if not len(rows):
        return
    values = [finest_codes(attribute, rule)[rows] for attribute, rule in zip(attributes, promise.quasi, strict=True)]
    alike = combined(values, len(rows))
    width = int(person.max()) + 1
    people = np.bincount(np.unique(alike * width + person[rows]) // width)
    needed = np.zeros(len(people), np.int64)
    np.maximum.at(needed, alike, records.k[rows])
    notes.warning(
        "held-back",
        "A record waits although K people whose records wait have the same values.",
        count=int((people >= needed)[alike].sum()),
    )
