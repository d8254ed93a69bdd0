"""Whose row it is: what names say, and what values say where names do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from shoal.inspection import look
from shoal.inspection.person.person_names import Says, said_by
from shoal.inspection.person.whose_row import WhoseRow, whose_row

ROWS = range(240)


def found(columns: dict[str, list[Any]], time: str | None = None) -> WhoseRow:
    facts = look(pa.table(columns))
    return whose_row(facts, facts, time)


def candidates(columns: dict[str, list[Any]], time: str | None = None) -> list[str]:
    one = found(columns, time)
    assert one.person is None
    return [candidate.column for candidate in one.candidates]


def each(times: int, first: int = 1000) -> list[int]:
    """Numbers of people with so many rows one after another."""
    return [first + 7 * (row // times) for row in ROWS]


NAMES = {
    Says.PERSON: "patient Subject participant panelist respondentId pupil_no idcode seqn caseid PatientenNr "
    "nr_respondenta id_paciente leerlingnummer vastaaja kundenr elev abonne zákazník household_member_id "
    "order_customer USUBJID Versichertennummer VP kdnr enrollee",
    Says.NUMBER: "cpf codice_fiscale personnummer cpr_nr pesel e_mail ssn userName Personalnummer PERSNR KVNR",
    Says.UNIT: "account_no hid hhid Haushalt",
    Says.HOST: "host client_ip",
    Says.DEVICE: "deviceId vehicle card_number phone Kundenkarte badge licence_plate",
    Says.ACT: "user_session userVisitId basket order_no Fallnummer",
    Says.ID: "id uuid pseudonym Kennung identifiant ref_no",
    Says.OTHER: "patient_birth_year passenger_count customer_type station_id product_no industry_code zip children",
    Says.NOTHING: "v1 label Reaction exper patient_satisfaction",
}  # fmt: skip


@pytest.mark.parametrize(("says", "name"), [(says, name) for says, names in NAMES.items() for name in names.split()])
def test_what_a_name_says(says: Says, name: str) -> None:
    assert said_by(name) is says


@pytest.mark.parametrize("name", ["respnr", "RESPNUM", "vp_nr", "NOIND", "ident_ind"])
def test_abbreviations_of_surveys_are_people(name: str) -> None:
    columns = {name: [f"{100 + row // 3}.0" for row in ROWS], "age": [20 + row * 7 % 50 for row in ROWS]}
    one = found(columns)
    assert name in [candidate.column for candidate in ([one.person] if one.person else one.candidates)]


@pytest.mark.parametrize("name", ["customer_no", "svnr", "account"])
def test_numbers_like_seconds_since_1970_are_people_under_the_name_of_somebody(name: str) -> None:
    numbers = [1_000_000_000 + 7919 * (row * 7 % 60) for row in ROWS]
    one = found({name: numbers, "age": [20 + row % 50 for row in ROWS]})
    assert one.person is not None
    assert one.person.column == name
    assert found({"recorded": numbers, "age": [20 + row % 50 for row in ROWS]}).person is None


def test_two_people_of_a_row_are_asked_about() -> None:
    calls = {"caller": [f"c{row % 40}" for row in ROWS], "callee": [f"c{row * 7 % 50}" for row in ROWS]}
    assert candidates(calls) == ["callee", "caller"]


def test_two_numbers_of_the_same_people_are_one() -> None:
    one = found({"patient": each(4), "patient_id": [f"P{number}" for number in each(4)]})
    assert one.person is not None
    assert one.person.column == "patient_id"
    assert one.identifiers == {"patient", "patient_id"}


@pytest.mark.parametrize(("times", "is_asked"), [(1, False), (2, True), (4, True)])
def test_rows_together_with_a_column_that_depends_on_them(times: int, is_asked: bool) -> None:
    columns = {"x9": each(times), "g": [number % 3 for number in each(times)], "y": [row % 17 for row in ROWS]}
    assert candidates(columns) == (["x9"] if is_asked else [])
    scattered = {**columns, "g": [row % 3 for row in ROWS]}
    assert candidates(scattered) == []


@pytest.mark.parametrize(("others", "is_asked"), [(2, True), (1, False)])
def test_rows_in_any_order_with_columns_that_depend_on_them(others: int, is_asked: bool) -> None:
    who = [(row * 7) % 60 for row in ROWS]
    columns: dict[str, list[Any]] = {"k": [f"x{one}" for one in who], "answer": [row % 11 for row in ROWS]}
    columns |= {f"a{place}": [one * (place + 3) % 17 for one in who] for place in range(others)}
    assert candidates(columns) == (["k"] if is_asked else [])


def test_a_sorted_measurement_is_no_person() -> None:
    columns = {"exper": [row // 6 for row in ROWS], "wage": [row * 37 % 101 / 7 for row in ROWS]}
    assert candidates(columns) == []


@pytest.mark.parametrize("values", [list(ROWS), [row + 1 for row in ROWS], [row + 1.0 for row in ROWS]])
def test_numbers_of_rows(values: list[Any]) -> None:
    assert found({"n": values}).row_numbers == {"n"}
    assert found({"patient": values}).row_numbers == frozenset()
    shuffled = [values[row * 7 % 240] for row in ROWS]
    assert found({"n": shuffled}).row_numbers == frozenset()
    assert found({"age": [30] * 240, "n": [value + 2 for value in values]}).row_numbers == frozenset()


@pytest.mark.parametrize(("name", "place", "is_row"), [
    ("column1", 0, True), ("X", 0, True), ("rownames", 1, True), ("column1", 1, False), ("dose", 0, False),
    ("id", 0, False), ("x", 1, False),
])  # fmt: skip
def test_numbers_of_rows_of_which_some_were_left_out(name: str, place: int, is_row: bool) -> None:
    """R keeps the numbers of rows that are left: without a name of their own, all different, rising."""
    numbers = [3 + row * 2 + row % 2 for row in ROWS]
    others = {"age": [20 + row * 11 % 50 for row in ROWS]}
    columns = {name: numbers, **others} if place == 0 else {**others, name: numbers}
    assert (name in found(columns).row_numbers) is is_row
    is_without_name = name in ("column1", "rownames")
    assert (name in found({**columns, name: numbers[::-1]}).row_numbers) is (is_row and is_without_name)
    assert name not in found({**columns, name: [number // 4 for number in numbers]}).row_numbers


@pytest.mark.parametrize(("name", "people", "times", "is_asked"), [
    ("Subject", 8, 30, True), ("Subject", 4, 60, False), ("user_id", 7, 1, True), ("student", 7, 1, False),
    ("party", 7, 30, False),
])  # fmt: skip
def test_a_handful_of_people_is_asked_about_if_they_could_be_a_crowd(
    name: str, people: int, times: int, is_asked: bool
) -> None:
    """Never taken without a question; not even asked about if they are fewer than the smallest k."""
    one = found({name: [row // times % people for row in ROWS], "pulse": [60 + row * 7 % 90 / 3 for row in ROWS]})
    assert one.person is None
    assert [candidate.column for candidate in one.candidates] == ([name] if is_asked else [])


@pytest.mark.parametrize(("name", "period", "is_asked"), [
    ("entity", "time", True), ("unit", "year", True), ("entity", "dose", False), ("exper", "time", False),
])  # fmt: skip
def test_a_panel_has_each_period_of_somebody_once(name: str, period: str, is_asked: bool) -> None:
    """Where a third of the pairs is missing, as half of the units came later, names must speak for a panel."""
    units = [row * 7 % 30 for row in ROWS]
    columns = {
        name: units,
        period: [row // 30 + 4 * (unit % 2) for row, unit in zip(ROWS, units, strict=True)],
        "y": [row * 37 % 101 for row in ROWS],
    }
    assert candidates(columns) == ([name] if is_asked else [])
    twice = {**columns, period: [row // 60 for row in ROWS]}
    assert candidates(twice) == []


@pytest.mark.parametrize(("unit", "units", "other", "is_asked"), [
    ("firm", 30, "dose", True), ("country", 12, "year", True), ("tree", 10, "date", True), ("tree", 8, "date", False),
    ("year", 30, "plot", False), ("age", 30, "sex", False), ("score", 30, "sex", False),
])  # fmt: skip
def test_two_columns_that_tell_all_rows_apart_are_unit_and_time(
    unit: str, units: int, other: str, is_asked: bool
) -> None:
    """Whatever the unit is called; not counts by traits of people, nor what a time or trial has."""
    rows = range(240 // units * units)
    columns = {
        unit: [row * 7 % units for row in rows],
        other: [row // units for row in rows],
        "y": [row * 37 % 101 / 7 for row in rows],
    }
    assert candidates(columns) == ([unit] if is_asked else [])
    most = {name: values[: len(rows) * 4 // 5] for name, values in columns.items()}
    assert candidates(most) == ([unit] if is_asked else [])
    again = {name: [*values, values[0]] for name, values in columns.items()}
    assert candidates(again) == []


def test_the_unit_of_a_panel_of_many_times_is_not_the_time() -> None:
    columns = {"shop": [row % 12 for row in ROWS], "month": [row // 12 for row in ROWS],
               "y": [row * 37 % 101 / 7 for row in ROWS]}  # fmt: skip
    assert candidates(columns) == ["shop"]


def test_a_count_of_what_did_not_happen_is_no_number() -> None:
    assert [said_by(name) for name in ("No rearrest", "No", "patient no", "No patient")] == [
        Says.NOTHING, Says.ID, Says.PERSON, Says.PERSON,
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "says"), [
    ("drivers", Says.OTHER), ("AirPassengers", Says.OTHER), ("Personal", Says.OTHER), ("driver", Says.PERSON),
    ("Number.thousands", Says.NOTHING), ("nrAdvE", Says.NOTHING), ("NoVaccTB", Says.NOTHING),
    ("Kunden-Nr.", Says.PERSON), ("mother", Says.RELATIVE), ("patient", Says.PERSON), ("id_paciente", Says.PERSON),
])  # fmt: skip
def test_numbers_of_people_are_not_people(name: str, says: Says) -> None:
    """How many drivers there were, or how many thousands, names nobody; a mother may be that of several rows."""
    assert said_by(name) is says


def test_the_parents_of_a_row_are_not_its_person() -> None:
    parents = {"mother": [900 + row * 7 % 43 for row in ROWS], "father": [300 + row * 5 % 38 for row in ROWS]}
    children = {"id": list(ROWS)[::-1], **parents, "sex": ["f", "m"] * 120}
    one = found(children)
    assert one.person is not None
    assert one.person.column == "id"
    assert {"mother", "father"} <= one.identifiers
    assert set(candidates({name: values for name, values in children.items() if name != "id"})) == {*parents}


@pytest.mark.parametrize(("name", "is_asked"), [
    ("Name", True), ("business_name", True), ("short_name", True), ("city_name", False), ("product name", False),
])  # fmt: skip
def test_names_that_repeat_may_be_people(name: str, is_asked: bool) -> None:
    columns = {
        name: [f"{'ABCDEFGHIJ'[row % 10]}nna {chr(65 + row // 20)}o" for row in ROWS],
        "score": [row % 17 for row in ROWS],
    }
    assert candidates(columns) == ([name] if is_asked else [])


@pytest.mark.parametrize(
    ("name", "other", "is_person"),
    [("name", "age", True), ("name", "date_of_birth", True), ("patient_name", "ward", True),
     ("name", "horsepower", False), ("school_name", "age", False)],
)  # fmt: skip
def test_a_name_in_each_row_is_a_person_among_columns_about_people(name: str, other: str, is_person: bool) -> None:
    one = found({name: [f"Ann Miller{row}" for row in ROWS], other: [20 + row % 50 for row in ROWS]})
    assert ((one.person.column if one.person else None) == name) is is_person
    assert not one.is_sure
    assert one.candidates == ()


def test_many_small_numbers_are_people_and_few_are_counts() -> None:
    """Customers 0 to 149 occur as often as each other; of counts the small ones are the common ones."""
    draw = np.random.default_rng(5)
    others = {"product": draw.integers(0, 25, 600)}
    assert found({"customer": draw.integers(0, 150, 600).tolist(), **others}).person is not None
    assert found({"customer": draw.geometric(0.02, 600).tolist(), **others}).person is None


@pytest.mark.parametrize(("counts", "is_person"), [([row % 12 for row in range(200)] + [0] * 40, False),
                                                   ([300 + row % 24 for row in ROWS], True)])  # fmt: skip
def test_a_number_of_children_is_no_child(counts: list[int], is_person: bool) -> None:
    one = found({"child": counts, "age": [20 + row * 11 % 50 for row in ROWS]})
    assert (one.person is not None) is is_person


def test_a_counter_within_groups_is_asked_about_under_the_name_of_a_person() -> None:
    sizes = [9, 13, 16, 22] * 4
    numbers = [number for size in sizes for number in range(1, size + 1)]
    assert candidates({"pupilnr": numbers}) == ["pupilnr"]
    assert candidates({"x": numbers}) == []


def test_evidence_has_counts_and_no_values() -> None:
    one = found({"kod": [f"K{number}" for number in each(4)], "born": [number % 50 for number in each(4)]})
    assert one.person is not None
    assert one.person.evidence == (
        "its name; 60 different ones, 4.0 rows each, one after another; the same in all rows of one: 'born'"
    )


def test_addresses_are_people_of_a_log_only() -> None:
    hosts = [f"h{row * 7 % 40}.example" for row in ROWS]
    log = {"host": hosts, "time": [1_772_000_000 + 60 * row for row in ROWS]}
    one = found(log, "time")
    assert one.person is not None
    assert one.person.column == "host"
    assert candidates({"host": hosts}) == ["host"]


def test_rows_one_after_another_on_which_one_column_depends_are_asked_about() -> None:
    """Units have different numbers of rows, so no other column makes a panel complete."""
    owners = [owner for owner in range(60) for _ in range(1 + owner % 5)]
    columns: dict[str, list[Any]] = {
        "v1": [f"a{owner:02}" for owner in owners],
        "v2": ["x" if owner % 3 else "y" for owner in owners],
        "v3": [row * 37 % 101 / 10 for row in range(len(owners))],
    }
    assert candidates(columns) == ["v1"]
    order = sorted(range(len(owners)), key=lambda row: row * 7919 % 1009)
    assert candidates({name: [values[row] for row in order] for name, values in columns.items()}) == []
