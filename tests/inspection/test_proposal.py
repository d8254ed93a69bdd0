"""Roles, family and method proposed for five kinds of data, and for what is given."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import PolicyError
from shoal.inspection import PersonDoubt, Wishes, look, propose
from shoal.inspection.columns.risk import Measure
from tests.inspection.stories import METHODS, PERSONS, STORIES, admissions, visits

ROLES = {
    "visits": {"user": "person", "ts": "time", "site": "attribute", "device": "carry"},
    "sensors": {"device_id": "person", "time": "quasi", "pulse": "quasi", "noise": "quasi"},
    "admissions": {"patient": "person", "name": "drop", "admitted": "quasi", "age": "quasi", "postcode": "quasi",
                   "diagnosis": "sensitive"},
    "baskets": {"customer": "person", "items": "items"},
    "measurements": {"maid": "person", "ts": "quasi", "model": "quasi", "network": "quasi", "mbps": "sensitive"},
}  # fmt: skip


@pytest.mark.parametrize("story", STORIES)
def test_roles_and_methods_of_five_kinds_of_data(story: str) -> None:
    found = propose(look(STORIES[story]()), Wishes(person=PERSONS.get(story)))
    assert found.method == METHODS[story]
    roles = {one.column: one.role for one in found.roles}
    assert roles == roles | ROLES[story]
    assert set(roles) == set(STORIES[story]().column_names)
    assert all(one.reason for one in found.roles)


def test_what_is_given_is_kept() -> None:
    wishes = Wishes(person="patient", quasi=["age", "sex"], carry=["postcode"], k=7, settings={"deadline": 99})
    found = propose(look(admissions()), wishes)
    assert found.stream == {"person": "patient", "carry": ["postcode"]}
    assert found.anonymize["k"] == 7
    assert found.anonymize["deadline"] == 99
    assert list(found.anonymize["quasi"]) == ["age", "sex"]
    assert "diagnosis" in found.columns("drop")


def test_parameters_choose_the_family() -> None:
    facts = look(visits())
    assert propose(facts, Wishes(z=4)).anonymize == {
        "method": "z-anonymity", "attribute": "site", "z": 4, "window": "1h", "lateness": "5min",
    }  # fmt: skip
    assert propose(facts, Wishes(m=2, k=3, items="site")).method == "k^m"
    assert propose(facts, Wishes(k=3)).family == "tuples"
    assert propose(facts, Wishes(method="fads", quasi=["device"])).method == "fads"


def test_rows_out_of_order_get_the_lateness_they_need() -> None:
    table = visits()
    backwards = propose(look(table.take(list(range(table.num_rows))[::-1])), Wishes())
    assert backwards.anonymize["lateness"] == "1d"
    gaps = pa.table({**{name: table.column(name) for name in table.column_names}, "ts": [
        int(time) * 40 - 39 * 1_772_000_000 for time in table.column("ts").to_pylist()]})  # fmt: skip
    assert propose(look(gaps), Wishes()).anonymize["lateness"] == "5min"


def test_what_only_a_person_can_decide_is_asked() -> None:
    table = pa.table({"age": [20, 30, 40], "shoe_size": [40, 41, 42]})
    found = propose(look(table), Wishes())
    assert found.stream["person"] == "row"
    assert any("rows are counted, not people" in question for question in found.questions)
    assert any("'shoe_size'" in question for question in found.questions)


@pytest.mark.parametrize(("column", "is_sure"), [("session_id", False), ("deviceId", False), ("USERID", True)])
def test_a_session_or_a_device_is_not_surely_a_person(column: str, is_sure: bool) -> None:
    rows = range(60)
    facts = look(pa.table({column: [f"x{row % 30}" for row in rows], "age": [row % 40 for row in rows]}))
    if is_sure:
        assert propose(facts, Wishes()).stream["person"] == column
    else:
        with pytest.raises(PersonDoubt, match=f"'{column}' may be the person: (its name; )?30 different ones"):
            propose(facts, Wishes())


@pytest.mark.parametrize(
    "column", ["passenger_count", "customer_type", "userAge", "Client Version", "account_balance", "member_since"]
)
def test_what_is_said_about_people_is_not_who_they_are(column: str) -> None:
    """Otherwise a handful of values would be taken for the people, and a promise of k would be about those."""
    rows = range(400)
    table = pa.table({column: [row % 30 for row in rows], "zip": [f"79{row % 9}00" for row in rows]})
    found = propose(look(table), Wishes())
    assert found.stream["person"] == "row"
    assert found.columns("person") == []
    again = propose(look(table.append_column("passenger_id", [[f"p{row % 300}" for row in rows]])), Wishes())
    assert again.stream["person"] == "passenger_id"


def recurring(column: str) -> pa.Table:
    rows = range(400)
    return pa.table({column: [f"K{row % 150:05}" for row in rows], "age": [row % 70 for row in rows]})


@pytest.mark.parametrize("column", ["ref_no", "Vertragsnummer Nr", "kod", "device key", "order_id"])
def test_a_code_that_recurs_is_asked_about_whatever_it_is_called(column: str) -> None:
    """Counted by rows, ten rows of one customer would pass for ten people."""
    with pytest.raises(PersonDoubt, match=f"'{column}' may be the person"):
        propose(look(recurring(column)), Wishes())


@pytest.mark.parametrize("column", ["Kunden-Nr.", "usuario", "custno", "Participant ID", "patient"])
def test_a_code_with_the_name_of_a_person_is_the_person(column: str) -> None:
    found = propose(look(recurring(column)), Wishes())
    assert found.stream["person"] == column
    assert found.people == 150


@pytest.mark.parametrize("column", ["zip code", "product_no", "status_code", "station id"])
def test_codes_of_other_things_are_not_people(column: str) -> None:
    rows = range(400)
    table = pa.table({column: [f"K{row % 150:05}" for row in rows], "age": [row % 70 for row in rows]})
    assert propose(look(table), Wishes()).stream["person"] == "row"


def test_a_handful_of_values_is_never_a_person() -> None:
    """k is not lowered to make such a column fit."""
    for several, person in ((9, "row"), (10, "user")):
        table = pa.table({"user": [f"u{row % several}" for row in range(400)], "age": [row % 70 for row in range(400)]})
        found = propose(look(table), Wishes())
        assert found.stream["person"] == person
        assert found.anonymize["k"] == 5
        assert any("'user' has a handful of values" in question for question in found.questions) == (several == 9)


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        (Wishes(person="nobody"), "'nobody': does not exist"),
        (Wishes(quasi=["age"], sensitive=["age"]), "'age': is given two roles"),
        (Wishes(z=3), "time: not found"),
        (Wishes(z=3, quasi=["age"]), "z or attribute; quasi: belong to different families"),
        (Wishes(k=1), "k: must be at least 2"),
        (Wishes(m=2), "items: no column of items"),
        (Wishes(quasi=["same"]), "'same': cannot be generalized: all its values are equal"),
    ],
)
def test_wishes_that_cannot_be(wishes: Wishes, words: str) -> None:
    facts = look(pa.table({"id": [1, 2, 3], "age": [20, 30, 40], "same": ["x", "x", "x"]}))
    with pytest.raises(PolicyError, match=words):
        propose(facts, wishes)


# ---- events


def stream(**columns: list) -> pa.Table:
    """400 rows of 60 people in ascending time; further columns as given."""
    rows = range(400)
    times = [1_700_000_000 + 600 * row for row in rows]
    return pa.table({"who_id": [f"w{row * 7 % 60:03}" for row in rows], "ts": times, **columns})


REQUESTS = [f"/{row * row // 7 % 30}" for row in range(400)]
SIZES = [row * 977 % 9001 for row in range(400)]


@pytest.mark.parametrize(
    ("columns", "attribute"),
    [
        ({"request": REQUESTS, "bytes": SIZES}, "request"),
        ({"v7": REQUESTS, "bytes": SIZES}, "v7"),  # the only one that repeats, whatever it is called
        ({"v7": REQUESTS, "v8": [text[::-1] for text in REQUESTS]}, None),
        ({"v7": REQUESTS, "age": [20 + row * 7 % 60 for row in range(400)]}, None),  # the same in all rows of one
        ({"v7": [f"/{row}" for row in range(400)]}, None),
    ],
)
def test_somebody_a_time_and_a_value_that_repeats_are_events(columns: dict, attribute: str | None) -> None:
    found = propose(look(stream(**columns)), Wishes(person="who_id"))
    assert found.anonymize.get("attribute") == attribute
    assert (found.method == "z-anonymity") == (attribute is not None)


def test_events_that_nobody_shares_are_rows() -> None:
    """z-anonymity would publish nothing of values that hardly two people have in any window."""
    rare = [f"/{row // 5 * 31 % 97}-{row * 13 % 83}" for row in range(400)]
    found = propose(look(stream(request=rare)), Wishes(person="who_id"))
    assert found.family == "tuples"


# ---- missing values


def with_gaps(gaps: list[float], rows: int = 600) -> pa.Table:
    draw = np.random.default_rng(8)
    columns = {
        f"q{place}": pa.array(draw.integers(0, 40, rows), mask=draw.random(rows) < share)
        for place, share in enumerate(gaps)
    }
    return pa.table({"patient": list(range(100, 100 + rows))[::-1], **columns})


@pytest.mark.parametrize(
    ("gaps", "given", "missing"),
    [
        ([0, 0, 0], {}, None),
        ([0.3, 0, 0], {}, "own"),
        ([0.1] * 8, {}, "hidden"),
        ([0.1] * 8, {"method": "fads"}, "hidden"),
        ([0.3, 0, 0], {"method": "castle"}, "own"),
        ([0.7] * 4, {}, "hidden"),
        ([0.3, 0, 0], {"method": "k-varp"}, "hidden"),
        ([0.1] * 8, {"settings": {"missing": "covered"}}, "covered"),
        ([0.1] * 8, {"method": "fads-varied"}, None),
    ],
)
def test_what_rows_show_of_missing_values(gaps: list[float], given: dict, missing: str | None) -> None:
    """`own` where it suppresses few rows, else `hidden`; never what fills in values."""
    found = propose(look(with_gaps(gaps)), Wishes(quasi=[f"q{place}" for place in range(len(gaps))], **given))
    assert found.anonymize.get("missing") == missing
    assert bool(found.missing) == (missing not in (None, "covered"))
    assert found.method == given.get("method", "k-varp" if gaps[0] > 0.5 else "least-loss")


def test_rare_patterns_are_counted_among_rows_that_wait_for_each_other() -> None:
    """Of 40 rows 8 lack a; if only 10 rows wait at the same time, 2 of each 10 do, fewer than k = 3."""
    ages = pa.array([None if row % 5 == 0 else 30 for row in range(40)], pa.int64())
    facts = look(pa.table({"a": ages, "b": [1] * 40, "who": [row // 2 for row in range(40)]}))
    by_row, by_person = Measure(facts, None, 3), Measure(facts, "who", 3)
    assert by_row.of_rare_patterns(["a", "b"], 40) == 0.0
    assert by_row.of_rare_patterns(["a", "b"], 10) == 0.2
    assert by_row.of_rare_patterns(["b"], 10) == 0.0
    assert by_row.of_rare_patterns([], 10) == 0.0
    assert by_person.of_rare_patterns(["a", "b"], 5) == 0.6  # four others are of three people, the next four of two
    assert by_person.of_rare_patterns(["a", "b"], 4) == 1.0


@pytest.mark.parametrize(("name", "zeros", "role", "diverse"), [
    ("v7", 0, "sensitive", 2), ("v7", 200, "quasi", None), ("wage", 200, "sensitive", 2),
])  # fmt: skip
def test_a_guess_costs_few_rows(name: str, zeros: int, role: str, diverse: int | None) -> None:
    """Numbers that may be sensitive are only ranges where many rows in a run have the same; named ones stay so."""
    values = [0.0] * zeros + [(row * 389 % 997) / 8 for row in range(600 - zeros)]
    columns = {"age": [20 + row * 7 % 50 for row in range(600)], name: values}
    found = propose(look(pa.table(columns)), Wishes())
    assert found.columns(role) == ([name] if role == "sensitive" else ["age", name])
    assert name in found.anonymize["quasi"]
    assert found.anonymize.get("l") == diverse
