"""What columns are taken for: missing words, spellings, sensitive names, codes, repeated columns."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from shoal.inspection import Wishes, look, propose
from shoal.inspection.columns.derived import find_derived
from shoal.inspection.columns.numeric_codes import has_code_name, is_code
from shoal.inspection.columns.sensitive_names import has_sensitive_values, is_sensitive_name, is_surely_sensitive_name
from shoal.inspection.files.csv_spelling import encoding_of, spelling_of
from shoal.inspection.files.missing_words import as_nulls, missing_words
from shoal.inspection.files.reading import read_data


def texts(values):
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def missing(values):
    return missing_words({"column": texts(values)}).get("column", [])


def facts_of(**columns):
    return look(pa.table({name: texts(values) for name, values in columns.items()}), converts=True)


# ---- words that mean missing


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["red", "blue", "n/a"], ["n/a"]),
        (["ledig", "k. A.", "Unbekannt"], ["Unbekannt", "k. A."]),
        ([*range(20, 60), "refused", "refused"], ["refused"]),
        ([*range(20, 60), "10 or more"], []),  # a number, although it is not exact
        ([*range(20, 60), "under", "over", "equal", "same"], []),  # too many words
        ([*range(20, 60), -999, -999], ["-999"]),
        ([-12, -7, 0, 3, 5, 9, -999, -999], ["-999"]),
        ([-300, -12, 0, 3, 5, 9, -999, -999], []),  # not far from the others
        ([1, 2, 3, 4, 5, -1, -1, -2, -2], ["-1", "-2"]),
        ([0, 1, 2, 3, 4, 5, -1, -1], []),  # one below 0: a difference
        ([0, 1, 2, 3, 4, 5, -9, -9], ["-9"]),
        ([1, 2, 3, 4, 5, 9, 9], ["9"]),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 9], []),
        ([18, 30, 45, 60, 999, 999], ["999"]),
        ([18, 30, 45, 80, 99, 99], []),
        ([1950, 1990, 2003, 9999, 9999], ["9999"]),
        ([1950, 1990, 2003, 9999], []),  # once: it may be a value
        (["2024-01-01", "2025-05-05", "9999-12-31"], ["9999-12-31"]),
        (["01.02.2024", "31.12.9999"], ["31.12.9999"]),
        (["DE", "NA", "ZA"], []),  # Namibia
        (["?", "?"], []),  # nothing else is there
    ],
)
def test_words_that_mean_missing(values, words):
    assert missing(values) == words


def test_words_are_for_all_columns_only_where_no_other_column_has_them():
    table = {"a": texts(["x", "?"]), "b": texts(["y", "z"])}
    assert as_nulls(missing_words(table), table) == ["?"]
    table = {"a": texts(["x", "y", "NA"]), "b": texts(["DE", "NA"])}
    assert as_nulls(missing_words(table), table) == {"a": ["NA"]}
    table = {"a": texts([1, 2, 3, 4, 9, 9]), "b": texts([7, 8])}
    assert as_nulls(missing_words(table), table) == {"a": ["9"]}


# ---- characters, numbers, dates


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("Größe;€".encode(), "utf-8"),
        ("Größe".encode()[:3], "utf-8"),  # cut within a character
        ("Größe; 5".encode("latin-1"), "latin-1"),
        ("Preis; 5 €; größer".encode("cp1252"), "cp1252"),
        (b"\xff\xfea\x00", "utf-8"),  # UTF-16, which the decoder names
        (b"\x89PNG\x00\x01\xfe", None),
    ],
)
def test_encodings(head, encoding):
    assert encoding_of(head) == encoding


def test_another_encoding_is_found_although_the_file_begins_in_ascii(tmp_path):
    path = tmp_path / "late.csv"
    path.write_bytes(b"id,town\n" + b"1,Bern\n" * 60_000 + "2,Zürich\n".encode("latin-1"))
    data = read_data(path, 1_000_000)
    assert data.source["encoding"] == "cp1252"
    assert data.table.column("town")[-1].as_py() == "Zürich"


@pytest.mark.parametrize(
    ("columns", "source"),
    [
        ({"a": ["1,5", "2,25"], "b": ["1.234", "7"]}, {"decimal": ","}),
        ({"a": ["1,5", "2,25"], "b": ["1.5", "2.25"]}, {}),  # both: it is not clear
        ({"a": ["x, y", "1,5"]}, {}),
        ({"d": ["3.4.2020", "31.12.1999 10:30"]}, {"dates": {"d": "DD.MM.YYYY"}}),
        ({"d": ["03/04/2020", "25/12/1999"]}, {"dates": {"d": "DD/MM/YYYY"}}),
        ({"d": ["03/04/2020", "12/25/1999"]}, {"dates": {"d": "MM/DD/YYYY"}}),
        ({"d": ["03/04/2020", "05/06/1999"]}, {}),  # either
        ({"d": ["20200304", "19991225", "20200101"]}, {"dates": {"d": "YYYYMMDD"}}),
        ({"d": ["20200304", "19991325", "20200101"]}, {}),
        ({"d": ["10.11.2020", "x", "y"]}, {}),
        ({"d": ["2020-01-01", "2021-01-01"]}, {}),
        ({"v": ["1.2.3.4", "10.0.0.1"]}, {}),
    ],
)
def test_spellings(columns, source):
    assert spelling_of({name: texts(values) for name, values in columns.items()}).source == source


def test_spelled_columns_are_read_as_a_run_reads_them():
    columns = {"a": texts(["1.234,5", None]), "d": texts(["3.4.2020", "31.12.1999"]), "t": texts(["x", "1,5"])}
    found = spelling_of(columns).apply(columns)
    assert found["a"].to_pylist() == ["1234.5", None]
    assert found["d"].to_pylist() == ["2020-04-03", "1999-12-31"]
    assert found["t"].to_pylist() == ["x", "1,5"]


# ---- kinds


def test_a_column_is_whole_only_if_every_value_is():
    hours = [*range(1, 49)] * 50
    assert facts_of(hours=hours)["hours"].kind == "whole"
    assert facts_of(hours=[*hours, "7.5"])["hours"].kind == "number"


@pytest.mark.parametrize("values", [["0", "1"], ["1", "2"], ["0.0", "1.0"], ["TRUE", "FALSE"]])
def test_two_values_are_a_category_in_every_spelling(values):
    facts = facts_of(age=[20 + row % 40 for row in range(200)], flag=[values[row % 2] for row in range(200)])
    rule = propose(facts, Wishes(person="row")).anonymize["quasi"]["flag"]
    assert rule["kind"] == "categorical"
    assert set(rule["hierarchy"]["tree"]["*"]) == set(values)


def test_booleans_of_a_table_are_a_category():
    rows = range(200)
    table = pa.table({"age": [20 + row % 40 for row in rows], "flag": [row % 3 == 0 for row in rows]})
    rule = propose(look(table), Wishes(person="row")).anonymize["quasi"]["flag"]
    assert set(rule["hierarchy"]["tree"]["*"]) == {"true", "false"}


def test_floats_of_a_table_stay_numbers():
    """A run reads labels from texts, whole numbers and booleans only."""
    rows = range(200)
    table = pa.table({"age": [20 + row % 40 for row in rows], "flag": [float(row % 2) for row in rows]})
    assert propose(look(table), Wishes(person="row")).anonymize["quasi"]["flag"]["kind"] == "numeric"


# ---- codes


@pytest.mark.parametrize(
    "name",
    ["district", "venue", "Country", "STATIONS_ID", "PLZ", "schoolnr", "ind_code", "län", "código_postal", "stratum"],
)
def test_names_of_codes(name):
    assert has_code_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "age",
        "no_of_children",
        "number of rooms",
        "hours.per.week",
        "class_size",
        "stops",
        "population",
        "country_gdp_rate",
    ],
)
def test_names_of_quantities(name):
    assert not has_code_name(name)


def test_codes_are_texts_as_the_file_spells_them():
    facts = facts_of(venue=[1204, 1207, 1311, 2250] * 50, age=[20 + row % 40 for row in range(200)])
    assert is_code(facts["venue"])
    assert not is_code(facts["age"])
    rule = propose(facts, Wishes(person="row")).anonymize["quasi"]["venue"]
    assert rule["kind"] == "categorical"


def test_a_tree_of_codes_has_prefixes():
    codes = [10115, 10117, 10243, 20095, 20099, 80331, 80333] * 30
    rule = propose(facts_of(plz=codes), Wishes(person="row")).anonymize["quasi"]["plz"]
    below = rule["hierarchy"]["tree"]["*"]
    assert set(below) == {"1****", "2****", "8****"}
    assert below["1****"]["10***"] == {"101**": {"1011*": {"10115": None, "10117": None}}, "10243": None}


def test_a_few_whole_numbers_without_a_telling_name_are_asked_about():
    facts = facts_of(age=[20 + row % 40 for row in range(200)], plb0022=[1 + row % 5 for row in range(200)])
    questions = propose(facts, Wishes(person="row")).questions
    assert any("are the numbers of 'plb0022' quantities?" in question for question in questions)


# ---- sensitive


@pytest.mark.parametrize(
    "name",
    [
        "income", "Salary", "hourly_wage", "lwage", "ln_wage", "Monatseinkommen", "revenu_mensuel", "reddito", "palkka",
        "zarobki", "mzda", "Hauptdiagnose", "diagnóstico", "icd10", "ATC", "hiv_status", "religion", "Konfession",
        "wyznanie", "prtvt", "vote", "poglądy", "offence", "brott", "debts", "skulder", "betyg", "cijfer", "G_mark",
        "median_income", "family_income", "household.income",
    ],
)  # fmt: skip
def test_sensitive_names(name):
    assert is_sensitive_name(name)


@pytest.mark.parametrize(
    "name",
    ["age", "class_size", "age_at_diagnosis", "diagnosis_date", "city", "environmental_zone", "survival", "still_open",
     "department", "experimental_group", "discrimination_index", "height", "user_id", "wage_year"],
)  # fmt: skip
def test_names_that_are_not_sensitive(name):
    assert not is_sensitive_name(name)


def test_a_name_with_several_meanings_does_not_overrule_what_others_know():
    assert is_surely_sensitive_name("family_income")
    assert not is_surely_sensitive_name("house_condition")


@pytest.mark.parametrize(
    ("values", "are_named", "expected"),
    [
        (["catholic", "muslim", "none"], False, True),
        (["HIV", "asthma", "flu"], False, True),
        (["F32.1", "I10", "E11.9"], False, True),
        (["A10", "B20", "C30"], False, False),  # seats
        (["F32.1", "I10"], True, False),
        (["N06AB04", "A10BA02"], False, True),
        (["red", "green"], False, False),
    ],
)
def test_sensitive_values(values, are_named, expected):
    assert has_sensitive_values(values, are_named=are_named) is expected


def people(rows=400, **columns):
    return facts_of(age=[20 + row % 40 for row in range(rows)], **columns)


def role_of(found, name):
    return next(one for one in found.roles if one.column == name)


def test_own_values_are_counted_among_those_that_are_there():
    """Most wages are missing; nearly all that are there are somebody's own."""
    wages = [None if row % 30 else 2000 + 7 * row for row in range(400)]
    found = propose(people(wage=wages), Wishes(person="row"))
    role = role_of(found, "wage")
    assert (role.role, role.is_generalized) == ("sensitive", True)
    assert found.anonymize["sensitive"] == ["wage"]
    assert found.anonymize["quasi"]["wage"]["kind"] == "numeric"
    assert found.anonymize["l"] == 2


def test_a_sensitive_number_of_few_values_stays_as_it_is():
    found = propose(people(grade=[1 + row % 6 for row in range(400)]), Wishes(person="row"))
    assert found.anonymize["sensitive"] == ["grade"]
    assert "grade" not in found.anonymize["quasi"]


def test_diversity_is_not_required_of_more_values_than_can_be_counted():
    found = propose(people(5000, wage=[2000 + 7 * row for row in range(5000)]), Wishes(person="row"))
    assert "sensitive" not in found.anonymize
    assert "wage" in found.anonymize["quasi"]
    part = propose(people(wage=[2000 + 7 * row for row in range(400)]), Wishes(person="row", sees_all=False))
    assert "sensitive" not in part.anonymize


def test_a_guess_does_not_cost_most_of_the_rows():
    """Of 400 rows 1% are ill: groups of five with both values could hold few rows."""
    ill = ["yes" if row % 100 == 0 else "no" for row in range(400)]
    found = propose(people(illness=ill), Wishes(person="row"))
    role = role_of(found, "illness")
    assert role.role == "drop"
    assert "name it as sensitive to publish it" in role.reason
    stated = propose(people(illness=ill), Wishes(person="row", sensitive=["illness"]))
    assert stated.anonymize["sensitive"] == ["illness"]
    assert any("of the rows, because most have the same 'illness'" in one for one in stated.questions)
    even = propose(people(illness=["yes" if row % 3 == 0 else "no" for row in range(400)]), Wishes(person="row"))
    assert even.anonymize["sensitive"] == ["illness"]
    assert not any("suppresses" in question for question in even.questions)


# ---- repeated columns


@pytest.mark.parametrize(
    ("compute", "form"),
    [
        (math.log, "the logarithm of 'a'"), (math.log10, "the decimal logarithm of 'a'"),
        (lambda v: v * v, "the square of 'a'"),
        (lambda v: v * v / 100, "the square in hundreds of 'a'"), (lambda v: v**3, "the cube of 'a'"),
    ],
)  # fmt: skip
def test_logarithms_and_powers_are_found(compute, form):
    values = [1 + (row * 37) % 101 for row in range(300)]
    holes = [None if row % 7 == 0 else value for row, value in enumerate(values)]
    made = [None if value is None else round(compute(value), 4) for value in holes]
    assert find_derived(facts_of(a=holes, b=made)) == {"b": form}


def test_other_columns_are_not_taken_for_repeated_ones():
    values = [1 + (row * 37) % 101 for row in range(300)]
    near = [value * value + row % 5 * 50 for row, value in enumerate(values)]
    holes = [None if row == 3 else value * value for row, value in enumerate(values)]
    flags = [value % 2 for value in values]
    assert find_derived(facts_of(a=values, b=near)) == {}
    assert find_derived(facts_of(a=values, b=holes)) == {}
    assert find_derived(facts_of(a=flags, b=flags)) == {}


# ---- reasons


def test_without_a_quasi_identifier_every_column_has_its_reason():
    facts = facts_of(email=[f"p{row}@mail.example" for row in range(40)], note=[None] * 40, same=["x"] * 40)
    with pytest.raises(Exception, match="no column can serve") as caught:
        propose(facts, Wishes(person="row"))
    assert list(caught.value.problems[1:]) == [
        "column 'email': another identifier",
        "column 'note': it has no values",
        "column 'same': all its values are equal",
    ]
