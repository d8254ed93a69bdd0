"""Honest releases of untidy files are acquitted: publisher and auditor read the same values in them."""

from __future__ import annotations

import json

import pytest

from shoal import Pipeline
from shoal.auditor import audit

ILLS = ["1", "1.0", "01", "flu"]
POLICY = """
[stream]
person = "id"
[source]
kind = "{source}"
path = "in.{source}"
{more}
[anonymize]
method = "{method}"
k = 3
{rules}
sensitive = ["ill"]
[anonymize.quasi.x]
kind = "numeric"
low = 0
high = 100
grid = 5
[sink]
kind = "{sink}"
path = "out.{sink}"
[trace]
path = "trace.parquet"
"""
SPANS = "deadline = 10\nreuse = 10"


def publish(folder, text, *, source, sink, method="fads", rules=SPANS, more=""):
    (folder / f"in.{source}").write_text(text)
    policy = POLICY.format(source=source, sink=sink, method=method, rules=rules, more=more)
    (folder / "policy.toml").write_text(policy)
    Pipeline.from_policy(folder / "policy.toml").run()


def look(folder, source, sink):
    return audit(folder / f"out.{sink}", folder / f"in.{source}", folder / "trace.parquet", folder / "policy.toml")


def rows_of_json(x=lambda row: row % 7):
    return "".join(json.dumps({"id": f"p{row}", "x": x(row), "ill": ILLS[row % len(ILLS)]}) + "\n" for row in range(60))


def rows_of_csv(x=lambda row: str(row % 7)):
    return "id,x,ill\n" + "".join(f"p{row},{x(row)},{ILLS[row % len(ILLS)]}\n" for row in range(60))


@pytest.mark.parametrize("sink", ["csv", "jsonl", "parquet", "arrow"])
@pytest.mark.parametrize(("source", "text"), [("jsonl", rows_of_json()), ("csv", rows_of_csv())])
def test_spellings_of_the_source_in_another_format(source, text, sink, tmp_path):
    publish(tmp_path, text, source=source, sink=sink)
    report = look(tmp_path, source, sink)
    assert report.ok, report.text()


def test_a_number_among_texts_is_another_spelling(tmp_path):
    publish(tmp_path, rows_of_json(), source="jsonl", sink="jsonl")
    out = tmp_path / "out.jsonl"
    out.write_text(out.read_text().replace('"ill":"1"', '"ill":1', 1))
    assert {found.code for found in look(tmp_path, "jsonl", "jsonl").violations} == {"spelling"}


@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", "\u3000", "\x0b", "\x1c", "\x85"])
def test_blanks_around_numbers_never_count(blank, tmp_path):
    text = rows_of_csv(lambda row: f"{blank}{row % 7}{blank}" if row % 3 else str(row % 7))
    publish(tmp_path, text, source="csv", sink="csv", more="trim = false")
    report = look(tmp_path, "csv", "csv")
    assert report.ok, report.text()
    assert report.metrics["verdicts"]["dead"] == 0


@pytest.mark.parametrize(
    ("method", "rules"), [("fads", SPANS), ("flexible-k", "window = 20")], ids=["fads", "flexible-k"]
)
def test_text_is_not_a_number_in_json(method, rules, tmp_path):
    text = rows_of_json(lambda row: row % 7 if row % 5 else str(row % 7))
    publish(tmp_path, text, source="jsonl", sink="csv", method=method, rules=rules)
    report = look(tmp_path, "jsonl", "csv")
    assert report.ok, report.text()
    assert "dead-without-cause" not in {found.code for found in report.findings}


@pytest.mark.parametrize("header", ["id,x,ill,,", "id,x,ill, ,"])
def test_columns_without_a_name_are_passed_over(tmp_path, header):
    rows = "\n".join(f"p{row},{row % 7},flu,u,v" for row in range(20))
    publish(tmp_path, f"{header}\n{rows}\n", source="csv", sink="csv")
    found = look(tmp_path, "csv", "csv")
    assert found.ok, found.text()
    assert found.metrics["released_rows"] == 20


def test_a_released_column_without_a_name_is_one_too_many(tmp_path):
    publish(tmp_path, "id,x,ill\n" + "\n".join(f"p{row},{row % 7},flu" for row in range(20)), source="csv", sink="csv")
    out = tmp_path / "out.csv"
    lines = out.read_text().splitlines()
    out.write_text("\n".join([f"{lines[0]},,", *(f"{line},u,v" for line in lines[1:])]) + "\n")
    assert "extra-column" in {finding.code for finding in look(tmp_path, "csv", "csv").violations}
