"""Every example runs, with the results that it describes."""

from __future__ import annotations

import json
import runpy
import shutil
from collections import Counter
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.e2e.scene import shoal

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name):
    return runpy.run_path(str(EXAMPLES / name))["main"]()


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {"push_records.py", "generalize_hosts.py"}


def test_push_records(capsys):
    rows = run("push_records.py")
    assert [(row["ts"][11:16], row["site"]) for row in rows] == [("08:03", "news.example"), ("08:04", "news.example")]
    assert "ann" not in capsys.readouterr().out


@pytest.mark.filterwarnings("error")
def test_generalize_hosts():
    released = run("generalize_hosts.py")
    # the fourth person under blog.example is the first row that may be released, and only as that domain;
    # "example" for the shop would show that it is no blog, because all blogs are released as blog.example by then
    assert released.column("site").to_pylist() == ["blog.example", "blog.example"]
    assert released.column("ts").to_pylist() == [30, 40]


def test_every_folder_is_tested():
    """The gallery by its pages (tests/docs), the dashboard for Grafana by its measurements (tests/serve)."""
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {"gallery", "grafana", "live", "measurements", "notebooks", "sets", "tuples"}


def measured(tmp_path):
    """The example of measurements with its data made."""
    folder = Path(shutil.copytree(EXAMPLES / "measurements", tmp_path / "measurements"))
    runpy.run_path(str(folder / "make_measurements.py"))["main"](folder, people=800, records=6000)
    return folder


def test_measurements(tmp_path, monkeypatch):
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    folder = measured(tmp_path)
    policy = folder / "policy.toml"
    looked = shoal("doctor", policy)
    assert looked.code == 0, looked.out
    assert b"least-loss on the same rows, with k = 10 for all columns together" in looked.out
    ended = shoal("run", policy, "--json")
    assert ended.code == 0, ended.err
    counts = {name: ended.summary[name] for name in ("rows_in", "suppressed", "dead")}
    assert counts == {"rows_in": 6000, "suppressed": 0, "dead": 0}
    assert ended.summary["released"] + ended.summary["pending"] == 6000
    assert ended.summary["released"] > 5000
    assert "plain_loss" not in ended.summary["metrics"]
    files = {"--truth": "measurements.csv", "--trace": "trace.parquet", "--policy": "policy.toml"}
    given = [part for name, file in files.items() for part in (name, folder / file)]
    judged = shoal("audit", folder / "released.csv", *given, "--json")
    assert judged.code == 0, judged.out
    report = json.loads(judged.out)
    codes = {found["code"] for found in report["findings"]}
    assert codes == {"pending", "identifying-carry", "one-person-share"}  # the second of which the policy accepts
    assert report["not_checked"] == []
    assert "*" not in (folder / "released.csv").read_text()


def test_tuples(tmp_path, monkeypatch):
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    folder = Path(shutil.copytree(EXAMPLES / "tuples", tmp_path / "tuples"))
    runpy.run_path(str(folder / "make_people.py"))["main"](folder)
    policy = folder / "policy.toml"
    looked = shoal("doctor", policy)
    assert looked.code == 0, looked.out
    assert b"average loss" in looked.out
    ended = shoal("run", policy, "--json")
    assert ended.code == 0, ended.err
    assert (ended.summary["rows_in"], ended.summary["dead"]) == (2000, 0)
    assert 0 < ended.summary["metrics"]["loss"] < 0.6
    released = pq.read_table(folder / "released.parquet")
    assert released.column_names == ["age", "hours", "school", "district", "work", "channel"]
    assert released.num_rows == ended.summary["released"] > 1850
    ranges = [row for row in released.column("age").to_pylist() if row is not None]
    assert all((row["lo"] - 17) % 5 == 0 and 17 <= row["lo"] <= row["hi"] <= 90 for row in ranges)
    alike = Counter(map(str, released.drop_columns(["work", "channel"]).to_pylist()))
    assert min(alike.values()) >= 20


def test_sets(tmp_path, monkeypatch):
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    folder = Path(shutil.copytree(EXAMPLES / "sets", tmp_path / "sets"))
    policy = folder / "policy.toml"
    looked = shoal("doctor", policy)
    assert looked.code == 0, looked.out
    assert b"26 records with 12 different items" in looked.out
    ended = shoal("run", policy, "--json")
    assert ended.code == 0, ended.err
    assert (ended.summary["records"], ended.summary["released"], ended.summary["dead"]) == (26, 26, 0)
    assert ended.summary["blocks_after"] == 4
    sets = [json.loads(line)["items"] for line in (folder / "released.jsonl").read_text().splitlines()]
    known = Counter(pair for one in sets for size in (1, 2) for pair in combinations(sorted(one), size))
    assert min(known.values()) >= 3
    assert "counted" in json.loads((folder / "released.jsonl.certificate.json").read_text())["statement"]
    blocks = json.loads((folder / "released.jsonl.blocks.json").read_text())
    assert blocks["food"] == ["bakery", "cafe", "market"]


@pytest.mark.exhaustive
def test_live(monkeypatch, capsys):
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    demo = runpy.run_path(str(EXAMPLES / "live" / "run_demo.py"))
    if demo["find_server"]() is None:
        pytest.skip("the live example is not tested: the program nats-server is not on this machine")
    found = demo["main"](records=1000, pause=0)
    assert found["same"] == [True, True]
    counts = found["counts"]
    assert counts["rows_in"] == 1000
    assert counts["released"] + counts["suppressed"] + counts["dead"] == 1000
    assert counts["released"] > 500
    assert counts["dead"] > 1
    assert found["audit"]["not_checked"] == []
    shown = capsys.readouterr().out
    assert "killed the run with SIGKILL" in shown
    assert "person-" not in shown
