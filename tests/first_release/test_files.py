"""The table itself: files are written as described, and what is expected of them is true of their content."""

from __future__ import annotations

import csv
import io
import re
from functools import cache

import pandas as pd
import pytest
from pyarrow import parquet

from tests.first_release.expected import ASK, KINDS, METHODS, ROLES, ROW
from tests.first_release.table import CASES, TRAITS

LOG_LINE = re.compile(r'(\S+) (\S+) (\S+) \[([^]]+)\] "([^"]*)" (\d+) (\d+|-)(?: "([^"]*)" "([^"]*)")?')
NUMBER = re.compile(r"-?\d+(\.\d+)?")

every_file = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


@cache
def columns_of(case, folder):
    """Cells by the place of their column, read back from the file as text; None for those that are empty."""
    path = case.write(folder)
    reading = case.reading
    if reading.format == "parquet":
        return _cells(parquet.read_table(path).to_pandas().astype(object).itertuples(index=False), case)
    if reading.format == "jsonl":
        frame = pd.read_json(path, lines=True, dtype=False)
        return _cells(frame.itertuples(index=False), case)
    text = path.read_text(encoding=reading.encoding)
    if reading.format == "items":
        return [text.splitlines()]
    if reading.format in ("common log", "combined log"):
        return _cells([LOG_LINE.fullmatch(line).groups() for line in text.splitlines()], case)
    frame = pd.read_csv(
        io.StringIO(text), sep=reading.separator, header=None, skiprows=int(reading.has_header), dtype=str,
        keep_default_na=False, names=range(len(case.expected.columns)), index_col=False,
    )  # fmt: skip
    return _cells(frame.itertuples(index=False), case)


def _cells(rows, case):
    rows = list(rows)
    width = len(case.expected.columns)
    return [[_text_of(row[place]) for row in rows] for place in range(width)]


def _text_of(cell):
    is_empty = cell is None or (not isinstance(cell, list) and pd.isna(cell)) or cell == ""
    return None if is_empty else str(cell)


def described(case, folder):
    """Expected columns, each with the values that are there."""
    for column, cells in zip(case.expected.columns, columns_of(case, folder), strict=True):
        yield column, [cell for cell in cells if cell is not None and cell not in column.missing]


def cells_of(case, folder, name):
    place = [column.name for column in case.expected.columns].index(name)
    return columns_of(case, folder)[place]


def test_there_are_many_files_with_different_names():
    assert len(CASES) >= 60
    assert len({case.name.lower() for case in CASES}) == len(CASES)


def test_every_trait_is_covered_and_listed():
    assert set().union(*(case.traits for case in CASES)) == TRAITS


def test_questions_are_the_exception():
    """A fifth of the files may be asked about, those where asking is acceptable are few more."""
    assert sum(case.expected.may_ask for case in CASES) <= 0.3 * len(CASES)
    assert sum(case.expected.persons == (ASK,) for case in CASES) <= 0.05 * len(CASES)


@every_file
def test_a_file_is_the_same_every_time(case, tmp_path):
    (tmp_path / "again").mkdir()
    assert case.write(tmp_path).read_bytes() == case.write(tmp_path / "again").read_bytes()


@every_file
def test_expectations_use_the_words_of_the_table(case):
    expected = case.expected
    assert expected.columns
    for column in expected.columns:
        assert set(column.roles) <= set(ROLES)
        assert set(column.kinds) <= set(KINDS)
    assert set(expected.methods) <= set(METHODS)
    assert expected.reason.endswith(".")
    assert "\n" not in expected.reason
    assert set(expected.persons) - {column.name for column in expected.columns} <= {ROW, ASK}


@every_file
def test_a_person_has_that_role_and_nothing_else_must_have_it(case):
    expected = case.expected
    persons = [person for person in expected.persons if person not in (ROW, ASK)]
    for person in persons:
        assert "person" in expected.column(person).roles
    certain = [column.name for column in expected.columns if column.roles == ("person",)]
    assert set(certain) <= set(persons)


@every_file
def test_the_header_is_as_listed(case, folder):
    names = [column.name for column in case.expected.columns]
    reading = case.reading
    path = case.write(folder)
    if reading.format == "parquet":
        assert parquet.read_schema(path).names == names
    elif reading.format == "jsonl":
        assert list(pd.read_json(path, lines=True).columns) == names
    elif reading.has_header:
        with path.open(encoding=reading.encoding, newline="") as file:
            first = next(csv.reader(file, delimiter=reading.separator))
        assert first == (names[1:] if reading.is_header_short else names)
    else:
        assert reading.format != "csv" or names == [f"column{place}" for place in range(1, len(names) + 1)]


@every_file
def test_the_number_of_rows_is_small_but_enough(case, folder):
    count = len(columns_of(case, folder)[0])
    tiny = {"0 rows": 0, "header only": 0, "1 row": 1}
    if few := case.traits & set(tiny):
        assert count == tiny[next(iter(few))]
    else:
        assert 50 <= count <= 410 or case.name == "very_late_decimals.csv"


@every_file
def test_values_are_of_the_kind(case, folder):
    """Numbers and booleans must look like it; a column without any number is none."""
    sign = case.reading.decimal
    for column, values in described(case, folder):
        if column.kinds[0] == "numeric":
            assert all(NUMBER.fullmatch(value.replace(sign, ".")) for value in values), column.name
        if column.kinds[0] == "boolean" and values:
            assert len(set(values)) == 2, column.name
        if column.kinds == ("category",) and column.roles != ("items",):
            assert len(set(values)) <= 30, column.name


@every_file
def test_words_that_mean_missing_occur(case, folder):
    for column, cells in zip(case.expected.columns, columns_of(case, folder), strict=True):
        for word in column.missing:
            assert 0 < cells.count(word) < len(cells), (column.name, word)


@every_file
def test_row_numbers_count_the_rows(case, folder):
    for column, values in described(case, folder):
        if column.roles[0] == "row number":
            first = int(values[0])
            assert first in (0, 1)
            assert list(map(int, values)) == list(range(first, first + len(values)))


@every_file
def test_persons_are_many_and_repeat_as_stated(case, folder):
    """k people must be found in the file; a person has several rows only where the traits say so."""
    persons = [person for person in case.expected.persons if person not in (ROW, ASK)]
    for person in persons:
        cells = cells_of(case, folder, person)
        repeats = len(set(cells)) < len(cells)
        assert repeats == ("several rows a person" in case.traits), person
        assert len(cells) < 50 or len(set(cells)) >= 18, person
        assert None not in cells


@every_file
def test_rows_are_people_only_where_no_column_says_who(case):
    certain = [column.name for column in case.expected.columns if column.roles[0] == "person"]
    if case.expected.persons == (ROW,):
        assert certain == []
    if case.expected.about_people is False:
        assert case.expected.persons[0] == ROW
        assert not any("person" in column.roles for column in case.expected.columns)


@every_file
def test_identifiers_are_mostly_unique_or_stand_for_another_person(case, folder):
    """A column with a handful of values identifies nobody; marks of unused fields are excepted."""
    for column, values in described(case, folder):
        is_unused = case.reading.format.endswith("log")
        if column.roles[0] == "identifier" and len(values) >= 50 and not is_unused:
            assert len(set(values)) >= 18, column.name


def by_name(name):
    return next(case for case in CASES if case.name == name)


@pytest.mark.parametrize("name", ["late_decimals.csv", "very_late_decimals.csv"])
def test_decimals_come_late(name, folder):
    hours = cells_of(by_name(name), folder, "weekly_hours")
    decimals = [place for place, hour in enumerate(hours) if "." in hour]
    assert len(decimals) == 2
    assert min(decimals) > 0.98 * len(hours)


@pytest.mark.parametrize(
    ("name", "person", "others"),
    [
        ("unnamed_panel.csv", "v1", ["v2", "v3"]),
        ("kod_panel.csv", "kod", ["g", "jahrgang"]),
        ("young_women.csv", "idcode", ["birth_yr", "race"]),
        ("household_panel.csv", "pid", ["hid", "gebjahr", "sex"]),
        ("maths_schools.csv", "pupil", ["school", "minority"]),
        ("doctors_patients.csv", "patient_id", ["patient_sex", "patient_birth_year"]),
        ("trips.csv", "vehicle", ["licence_plate"]),
        ("admissions_bare.txt", "column1", ["column2"]),
    ],
)
def test_other_columns_depend_on_the_person(name, person, others, folder):
    owners = cells_of(by_name(name), folder, person)
    for other in others:
        pairs = set(zip(owners, cells_of(by_name(name), folder, other), strict=True))
        assert len(pairs) == len(set(owners)), other


def test_encodings_are_what_they_are_called(folder):
    latin = [case for case in CASES if case.reading.encoding == "latin-1"]
    assert len(latin) == 2
    for case in latin:
        with pytest.raises(UnicodeDecodeError):
            case.write(folder).read_text(encoding="utf-8")
    assert by_name("enquete.csv").write(folder).read_bytes().startswith(b"\xef\xbb\xbf")


def test_every_row_of_the_doubled_file_occurs_twice(folder):
    rows = list(zip(*columns_of(by_name("twice.csv"), folder), strict=True))
    assert rows[::2] == rows[1::2]


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [("calls.csv", "caller", "callee"), ("sales_between.csv", "seller", "buyer"), ("friends.csv", "from", "to")],
)
def test_two_people_of_a_row_differ(name, one, other, folder):
    rows = list(zip(*(cells_of(by_name(name), folder, column) for column in (one, other)), strict=True))
    assert all(first != second for first, second in rows)
    assert {first for first, _ in rows} & {second for _, second in rows}


def test_pupils_of_a_school_have_one_row_each(folder):
    case = by_name("pupils_restart.csv")
    schools, pupils = (cells_of(case, folder, name) for name in ("schoolnr", "pupilnr"))
    assert len(set(zip(schools, pupils, strict=True))) == len(schools)
    assert len(set(pupils)) < len(schools) / 5


def test_logins_differ_in_case_alone(folder):
    logins = set(cells_of(by_name("by_login.csv"), folder, "userName"))
    assert len({login.lower() for login in logins}) < len(logins)


def test_wages_are_mostly_unique_where_they_are_there(folder):
    wages = [cell for cell in cells_of(by_name("wages.csv"), folder, "wage") if cell]
    assert 100 < len(wages) < 250
    assert len(set(wages)) > 0.9 * len(wages)


def test_measurements_of_wearables_are_mostly_missing(folder):
    columns = columns_of(by_name("wearables.csv"), folder)[4:]
    assert all(column.count(None) > 0.6 * len(column) for column in columns)


def test_bare_files_repeat_the_words_of_their_first_line(folder):
    """Otherwise nobody could tell that words are a record and not a header."""
    for column in columns_of(by_name("words_bare.csv"), folder):
        assert column.count(column[0]) > 5
