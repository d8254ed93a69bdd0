"""Density from the data: the k of a place by the people who were there in the first window."""

from __future__ import annotations

import random
from collections import defaultdict

import pyarrow as pa
import pytest

from shoal import Categorical, FlexibleK, Hierarchy, Numeric, Schema, restore
from shoal.auditor import audit
from shoal.errors import PolicyError

TOWN = {
    "land": {"city": {"centre": ["square", "station"], "suburb": ["park"]}, "valley": {"village": ["farm", "mill"]}}
}
KEY = b"0123456789abcdef"


def method(rule, **options):
    places = Categorical("place", Hierarchy.from_nested(TOWN))
    schema = Schema(person="who", quasi=[places, Numeric("hour", low=0, high=24, grid=1)])
    return FlexibleK(schema, None, k=3, density_from_data={"place": rule}, key=KEY, **options)


def table(rows):
    return pa.table({
        "who": pa.array([who for who, *_ in rows], pa.string()),
        "place": pa.array([place for _, place, *_ in rows], pa.string()),
        "hour": pa.array([(*row, 12)[2] for row in rows], pa.int64()),
    })  # fmt: skip


def a_city_and_a_village(people=(30, 8)):
    """Records by turns: a crowd in the city, a few in the village."""
    city = [(f"c{n}", ("square", "station", "park")[n % 3]) for n in range(people[0])]
    village = [(f"v{n}", ("farm", "mill")[n % 2]) for n in range(people[1])]
    return city + village


CLASSES = [{"fewer_than": 10, "k": 6}, {"fewer_than": 25, "k": 4}]


def test_a_city_and_a_village_fall_into_their_classes():
    flexible = method({"level": 1, "classes": CLASSES}, window=38)
    release = flexible.push_batch(table(a_city_and_a_village()))
    assert flexible.frozen.density == {"place": {"land": 6, "city": 3}}
    needed = {row["row"]: row["k"] for row in release.trace.to_pylist()}
    assert {needed[n] for n in range(30)} == {3}
    assert {needed[n] for n in range(30, 38)} == {6}
    assert flexible.guarantee.parameters["frozen"]["density"] == {"place": {"land": 6, "city": 3}}
    assert "density class" in flexible.guarantee.statement


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, {"land": 6, "square": 4, "station": 4, "park": 4}),
        (1, {"land": 6, "city": 3}),
        (2, {"land": 6, "centre": 4, "suburb": 4}),
        (3, {"land": 6, "square": 4, "station": 4, "park": 4}),
    ],
)
def test_cells_lie_at_the_level_that_is_given(level, expected):
    rule = {"classes": CLASSES} if level is None else {"level": level, "classes": CLASSES}
    flexible = method(rule, window=38)
    flexible.push_batch(table(a_city_and_a_village()))
    assert flexible.frozen.density == {"place": expected}


def test_the_first_window_is_pending_until_it_is_full_and_then_fixes_the_classes():
    """No record of it is published with a class that more records would change; later crowds change nothing."""
    flexible = method({"level": 1, "classes": CLASSES}, window=38)
    rows = a_city_and_a_village()
    assert flexible.push_batch(table(rows[:37])).rows.num_rows == 0
    assert flexible.frozen is None
    assert flexible.push_batch(table(rows[37:])).rows.num_rows == 38
    later = [(f"w{n}", "farm") for n in range(80)]
    needed = flexible.push_batch(table(later)).trace.to_pylist()
    assert flexible.frozen.density == {"place": {"land": 6, "city": 3}}
    assert {row["k"] for row in needed} == {6}


def test_a_flush_before_the_window_is_full_counts_fewer_people_and_asks_for_more():
    rows, rule = a_city_and_a_village(), {"level": 1, "classes": CLASSES}
    early = method(rule, window=1000)
    early.push_batch(table(rows[:20]))
    early.flush()
    assert early.frozen.density == {"place": {"land": 6, "city": 4}}


def test_unlisted_places_need_the_most_and_missing_ones_k():
    rows = a_city_and_a_village() + [(f"x{n}", "elsewhere") for n in range(30)] + [(f"y{n}", None) for n in range(30)]
    flexible = method({"level": 1, "classes": CLASSES}, window=len(rows))
    trace = {row["row"]: row["k"] for row in flexible.push_batch(table(rows)).trace.to_pylist()}
    assert {trace[n] for n in range(38, 68)} == {6}
    assert {trace[n] for n in range(68, 98)} == {3}


def test_a_label_above_thin_and_crowded_cells_needs_the_larger_k():
    """Five people in the square and one in the park: "city" for all would need 7, so only the square is published."""
    rows = [(f"c{n}", "square") for n in range(5)] + [("p", "park")]
    flexible = method({"classes": [{"fewer_than": 4, "k": 7}]}, window=6)
    release = flexible.push_batch(table(rows))
    assert release.rows.column("place").to_pylist() == ["square"] * 5
    assert flexible.pending == 1


def test_people_are_counted_once_however_often_they_come():
    flexible = method({"level": 1, "classes": CLASSES}, window=60)
    flexible.push_batch(table([(f"c{n % 9}", "square", n % 24) for n in range(60)]))
    assert flexible.frozen.density == {"place": {"land": 6}}


def brute_force(rows, level, classes, k):
    """The k of each record, people of its cell counted one by one."""
    tree = Hierarchy.from_nested(TOWN)
    cell = {leaf: tree.path(leaf)[::-1][level] for leaf in ("square", "station", "park", "farm", "mill")}
    people = defaultdict(set)
    for who, place, _ in rows:
        if place in cell:
            people[cell[place]].add(who)
    found = []
    for _, place, _ in rows:
        count = len(people[cell[place]]) if place in cell else 0
        class_k = next((one["k"] for one in classes if count < one["fewer_than"]), k)
        found.append(k if place is None else class_k)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_every_block_has_the_people_that_its_cells_ask_for(seed):
    """Random towns: published blocks have the people that brute force asks for, and the auditor agrees."""
    drawn = random.Random(seed)
    places, shares = ["square", "station", "park", "farm", "mill", None, "abroad"], [8, 5, 3, 2, 1, 1, 1]
    size, level = drawn.randint(60, 120), drawn.randint(1, 3)
    rows = [
        (f"u{drawn.randrange(45)}", drawn.choices(places, shares)[0], drawn.choice([3, 9, 20])) for _ in range(size)
    ]
    classes = [{"fewer_than": drawn.randint(4, 9), "k": 7}, {"fewer_than": drawn.randint(10, 20), "k": 5}]
    rule = {"level": level, "classes": classes}
    flexible = method(rule, window=size)
    releases = [flexible.push_batch(table(rows)), flexible.flush()]
    shown = [row for release in releases for row in release.rows.to_pylist()]
    traced = [row for release in releases for row in release.trace.to_pylist()]
    needed = brute_force(rows, level, classes, 3)
    people, asked = defaultdict(set), defaultdict(int)
    for row, line in zip(shown, traced, strict=True):
        people[str(row)].add(rows[line["row"]][0])
        asked[str(row)] = max(asked[str(row)], needed[line["row"]])
        assert line["k"] >= needed[line["row"]]
    assert shown
    assert all(len(people[block]) >= asked[block] for block in people)
    policy = {
        "stream": {"person": "who"},
        "anonymize": {
            "method": "flexible-k", "k": 3, "window": size, "density_from_data": {"place": rule},
            "quasi": {"place": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": TOWN}},
                      "hour": {"kind": "numeric", "low": 0, "high": 24, "grid": 1}},
        },
    }  # fmt: skip
    whole = pa.Table.from_batches([release.rows for release in releases])
    report = audit(whole, table(rows), pa.Table.from_batches([release.trace for release in releases]), policy)
    assert (report.violations, report.warnings) == ((), ()), report.text()
    assert report.metrics["records_by_k"] == {str(k): needed.count(k) for k in sorted(set(needed))}


def test_a_restored_method_keeps_the_classes():
    flexible = method({"level": 1, "classes": CLASSES}, window=38)
    rows = a_city_and_a_village()
    flexible.push_batch(table(rows[:20]))
    before = restore(flexible.snapshot(), key=KEY)
    for one in (flexible, before):
        one.push_batch(table(rows[20:]))
    after = restore(flexible.snapshot(), key=KEY)
    later = table([(f"z{n}", "farm", 12) for n in range(40)])
    expected = flexible.push_batch(later)
    for one in (before, after):
        assert one.frozen.density == {"place": {"land": 6, "city": 3}}
        assert one.push_batch(later).rows == expected.rows


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"classes": []}, "at least one class"),
        ({"classes": [{"fewer_than": 10}]}, "k: is missing"),
        ({"classes": [{"fewer_than": 0, "k": 6}]}, "fewer_than: must be at least 1"),
        ({"classes": [{"fewer_than": 10, "k": 3}]}, "must be above k, which is 3"),
        ({"classes": [{"fewer_than": 10, "k": 6}, {"fewer_than": 10, "k": 5}]}, "must be in order"),
        ({"classes": [{"fewer_than": 10, "k": 5}, {"fewer_than": 20, "k": 6}]}, "must be in order"),
        ({"level": 4, "classes": CLASSES}, "must be at most 3"),
        ({"level": 0, "classes": CLASSES}, "level: must be at least 1"),
        ({"levels": 1, "classes": CLASSES}, "levels: unknown key"),
        (5, "must be a table"),
    ],
)
def test_a_wrong_rule_is_named(rule, words):
    with pytest.raises(PolicyError, match=words):
        method(rule)


def test_a_column_has_a_table_or_a_rule():
    with pytest.raises(PolicyError, match="leave one of them out"):
        method({"classes": CLASSES}, density={"place": {"city": 4}})
    schema = Schema(person="who", quasi=[Numeric("hour", low=0, high=24)])
    with pytest.raises(PolicyError, match="must be a categorical quasi-identifier with a hierarchy"):
        FlexibleK(schema, None, density_from_data={"hour": {"classes": CLASSES}}, key=KEY)
