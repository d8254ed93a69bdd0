"""A z that follows the stream begins with what an earlier stream needed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import shoal
from shoal.auditor import audit
from shoal.errors import InputError, PolicyError
from shoal.methods.release import Release
from shoal.models.z.target.target import NOTHING
from tests.methods.z.test_following import SHARED, WINDOW, crowd, table

LEARN = shoal.KTarget(k=2, p=0.7, learn=True)
EARLIER = crowd(8, people=70, seed=1)
EVENTS = crowd(6, people=70, seed=2)


def make(**more):
    return shoal.ZAnonymity(target=LEARN, **SHARED, **more)


def taught(**more):
    ours = make(**more)
    assert ours.learn(table(EARLIER)) == 7
    return ours


@pytest.mark.compiled
def test_people_are_shown_from_the_second_window_on():
    ours, cold = taught(), make()
    release = ours.push_batch(table(EVENTS))
    cold.push_batch(table(EVENTS))
    assert [one.shown > 0 for one in ours.outcomes] == [False, True, True, True, True]
    assert [one.shown > 0 for one in cold.outcomes] == [False, False, True, True, True]
    assert all(one.is_met for one in ours.outcomes)
    assert release.rows.num_rows


@pytest.mark.compiled
def test_the_auditor_accepts_it_only_where_it_is_declared():
    release = taught().push_batch(table(EVENTS))
    rules = {"method": "z-anonymity", "attribute": "site", "window": WINDOW}
    target = {"k": 2, "p": 0.7}

    def found(**more):
        promised = {**rules, "target": {**target, **more}}
        policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": promised}
        return {one.code for one in audit(release.rows, table(EVENTS), release.trace, policy).violations}

    assert found(learn="earlier.csv") == set()
    assert found() == {"z-too-early"}
    moved = [{**entry, "z": 2} for entry in release.trace.to_pylist()]  # in the first window too
    release = Release(release.rows, pa.RecordBatch.from_pylist(moved))
    assert "z-too-early" in found(learn="earlier.csv")


@pytest.mark.compiled
def test_batches_single_records_and_a_snapshot_give_the_same():
    whole, singles, halves = taught(), taught(), taught()
    rows = whole.push_batch(table(EVENTS)).rows.to_pylist()
    assert [
        row for time, user, site in EVENTS for row in singles.push({"ts": time, "user": user, "site": site})
    ] == rows
    early = len(EVENTS) // 20  # within the first window, when nothing of the lessons is used yet
    found = halves.push_batch(table(EVENTS[:early])).rows.to_pylist()
    restored = shoal.restore(halves.snapshot(), key=bytes(16))
    assert found + restored.push_batch(table(EVENTS[early:])).rows.to_pylist() == rows
    assert restored.snapshot() == restored.snapshot()


@pytest.mark.compiled
def test_nothing_of_the_earlier_stream_counts():
    ours = taught()
    assert ours.counts["pushed"] == 0
    assert ours.live_pairs == 0
    assert ours.outcomes == ()
    assert ours.z == NOTHING


@pytest.mark.compiled
def test_carried_columns_are_not_needed_and_batches_may_be_many():
    ours = make(carry=["device"])
    pieces = (table(EARLIER[start : start + 100]) for start in range(0, len(EARLIER), 100))
    assert ours.learn(pieces) == 7


def test_what_cannot_be_learnt():
    with pytest.raises(PolicyError, match="learn is not set"):
        shoal.ZAnonymity(target=shoal.KTarget(k=2, p=0.7), **SHARED).learn(table(EARLIER))
    with pytest.raises(PolicyError, match="learn is not set"):
        shoal.ZAnonymity(z=2, **SHARED).learn(table(EARLIER))
    with pytest.raises(InputError, match="too short"):
        make().learn(table(EARLIER[:50]))
    begun = make()
    begun.push({"ts": 0, "user": "u", "site": "s"})
    with pytest.raises(InputError, match="has begun"):
        begun.learn(table(EARLIER))
