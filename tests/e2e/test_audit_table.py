"""`shoal audit` of a plain table, without a policy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.scene import shoal

TABLE = "age,sex,illness\n20-29,f,flu\n20-29,f,cold\n30-39,m,flu\n30-39,m,flu\n"


@pytest.fixture(autouse=True)
def _table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE)


def test_a_promise_that_holds_and_one_that_does_not():
    asked = ["audit", "table.csv", "--quasi", "age", "sex", "--sensitive", "illness", "--k", "2", "--json"]
    kept = shoal(*asked)
    assert kept.code == 0
    assert json.loads(kept.out)["metrics"]["smallest_k"] == 2
    broken = shoal(*asked, "--l", "2")
    assert broken.code == 1
    assert [found["code"] for found in json.loads(broken.out)["findings"]] == ["below-l"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "give the policy, or for a plain table of any tool --quasi"),
        (["--quasi", "zip"], "no column zip"),
        (["--k", "2"], "name the quasi-identifiers"),
        (["--quasi", "age", "--policy", "p.toml"], "exclude each other"),
        (["--quasi", "age", "--sign", "key.pem"], "an attestation names the policy"),
    ],
)
def test_what_cannot_be_done(options, words):
    ended = shoal("audit", "table.csv", *options)
    assert ended.code in (1, 2)
    assert words in ended.err
    assert "Traceback" not in ended.err


PROMISED = ("audit", "table.csv", "--quasi", "age", "--k", "2")


def long_table():
    """Every row has a class of its own, and there are many columns to measure."""
    names = [f"s{number}" for number in range(12)]
    rows = [",".join([f"{age}-{age + 1}", *(str(age % 3) for _ in names)]) for age in range(20)]
    Path("table.csv").write_text("\n".join([",".join(["age", *names]), *rows]) + "\n")
    return ["--sensitive", ",".join(names), "--l", "2", "--alpha", "0.5"]


def test_the_first_line_is_the_verdict_with_its_reasons():
    kept = shoal(*PROMISED)
    assert kept.code == 0
    assert kept.out.decode().splitlines()[0] == (
        "audit of table: promise kept for rows, not people; the smallest crowd has 2 rows"
    )
    broken = shoal(*PROMISED[:-1], "3")
    assert broken.code == 1
    lines = broken.out.decode().splitlines()
    assert lines[0] == (
        "audit of table: promise broken for rows, not people: below-k (4); the smallest crowd has 2 rows"
    )
    assert lines[1].startswith("  violation below-k (4): ")
    assert lines[2].startswith("    what to do: ")
    nothing = shoal(*PROMISED[:-2])
    assert nothing.code == 0
    assert b"promise could not be checked: nothing is promised" in nothing.out


def test_at_most_25_lines_unless_all_are_asked_for():
    more = long_table()
    short, whole = shoal(*PROMISED, *more), shoal(*PROMISED, *more, "--all")
    assert short.code == whole.code == 1
    lines = short.out.decode().splitlines()
    assert len(lines) <= 25 < len(whole.out.decode().splitlines())
    assert lines[-1].startswith("  not shown: ")
    assert {*lines[:-1]} <= {*whole.out.decode().splitlines()}


def test_the_page_the_text_and_the_json_say_the_same():
    ended = shoal(*PROMISED, "--out", "report.html", "--json")
    assert ended.code == 0, ended.err
    assert "page written to report.html" in ended.err
    sentence = json.loads(ended.out)["verdict"]["sentence"]
    assert f"{sentence[0].upper()}{sentence[1:]}." in Path("report.html").read_text()
    assert sentence in shoal(*PROMISED).out.decode()
    assert Path("report.html").stat().st_mode & 0o777 == 0o600
    wrong = shoal(*PROMISED, "--out", "report.pdf")
    assert wrong.code == 2
    assert "ends in .html" in wrong.err
    unwritable = shoal(*PROMISED, "--out", "no/such/folder.html")
    assert unwritable.code == 1
    assert "cannot be written" in unwritable.err


def test_rows_that_are_taken_for_people():
    rows = ["20-29,ann", "20-29,ann", "30-39,bob", "30-39,cy"] * 3
    Path("table.csv").write_text("\n".join(["age,patient", *rows]) + "\n")
    ended = shoal(*PROMISED)
    assert ended.code == 0
    out = ended.out.decode()
    assert "6 rows have fewer people behind them (rows-not-people)" in out.splitlines()[0]
    assert "`patient` looks like a person and has 3 values; 6 rows share their class with fewer than 2 of them" in out
    named = shoal(*PROMISED, "--person", "patient")
    assert named.code == 1
    assert b"promise broken: below-k (6); the smallest crowd has 1 person" in named.out


def test_a_list_of_all_checks():
    lines = shoal("audit", "--list").out.decode().splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("hidden-value (")]
    assert lines[at] == "hidden-value (broken; z, tuples, flexible, sets)"
    assert lines[at + 1].startswith("    The release contains values that no row shows")
    found = {one["code"]: one for one in json.loads(shoal("audit", "--list", "--json").out)}
    assert {"below-k", "below-z", "unchecked-promise"} <= set(found)
    assert {"severity", "families", "needs", "by", "sentence", "advice"} <= set(found["below-k"])
    assert shoal("audit").code == 2
