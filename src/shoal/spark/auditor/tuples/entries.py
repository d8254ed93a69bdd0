"""Entries of the trace of a tuple stream, joined with their records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import SUPPRESSED
from shoal.auditor.tuples.clusters import Link
from shoal.auditor.tuples.trace import Decisions
from shoal.spark.auditor.join_trace import EntryNumbers, joined_column

_ENTRY: Final = ("entry", "row", "verdict", "group", "delay", "reused", "event", "position", "displaced")


def link_of(decisions: Decisions, usable: Bools) -> Link:
    """The records of released rows."""
    shown = decisions.is_shown
    row = decisions.row[shown]
    return Link(
        row=row,
        group=decisions.group[shown],
        is_root=decisions.verdict[shown] == SUPPRESSED,
        formed=decisions.formed[shown],
        known=np.append(usable, False)[row],
    )


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a bin, in the order of the trace; records are counted from the first of the bin, -1 for none."""

    decisions: Decisions
    record: Ints
    """The number of the record in the whole truth."""
    position: Ints
    event: Ints
    displaced: Bools
    """Which come after an entry of a later event."""
    trace: Rows
    carriers: Any

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch], first: int, *, has_events: bool) -> Entries:
        """The entries of some batches."""
        found = EntryNumbers.of(batches, _ENTRY, first)
        numbers = found.numbers
        event = numbers["event"]
        decisions = Decisions(
            row=found.row, verdict=numbers["verdict"], exists=found.exists, first=found.first,
            is_shown=numbers["position"] >= 0, is_linked=True, group=numbers["group"], delay=numbers["delay"],
            reused=numbers["reused"] > 0, event=event if has_events else None,
        )  # fmt: skip
        carriers = None
        if batches and "\1carriers" in batches[0].schema.names:
            carriers = joined_column(batches, "\1carriers", None).take(found.order)
        trace = found.texts(batches, "reason")
        return cls(decisions, numbers["row"], numbers["position"], event, numbers["displaced"] > 0, trace, carriers)
