"""Where rows are counted as people: another column that looks like the person is counted in every class."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from shoal.auditor import audit, audit_table
from shoal.auditor.people_in_rows import NOT_CHECKED, looks_like_a_person

ROWS = 240


def column(make, repeats=4):
    return pa.chunked_array([pa.array([make(row // repeats) for row in range(ROWS)], pa.large_string())])


@pytest.mark.parametrize(
    ("name", "values", "looks"),
    [
        ("user", column("u{}".format), True),
        ("userId", column(str), True),
        ("patient_id", column(str), True),
        ("Kunde", column(str), True),
        ("x", column("p{:03}".format), True),
        ("x", column("u{}@mail.example".format), True),
        ("x", column("{:032x}".format), True),
        ("x", column("10.0.0.{}".format), True),
        ("x", column("02:42:ac:11:00:{:02x}".format), True),
        ("label", column(str, repeats=2), True),  # 120 numbers without gaps
        ("user", column("u{}".format, repeats=1), False),  # nobody has two rows
        ("x", column(str), False),  # 60 numbers, which may be ages
        ("x", column("a{}b".format), False),
        ("user_agent", column(str, repeats=2), False),
        ("zone", column(str, repeats=2), False),
        ("customer type", column("p{:03}".format), False),
        ("user", pa.chunked_array([pa.nulls(ROWS, pa.large_string())]), False),
        ("user", pa.chunked_array([pa.array([], pa.large_string())]), False),
    ],
)
def test_what_looks_like_a_person(name, values, looks):
    assert looks_like_a_person(name, values) is looks


def table():
    """In the class of 20s five rows each are of two people; in the 30s two rows each are of six."""
    people = [f"p{row % 2}" for row in range(10)] + [f"p{row % 6}" for row in range(12)]
    return pa.table({"age": ["20-29"] * 10 + ["30-39"] * 12, "patient": people, "ill": ["flu"] * 22})


def expected(shown):
    crowds = {age: {row["patient"] for row in shown.to_pylist() if row["age"] == age} for age in ("20-29", "30-39")}
    return [row for row, each in enumerate(shown.to_pylist()) if len(crowds[each["age"]]) < 4]


@pytest.mark.parametrize("kind", ["memory", "batches", "csv", "parquet", "jsonl", "arrow"])
def test_rows_of_few_people_in_a_table(tmp_path, kind):
    shown = table()
    given = {"memory": shown, "batches": [shown.slice(0, 7), shown.slice(7)]}.get(kind, tmp_path / f"table.{kind}")
    if kind == "csv":
        csv.write_csv(shown, given)
    elif kind == "parquet":
        parquet.write_table(shown, given)
    elif kind == "jsonl":
        given.write_text("".join(json.dumps(row) + "\n" for row in shown.to_pylist()))
    elif kind == "arrow":
        with pa.ipc.new_file(given, shown.schema) as file:
            file.write_table(shown)
    report = audit_table(given, quasi="age", k=4)
    (found,) = report.findings
    rows = expected(shown)
    assert (found.code, found.severity, found.count) == ("rows-not-people", "warning", len(rows))
    assert found.rows == tuple(rows[:10])
    assert found.sentence.startswith(
        f"`patient` looks like a person and has 6 values; {len(rows)} rows share their class"
    )
    assert report.ok
    assert f"{len(rows)} rows have fewer people behind them" in report.verdict.sentence


def test_honest_tables_are_not_warned_of():
    shown = table()
    assert audit_table(shown, quasi="age", k=4, person="patient").warnings == ()
    assert audit_table(shown, quasi=["age", "patient"], k=1).warnings == ()
    assert audit_table(shown.drop_columns("patient"), quasi="age", k=4).warnings == ()
    assert audit_table(shown, quasi="age", k=2).warnings == ()
    assert audit_table(shown, quasi="age").warnings == (), "without k nothing is promised"
    assert audit_table(shown.slice(0, 0), quasi="age", k=2).warnings[0].code == "no-rows"


def stream(release, truth=None, trace=None, **rules):
    stated = {
        "stream": {"person": "row"},
        "source": {"kind": "csv"},
        "anonymize": {"method": "least-loss", "k": 4, "deadline": 90, "carry": [],
                      "quasi": {"age": {"kind": "numeric", "low": 0, "high": 99}}, **rules},
    }  # fmt: skip
    return [found for found in audit(release, truth, trace, stated).findings if found.code == "rows-not-people"]


def test_a_column_of_the_truth_is_counted_by_the_trace():
    truth = pa.table(
        {
            "age": [20] * 6 + [30] * 6,
            "who": ["a", "b"] * 3 + list("cdefgh"),
            "user": ["a", "b"] * 3 + ["c", "d", "e"] * 2,
        }
    )
    release = pa.table({"age": ["[30, 30]"] * 6 + ["[20, 20]"] * 6})
    trace = pa.table({"row": [*range(6, 12), *range(6)], "verdict": ["released"] * 12})
    (found,) = stream(release, truth, trace)
    assert found.count == 12
    assert found.sentence.startswith("`user` looks like a person and has 5 values; 12 rows")
    assert stream(release, truth, trace, k=2) == []
    assert [one.count for one in stream(release, truth, trace, k=3)] == [6], "the rows of a and b"
    assert stream(release, truth) == [], "nothing says whose a row is"


def test_a_released_column_is_counted_without_the_truth():
    release = pa.table({"age": ["[20, 20]"] * 8, "user": ["a", "b"] * 4})
    (found,) = stream(release)
    assert found.count == 8


def test_a_trace_that_does_not_fit_acquits_nobody():
    truth = pa.table({"age": [20] * 8, "user": ["a", "b"] * 4})
    release = pa.table({"age": ["[20, 20]"] * 8})
    policy = {"stream": {"person": "row"}, "anonymize": {"method": "least-loss", "k": 2, "deadline": 90,
              "quasi": {"age": {"kind": "numeric", "low": 0, "high": 99}}}}  # fmt: skip
    trace = pa.table({"row": list(range(7)), "verdict": ["released"] * 7})
    report = audit(release, truth, trace, policy)
    assert any("looks like a person was not checked" in sentence for sentence in report.not_checked)


def test_records_that_do_not_exist_have_no_person():
    truth = pa.table({"age": [20] * 8, "user": ["a", "b", "c", "d"] * 2})
    release = pa.table({"age": ["[20, 20]"] * 8})
    trace = pa.table({"row": [0, 1, 2, 99, -1, None, 1, 2], "verdict": ["released"] * 8})
    (found,) = stream(release, truth, trace)
    assert found.count == 8, "three people are left"


def test_many_persons_are_counted_in_the_same_way(monkeypatch):
    few = audit_table(table(), quasi="age", k=4)
    monkeypatch.setattr("shoal.auditor.people_in_rows._MOST_CELLS", 1)
    assert audit_table(table(), quasi="age", k=4) == few


def test_what_cannot_be_read_is_not_acquitted(monkeypatch):
    def broken(*_, **__):
        raise KeyError("a value")

    monkeypatch.setattr("shoal.auditor.people_in_rows.names_in", broken)
    report = audit_table(table(), quasi="age", k=4)
    assert report.not_checked == (f"{NOT_CHECKED}: the files cannot be read for it.",)
    assert report.verdict.sentence.startswith("promise kept for rows, not people in what could be checked")
