"""Frames made to mislead: whoever is guessed, no column that names people is published and rows are not people."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError
from shoal.inspection import Wishes, look, propose

PEOPLE, EACH = 200, 3
WHO = [row // EACH for row in range(PEOPLE * EACH)]
KNOWN = {"age": [18 + who * 7 % 70 for who in WHO], "zip": [f"{10 + who % 9}{who * 37 % 1000:03}" for who in WHO]}
ROWS = list(range(len(WHO)))
OWN: dict[str, list[Any]] = {
    "credit_card": [4_000_000_000_000_000 + who * 7919 for who in WHO],
    "credit": [f"4000-0000-{who * 17 % 10_000:04}-{who:04}" for who in WHO],
    "treatment_no": [who * 31 for who in WHO],
    "result_id": [f"R{who}" for who in WHO],
    "outcome": [f"called {who} at home" for who in WHO],
    "remark": [f"see {who}" for who in WHO],
    "phone": [f"+49151{who * 7919:07}" for who in WHO],
    "income": [20_000.25 + who for who in WHO],
}


@pytest.mark.parametrize("name", OWN)
def test_a_guess_never_publishes_a_value_of_one_person_unchanged(name: str) -> None:
    for wishes in (Wishes(), Wishes(k=5)):
        found = propose(look(pa.table({"user": WHO, name: OWN[name], **KNOWN})), wishes)
        role = {one.column: one.role for one in found.roles}[name]
        assert role == ("quasi" if name == "income" else "drop")


def test_numbers_of_people_are_no_measurements() -> None:
    """Results of measurements are published unchanged; pandas makes floats of whole numbers with a gap."""
    model = [f"M{who % 120}" for who in WHO]
    for phone in ([49_151_000_000 + who for who in WHO], [None, *(49_151_000_000.0 + who for who in WHO[1:])]):
        table = pa.table({"user": WHO, "phone": phone, "model": model, **KNOWN, "mbps": [row / 7 for row in ROWS]})
        found = propose(look(table), Wishes())
        assert found.family == "flexible"
        assert found.columns("sensitive") == ["mbps"]


def test_a_given_k_is_never_lowered_for_sparse_columns() -> None:
    table = pa.table({"user": WHO, "model": [f"M{who % 120}" for who in WHO], **KNOWN})
    assert propose(look(table), Wishes()).family == "flexible"
    assert propose(look(table), Wishes(k=5)).family == "tuples"


@pytest.mark.parametrize(
    ("columns", "person"),
    [
        ({"email": [f"p{who}@example.org" for who in WHO]}, "email"),
        ({"contact": [f"p{who}@example.org" for who in WHO]}, "contact"),
        ({"name": [f"Person {who}" for who in WHO]}, "name"),
        ({"SSN": [100_000_000 + who for who in WHO]}, "SSN"),
        ({"id": ROWS, "email": [f"p{who}@example.org" for who in WHO]}, "email"),
        ({"order_id": ROWS, "customer": [f"c{who}" for who in WHO]}, "customer"),
        ({"id": ROWS, "member": [f"c{who}" for who in WHO]}, "member"),
        ({"transaction_id": ROWS, "member": [f"c{who}" for who in WHO]}, "member"),
        ({"session_id": [row // 2 for row in ROWS], "email": [f"p{who}@example.org" for who in WHO]}, "email"),
        ({"email": [f"p{who % 20}@example.org" for who in WHO]}, "email"),
        ({"id": ROWS, "city_name": [f"Town {who % 9}" for who in WHO]}, "row"),
    ],
)
def test_several_rows_of_one_person_are_not_several_people(columns: dict[str, list[Any]], person: str) -> None:
    assert propose(look(pa.table({**columns, **KNOWN})), Wishes()).stream["person"] == person


@pytest.mark.compiled
def test_the_promise_says_when_rows_stand_for_people() -> None:
    words = "rows, not people, are counted"
    items = pa.table({"items": [[f"i{row % 5}", "bread"] for row in ROWS]})
    for found in (shoal.anonymize(pa.table(KNOWN), k=5), shoal.anonymize(items, k=5, m=2)):
        assert found.statement.startswith(words)
        assert "different people" not in found.statement
        assert "for rows, not people" in found.audit().text().splitlines()[0]
        assert found.audit().to_dict()["about"] == "rows, not people"
    for table, wanted in ((pa.table({"row": WHO, **KNOWN}), {}), (items.append_column("user", [WHO]), {"m": 2})):
        found = shoal.anonymize(table, k=5, **wanted)
        assert words not in found.statement + found.audit().text()
        assert found.audit().to_dict()["about"] == "people"


@pytest.mark.compiled
def test_a_given_sensitive_column_that_names_people_is_warned_about() -> None:
    table = pa.table({"user": WHO, "card": OWN["credit_card"], **KNOWN})
    found = shoal.anonymize(table, k=5, person="user", quasi=["age"], sensitive=["card"])
    assert "'card': is sensitive and published unchanged" in found.warnings[0]


@pytest.mark.compiled
@pytest.mark.parametrize("role", ["quasi", "sensitive", "carry"])
def test_categories_without_rows_are_not_published(role: str) -> None:
    names = ["north", "south", *(f"Secret {number}" for number in range(40))]
    ward = pd.Categorical([names[who % 2] for who in WHO], categories=names)
    frame = pd.DataFrame({"user": WHO, "age": KNOWN["age"], "ward": ward})
    roles = {"quasi": ["age", *(["ward"] if role == "quasi" else [])]} | ({} if role == "quasi" else {role: ["ward"]})
    for given in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        found = shoal.anonymize(given, k=5, person="user", **roles)
        assert found.counts["released"] == len(WHO)
        sink = pa.BufferOutputStream()
        published = pa.Table.from_pandas(found.frame) if given is frame else pa.table(found.frame)
        with pa.ipc.new_stream(sink, published.schema) as writer:
            writer.write_table(published)
        assert b"Secret" not in sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]),
        pd.DataFrame([[1, 2], [3, 4]], columns=["x", 1]).set_axis([1, "1"], axis=1),
        pa.table([[1], [2]], names=["x", "x"]),
    ],
)
def test_two_columns_of_one_name_are_refused(frame: Any) -> None:
    with pytest.raises(InputError, match="occur more than once"):
        shoal.anonymize(frame, k=2)


def test_a_column_of_several_types_is_named_without_a_value() -> None:
    frame = pd.DataFrame({"id": [1, 2], "age": pd.Series([3, "Jane Doe"], dtype=object)})
    with pytest.raises(InputError, match="'age': has values of several types") as caught:
        shoal.anonymize(frame, k=2)
    assert "Jane" not in str(caught.value)


@pytest.mark.compiled
def test_names_of_columns_cannot_forge_a_line_or_a_page() -> None:
    name = "age<script>\nrole x\x1b[31m"
    found = shoal.anonymize(pa.table({"user": WHO, name: KNOWN["age"], "zip": KNOWN["zip"]}), k=5)
    assert name in found.rows.column_names
    assert "\x1b" not in repr(found)
    assert "\nrole x" not in repr(found)
    assert "<script>" not in found._repr_html_()


@pytest.mark.compiled
def test_the_ends_of_a_range_never_replace_another_column() -> None:
    table = pa.table({"user": WHO, "age": KNOWN["age"], "age_low": ["x", "y"] * (len(WHO) // 2)})
    with pytest.raises(InputError, match="'age_low': occur more than once"):
        shoal.anonymize(table, k=5, person="user", quasi=["age"], carry=["age_low"], intervals="columns")
