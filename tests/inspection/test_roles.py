"""Who is counted, and which columns are never published: identifiers next to the one that is the person."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from shoal.inspection import PersonDoubt, Wishes, look, propose
from shoal.inspection.proposal import Proposal

ROWS = range(600)


def proposed(columns: dict[str, list[Any]], **given: Any) -> Proposal:
    table = pa.table({**columns, "age": [18 + row * 7 % 70 for row in ROWS], "job": ["nurse", "cook", "smith"] * 200})
    return propose(look(table), Wishes(**given))


@pytest.mark.parametrize("column", ["user_request_id", "user_session", "userVisitId", "user_order_no", "user_ip"])
def test_things_of_which_a_user_has_several_are_not_counted_as_people(column: str) -> None:
    """Five requests of one user would pass for five people, and the user's number would be published."""
    several = [str(UUID(int=row * 2**99)) for row in ROWS]
    found = proposed({column: several, "user_id": [1000 + row % 100 for row in ROWS]})
    assert found.stream["person"] == "user_id"
    with pytest.raises(PersonDoubt, match=f"'{column}' may be the person") as doubt:
        proposed({column: [several[row // 2] for row in ROWS]})
    assert [one.column for one in doubt.value.candidates] == [column]


@pytest.mark.parametrize("column", ["user_id", "Patient", "mrn", "login", "member_key"])
def test_a_second_identifier_of_people_is_dropped(column: str) -> None:
    codes = [f"x{row % 100}" for row in ROWS]
    found = proposed({column: codes, "insured": [f"i{row % 300}" for row in ROWS]}, person="insured")
    assert column in found.columns("drop")


def test_a_sensitive_text_of_which_many_values_are_rare_is_published_only_on_request() -> None:
    """It is published unchanged: whoever knows such a value, a name in it for example, finds the row."""
    texts = [f"sent home with aunt {row}" if row % 10 == 0 else "well" for row in ROWS]
    columns = {"patient": [f"p{row % 300}" for row in ROWS], "outcome": texts}
    assert "outcome" in proposed(columns).columns("drop")
    assert "outcome" in proposed(columns, sensitive=["outcome"]).columns("sensitive")
    assert "outcome" in proposed({**columns, "outcome": ["ill", "well"] * 300}).columns("sensitive")


@pytest.mark.parametrize("column", ["Vorname", "Prénom", "Apellidos", "STRASSE", "Straße", "Telefon", "Cognome"])
def test_names_and_addresses_of_other_languages_are_dropped(column: str) -> None:
    found = proposed({column: [["Ana", "Ben", "Cem"][row % 3] for row in ROWS]})
    assert column in found.columns("drop")


@pytest.mark.parametrize("number", [lambda row: 41_790_000_000 + row // 3, lambda row: f"079 {row // 3:07}"])
def test_a_phone_is_a_model_only_if_it_has_letters(number: Any) -> None:
    found = proposed({"customer": [f"c{row}" for row in ROWS], "phone": [number(row) for row in ROWS]})
    assert "phone" in found.columns("drop")
    assert found.method == "least-loss"
    models = [f"{['Acme', 'Bolt'][row % 2]} {row % 150}" for row in ROWS]
    assert "phone" in proposed({"customer": [f"c{row}" for row in ROWS], "phone": models}).columns("quasi")


def test_a_column_that_is_dropped_does_not_choose_the_method() -> None:
    found = proposed({"customer": [f"c{row}" for row in ROWS], "app version": [f"build {row}" for row in ROWS]})
    assert "app version" in found.columns("drop")
    assert found.method == "least-loss"


def test_long_numbers_that_are_all_different_are_dropped() -> None:
    found = proposed({"reg": [7_560_000_000_000 + 1_234_567 * row for row in ROWS], "pay": [30_000 + r for r in ROWS]})
    assert "reg" in found.columns("drop")
    assert "pay" in found.columns("sensitive")
    assert "pay" in found.anonymize["quasi"]


def events(kind: list[str]) -> Proposal:
    times = [1_772_000_000 + 60 * row for row in ROWS]
    sites = [f"s{row % 12}.example" for row in ROWS]
    table = pa.table({"user": [f"u{row % 90}" for row in ROWS], "ts": times, "site": sites, "kind": kind})
    return propose(look(table), Wishes())


def test_what_to_do_with_a_carried_column_fits_the_method() -> None:
    found = events(["view", "buy"] * 300)
    assert found.method == "z-anonymity"
    assert found.columns("carry") == ["kind"]
    assert any("if somebody can know it, drop it" in question for question in found.questions)


def test_a_column_with_a_value_of_one_person_is_not_carried() -> None:
    assert events(["view", "buy"] * 299 + ["view", "refund"]).columns("carry") == []


@pytest.mark.parametrize(
    ("name", "values", "role"),
    [
        ("first", ["Ann", "Bob", "Cem", "Dee", "Eve"], "drop"),
        ("Last", ["Smith", "Jones", "Ali", "Berg", "Cole"], "drop"),
        ("first", ["yes", "no"], "quasi"),
        ("first_visit", ["spring", "summer", "autumn", "winter", "never"], "quasi"),
    ],
)
def test_first_and_last_are_names_of_people_if_nothing_else_is_in_the_header(
    name: str, values: list[str], role: str
) -> None:
    table = pa.table({
        name: [values[row % len(values)] for row in range(300)],
        "age": [20 + row * 7 % 50 for row in range(300)],
        "sex": ["fm"[row // 3 % 2] for row in range(300)],
    })  # fmt: skip
    (found,) = (one for one in propose(look(table), Wishes(person="row")).roles if one.column == name)
    assert found.role == role
