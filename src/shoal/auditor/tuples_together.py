"""Whether the rows of a cluster left together: in one decision, whatever the clock said."""

from __future__ import annotations

import numpy as np

from shoal.auditor.columns import Bools, Ints
from shoal.auditor.report import Notes
from shoal.auditor.tuples_trace import Decisions


def check_together(decisions: Decisions, notes: Notes) -> None:
    """Find clusters whose rows were decided at different times.

    This needs no clock, so it holds too where time was moved on without records. Rows of one decision follow one
    another in the trace in order of arrival, and who came later waited no longer. One decision may form several
    clusters, which then stand mixed; nothing else may stand between their rows.
    """
    entries = np.flatnonzero(decisions.counted)
    formed = decisions.formed[entries]
    places = np.flatnonzero(formed)
    if not len(places):
        return
    _, first, turn = np.unique(decisions.group[entries[places]], return_index=True, return_inverse=True)
    last = len(places) - 1 - np.unique(decisions.group[entries[places]][::-1], return_index=True)[1]
    steps = np.cumsum(np.append(0, _leaves_the_decision(decisions, entries, formed)))
    is_split: Bools = steps[places[last]] > steps[places[first]]
    apart = np.zeros(len(decisions.row), np.bool_)
    apart[entries[places]] = is_split[turn]
    notes.violation(
        "split-cluster",
        "The rows of a cluster did not leave together: they were decided at different times.",
        rows=decisions.marked(apart, int(decisions.leaves.sum())),
        count=int(apart.sum()),
    )


def _leaves_the_decision(decisions: Decisions, entries: Ints, formed: Bools) -> Bools:
    """Mark, for every two entries that follow one another, that they cannot be of the same decision."""
    row = decisions.row[entries]
    found: Bools = ~(formed[:-1] & formed[1:]) | (row[1:] <= row[:-1])
    if decisions.delay is not None:
        delay = decisions.delay[entries]
        found |= (delay[1:] > delay[:-1]) & (delay[:-1] >= 0)  # one that is missing is told of already
    return found
