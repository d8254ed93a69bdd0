"""Estimates of people and rates: known ones are recovered, and what the stream cannot show is reported."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError, PolicyError
from shoal.models.z.estimate import activity_classes, estimate_events, interests
from shoal.models.z.events import Events, read_events
from shoal.models.z.model import ZModel
from tests.reference.effort import tries
from tests.reference.poisson_streams import SECOND, WINDOW, poisson_events

NAMES = {"person": "user", "time": "ts", "attribute": "site"}
RATES = (2.4, 0.7, 0.2, 0.05)


def joined(*parts: Events) -> Events:
    columns = ([getattr(part, name) for part in parts] for name in ("times", "persons", "values"))
    times, persons, values = map(np.concatenate, columns)
    order = np.argsort(times, kind="stable")
    return Events(times[order], persons[order], values[order])


def moved(events: Events, windows: int, *, persons: int = 0, values: int = 0) -> Events:
    return Events(events.times + windows * WINDOW, events.persons + persons, events.values + values)


def test_known_people_and_rates_are_found_again():
    found = estimate_events(poisson_events(400, RATES, 80), WINDOW)
    assert found.people == pytest.approx(400, rel=0.02)
    assert found.rates[0] * 3600 == pytest.approx(RATES, rel=0.06)
    assert found.is_enough
    assert found.stationarity.is_steady
    assert found.windows == 78  # the first and the last may be cut off
    assert (found.seen, found.values, found.idle) == (400, 4, 0)


def test_doing_the_same_again_within_a_window_changes_nothing():
    plain = poisson_events(200, RATES, 30)
    soon = np.minimum(plain.times // WINDOW * WINDOW + WINDOW - 1, plain.times + SECOND)
    twice = joined(plain, plain, Events(soon, plain.persons, plain.values))
    first, second = estimate_events(plain, WINDOW), estimate_events(twice, WINDOW)
    assert np.array_equal(first.rates, second.rates)
    assert first.people == second.people


def test_people_who_come_and_go_are_not_all_there_at_once():
    """Everybody is there for one window only: 200 people at a time, 6,000 in all."""
    parts = [moved(poisson_events(200, RATES, 1, seed=hour), hour, persons=200 * hour) for hour in range(30)]
    found = estimate_events(joined(*parts), WINDOW)
    assert found.seen > 5000
    assert found.people == pytest.approx(200, rel=0.05)
    assert found.rates[0] * 3600 == pytest.approx(RATES, rel=0.1)


@tries(60)
@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(5, 30),
)
def test_crowds_against_counting_them(rows, window):
    events = Events(*(np.array(column, np.int64) for column in zip(*sorted(rows), strict=True)))
    found = estimate_events(events, window)
    crowds: dict[tuple[int, int], set[int]] = defaultdict(set)
    active: dict[int, set[int]] = defaultdict(set)
    for time, person, value in rows:
        crowds[time // window, value].add(person)
        active[time // window].add(person)
    first, last = min(active), max(active)
    if last - first >= 9 and len(active) > 2:
        active = {epoch: people for epoch, people in active.items() if first < epoch < last}
    everybody = sum(map(len, active.values()))
    typical = sum(len(people) ** 2 for people in active.values()) / everybody
    assert found.active == pytest.approx(typical)
    assert found.exposures == sum(len(people) for (epoch, _), people in crowds.items() if epoch in active)
    values = sorted({value for epoch, value in crowds if epoch in active})
    assert found.codes.tolist() == values
    for place, value in enumerate(values):
        crowd = sum(len(active[epoch]) * len(crowds[epoch, value]) for epoch in active if (epoch, value) in crowds)
        share = min(crowd / everybody / found.people, 1 - 1e-9)
        assert -math.expm1(-found.rates[0, place] * window / 1e9) == pytest.approx(share, rel=1e-6)
    assert typical - 1e-9 <= found.people <= max(found.seen, math.ceil(typical))


def test_too_short_a_stream_is_reported():
    found = estimate_events(poisson_events(100, RATES, 3), WINDOW)
    assert not found.is_enough
    assert found.stationarity.is_steady is None
    assert any(remark.startswith("too short to tell: 3 windows") for remark in found.remarks)
    few = estimate_events(poisson_events(2, RATES, 20), WINDOW)
    assert any(remark.startswith("too few events to tell") for remark in few.remarks)
    assert not few.is_enough


@pytest.mark.parametrize(("before", "after", "word"), [(200, 400, "more"), (400, 200, "fewer")])
def test_more_and_fewer_people_are_said(before, after, word):
    parts = poisson_events(before, RATES, 10), moved(poisson_events(after, RATES, 10, seed=1), 10)
    found = estimate_events(joined(*parts), WINDOW)
    assert found.stationarity.is_steady is False
    assert found.stationarity.people == pytest.approx(after / before - 1, abs=0.1)
    assert word in found.stationarity.words
    assert found.stationarity.words in found.remarks


def test_other_interests_are_said():
    other = moved(poisson_events(200, RATES, 10, seed=1), 10, values=2)  # two of four values are new
    found = estimate_events(joined(poisson_events(200, RATES, 10), other), WINDOW)
    assert found.stationarity.is_steady is False
    assert found.stationarity.interests > 0.3
    assert "at other values" in found.stationarity.words


def test_values_seen_once_and_idle_windows_are_said():
    plain = poisson_events(100, RATES, 12)
    rare = Events(np.array([WINDOW + 5, 5 * WINDOW]), np.array([3, 4]), np.array([77, 78]))
    found = estimate_events(joined(plain, rare, moved(plain, 20)), WINDOW)
    assert (found.once, found.values, found.idle) == (2, 6, 8)
    assert any(remark.startswith("2 of 6 values were seen in one exposure only") for remark in found.remarks)
    assert any(remark.startswith("8 windows without any event") for remark in found.remarks)


def test_classes_of_activity_are_found_again():
    activity = np.repeat([0.5, 8.0], [900, 100])
    events = poisson_events(1000, [0.02] * 100, 30, activity=activity)
    found = estimate_events(events, WINDOW, classes=2)
    assert found.sizes == pytest.approx((900, 100), rel=0.08)
    ratio = found.rates[1].sum() / found.rates[0].sum()
    assert ratio == pytest.approx(16, rel=0.1)
    crowds = np.array(found.sizes) @ -np.expm1(-found.rates * 3600)
    alone = estimate_events(events, WINDOW)
    assert crowds == pytest.approx(alone.people * -np.expm1(-alone.rates[0] * 3600), rel=0.01)
    model = ZModel.of_estimate(found, WINDOW)
    assert model.estimated is found
    assert model.sizes == found.sizes


def test_a_mixture_is_the_likeliest_near_by():
    random = np.random.default_rng(5)
    counts = np.concatenate([random.poisson(1, 3000), random.poisson(9, 800)])
    counts = counts[counts > 0]
    shares, means = activity_classes(counts, 2)

    def likelihood(shares, means):
        weights = Counter(counts.tolist())
        return sum(
            weight * math.log(sum(
                share * math.exp(-mean) * mean**count / math.factorial(count) / (1 - math.exp(-mean))
                for share, mean in zip(shares, means, strict=True)
            ))
            for count, weight in weights.items()
        )  # fmt: skip

    best = likelihood(shares, means)
    assert means == pytest.approx([1, 9], rel=0.1)
    for change in (0.97, 1.03):
        assert likelihood(shares, [means[0] * change, means[1]]) < best
        assert likelihood(shares, [means[0], means[1] * change]) < best
        assert likelihood([shares[0] * change, 1 - shares[0] * change], means) < best
    assert activity_classes(np.ones(50, np.int64), 3)[1].tolist() == pytest.approx([0.05])


def test_interests_make_the_crowds_that_were_seen():
    sizes, means = np.array([300.0, 40.0]), np.array([0.5, 12.0])
    crowds = np.array([0.01, 3.0, 120.0, 339.0])
    shares = interests(crowds, sizes, means)
    assert sizes @ -np.expm1(-means[:, None] * shares) == pytest.approx(crowds, rel=1e-9)


ROWS = [{"ts": 60 * i, "user": f"u{i % 7}", "site": f"s{i % 3}", "other": i} for i in range(500)]


def some_batches():
    return (pa.RecordBatch.from_pylist(ROWS[i : i + 100]) for i in range(0, len(ROWS), 100))


TABLE = pa.Table.from_pylist(ROWS)
STREAMS = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.combine_chunks().to_batches()[0],
    "reader": lambda: TABLE.to_reader(max_chunksize=64),
    "batches": some_batches,
    "records": lambda: iter(ROWS),
    "pandas": lambda: pd.DataFrame(ROWS),
    "dictionaries": lambda: TABLE.set_column(1, "user", TABLE["user"].dictionary_encode()),
    "times": lambda: [{**row, "ts": pd.Timestamp(row["ts"], unit="s")} for row in ROWS],
    "out of order": lambda: ROWS[::-1],
}


@pytest.mark.parametrize("kind", STREAMS)
def test_every_kind_of_stream_says_the_same(kind):
    model = ZModel.estimate(STREAMS[kind](), **NAMES, window="1h")
    expected = ZModel.estimate(TABLE, **NAMES, window=3600)
    assert (model.users, model.window) == (expected.users, 3600)
    assert sorted(model.rates) == pytest.approx(sorted(expected.rates))
    assert model.estimated.windows == expected.estimated.windows == 9


def test_rows_that_cannot_be_used_are_counted():
    rows = [*ROWS, {"ts": None, "user": "a", "site": "b"}, {"ts": 5, "user": None, "site": "b"}, {"ts": 5, "user": "a"}]
    events = read_events(rows, **NAMES)
    assert (len(events), events.unusable, events.people) == (500, 3, 7)
    assert events.late_ns == 0
    assert read_events([ROWS[9], ROWS[2], ROWS[5]], **NAMES).late_ns == 7 * 60 * SECOND
    found = estimate_events(events, WINDOW)
    assert any(remark.startswith("3 rows without") for remark in found.remarks)


def test_a_dictionary_may_hold_a_value_twice():
    users = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", "a", None]))
    table = pa.table({"user": users, "ts": [1, 2, 3, 4], "site": ["x"] * 4})
    events = read_events(table, **NAMES)
    assert (len(events), events.people) == (2, 1)


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        ([{"ts": 1, "user": "a"}], "'site'"),
        (pa.table({"ts": [1], "site": ["x"]}), "'user'"),
        (pa.table({"ts": [[1]], "user": ["a"], "site": ["x"]}), "'ts': cannot be times"),
        (pa.table({"ts": [1], "user": ["a"], "site": [["x"]]}), "'site': contains lists"),
        ([{"ts": 1, "user": "a", "site": 1}, {"ts": 1, "user": 5, "site": 2}], "'user': has values of different"),
        ("visits.csv", "must be an Arrow table"),
        ([5], "must be an Arrow table"),
        (None, "must be an Arrow table"),
        ([], "no event"),
        (TABLE.slice(0, 0), "no event"),
        ([{"ts": None, "user": "a", "site": "x"}], "no event"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_bad_streams_are_refused_by_column(stream, words):
    with pytest.raises(InputError, match=words):
        ZModel.estimate(stream, **NAMES, window="1h")


def test_bad_parameters_are_refused():
    with pytest.raises(InputError, match="three different"):
        ZModel.estimate(ROWS, person="user", time="ts", attribute="user", window="1h")
    for window in ("soon", 0, -1):
        with pytest.raises(PolicyError, match="window"):
            ZModel.estimate(ROWS, **NAMES, window=window)
    for classes in (0, 17, True, 2.0):
        with pytest.raises(PolicyError, match="classes"):
            ZModel.estimate(ROWS, **NAMES, window="1h", classes=classes)


UNNAMED = [{"timestamp": 60 * i, "uid": f"u{i * 7 % 40}", "page": f"s{i * i % 5}"} for i in range(400)]


class TestUsualNames:
    """Columns that are not named are found by their usual names."""

    @pytest.mark.parametrize(
        "make", [list, iter, pa.Table.from_pylist, lambda rows: [pa.RecordBatch.from_pylist(rows)]]
    )
    def test_found(self, make):
        model = ZModel.estimate(make(UNNAMED), window="1h")
        named = ZModel.estimate(UNNAMED, person="uid", time="timestamp", attribute="page", window="1h")
        assert (model.users, model.rates.tolist()) == (named.users, named.rates.tolist())

    def test_not_found(self):
        with pytest.raises(InputError, match="attribute: name the column; none has a usual name such as 'site'"):
            ZModel.estimate([{"ts": 1, "user": "a", "colour": "red"}])

    def test_a_name_that_is_given_is_not_taken_again(self):
        rows = [{"ts": 1, "user": "a", "id": "b", "site": "c"}]
        with pytest.raises(InputError, match="three different"):
            ZModel.estimate(rows, person="user", attribute="user")
        assert ZModel.estimate(rows, attribute="user", window="1h").users == 1
