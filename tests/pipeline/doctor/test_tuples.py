"""The doctor's remarks about a sample of tuples before the method is tried: counts and shares, never values."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.decode.base import Decoded, Refused
from shoal.pipeline.doctor.doctor import examine
from shoal.pipeline.doctor.remarks import Remark, Sample
from shoal.pipeline.doctor.tuples import loss_words, tuple_remarks
from shoal.policy import parse_policy
from tests.policy.test_tuples import base_table

CANARY = 4711
GOOD = {"k": 2, "missing": "covered", "min_carriers": 1, "deadline": 3, "reuse": 1, "sensitive": []}
ROWS = [
    {"id": f"p{n}", "age": float(20 + n), "education": "master", "occupation": "x", "ts": 60 * n} for n in range(10)
]


def remarks_on(
    rows: list[dict[str, Any]],
    *,
    is_all: bool = True,
    given: dict | None = None,
    problems: tuple[Refused, ...] = (),
    **sections: dict,
) -> list:
    table = base_table()
    wanted = {**table["anonymize"], **GOOD, **(given or {})}
    table["anonymize"] = {key: value for key, value in wanted.items() if value is not None}
    for name, content in sections.items():
        table[name] |= content
    policy = parse_policy(table)
    columns = {name: [row.get(name) for row in rows] for name in ROWS[0]}
    schema = pa.schema([("id", pa.string()), ("age", pa.float64()), ("education", pa.string()),
                        ("occupation", pa.string()), ("ts", pa.int64())])  # fmt: skip
    if any(isinstance(age, datetime.datetime) for age in columns["age"]):
        schema = schema.set(1, pa.field("age", pa.timestamp("us", tz="UTC")))
    batch = pa.RecordBatch.from_pydict(columns, schema=schema)
    found = list(tuple_remarks(policy, policy.anonymize, Sample(Decoded(batch, problems, {}), is_all)))
    assert not any(str(CANARY) in remark.sentence for remark in found)
    return found


def about(topic: str, found: list[Remark]) -> list[tuple[str, str]]:
    return [(remark.level, remark.sentence) for remark in found if remark.topic == topic]


def test_people():
    assert about("people", remarks_on(ROWS)) == [("good", "10 different people, k = 2")]
    ((level, sentence),) = about("people", remarks_on(ROWS, given={"k": 11, "deadline": 20}))
    assert (level, "nothing can be released; choose a smaller k" in sentence) == ("look", True)
    ((level, sentence),) = about("people", remarks_on(ROWS, given={"k": 11, "deadline": 20}, is_all=False))
    assert (level, "before there are k" in sentence) == ("look", True)


@pytest.mark.parametrize(
    ("groups", "suppressed", "count"), [(True, "root", 1), (True, "drop", 0), (False, "root", 0), (False, "drop", 0)]
)
def test_rows_at_the_root_are_not_in_groups(groups, suppressed, count):
    found = about("groups", remarks_on(ROWS, given={"groups": groups, "suppressed": suppressed}))
    assert [level for level, _ in found] == ["look"] * count
    assert all('use suppressed = "drop"' in sentence for _, sentence in found)


def test_missing_values():
    assert about("missing", remarks_on(ROWS)) == [("good", "every row has a value in every quasi-identifier")]
    rows = [{**row, "age": None if n < 2 else float("nan") if n < 4 else 20.0} for n, row in enumerate(ROWS)]
    assert about("missing", remarks_on(rows)) == [("good", "column 'age': 40.0% of its values are missing")]
    ((level, sentence),) = about("missing", remarks_on(rows, given={"min_carriers": 2}))
    assert level == "look"
    assert "40.0% of its values are missing; too few values" in sentence
    given = {"missing": "hidden", "min_carriers": None}
    assert about("missing", remarks_on(rows, given=given))[0][0] == "good"
    rows += [{**row, "age": None} for row in ROWS]
    assert about("missing", remarks_on(rows, given=given))[0][0] == "look"


def test_rows_that_cannot_be_read_lack_nothing():
    problems = (Refused(10, None, "no record"), Refused(11, None, "too few fields"))
    assert about("missing", remarks_on(ROWS, problems=problems)) == about("missing", remarks_on(ROWS))
    assert about("missing", remarks_on([], problems=(Refused(0, None, "too few fields"),))) == []


def test_more_different_values_required_than_there_are():
    for key, asked in (("l", 3), ("entropy_l", 2.5)):
        rows = [{**row, "occupation": "xy"[n % 2]} for n, row in enumerate(ROWS)]
        given = {"sensitive": ["occupation"], key: asked}
        ((level, sentence),) = about("sensitive", remarks_on(rows, given=given))
        assert level == "look"
        assert f"2 different values, fewer than {key} = {asked}: nothing can be released" in sentence
        assert about("sensitive", remarks_on(rows, given={**given, key: 2})) == []


def test_values_the_schema_does_not_have():
    assert about("values", remarks_on(ROWS)) == []
    rows = [*ROWS, {**ROWS[0], "age": float(CANARY)}, {**ROWS[0], "age": -1.0}, {**ROWS[0], "age": None}]
    rows += [{**ROWS[0], "education": str(CANARY)}, {**ROWS[0], "education": "school"}, {**ROWS[0], "education": None}]
    ages, levels = about("values", remarks_on(rows))
    assert ages[1].startswith("column 'age': 2 values are outside low and high; their rows will go to the dead letters")
    assert levels[1].startswith("column 'education': 2 values are not leaves of the hierarchy")
    quasi = base_table()["anonymize"]["quasi"]
    quasi["age"]["outside"] = "clamp"
    assert "they will be clamped" in about("values", remarks_on(rows, given={"quasi": quasi}))[0][1]


def test_moments_are_compared_as_moments():
    quasi = base_table()["anonymize"]["quasi"]
    quasi["age"] = {"kind": "numeric", "low": "2020-01-01", "high": "2021-01-01"}
    days = [datetime.datetime(year, 6, 1, tzinfo=datetime.UTC) for year in (2019, 2020, 2021, 2022)]
    rows = [{**row, "age": day} for row, day in zip(ROWS, days, strict=False)]
    ((_, sentence),) = about("values", remarks_on(rows, given={"quasi": quasi}))
    assert "3 values are outside" in sentence


def test_whole_numbers():
    ((_, sentence),) = about("types", remarks_on(ROWS))
    assert '[source] types = {age = "int64"}' in sentence
    assert about("types", remarks_on([*ROWS, {**ROWS[0], "age": 20.5}])) == []
    assert about("types", remarks_on(ROWS, source={"types": {"age": "float64"}})) == []
    assert about("types", remarks_on(ROWS, source={"kind": "parquet"})) == []
    assert about("types", remarks_on([{**row, "age": None} for row in ROWS])) == []


def test_ranges_without_a_grid():
    ((level, sentence),) = about("grid", remarks_on(ROWS))
    assert level == "look"
    assert sentence.startswith("column 'age': without a grid")
    quasi = base_table()["anonymize"]["quasi"]
    quasi["age"]["grid"] = 5
    assert about("grid", remarks_on(ROWS, given={"quasi": quasi})) == []
    span = quasi["age"]["high"] - quasi["age"]["low"]
    quasi["age"]["grid"] = span / 2
    assert about("grid", remarks_on(ROWS, given={"quasi": quasi})) == []
    for wide in (span, "1h"):
        quasi["age"]["grid"] = wide
        ((level, sentence),) = about("grid", remarks_on(ROWS, given={"quasi": quasi}))
        assert level == "look"
        assert sentence.startswith("column 'age': the grid is wider than half of the domain")
    many = {f"n{n}": {"kind": "numeric", "low": 0, "high": 1} for n in range(7)}
    table = base_table()
    table["anonymize"] |= {**GOOD, "quasi": many}
    policy = parse_policy(table)
    batch = pa.RecordBatch.from_pydict({"id": ["a"], **{name: [0.5] for name in many}})
    ((_, sentence),) = about(
        "grid", list(tuple_remarks(policy, policy.anonymize, Sample(Decoded(batch, (), {}), True)))
    )
    assert sentence.startswith("columns 'n0', 'n1', 'n2', 'n3', 'n4' and 2 more: without")


@pytest.mark.parametrize(
    ("low", "high", "values", "proposed"),
    [
        (0, 100, [17, 90], "2"), (0, 120, [17, 90], "5"), (0, 10, [1, 9], "2"), (0, 1, [0.5, 0.7], "0.02"),
        (-180, 180, [0.1, 0.2], "10"), (0, 1_500_000, [7, 8], "50000"), (0, 10, [1.5, 2.0], "0.2"),
        ("2026-03-02", "2026-03-03", None, '"1h"'), ("2026-03-02", "2026-03-09", None, '"4h"'),
        ("2016-01-01", "2026-01-01", None, '"74d"'),
    ],
)  # fmt: skip
def test_a_grid_is_proposed(low, high, values, proposed):
    table = base_table()
    table["anonymize"] |= {**GOOD, "quasi": {"n": {"kind": "numeric", "low": low, "high": high}}}
    policy = parse_policy(table)
    column = pa.array([None, None], pa.timestamp("us")) if values is None else pa.array(values, pa.float64())
    batch = pa.RecordBatch.from_pydict({"id": ["a", "b"], "n": column})
    ((_, sentence),) = about(
        "grid", list(tuple_remarks(policy, policy.anonymize, Sample(Decoded(batch, (), {}), True)))
    )
    assert sentence.endswith(f"such as {proposed} for 'n'")
    table["anonymize"]["quasi"]["n"]["grid"] = json.loads(proposed)
    parse_policy(table)  # what is proposed can be written


def grid_remarks(values, **rule):
    table = base_table()
    table["anonymize"] |= {**GOOD, "quasi": {"n": {"kind": "numeric", "low": 0, "high": 100, **rule}}}
    policy = parse_policy(table)
    batch = pa.RecordBatch.from_pydict({"id": [f"p{row}" for row in range(len(values))], "n": pa.array(values)})
    return about("grid", list(tuple_remarks(policy, policy.anonymize, Sample(Decoded(batch, (), {}), True))))


def test_a_grid_of_1_hides_nothing_of_whole_numbers():
    ((level, sentence),) = grid_remarks([17.0, 44.0, 90.0], grid=1)
    assert level == "look"
    assert sentence.startswith("column 'n': a grid of 1 hides nothing of whole numbers")
    assert sentence.endswith("such as 2 for 'n'")
    assert grid_remarks([17.0, 44.0, 90.0], grid=2) == []
    assert grid_remarks([17.5, 44.0, 90.0], grid=1) == []
    assert grid_remarks([1.0, 4.0, 6.0], grid=1, high=8) == []  # too narrow for a wider one


def test_there_is_no_advice_about_columns_of_0_and_1():
    assert grid_remarks([0.0, 1.0, None, 1.0], high=1) == []
    assert grid_remarks([0, 1, 1, 0], high=1, grid=1) == []
    assert len(grid_remarks([0.0, 2.0], high=2)) == 1


@pytest.mark.parametrize(("every", "is_said"), [(20, True), (2, False)])
def test_what_diversity_costs_is_said(every: int, is_said: bool, tmp_path: Path):
    """One in twenty is ill: most rows find nobody else in a class who has another value."""
    rows = [f"p{row},{20 + row % 50},{'ill' if row % every == 0 else 'well'}" for row in range(300)]
    (tmp_path / "in.csv").write_text("\n".join(["id,age,health", *rows]) + "\n")
    table = {
        "stream": {"person": "id"},
        "source": {"kind": "csv", "path": "in.csv"},
        "anonymize": {"method": "least-loss", "k": 5, "l": 2, "deadline": 75, "reuse": 10, "sensitive": ["health"],
                      "quasi": {"age": {"kind": "numeric", "low": 0, "high": 100, "grid": 5}}},
        "sink": {"kind": "csv", "path": "out.csv"},
    }  # fmt: skip
    said = [sentence for level, sentence in about("sensitive", examine(parse_policy(table, folder=tmp_path)))
            if level == "look"]  # fmt: skip
    assert bool(said) is is_said
    if is_said:
        assert "and 0.0% without l: 95% of the values of column 'health' are the same; leave l out" in said[0]


def test_sensitive_columns_without_diversity():
    ((_, sentence),) = about("sensitive", remarks_on(ROWS, given={"sensitive": ["occupation"]}))
    assert "require diversity" in sentence
    rows = [*ROWS, {**ROWS[0], "occupation": "y"}]
    assert about("sensitive", remarks_on(rows, given={"sensitive": ["occupation"], "l": 2})) == []


def test_values_without_a_declared_share():
    given = {"sensitive": ["occupation"], "t": 0.5, "reference": {"occupation": {"x": 0.5, "y": 0.5}}}
    assert about("reference", remarks_on(ROWS, given=given)) == []
    rows = [*ROWS, {**ROWS[0], "occupation": str(CANARY)}, {**ROWS[0], "occupation": None}]
    ((_, sentence),) = about("reference", remarks_on(rows, given=given))
    assert sentence.startswith("column 'occupation': 1 values have no share in reference")
    given = {"sensitive": ["ts"], "t": 0.5, "reference": {"ts": {"1": 1}}}
    ((_, sentence),) = about("reference", remarks_on(ROWS, given=given))
    assert "10 values have no share" in sentence
    assert "int64 is not text" in sentence


@pytest.mark.parametrize(
    ("deadline", "is_all", "expected"),
    [
        (3, True, []),
        (10, True, "the input ends before the first row is due (10 rows, deadline 10 arrivals)"),
        (10, False, []),
        ("3min", True, "about 3 rows arrive within the deadline"),
        ("1min", True, "about 1 rows arrive within the deadline, fewer than k"),
        ("9h", True, "about 10 rows arrive within the deadline"),
    ],
)
def test_deadlines(deadline, is_all, expected):
    given = {"deadline": deadline, "reuse": "1s" if isinstance(deadline, str) else 1}
    found = about("deadline", remarks_on(ROWS, is_all=is_all, given=given, stream={"time": "ts"}))
    assert [expected in sentence for _, sentence in found] == ([True] if expected else [])


def test_a_deadline_if_all_times_are_equal():
    rows = [{**row, "ts": 0} for row in ROWS]
    found = remarks_on(rows, given={"deadline": "1s", "reuse": "1s"}, stream={"time": "ts"})
    assert about("deadline", found) == []


def test_the_outcome_in_words():
    words = loss_words({"loss": 0.48166, "formed": 1234, "delay": 1200.4}, unit="arrivals")
    assert words == (
        "average loss 0.482 (0 exact, 1 fully generalized), 1,234 clusters formed, average delay 1,200 arrivals"
    )


@pytest.mark.parametrize(("answers", "is_said"), [(5, True), (2, False)])
def test_sensitive_columns_that_are_identifying_only_together(answers: int, is_said: bool, tmp_path: Path) -> None:
    """Each value is that of 60 people and more; with five answers, each of 125 combinations is that of two or three."""
    lines = [f"{row},{row % 50},{row % answers},{row // 5 % answers},{row // 25 % answers}" for row in range(300)]
    (tmp_path / "x.csv").write_text("\n".join(["id,age,a,b,c", *lines]) + "\n")
    table = {
        "stream": {"person": "id"},
        "source": {"kind": "csv", "path": str(tmp_path / "x.csv"), "types": {"age": "int64"}},
        "anonymize": {"method": "least-loss", "k": 5, "deadline": 75, "sensitive": ["a", "b", "c"], "l": 2,
                      "quasi": {"age": {"kind": "numeric", "low": 0, "high": 50}}},
        "sink": {"kind": "csv", "path": str(tmp_path / "out.csv")},
    }  # fmt: skip
    said = [sentence for _, sentence in about("sensitive", examine(parse_policy(table, folder=tmp_path)))]
    start = "the sensitive columns together: 100.0% of 300 rows"
    assert any(sentence.startswith(start) for sentence in said) is is_said
