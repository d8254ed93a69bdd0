"""Attacks on rows break what is weak, and do no better than guessing on what is safe."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal import attack
from shoal.errors import InputError, PolicyError
from tests.auditor.attacks.scenes import PEOPLE, POLICY, as_it_is, at_the_root, in_classes, people, ranges, traced

TRUTH = people()
FOUND_BY = ("prosecutor", "marketer", "one unknown", "one wrong")


def rate(report: Any, name: str) -> float:
    return report[name].success.value


@pytest.fixture(scope="module")
def weak():
    return attack(as_it_is(TRUTH), TRUTH, POLICY, trace=traced(range(PEOPLE)), control=people(seed=2))


@pytest.fixture(scope="module")
def safe():
    return attack(at_the_root(TRUTH), TRUTH, POLICY, trace=traced(range(PEOPLE)), control=people(seed=2))


def test_raw_rows_are_found_by_quasi_identifiers(weak):
    assert rate(weak, "prosecutor") == rate(weak, "marketer") == 1
    assert rate(weak, "one unknown") > 0.8
    assert rate(weak, "one wrong") > 0.6
    assert rate(weak, "journalist") == 0.5
    assert all(weak[name].gains for name in FOUND_BY)
    assert all(weak[name].raw == pytest.approx(rate(weak, name), abs=0.2) for name in FOUND_BY)


def test_suppressed_rows_are_not_found(safe):
    for name in FOUND_BY:
        assert rate(safe, name) == pytest.approx(1 / PEOPLE)
        assert safe[name].guess == 1 / PEOPLE
        assert not safe[name].gains
    assert rate(safe, "predicate") == 0
    assert rate(safe, "range end") == 0


def test_without_a_trace_attackers_believe_what_fits():
    found = attack(at_the_root(TRUTH), TRUTH, POLICY)
    assert rate(found, "prosecutor") == pytest.approx(1 / PEOPLE)
    assert "trace" in found["range end"].why_not
    assert "control group" in found["journalist"].why_not


@pytest.mark.parametrize("k", [2, 5, 20])
def test_a_class_of_k_protects_as_k_says(k):
    release, order = in_classes(TRUTH, k)
    found = attack(release, TRUTH, POLICY, trace=traced(order))
    assert rate(found, "prosecutor") <= 1 / k + 1e-9
    assert rate(found, "marketer") == pytest.approx(1 / k)  # heights of classes do not overlap


def test_range_ends_are_somebodys_value():
    release, order = in_classes(TRUTH, 5)
    found = attack(release, TRUTH, POLICY, trace=traced(order))
    # Heights differ between all people: the ends of each class are two of its five.
    assert rate(found, "range end") >= 2 / 5
    assert found["range end"].gains
    assert rate(found, "predicate") > 0.9
    assert found["predicate"].guess < 0.5


def test_only_known_quasi_identifiers_are_used():
    found = attack(as_it_is(TRUTH), TRUTH, POLICY, trace=traced(range(PEOPLE)), knows=["zone"])
    zones = TRUTH.column("zone").value_counts().field("counts").to_numpy()
    assert rate(found, "marketer") == pytest.approx(len(zones) / PEOPLE)
    assert "only one" in found["one wrong"].why_not
    assert "range" in found["range end"].why_not


def test_missing_values_single_out():
    truth = people(gaps=True)
    strict = at_the_root(truth)
    own_nulls = strict.set_column(
        2, "zone", pa.array(["*" if one else None for one in truth.column("zone").to_pylist()])
    )
    found = attack(own_nulls, truth, POLICY, trace=traced(range(PEOPLE)))
    gaps = truth.column("zone").null_count
    # Two patterns, so each person is one of those with the same pattern.
    assert rate(found, "missing values") == pytest.approx(2 / PEOPLE)
    assert 0 < gaps < PEOPLE
    assert "release" in attack(strict, truth, POLICY, trace=traced(range(PEOPLE)))["missing values"].why_not


def test_homogeneous_classes_give_the_value_away():
    order = np.argsort(TRUTH.column("ill").to_pylist(), kind="stable")
    ill = TRUTH.column("ill").take(pa.array(order))
    number = ill.dictionary_encode().combine_chunks().indices.to_numpy()
    same = pa.table(
        {
            "age": ranges([0] * PEOPLE, [100] * PEOPLE),
            "height": ranges([0] * PEOPLE, (1000 - number).tolist()),  # a class of its own for each illness
            "zone": ["*"] * PEOPLE,
            "ill": ill,
        }
    )
    found = attack(same, TRUTH, POLICY, trace=traced(order))
    assert rate(found, "homogeneous class") == rate(found, "class mode") == 1
    assert found["class mode"].gains


def test_one_class_teaches_only_the_prior(safe):
    for name in ("class mode", "rows that fit", "classifier"):
        assert rate(safe, name) == pytest.approx(safe[name].guess)
    assert rate(safe, "homogeneous class") == 0


def test_what_the_population_teaches_is_in_the_control_group():
    """Illness depends on the zone for everybody: the classifier is right, and as right for people outside."""

    def by_zone(truth: pa.Table) -> pa.Table:
        ill = ["flu" if one.startswith("n") else "gout" for one in truth.column("zone").to_pylist()]
        return truth.set_column(4, "ill", pa.array(ill))

    truth, others = by_zone(TRUTH), by_zone(people(seed=3))
    found = attack(as_it_is(truth), truth, POLICY, trace=traced(range(PEOPLE)), control=others)
    assert rate(found, "classifier") > 0.95
    assert found["classifier"].control > 0.95
    assert not found["classifier"].gains


def test_several_rows_of_a_person_intersect():
    truth = people(rows_of_each=3, count=100)
    release, order = in_classes(truth, 4)
    found = attack(release, truth, POLICY, trace=traced(order))
    one_row, three_rows = rate(found, "rows that fit"), rate(found, "several rows")
    assert three_rows > one_row + 0.1
    assert found["several rows"].gains
    alone = attack(at_the_root(truth), truth, POLICY, trace=traced(range(300)))
    assert rate(alone, "several rows") <= alone["several rows"].guess + 0.2
    assert "more than one" in attack(release, truth, POLICY | {"stream": {"person": "row"}})["several rows"].why_not


def test_the_more_rows_of_a_person_the_more_is_known():
    truth = people(rows_of_each=12, count=100)
    release, order = in_classes(truth, 4)
    found = attack(release, truth, POLICY, trace=traced(order))
    one, three, ten = (rate(found, name) for name in ("1 row", "several rows", "10 rows"))
    assert one < three < ten
    assert ten > 0.95
    assert found["30 rows"].why_not == "no person has 30 released rows"
    facts = found.facts  # some records are not published
    assert (facts["median_rows_of_a_person"], facts["most_rows_of_a_person"]) == (9, 12)
    assert "most rows of a person 12" in found.text()
    alone = attack(at_the_root(TRUTH), TRUTH, POLICY, trace=traced(range(PEOPLE)))
    assert "most_rows_of_a_person" not in alone.facts


def test_two_windows_link_people_who_do_not_change():
    truth = people(count=50)
    twice = pa.concat_tables([truth, truth])
    weak = attack(as_it_is(twice), twice, POLICY, trace=traced(range(100)))
    assert rate(weak, "two windows") == 1
    safe = attack(at_the_root(twice), twice, POLICY, trace=traced(range(100)))
    assert rate(safe, "two windows") == pytest.approx(safe["two windows"].guess)


def test_a_row_published_alone_at_its_deadline_is_found():
    deadline = POLICY["anonymize"]["deadline"]
    arrivals = np.arange(PEOPLE)
    alone = attack(at_the_root(TRUTH), TRUTH, POLICY, trace=traced(arrivals, event=arrivals + deadline))
    assert rate(alone, "arrival") == 1
    together = attack(at_the_root(TRUTH), TRUTH, POLICY, trace=traced(arrivals, event=np.full(PEOPLE, PEOPLE)))
    assert rate(together, "arrival") < 0.02
    assert not together["arrival"].gains


def test_a_table_without_a_policy():
    truth = pa.table({"zip": ["1301", "1302", "1455", "1456"], "age": [20, 25, 30, 35], "ill": ["a", "b", "a", "a"]})
    release = pa.table(
        {
            "zip": ["130*", "130*", "145*", "*"],
            "age": ["[20, 25]", "[20, 25]", "[30, 35]", "[30, 35]"],
            "ill": ["a", "b", "a", "a"],
        }
    )
    found = attack(release, truth, knows=["zip", "age"], sensitive=["ill"])
    assert rate(found, "marketer") == 0.5
    with pytest.raises(PolicyError, match="name the quasi-identifiers"):
        attack(release, truth)
    with pytest.raises(InputError, match="column zip: 1 label is neither"):
        attack(release.set_column(0, "zip", pa.array(["130*", "130*", "145*", "west"])), truth, knows=["zip"])


def test_without_a_policy_ranges_numbers_and_asterisks_may_be_mixed():
    truth = pa.table({"age": [20, 25, 30, 35, 40]})
    mixed = pa.table({"age": ["[20, 25]", "[20, 25]", "30", "[35, 35]", "*"]})
    ranges_only = pa.table({"age": ["[20, 25]", "[20, 25]", "[30, 30]", "[35, 35]", "[20, 40]"]})
    found, expected = (attack(release, truth, knows=["age"], seed=3).to_dict() for release in (mixed, ranges_only))
    assert found == expected
    assert found["facts"]["people"] == 5


@pytest.mark.parametrize("last", ["*", "2020-01-04", "[2020-01-04, 2020-01-04]"])
def test_without_a_policy_ranges_may_be_of_days(last):
    truth = pa.table({"day": ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]})
    release = pa.table({"day": ["[2020-01-01, 2020-01-02]", "[2020-01-01, 2020-01-02]", "2020-01-03", last]})
    found = attack(release, truth, knows=["day"])
    assert found.facts["people"] == 4
    expected = 2 * 0.5 + 1 + 1 if last != "*" else 2 / 3 + 1 / 2 + 1  # everybody fits "*"
    assert rate(found, "marketer") == pytest.approx(expected / 4)


def test_only_strange_labels_of_a_column_with_ranges_are_counted():
    truth = pa.table({"age": [20, 25, 30, 35, 40]})
    release = pa.table({"age": ["[20, 25]", "25", "20-30", "20-30", "*"]})
    with pytest.raises(InputError, match=r"age: 1 label is neither .* a range is written \[20, 30\]"):
        attack(release, truth, knows=["age"])


def test_the_same_seed_gives_the_same_report():
    release, order = in_classes(TRUTH, 5)
    one, other = (attack(release, TRUTH, POLICY, trace=traced(order), targets=50, seed=7).to_dict() for _ in range(2))
    assert one == other
    assert one["facts"]["targets"] == 50


def test_bad_settings():
    with pytest.raises(PolicyError, match="name is not a quasi-identifier"):
        attack(at_the_root(TRUTH), TRUTH, POLICY, knows=["name"])
    with pytest.raises(PolicyError, match="targets"):
        attack(at_the_root(TRUTH), TRUTH, POLICY, targets=0)
    with pytest.raises(PolicyError, match="method"):
        attack(at_the_root(TRUTH), TRUTH, {"anonymize": {"method": "none"}})
