"""`shoal attack` after a run, and its messages for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.scene import CANARY, Ended, Scene, encode, shoal
from tests.e2e.test_report import visits


@pytest.fixture
def stage(scene: Scene, key: Path) -> Scene:
    """A run that is done."""
    scene.write("in.csv", encode("csv", visits()))
    scene.sections["anonymize"] |= {"z": 3, "window": "1min"}
    scene.write_policy()
    assert scene.run("--quiet").code == 0
    return scene


def attacked(stage: Scene, *args: str | Path) -> Ended:
    return shoal("attack", "out.csv", "--truth", "in.csv", "--policy", stage.policy, *args)


def test_a_report_for_people(stage):
    ended = attacked(stage)
    text = ended.out.decode()
    assert ended.code == 0
    assert [question for question in ("singling out", "linking", "inference") if f"\n{question}\n" not in text] == []
    assert "whole released set" in text
    assert CANARY not in text
    assert ended.err.startswith("shoal: attacking: reading\n")
    assert attacked(stage, "--quiet").err == ""


def test_a_report_for_machines(stage):
    found = json.loads(attacked(stage, "--targets", "40", "--json").out)
    assert found["facts"]["targets"] == 40
    for attack in found["attacks"]:
        rate = attack["success"]
        assert (rate is None) == bool(attack["why_not"])
        assert rate is None or 0 <= rate["low"] <= rate["rate"] <= rate["high"] <= 1


def test_a_table_of_another_tool(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("zip,ill\n1301,flu\n1302,flu\n1455,gout\n1456,flu\n")
    Path("theirs.csv").write_text("zip,ill\n130*,flu\n130*,flu\n145*,flu\n145*,gout\n")
    ended = shoal("attack", "theirs.csv", "--truth", "people.csv", "--knows", "zip", "--sensitive", "ill", "--json")
    found = {attack["name"]: attack for attack in json.loads(ended.out)["attacks"]}
    assert found["prosecutor"]["success"]["rate"] == 0.5


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("--trace", "nowhere.csv"), 1, "nowhere.csv"),
        (("--control", "nowhere.csv"), 2, "control: nobody outside the data"),
        (("--knows", "site"), 2, "no quasi-identifiers"),
        (("--targets", "0"), 2, "targets"),
    ],
)
def test_bad_input(stage, args, code, sentence):
    ended = attacked(stage, *args)
    assert ended.code == code
    assert sentence in ended.err
    assert "Traceback" not in ended.err


def test_without_a_policy_columns_must_be_named(stage):
    ended = shoal("attack", "out.csv", "--truth", "in.csv")
    assert ended.code == 2
    assert "name the quasi-identifiers" in ended.err
