"""A life of z-anonymity: pushes, time passing, crashes and flushes in any order, against the twin."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import shoal
from shoal.testing.strategies import PEOPLE
from tests.methods.z.driving import (
    GAP,
    KEY,
    LATENESS,
    SITES,
    WINDOW,
    as_batch,
    configurations,
    expected_in,
    for_twin,
    found_in,
    make_twin,
    make_z,
)  # fmt: skip
from tests.reference.effort import IS_COMPILED, IS_EXHAUSTIVE

STEPS = st.sampled_from([0, 0, 1, WINDOW // 3, WINDOW, WINDOW + 1, -1, -LATENESS, -LATENESS - 1, GAP + 1, -GAP - 1])
EVENTS = st.tuples(
    STEPS,
    st.sampled_from([*PEOPLE, None]),
    st.sampled_from([*SITES, None]),
    st.sampled_from(["a", "b", "c"]),
)


class Life(RuleBasedStateMachine):
    @initialize(name=st.sampled_from(sorted(configurations())), lateness=st.sampled_from([0, LATENESS]))
    def begin(self, name, lateness):
        given, self.columns, keeps_blank = configurations()[name]
        self.z = make_z(given, lateness=lateness)
        self.twin = make_twin(self.columns, keeps_blank=keeps_blank, lateness=lateness)
        self.z.bind(as_batch([]).schema)
        self.now = 0
        self.saved = None

    def record(self, event):
        step, user, site, device = event
        self.now += step
        return {"ts": self.now, "user": user, "site": site, "device": device}

    def check(self, release, verdicts):
        assert list(found_in(release, self.columns)) == expected_in(verdicts)

    @rule(events=st.lists(EVENTS, max_size=8))
    def push_batch(self, events):
        records = [self.record(event) for event in events]
        verdicts = [verdict for record in records for verdict in self.twin.push(for_twin(record))]
        self.check(self.z.push_batch(as_batch(records)), verdicts)

    @rule(event=EVENTS)
    def push(self, event):
        record = self.record(event)
        rows = self.z.push({**record, "ts": np.datetime64(record["ts"], "ns")})
        released = [one for one in self.twin.push(for_twin(record)) if one.verdict == "released"]
        assert [tuple(row[column.name] for column in self.columns) for row in rows] == [one.labels for one in released]

    @rule(step=STEPS)
    def advance(self, step):
        now = self.now + step
        verdicts = self.twin.advance(now)
        self.check(self.z.advance(np.datetime64(now, "ns")), verdicts)

    @rule()
    def flush(self):
        self.check(self.z.flush(), self.twin.flush())
        assert self.z.pending == 0

    @rule()
    def crash_and_restore(self):
        self.z = shoal.restore(self.z.snapshot(), key=KEY)

    @rule(event=EVENTS)
    def work_that_is_lost(self, event):
        state = self.z.snapshot()
        lost = dict(zip(("ts", "user", "site", "device"), (self.now + event[0], *event[1:]), strict=True))
        self.z.push_batch(as_batch([lost]))
        self.z.restore(state)
        assert self.z.snapshot() == state

    @precondition(lambda self: hasattr(self, "z"))
    @invariant()
    def everything_is_accounted_for(self):
        counts = self.z.counts
        assert counts["pushed"] == self.twin.seen
        assert counts["pending"] == self.twin.waits
        assert counts["pushed"] == counts["released"] + counts["suppressed"] + counts["dead"] + counts["pending"]


Life.TestCase.settings = settings(
    max_examples=60 if IS_EXHAUSTIVE and IS_COMPILED else 15,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestLife = Life.TestCase
