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


def test_a_list_of_all_checks():
    lines = shoal("audit", "--list").out.decode().splitlines()
    (at,) = [at for at, line in enumerate(lines) if line.startswith("hidden-value (")]
    assert lines[at] == "hidden-value (broken; z, tuples, flexible, sets)"
    assert lines[at + 1].startswith("    The release contains values that no row shows")
    found = {one["code"]: one for one in json.loads(shoal("audit", "--list", "--json").out)}
    assert {"below-k", "below-z", "unchecked-promise"} <= set(found)
    assert {"severity", "families", "needs", "by", "sentence", "advice"} <= set(found["below-k"])
    assert shoal("audit").code == 2
