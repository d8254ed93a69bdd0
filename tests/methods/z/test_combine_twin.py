"""Rows that wait for the end of their epoch: as the twin says, however they come in, and k people share each set."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

import shoal
from shoal.auditor import audit
from shoal.methods.z.epochs.shared_sets import shared_by
from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.testing.strategies import SECOND, cuts
from tests.methods.z.driving import GAP, KEY, LATENESS, as_batch, configurations, expected_in, for_twin, found_in
from tests.methods.z.test_machine import EVENTS, Life
from tests.methods.z.test_twin import streams
from tests.reference.effort import IS_COMPILED, IS_EXHAUSTIVE, tries
from tests.reference.z_combining import NaiveCombining, reducing_with

CONFIGURATIONS = configurations()
ROTATIONS = (7 * SECOND, 45 * SECOND, 3 * GAP)


def make(name, *, lateness, rotation, k, z=None):
    given, columns, keeps_blank = CONFIGURATIONS[name]
    method = ZAnonymity(
        **{**given, **({"z": z} if z else {})}, person="user", time="ts", lateness=lateness / SECOND,
        max_gap=GAP / SECOND, rotation=rotation / SECOND, combine="k", k=k, key=KEY,
    )  # fmt: skip
    if z:
        columns = tuple(type(column)(column.name, z, column.window, column.path) for column in columns)
    twin = NaiveCombining(
        columns, lateness=lateness, max_gap=GAP, keeps_blank=keeps_blank, rotation=rotation, k=k,
        reduce=reducing_with(shared_by),
    )  # fmt: skip
    return method, twin, columns


def people_by_set(rows, columns, rotation):
    """For every epoch how many pseudonyms show each set that is not empty."""
    sets = {}
    for row in rows:
        shown = {(column.name, row[column.name]) for column in columns if row[column.name] is not None}
        sets.setdefault((row["ts"].value // rotation, row["user"]), set()).update(shown)
    return Counter((epoch, frozenset(shown)) for (epoch, _), shown in sets.items() if shown)


class CombiningLife(Life):
    @initialize(
        name=st.sampled_from(sorted(CONFIGURATIONS)),
        lateness=st.sampled_from([0, LATENESS]),
        rotation=st.sampled_from(ROTATIONS),
        z=st.sampled_from([None, 1]),
    )
    def begin(self, name, lateness, rotation, z):
        z = None if "attribute" in CONFIGURATIONS[name][0] and name in ("table", "trees") else z
        self.z, self.twin, self.columns = make(name, lateness=lateness, rotation=rotation, k=2, z=z)
        self.z.bind(as_batch([]).schema)
        self.now, self.saved = 0, None
        self.rotation, self.shown = rotation, []

    def check(self, release, verdicts):
        super().check(release, verdicts)
        self.shown += release.rows.to_pylist()

    @rule(events=st.lists(EVENTS, min_size=6, max_size=20))
    def push_much(self, events):
        self.push_batch(events)

    @invariant()
    def every_set_is_shared(self):
        if hasattr(self, "shown"):
            assert all(count >= 2 for count in people_by_set(self.shown, self.columns, self.rotation).values())


CombiningLife.TestCase.settings = settings(
    max_examples=30 if IS_EXHAUSTIVE and IS_COMPILED else 10,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestCombiningLife = CombiningLife.TestCase


def test_of_equal_losses_the_numbers_of_values_decide():
    """Values are numbered as rows show them, not person by person; found by the machine above."""
    life = CombiningLife()
    life.begin(name="blank", lateness=LATENESS, rotation=45 * SECOND, z=1)
    third = 3_333_333_333
    life.push_much(
        [
            (third, "ann", "a.news", "a"),
            (10 * SECOND, "ann", "a.news", "a"),
            (10 * SECOND, "ann", "a.news", "a"),
            (-4 * SECOND, "ann", "a.news", "a"),
            (100 * SECOND + 1, "ann", "c.shop", "a"),
            (third, "ann", "a.news", "a"),
            (third, "cat", "a.news", "a"),
            (-4 * SECOND, "bob", "b.news", "a"),
            (10 * SECOND, "ann", "b.news", "a"),
        ]
    )
    life.push((10 * SECOND, "ann", "a.news", "a"))
    life.every_set_is_shared()


@pytest.mark.parametrize("lateness", [0, LATENESS], ids=["at once", "late"])
@pytest.mark.parametrize("name", ["drop", "trees"])
@given(streams(), st.sampled_from(ROTATIONS), st.data())
@tries(15)
def test_batches_decide_as_the_twin(name, lateness, records, rotation, data):
    method, twin, columns = make(name, lateness=lateness, rotation=rotation, k=2)
    for start, stop in pairwise(data.draw(cuts(len(records)))):
        expected = [verdict for record in records[start:stop] for verdict in twin.push(for_twin(record))]
        assert list(found_in(method.push_batch(as_batch(records[start:stop])), columns)) == expected_in(expected)
        assert method.pending == twin.waits
        method = shoal.restore(method.snapshot(), key=KEY)
    assert list(found_in(method.flush(), columns)) == expected_in(twin.flush())


@pytest.mark.parametrize("lateness", [0, LATENESS], ids=["at once", "late"])
@pytest.mark.parametrize("name", ["drop", "blank", "table"])
@given(streams(), st.sampled_from(ROTATIONS), st.booleans(), st.data())
@tries(15)
def test_the_auditor_finds_nothing(name, lateness, records, rotation, releases_all, data):
    z = 1 if releases_all and name != "table" else None
    method, _, _ = make(name, lateness=lateness, rotation=rotation, k=2, z=z)
    releases = []
    for start, stop in pairwise(data.draw(cuts(len(records)))):
        releases.append(method.push_batch(as_batch(records[start:stop])))
        if data.draw(st.booleans()):
            releases.append(method.flush())
    releases.append(method.flush())
    given = {**CONFIGURATIONS[name][0], **({"z": z} if z else {}), "combine": "k", "k": 2}
    # a flush leaves no mark in the trace: after it, more is late
    assert codes_of(releases, records, given, lateness, rotation) <= ({"dead-without-cause"} if lateness else set())


def codes_of(releases, records, given, lateness, rotation):
    """The codes of all violations and warnings of an audit."""
    timing = {"lateness": lateness / SECOND, "rotation": rotation / SECOND, "max_gap": GAP / SECOND}
    policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": {"method": "z-anonymity", **given, **timing}}
    rows, trace = (
        pa.Table.from_batches([getattr(release, part) for release in releases]) for part in ("rows", "trace")
    )
    report = audit(rows, pa.Table.from_batches([as_batch(records)]), trace, policy)
    return {found.code for found in (*report.violations, *report.warnings)}
