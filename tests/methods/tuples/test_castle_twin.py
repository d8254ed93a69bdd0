"""CASTLE by itself, next to its naive twin: what only this method does, and where its memory is short."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import CheckpointError, PolicyError
from shoal.kernels.tuples.castle.castle import restore_clusters, run_castle
from shoal.kernels.tuples.castle.generalize import FORMING
from shoal.methods.tuples.castle import Castle
from shoal.methods.tuples.decider import memory
from shoal.schema import Numeric, Schema
from shoal.testing import laws, promise_laws
from shoal.testing.strategies import cuts
from tests.methods.tuples.driving import (
    BEGIN,
    KEY,
    SECOND,
    Pair,
    diversities,
    make_method,
    random_records,
    records_of,
    scenes,
    settings_of,
)
from tests.reference.effort import tries

LINE = {"k": 2, "deadline": 9, "reuse": 0, "beta": 9, "mu": 3}


def fed(pair, records, places=(), *, restores=False):
    """Both of a pair after a stream cut at some places."""
    for start, stop in pairwise([0, *places, len(records)]):
        pair.push_batch(records[start:stop])
        if restores:
            pair.restore(shoal.restore)
    pair.flush()
    pair.compare_metrics()
    return pair


def line(*positions, names=None, **given_):
    """What was decided of people on a line from 0 to 10."""
    records = [
        {"id": f"p{at}" if names is None else names[at], "ts": BEGIN, "x": x, "ill": None, "score": None, "note": at}
        for at, x in enumerate(positions)
    ]
    return fed(Pair("castle", scenes()["line"], {**LINE, **given_}), records)


def rows_of(pair, group):
    return [one.row for one in pair.decided if one.group == group]


# ---- what only CASTLE does


def test_a_cluster_with_enough_people_leaves():
    pair = line(1, 9, 1, deadline=2, beta=2)
    assert rows_of(pair, 0) == [0, 2]


def test_a_due_tuple_of_a_small_cluster_leaves_as_one_of_an_old_cluster():
    pair = line(1, 9, 3, 2, 8, 8, 9, 9, deadline=2, reuse=9, beta=2)
    assert any(one.reused for one in pair.decided)


def test_clusters_are_merged_when_one_is_too_small():
    pair = line(1, 9, 2, 8, k=3, deadline=3)
    assert rows_of(pair, 0) == [0, 2, 3]


def test_an_outlier_is_suppressed_and_the_others_of_its_cluster_stay():
    pair = line(5, 1, 9, 1, 9, 5, 1, 9, 1, 9, 5, 5, 5, k=4, beta=3)
    assert [(one.row, one.verdict) for one in pair.decided[:1]] == [(0, "suppressed")]
    assert rows_of(pair, 2) == [5, 10, 11, 12]


def test_large_clusters_are_split_and_what_is_left_joins_the_nearest():
    pair = line(0, 10, 1, 9, 5, 0, 10, deadline=6, beta=1, k=3)
    assert rows_of(pair, 0) == [0, 2, 4, 5]
    assert rows_of(pair, 1) == [1, 3, 6]


def test_several_tuples_of_a_person_leave_together_and_count_once():
    pair = line(1, 1, 2, 3, names="aaba", deadline=3, beta=1)
    assert rows_of(pair, 0) == [0, 1, 2, 3]
    assert {one.carriers for one in pair.decided} == {(2,)}


def test_one_person_is_no_crowd():
    assert {one.verdict for one in line(1, 1, 2, 3, 1, names="aaaaa", deadline=3, beta=1).decided} == {"suppressed"}


@pytest.mark.parametrize(("missing", "is_shown"), [("covered", False), ("hidden", False), ("paper", True)])
def test_an_attribute_that_one_person_alone_carries_twice(missing, is_shown):
    pair = line(1, 2, None, None, names="aabc", deadline=3, beta=1, k=3, missing=missing)
    assert {one.carriers for one in pair.decided} == {(1,)}
    assert (pair.decided[0].published[0] is not None) == is_shown


# ---- against the twin, further than all methods go together


@st.composite
def far(draw, *, timed):
    """Settings under which clusters grow large, and many form."""
    given_ = draw(settings_of("castle", timed=timed))
    return {**given_, "deadline": draw(st.integers(10, 60)), "beta": draw(st.sampled_from([1, 2, 5, 12, 1000]))}


def streams(scene, data, *, people=(3, 9, 25, 500)):
    return random_records(
        scene, data.draw(st.integers(0, 110)), seed=data.draw(st.integers(0, 2**32)),
        people=data.draw(st.sampled_from(people)), missing=data.draw(st.sampled_from([0.0, 0.1, 0.5])),
    )  # fmt: skip


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("name", ["line", "mixed", "trees", "grid"])
@given(data=st.data())
@tries(20)
def test_long_deadlines(name, timed, data):
    scene = scenes()[name]
    records = streams(scene, data)
    pair = Pair("castle", scene, data.draw(far(timed=timed)))
    fed(pair, records, data.draw(cuts(len(records))), restores=data.draw(st.booleans()))


@given(st.data())
@tries(60)
def test_splitting_under_diversity(data):
    """One cluster holds everything; it is split where the parts can be diverse."""
    scene = scenes()[data.draw(st.sampled_from(["mixed", "trees"]))]
    records = streams(scene, data, people=(15, 500))
    given_ = {
        **LINE,
        "k": data.draw(st.integers(2, 4)),
        "deadline": 50,
        "beta": 1,
        "reuse": 20,
        **data.draw(diversities()),
    }
    fed(Pair("castle", scene, given_), records)


@given(st.data())
@tries(30)
def test_the_state_is_the_same_however_the_stream_is_cut(data):
    scene = scenes()["mixed"]
    timed = data.draw(st.booleans())
    given_ = data.draw(far(timed=timed))
    whole, cut = Pair("castle", scene, given_), Pair("castle", scene, given_)
    records = data.draw(records_of(scene, jumps=True)) or streams(scene, data)
    whole.push_batch(records)
    cut.spare_room()
    for start, stop in pairwise(data.draw(cuts(len(records)))):
        cut.push_singly(records[start:stop])
        if data.draw(st.booleans()):
            cut.restore(shoal.restore)
    assert cut.made.snapshot() == whole.made.snapshot()


def test_a_snapshot_knows_which_cluster_a_tuple_is_in_and_what_the_last_ones_lost():
    scene = scenes()["mixed"]
    pair = Pair("castle", scene, {**LINE, "k": 3, "deadline": 20, "reuse": 5})
    pair.push_batch(random_records(scene, 60, seed=5, people=40, missing=0.1))
    before = pair.made._engine.decider.memory.extra.arrays
    pair.restore(shoal.restore)
    after = pair.made._engine.decider.memory.extra.arrays
    forming = before.tally[FORMING]
    assert forming > 3
    assert after.tally[FORMING] == forming
    assert (after.hulls[:, :forming][:-1] == before.hulls[:, :forming][:-1]).all()  # the last row is to think in
    assert after.published[-1] == before.published[-1] > 0


# ---- memory


@pytest.mark.parametrize("by", ["count", "time"])
def test_little_room_for_decisions(monkeypatch, by):
    """Whatever is noted must be taken away again and again amid a batch."""
    monkeypatch.setattr(memory, "SPARE_ROWS", 3)
    monkeypatch.setattr(memory, "SPARE_GROUPS", 2)
    scene = scenes()["mixed"]
    records = random_records(scene, 200, seed=2, people=30, missing=0.1)
    for given_ in ({"k": 2, "deadline": 7, "beta": 3}, {"k": 2, "deadline": 50, "beta": 1}):
        pair = Pair("castle", scene, {**LINE, "reuse": 300, **given_, "by": by})
        pair.spare_room()
        fed(pair, records, restores=True)


@pytest.mark.parametrize(("by", "deadline"), [("count", 100), ("time", 400)])
def test_little_room_for_what_leaves_at_the_end(monkeypatch, by, deadline):
    monkeypatch.setattr(memory, "SPARE_GROUPS", 2)
    scene = scenes()["line"]
    crowd = random_records(scene, 5, seed=1, people=99, missing=0)
    crowd[0]["x"], crowd[1]["x"] = 0, 10
    few = random_records(scene, 95, seed=2, people=2, missing=0)
    pair = Pair("castle", scene, {**LINE, "k": 3, "deadline": deadline, "reuse": 1000, "beta": 1, "by": by})
    pair.push_batch(crowd)
    pair.flush()
    pair.push_batch(few)
    if by == "time":
        pair.advance(few[-1]["ts"] + 300 * SECOND)
    pair.flush()
    pair.compare_metrics()
    assert pair.made.metrics["reused"] == 95


def test_many_wait_within_one_deadline():
    scene = scenes()["line"]
    records = random_records(scene, 600, seed=3, people=590, missing=0.0)
    for at, record in enumerate(records):
        record["ts"] = BEGIN + at * SECOND // 100
    pair = fed(Pair("castle", scene, {**LINE, "k": 4, "deadline": 60, "beta": 300, "by": "time"}), records, (100, 550))
    assert len(pair.decided) == 600


# ---- the contract


def made_for(scene, given_):
    return make_method("castle", scenes()[scene], given_, ("ill",))


@pytest.mark.parametrize("more", [{}, {"l": 2}, {"t": 0.4, "reference": 15}, {"groups": True, "missing": "hidden"}])
def test_laws(more):
    given_ = {**LINE, "k": 3, "deadline": 12, "reuse": 6, "beta": 4, **more}
    pair = Pair("castle", scenes()["mixed"], given_, ("ill",))
    stream = pa.Table.from_batches([pair.batch(random_records(pair.scene, 90, seed=8, people=11, missing=0.1))])

    def make():
        return made_for("mixed", given_)

    laws.batching_is_invisible(make, stream)
    laws.everything_is_accounted_for(make, stream)
    laws.snapshots_are_invisible(make, stream)
    laws.flush_leaves_nothing(make, stream)
    promise_laws.pending_is_bounded(make, stream)
    laws.inputs_are_left_alone(make, stream)
    promise_laws.memory_is_flat(make, lambda _: stream)


def test_parameters_are_checked():
    schema = Schema(person="id", quasi=[Numeric("x", low=0, high=1)])
    with pytest.raises(PolicyError) as caught:
        Castle(schema, beta=0, mu=1.5, k=1)
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["k", "beta", "mu"]


def test_a_snapshot_is_of_one_beta():
    state = made_for("line", LINE).snapshot()
    with pytest.raises(CheckpointError):
        made_for("line", {**LINE, "beta": 5}).restore(state)
    assert shoal.restore(state, key=KEY).guarantee.parameters["options"] == {"beta": 9, "mu": 3}


@pytest.mark.compiled
def test_the_entry_points_are_compiled():
    line(1, 2, 3)
    pair = Pair("castle", scenes()["line"], LINE)
    pair.restore(shoal.restore)
    assert run_castle.signatures
    assert restore_clusters.signatures
