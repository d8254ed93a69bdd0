"""What `init` takes columns for: sensitive ones, codes, kinds, words that mean missing; and what that costs a run."""

from __future__ import annotations

import csv
import json

import pytest

from shoal import audit
from tests.e2e.scene import shoal
from tests.first_release.choices import Choice, choice, columns_of
from tests.first_release.table import CASES

ROWS = {"tuples", "flexible"}
"""Families that publish columns by their roles; the others publish values or sets alone."""
MOST_WRONG = 3

every_file = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def choices(folder):
    """The files that are not refused, with what is expected of each column."""
    for case in CASES:
        found = choice(case, folder)
        if isinstance(found, Choice):
            for column in columns_of(case):
                yield case, found, column


def written_in(case, found, name):
    """The different cells of a column as the file has them, read without shoal."""
    reading = case.reading
    with found.path.open(encoding=reading.encoding, newline="") as file:
        rows = list(csv.reader(file, delimiter=reading.separator))
    place = [column.name for column in columns_of(case)].index(name)
    return {row[place].strip() for row in rows[int(reading.has_header) :] if len(row) > place}


def asked(found, name):
    return any(repr(name) in question for question in found.proposal.questions)


def test_files_are_refused_only_with_a_reason_that_is_expected(folder):
    refused = [case.name for case in CASES if isinstance(choice(case, folder), str)]
    assert set(refused) == {"header_only.csv", "zero_rows.parquet", "one_row.csv", "guests.csv"}
    for case in CASES:
        assert case.expected.may_refuse or case.name not in refused


def test_a_refusal_gives_the_reason_for_each_column(folder):
    (case,) = (case for case in CASES if case.name == "guests.csv")
    assert choice(case, folder).splitlines()[1:] == ["column 'name': it names people directly"]


def test_sensitive_columns_are_taken_for_sensitive(folder):
    wrong = [
        (case.name, column.name) for case, found, column in choices(folder)
        if found.proposal.family in ROWS and column.must_be_sensitive and "sensitive" not in found.roles(column.name)
    ]  # fmt: skip
    assert len(wrong) <= MOST_WRONG, wrong


def test_other_columns_are_not_taken_for_sensitive(folder):
    """Where it is not clear, a column is both: published as ranges, and different in every group."""
    wrong = [
        (case.name, column.name) for case, found, column in choices(folder)
        if "sensitive" in found.roles(column.name) and "sensitive" not in column.roles
        and found.kind(column.name) is None
    ]  # fmt: skip
    assert wrong == []


def test_no_number_that_most_people_have_alone_is_published_exactly(folder):
    """Of the values that are there: wages.csv lacks 43% of its wages."""
    for case, found, column in choices(folder):
        facts = found.facts[column.name]
        is_published = found.roles(column.name) & {"sensitive", "carry"} and found.kind(column.name) is None
        if is_published and facts.is_number:
            known = facts.values.drop_null().to_pylist()
            own = sum(known.count(value) == 1 for value in set(known))
            assert own <= 0.5 * len(known), (case.name, column.name)


@pytest.mark.parametrize(
    ("name", "column", "reason"),
    [
        ("wages.csv", "lwage", "the logarithm of 'wage'"),
        ("wages.csv", "expersq", "the square of 'exper'"),
    ],
)
def test_logarithms_and_squares_are_not_published(name, column, reason, folder):
    (case,) = (case for case in CASES if case.name == name)
    (role,) = (role for role in choice(case, folder).proposal.roles if role.column == column)
    assert (role.role, role.reason) == ("drop", reason)


def test_codes_are_no_quantities_unless_that_is_asked(folder):
    wrong = [
        (case.name, column.name) for case, found, column in choices(folder)
        if found.kind(column.name) == "numbers" and "numeric" not in column.kinds and not asked(found, column.name)
    ]  # fmt: skip
    assert wrong == []


def test_booleans_are_categories(folder):
    for case, found, column in choices(folder):
        if column.kinds[0] == "boolean" and found.kind(column.name) is not None:
            assert found.kind(column.name) == "tree", (case.name, column.name)


def test_words_that_mean_missing_are_proposed(folder):
    for case, found, column in choices(folder):
        assert set(column.missing) <= found.missing(column.name), (case.name, column.name)


def test_no_other_value_is_taken_for_a_missing_one(folder):
    """A word may be listed for all columns where no other column has it."""
    for case, found, column in choices(folder):
        if case.reading.format == "csv":
            written = set(written_in(case, found, column.name))
            assert found.missing(column.name) & written <= set(column.missing), (case.name, column.name)


@every_file
def test_a_run_loses_no_rows_to_a_type_and_its_audit_agrees(case, folder, tmp_path, monkeypatch):
    found = choice(case, folder)
    if isinstance(found, str):
        return
    monkeypatch.chdir(tmp_path)
    person = [] if found.person is None else ["--person", found.person]
    assert shoal("init", found.path, "--yes", *person).code in (0, 1)
    ended = shoal("run", "policy.toml", "--quiet", "--json")
    summary = json.loads(ended.out)
    assert summary["dead"] == 0, summary["dead_by_reason"]
    (released,) = (path for path in tmp_path.glob("released.*") if path.name.count(".") == 1)
    report = audit(released, truth=found.path, trace=tmp_path / "trace.parquet", policy=tmp_path / "policy.toml")
    assert report.ok
    assert "dead-without-cause" not in {finding.code for finding in report.findings}
