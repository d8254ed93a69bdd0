"""`shoal compare`: several settings of one policy, side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.auditor.report.comparison import Comparison, Setting
from tests.e2e.scene import CANARY, Scene, encode, shoal
from tests.e2e.test_report import visits


@pytest.fixture
def stage(scene: Scene, key: Path) -> Scene:
    scene.write("in.csv", encode("csv", visits()))
    scene.sections["anonymize"] |= {"z": 3, "window": "1min"}
    scene.write_policy()
    return scene


def test_settings_side_by_side(stage):
    ended = shoal("compare", stage.policy, "--set", "z=2,8", "--targets", "30", "-o", "compare.html", "--json")
    assert ended.code == 0
    low, high = ended.summary["settings"]
    assert (low["z"], high["z"]) == (2, 8)
    assert low["promise_kept"]
    assert high["promise_kept"]
    assert low["released"] > high["released"]
    assert low["risk"] >= high["risk"]
    assert ended.summary["take"] in {low["setting"], high["setting"]}
    page = Path("compare.html")
    assert page.stat().st_mode & 0o077 == 0
    assert CANARY not in page.read_text()
    lines = [f"shoal: comparing {number} of 2: z-anonymity z={z}" for number, z in ((1, 2), (2, 8))]
    assert ended.err.splitlines() == [*lines, "shoal: page written to compare.html"]
    assert "smallest_class" not in low  # z promises nothing about classes
    assert low["delay_unit"] == "seconds"
    assert not Path("out.csv").exists()  # nothing that the policy names is written


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (("--methods", "fads"), "cannot publish"),
        (("--set", "zz=3"), "not a key of [anonymize]"),
        (("--set", "z"), "key=value"),
        (("--max-risk", "0"), "max-risk"),
        (("--set", "z=" + ",".join(map(str, range(2, 200)))), "too many"),
        (("--set", "z=none"), "z"),
    ],
)
def test_bad_settings(stage, args, sentence):
    ended = shoal("compare", stage.policy, *args)
    assert ended.code == 2
    assert sentence in ended.err
    assert "Traceback" not in ended.err


def made(name: str, risk: float, error: float, *, ok: bool = True) -> Setting:
    attack = {"name": "prosecutor", "gains": False, "success": {"rate": risk, "low": 0, "high": risk, "n": 9}}
    utility = [{"name": "released", "value": 1.0}, {"name": "counts", "value": error}]
    content = {
        "audit": {"ok": ok, "verdict": {"state": "kept" if ok else "broken"}},
        "attacks": {"attacks": [attack]}, "utility": utility,
        "classes": {"smallest": 3, "are_promised": True}, "delay": None,
    }  # fmt: skip
    return Setting(name, "fads", {}, content)


def test_the_choice():
    safe, useful, risky, broken = (
        made("safe", 0.01, 0.5), made("useful", 0.04, 0.2), made("risky", 0.2, 0.01),
        made("broken", 0.0, 0.0, ok=False),
    )  # fmt: skip
    assert Comparison((safe, useful, risky, broken), 0.05).best is useful
    assert "useful: the smallest error" in Comparison((safe, useful, risky, broken), 0.05).text()
    only_risky = Comparison((risky, broken), 0.05)
    assert only_risky.best is risky
    assert "No setting has a risk" in only_risky.reason
    unknown = made("unknown", 0.0, 0.0)
    unknown.content["audit"]["verdict"]["state"] = "could not be checked"
    assert Comparison((broken, unknown), 0.05).best is None
    assert "could not be checked" in Comparison((broken, unknown), 0.05).text()
    assert "none keeps its promise" in Comparison((broken,), 0.05).reason
