"""Whole streams through the tuple methods and their naive twins: the same rows, trace and sums, to the last bit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.methods.tuples.decider import memory
from shoal.testing.strategies import cuts
from tests.methods.tuples.driving import (
    BEGIN,
    SECOND,
    TWINS,
    Pair,
    random_records,
    records_of,
    scenes,
    settings_of,
    small_lanes,
)  # fmt: skip
from tests.reference.effort import IS_COMPILED, IS_EXHAUSTIVE, some_by_default, tries

SCENES = ("line", "mixed", "trees", "grid")


@pytest.fixture(scope="module", autouse=True)
def lanes_of_a_few_tuples():
    with small_lanes():
        yield


every_method = pytest.mark.parametrize("method", TWINS)


def feed(pair, records, data):
    """In batches, single records, across snapshots, with flushes in between."""
    places = data.draw(cuts(len(records)))
    if data.draw(st.booleans(), label="little room"):
        pair.spare_room()
    for start, stop in pairwise(places):
        how = data.draw(st.sampled_from(["batch", "batch", "batch", "singly", "restored", "flushed"]))
        if how == "restored":
            pair.restore(shoal.restore)
        (pair.push_singly if how == "singly" else pair.push_batch)(records[start:stop])
        if how == "flushed":
            pair.flush()
    pair.flush()
    pair.compare_metrics()


@every_method
@pytest.mark.parametrize("name", SCENES)
@given(data=st.data())
@tries(25)
def test_counts(method, name, data):
    scene = scenes()[name]
    pair = Pair(method, scene, data.draw(settings_of(method, timed=False)))
    feed(pair, data.draw(records_of(scene)), data)


@every_method
@pytest.mark.parametrize("name", SCENES)
@given(data=st.data())
@tries(25)
def test_durations(method, name, data):
    """Time passes with records and without; one wrong clock changes nothing."""
    scene = scenes()[name]
    pair = Pair(method, scene, data.draw(settings_of(method, timed=True)))
    records = data.draw(records_of(scene, jumps=True))
    for start, stop in pairwise(data.draw(cuts(len(records)))):
        pair.push_batch(records[start:stop])
        if data.draw(st.booleans()):
            step = data.draw(st.sampled_from([0, 1, SECOND, 12 * SECOND, -SECOND]))
            pair.advance((records[stop - 1]["ts"] or BEGIN) + step if stop else BEGIN)
    pair.flush()
    pair.compare_metrics()


@every_method
@given(data=st.data())
@tries(20)
def test_more_attributes_than_bits_in_a_word(method, data):
    scene = scenes()["wide"]
    pair = Pair(method, scene, data.draw(settings_of(method, timed=data.draw(st.booleans()))))
    feed(pair, data.draw(records_of(scene, most=30)), data)


@every_method
@given(data=st.data())
@tries(20)
def test_as_many_people_as_needed(method, data):
    """k at, above and below the number of people there are."""
    scene, people = scenes()["line"], data.draw(st.integers(2, 5))
    k = people + data.draw(st.sampled_from([-1, 0, 1]))
    given_ = {**data.draw(settings_of(method, timed=False)), "k": max(k, 2), "min_carriers": None}
    if given_["max_share"] is not None:
        given_["max_share"] = max(given_["max_share"], 1 / given_["k"])
    records = data.draw(records_of(scene))
    for number, record in enumerate(records):
        record["id"] = f"p{number % people}"
    feed(Pair(method, scene, given_), records, data)


LONG = [
    ("line", {"k": 3, "deadline": 40, "reuse": 30}, 12, 0.0),
    ("line", {"k": 2, "deadline": 1, "reuse": 0}, 400, 0.3),
    ("line", {"k": 2, "deadline": 3, "reuse": 5000, "missing": "paper"}, 400, 0.2),
    ("mixed", {"k": 4, "deadline": 90, "reuse": 25, "missing": "paper", "l": 2}, 300, 0.2),
    ("mixed", {"k": 5, "deadline": 60, "reuse": 60, "missing": "hidden", "t": 0.4, "reference": 50}, 40, 0.1),
    ("mixed", {"k": 3, "deadline": 60, "reuse": 40}, 60, 0.3),
    ("mixed", {"k": 4, "deadline": 60, "reuse": 40, "missing": "covered", "min_carriers": 1}, 300, 0.2),
    ("trees", {"k": 5, "deadline": 120, "reuse": 40, "entropy_l": 1.8, "groups": True}, 300, 0.0),
    ("trees", {"k": 3, "deadline": 50, "reuse": 100, "suppressed": "root", "t": 0.5, "reference": "declared"}, 9, 0.5),
]


@every_method
@pytest.mark.parametrize(("name", "given_", "people", "missing"), LONG, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("by", some_by_default(["count", "time"], ["count"]))
def test_long_streams(method, name, given_, people, missing, by):
    """Gaps close, memory grows, and the ring of clusters goes round."""
    scene, count = scenes()[name], (900 if IS_EXHAUSTIVE else 330) if IS_COMPILED else 150
    pair = Pair(method, scene, {**given_, "by": by})
    pair.spare_room()
    records = random_records(scene, count, seed=3, people=people, missing=missing)
    for start in range(0, count, 97):
        pair.push_batch(records[start : start + 97])
        if start in (97, 291):
            pair.restore(shoal.restore)
    pair.flush()
    pair.compare_metrics()
    assert len(pair.formed) > 3 or given_["deadline"] == 1


@pytest.mark.parametrize("by", ["count", "time"])
@pytest.mark.parametrize("seed", [10, 11])
def test_late_tuples_are_decided_although_memory_grows_in_between(monkeypatch, by, seed):
    """Patterns get new numbers when memory grows: the partition that has just got one more must be known by then."""
    monkeypatch.setattr(memory, "SPARE_ROWS", 3)
    monkeypatch.setattr(memory, "SPARE_GROUPS", 2)
    scene = scenes()["mixed"]
    pair = Pair("fads-varied", scene, {"k": 2, "deadline": 2, "reuse": 1000, "by": by})
    pair.spare_room()
    pair.push_batch(random_records(scene, 60, seed=seed, people=30, missing=0.5))
    pair.flush()
    pair.compare_metrics()
