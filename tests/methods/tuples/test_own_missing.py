"""missing = "own": every row shows exactly what its record has, and k people share it, whatever they lack."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal import Categorical, Hierarchy, Numeric, Schema
from shoal.errors import PolicyError
from tests.methods.tuples.driving import (
    OWN_SETTINGS,
    SENSITIVE,
    VARIED,
    make_method,
    random_records,
    records_of,
    scenes,
    settings_of,
    small_lanes,
)
from tests.methods.tuples.driving import Pair as Shown
from tests.reference.effort import tries
from tests.reference.tuples import blank_to_none

METHODS = ("fads", "fast", "castle", "least-loss")
OPTIONS = {**OWN_SETTINGS, "fads": st.just({}), "least-loss": st.fixed_dictionaries({"threads": st.integers(1, 3)})}
AGE = Numeric("age", low=0, high=100)
TOWN = Categorical("town", Hierarchy.from_nested({"all": {"north": ["a", "b"], "south": ["c"]}}))


def ages(*given: tuple[str, float | None, str | None], **settings: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Fads with these people, ages and towns, flushed; and what it published."""
    made = shoal.Fads(Schema(person="id", quasi=[AGE, TOWN]), **{"k": 2, "deadline": 50, "reuse": 0} | settings)
    rows = [row for who, age, town in given for row in made.push({"id": who, "age": age, "town": town})]
    return made, [*rows, *made.flush().rows.to_pylist()]


def published(made: Any, scene: Any, batches: list[Any]) -> list[tuple[list[Any], dict[str, Any]]]:
    """Each trace entry that is published, with its row, release by release."""
    found = []
    for release in [*map(made.push_batch, batches), made.flush()]:
        rows = iter(release.rows.to_pylist())
        kept = [one for one in release.trace.to_pylist() if one["verdict"] == "released"]
        found += [(one, next(rows)) for one in kept]
        assert next(rows, None) is None
    return found


def shows(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    cells = [row[name] for name in names]
    return tuple((cell["lo"], cell["hi"]) if isinstance(cell, dict) else cell for cell in cells)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["mixed", "trees", "wide"])
@given(data=st.data())
@tries(40)
def test_by_brute_force(method, name, data):
    """Nothing of the method is asked but its rows and which records they are of."""
    scene = scenes()[name]
    asked = data.draw(settings_of(method, timed=data.draw(st.booleans())))
    asked |= {"missing": "own", "min_carriers": None, "suppressed": "drop", **data.draw(OPTIONS[method])}
    records = data.draw(records_of(scene))
    names = [one.name for one in scene.attributes]
    shown = Shown("fads", scene, {"k": 2, "deadline": 1, "reuse": 0})  # it builds batches of records
    with small_lanes():
        made = make_method(method, scene, asked, tuple(SENSITIVE))
        found = published(made, scene, [shown.batch(records[at : at + 7]) for at in range(0, len(records), 7)])
    classes: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for one, row in found:
        record = records[one["row"]]
        vector = shows(row, names)
        for attribute, cell in zip(scene.attributes, vector, strict=True):
            value = blank_to_none(record[attribute.name])
            assert (cell is None) == (value is None)
            assert value is None or attribute.covers(cell, attribute.read(value))
        classes[vector].add(record["id"])
    assert all(len(people) >= asked["k"] for people in classes.values())
    assert made.metrics["filled"] == 0


@pytest.mark.parametrize("method", METHODS)
def test_complete_streams_are_published_as_with_every_other_mode(method):
    scene = scenes()["mixed"]
    shown = Shown("fads", scene, {"k": 2, "deadline": 1, "reuse": 0})
    batch = shown.batch(random_records(scene, 150, seed=4, people=60, missing=0.0))
    outcomes = []
    for missing in ("own", "hidden", "covered"):
        made = make_method(method, scene, {"k": 3, "deadline": 20, "reuse": 10, "missing": missing})
        releases = [made.push_batch(batch), made.flush()]
        outcomes.append(repr([(release.rows.to_pylist(), release.trace.to_pylist()) for release in releases]))
        assert (made.metrics["rare_patterns"], made.metrics["filled"]) == (0, 0)
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_rows_that_lack_different_columns_are_not_published_together():
    made, rows = ages(("a", 30.0, None), ("b", None, "a"), ("c", 34.0, None), ("d", None, "b"), ("e", 31.0, "a"))
    assert sorted(map(repr, rows)) == sorted(map(repr, [
        {"age": {"lo": 30.0, "hi": 34.0}, "town": None}, {"age": {"lo": 30.0, "hi": 34.0}, "town": None},
        {"age": None, "town": "north"}, {"age": None, "town": "north"},
    ]))  # fmt: skip
    assert (made.metrics["suppressed"], made.metrics["rare_patterns"]) == (1, 1)


def test_people_are_counted_not_rows():
    made, rows = ages(("a", 30.0, None), ("a", 31.0, None), ("b", 30.0, "a"), ("c", 30.0, "a"))
    assert [row["town"] for row in rows] == ["a", "a"]
    assert made.metrics["rare_patterns"] == 2


def test_rows_that_lack_everything_are_a_class_too():
    _, rows = ages(("a", None, None), ("b", None, None), ("c", 1.0, "c"))
    assert rows == [{"age": None, "town": None}] * 2


def test_a_cluster_is_reused_only_by_rows_that_lack_the_same():
    given_ = [("a", 30.0, "a"), ("b", 32.0, "a"), ("c", 60.0, "c"), ("d", 61.0, "c"), ("e", 31.0, "a"),
              ("f", 31.0, None), ("g", 90.0, "c"), ("h", 91.0, "c")]  # fmt: skip
    made, rows = ages(*given_, deadline=2, reuse=100)
    assert [row["age"]["lo"] for row in rows if row["town"] == "a"] == [30.0, 30.0, 30.0]
    assert (made.metrics["reused"], made.metrics["suppressed"], made.metrics["rare_patterns"]) == (1, 1, 1)


def test_few_people_in_all_are_no_matter_of_what_is_missing():
    made, rows = ages(("a", 30.0, None), k=3)
    assert (rows, made.metrics["suppressed"], made.metrics["rare_patterns"]) == ([], 1, 0)


def test_suppressed_rows_at_the_root_do_not_show_what_is_missing():
    made, rows = ages(("a", 30.0, None), ("b", 31.0, "a"), ("c", 33.0, "b"), suppressed="root")
    assert {"age": {"lo": 0.0, "hi": 100.0}, "town": "all"} in rows
    assert (len(rows), made.metrics["filled"]) == (3, 0)


@pytest.mark.parametrize("method", VARIED)
def test_methods_that_merge_rows_have_no_own(method):
    with pytest.raises(PolicyError) as caught:
        make_method(method, scenes()["line"], {"missing": "own"})
    assert caught.value.problems == ('missing: must be one of "hidden", "covered", "paper"',)
    assert make_method(method, scenes()["line"], {}).settings.missing == "covered"


@pytest.mark.parametrize("missing", [None, "own", "hidden", "paper"])
def test_carriers_are_counted_only_where_values_are_covered(missing):
    given_ = {} if missing is None else {"missing": missing}
    with pytest.raises(PolicyError) as caught:
        make_method("fads", scenes()["line"], {"min_carriers": 2, **given_})
    assert caught.value.problems == ('min_carriers: is used only with missing = "covered"; set that, or leave it out',)
