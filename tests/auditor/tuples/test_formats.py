"""Releases of tuples as files of every format, and the command line."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from shoal.auditor import audit
from shoal.cli.app import app
from tests.auditor.tuples.naive import RELEASE, TRACE, TRUTH, Run, records, table

POLICY = """
[stream]
person = "id"
carry = ["shop"]
[anonymize]
method = "fads"
k = 3
deadline = 12
reuse = 6
sensitive = ["ill"]
[anonymize.quasi.age]
kind = "numeric"
low = 0
high = 100
[anonymize.quasi.tree]
kind = "categorical"
hierarchy = {kind = "nested", tree = {"*" = {north = ["ash", "birch"], south = ["cedar", "date", "elm"]}}}
"""


def as_csv(rows, names):
    lines = [",".join(names)]
    for row in rows:
        cells = {**row, "age": row["age"] and f'"[{row["age"]["lo"]}, {row["age"]["hi"]}]"'}
        lines.append(",".join(cells[name] or "" for name in names))
    return "\n".join(lines) + "\n"


def as_jsonl(rows):
    flat = ({**row, "age": row["age"] and [row["age"]["lo"], row["age"]["hi"]]} for row in rows)
    return "".join(json.dumps(row) + "\n" for row in flat)


@pytest.fixture
def run():
    return Run(records(120, people=50, missing=0.2), missing="own")


@pytest.fixture
def written(run, tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "release.csv").write_text(as_csv(run.release, RELEASE.names))
    (tmp_path / "release.jsonl").write_text(as_jsonl(run.release))
    pq.write_table(table(run.release, RELEASE), tmp_path / "release.parquet")
    (tmp_path / "truth.jsonl").write_text("".join(json.dumps(row) + "\n" for row in run.truth))
    (tmp_path / "truth.csv").write_text(
        "\n".join(
            [",".join(TRUTH.names)]
            + [",".join("" if row[name] is None else str(row[name]) for name in TRUTH.names) for row in run.truth]
        )
    )
    pq.write_table(table(run.trace, TRACE), tmp_path / "trace.parquet")
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("truth", ["csv", "jsonl"])
def test_every_format(written, kind, truth):
    report = audit(
        written / f"release.{kind}", written / f"truth.{truth}", written / "trace.parquet", written / "policy.toml"
    )
    assert report.findings == (), report.text()
    assert report.not_checked == ()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_classes_are_the_same_in_every_format(run, written, kind):
    found = audit(written / f"release.{kind}", policy=written / "policy.toml").metrics
    assert found == run.audit(truth=False, trace=False).metrics


def command(written, release, *more):
    asked = ["audit", str(written / release), "--policy", str(written / "policy.toml"), *more]
    return app(asked, result_action="return_value")


def test_the_command_acquits(written, capsys):
    more = ["--truth", str(written / "truth.csv"), "--trace", str(written / "trace.parquet")]
    assert command(written, "release.parquet", *more) == 0
    shown = capsys.readouterr().out
    assert "audit of fads: promise kept" in shown
    assert "smallest k: 3" in shown
    assert "shortest history: rows" in shown


def test_the_command_convicts(run, written, capsys):
    run.release[5]["tree"] = None
    pq.write_table(table(run.release, RELEASE), written / "release.parquet")
    assert command(written, "release.parquet", "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert not found["ok"]
    assert "below-k" in {finding["code"] for finding in found["findings"]}
    assert found["metrics"]["counted_in_classes"].startswith("rows")
