"""Kinds and shapes of columns, how identifying they are, their domains and trees."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.hierarchies import Hierarchy
from shoal.inspection.columns.facts import look
from shoal.inspection.columns.risk import Measure
from shoal.inspection.generalization.domains import domain_of
from shoal.inspection.generalization.trees import nested, paths_of


def one(values: list, *, converts: bool = False):
    return look(pa.table({"column": values}), converts=converts)["column"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], "whole"), ([1.5, None], "number"), ([True, False], "text"), (["a", "b"], "text"),
        ([["a"], ["b", "c"]], "list"), ([None, None], "empty"), (["2026-01-02", "2026-01-03"], "moment"),
        (["2026-01-02T03:04:05Z"], "moment"), (["12", "13"], "text"), (["2026-99-99"], "text"),
    ],
)  # fmt: skip
def test_kinds_of_typed_columns(values, kind):
    assert one(values).kind == kind


@pytest.mark.parametrize(
    ("values", "kind"), [(["12", "13", None], "whole"), (["1.5", "2"], "number"), (["01234", "99999"], "text")]
)
def test_numbers_in_text_files(values, kind):
    assert one(values, converts=True).kind == kind


@pytest.mark.parametrize("first", [2**53 + 1, -(2**60), 2**63])
def test_whole_numbers_that_floats_cannot_hold_are_codes(first):
    values = pa.array([first, None, first + 1], pa.uint64() if first == 2**63 else pa.int64())
    facts = look(pa.table({"c": values}))["c"]
    assert (facts.kind, facts.distinct, facts.missing) == ("text", 2, 1)
    assert facts.values.to_pylist() == [str(first), None, str(first + 1)]
    assert one([2**53, -(2**53)]).kind == "whole"


@pytest.mark.parametrize(("name", "kind"), [("ts", "moment"), ("created_at", "moment"), ("status", "text")])
def test_nanoseconds_are_moments_if_their_name_says_so(name, kind):
    assert look(pa.table({name: [1_772_000_000_000_000_001, 1_772_000_000_000_000_002]}))[name].kind == kind


def test_a_few_broken_numbers_do_not_make_a_column_text():
    facts = one([*map(str, range(200)), "n/a"], converts=True)
    assert facts.kind == "whole"
    assert facts.missing == 1


@pytest.mark.parametrize(
    ("number", "unit"), [(1_772_000_000, "s"), (1_772_000_000_000, "ms"), (1_772_000_000_000_000, "us"), (42, None)]
)
def test_numbers_that_may_be_times(number, unit):
    assert one([number, number + 1]).time_unit == unit


@pytest.mark.parametrize(
    ("values", "shape"),
    [
        (["12,50", "1.200,00", "-3,1"], "comma"),
        (["a@b.example", "c.d@e.example"], "email"), (["10.0.0.1", "10.2.3.4"], "ip"), (["::1", "fe80::2"], "ip"),
        (["www.a.example", "b.example"], "host"), (["48.1, 11.5", "48.2,11.6"], "place"), (["0123", "4567"], "digits"),
        (["a/b", "a/c"], "path"), (["2026/03/02 08:00", "2026/03/03 09:00"], "date"),
        (["2:03:02", "0:24:34"], "words"), (["4.1.2", "4.0.3"], "words"),
        (["0f" * 8, "ab" * 8], "code"), (["red", "dark blue"], "words"),
        (["a long remark about something that nobody else would write like this"] * 2, "free"),
    ],
)  # fmt: skip
def test_shapes_of_text(values, shape):
    assert one(values).shape == shape


def test_sets_in_text():
    texts = [",".join(sorted({f"item {row % 7}", f"item {row * 3 % 5}", f"item {row % 11}"})) for row in range(100)]
    assert (one(texts).shape, one(texts).separator) == ("set", ",")
    assert one([f"Doe, John {row}" for row in range(50)]).shape != "set"


def naive_risk(people: list, values: list, k: int) -> tuple[float, float]:
    crowd = {value: {who for who, own in zip(people, values, strict=True) if own == value} for value in values}
    alone = {who for who, own in zip(people, values, strict=True) if len(crowd[own]) == 1}
    return len(alone) / len(set(people)), sum(len(crowd[own]) < k for own in values) / len(values)


def test_risk_is_counted_in_people():
    people = ["ann", "ann", "bob", "cem", "dan", "eve"]
    job = ["cook", "cook", "cook", "nurse", "nurse", "pilot"]
    city = ["Ulm", "Bonn", "Ulm", "Ulm", "Ulm", None]
    facts = look(pa.table({"id": people, "job": job, "city": city}))
    measure = Measure(facts, "id", 2)
    for columns, values in {("job",): job, ("city",): city, ("job", "city"): list(zip(job, city, strict=True))}.items():
        found = measure.of(*columns)
        assert (found.unique, found.rare) == naive_risk(people, values, 2)
    assert measure.pairs(["job", "city"])[0].columns == ("job", "city")


@pytest.mark.parametrize(
    ("values", "low", "high", "grid"),
    [
        ([17, 90], 16, 92, 1), ([17.3, 89.9], 16, 90, 1), ([0, 99_999], 0, 100_000, 2000),
        ([0.011, 0.089], 0.01, 0.09, 0.001), ([3, 4], 2, 5, 1), ([-7, 12], -8, 13, 1),
            ([20] * 10 + [40] * 10, 20, 40, 1),
    ],
)  # fmt: skip
def test_domains_are_rounded_outward(values, low, high, grid):
    assert domain_of(one(values)) == {"kind": "numeric", "low": low, "high": high, "grid": grid, "outside": "clamp"}


@pytest.mark.parametrize(
    ("days", "low", "high", "grid"),
    [
        (["2026-03-05", "2026-03-06"], "2026-03-01", "2026-04-01", "10min"),
        (["2026-11-05", "2026-12-24"], "2026-11-01", "2027-01-01", "1h"),
        (["2024-11-05", "2026-12-24"], "2024-01-01", "2027-01-01", "1d"),
    ],
)
def test_domains_of_moments(days, low, high, grid):
    found = domain_of(one(days))
    assert (found["low"], found["high"], found["grid"]) == (low, high, grid)


def test_a_column_without_a_domain():
    assert domain_of(one([5, 5])) is None


@pytest.mark.parametrize("values", [[1.5e-17, 4e-16], [0.5, 3e17]])
def test_numbers_that_no_policy_can_write_have_no_domain(values):
    assert domain_of(one(values)) is None
    assert domain_of(one([number * 1e4 if number < 1 else number / 1e4 for number in values])) is not None


@pytest.mark.parametrize(
    ("values", "value", "path"),
    [
        ([f"h{n}.a.example" for n in range(9)], "h3.a.example", ("h3.a.example", "a.example", "example", "*")),
        ([f"10.0.{n % 2}.{n}" for n in range(9)], "10.0.1.3",
         ("10.0.1.3", "10.0.1.0/24", "10.0.0.0/16", "10.0.0.0/8", "*")),
        ([f"7{n:04}" for n in range(9)], "70003", ("70003", "7000*", "700**", "70***", "7****", "*")),
        ([f"{brand} {n}" for brand in ("Acme", "Bolt") for n in range(6)], "Bolt 3", ("Bolt 3", "Bolt …", "*")),
        (["a", "b", "c"], "a", ("a", "*")),
    ],
)  # fmt: skip
def test_trees_are_found_in_values(values, value, path):
    paths, _ = paths_of(one(values), values, values)
    tree = Hierarchy.from_nested(nested(paths))
    assert tree.path(value) == path
    assert {leaf for leaf in tree.labels if len(tree.path(leaf)) > 1} >= set(values)


def test_any_other_values_get_blocks_of_neighbours():
    values = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis"]
    paths, words = paths_of(one(values), values, values)
    tree = Hierarchy.from_nested(nested(paths))
    assert all(len(tree.path(value)) == 3 for value in values)
    assert "a tree of your own" in words


def test_labels_of_blocks_name_no_rare_value():
    values = [f"{letter}{number}" for letter in "abcdef" for number in "123"]
    common = {value for value in values if value[1] != "1" and value[0] not in "ef"}
    paths, _ = paths_of(one(values), values, common)
    labels = {label for path in paths for label in path[1:]}
    assert not [(label, value) for label in labels for value in {*values} - common if value in label]
    tree = Hierarchy.from_nested(nested(paths))
    assert all(tree.path(value)[0] == value for value in values)
    assert {"5 rare values", "a2…a3 + 2 rare", "b2…c3"} <= labels


def test_names_of_two_words_are_not_sets():
    names = [f"{first} {last}" for first in ("Ana", "Ben", "Cem", "Eve") for last in ("Kaya", "Rossi", "Weiss", "Li")]
    assert one(names * 3).shape == "words"
    baskets = [" ".join(str(item) for item in range(5) if size >> item & 1) for size in range(1, 32)]
    assert one(baskets).shape == "set"
