"""Audits that are captured answer the same when they are replayed, and every difference is listed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.auditor import audit, audit_table
from shoal.errors import PolicyError
from tests.auditor.cases import Case, decide
from tests.e2e.scene import shoal
from tests.tools import capture_audits, compare_audits
from tests.tools.audit_case import listed, read_case
from tests.tools.audit_differences import described, differences
from tests.tools.capture_plugin import capturing, file_name

POLICY = """
[stream]
person = "user"
time = "ts"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 2
window = "1h"
generalize = {{ site = {{ kind = "csv", path = "{path}" }} }}
"""
TRUTH = "ts,user,site\n1,ada,a.example\n2,bob,b.example\n3,cid,b.example\n"
TOO_EARLY = "ts,user,site\n1,00000000000000000000000000000000,a.example\n"
TREE = "a.example,example\nb.example,example\n"


def audit_files(folder: Path, *, tree: Path | str) -> None:
    """As a command does: a policy, and a hierarchy that it names, next to a release and its truth."""
    for name, text in {"out.csv": TOO_EARLY, "in.csv": TRUTH, "levels.csv": TREE}.items():
        (folder / name).write_text(text)
    (folder / "policy.toml").write_text(POLICY.format(path=tree))
    assert shoal("audit", "out.csv", "--truth", "in.csv", "--policy", "policy.toml").code == 1


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Cases of all kinds of inputs; the files that they were made with are gone."""
    folder, private = tmp_path_factory.mktemp("captured") / "cases", tmp_path_factory.mktemp("private")
    with capturing(folder, "scene"), pytest.MonkeyPatch.context() as patch:
        patch.chdir(private)
        assert Case().audit().ok
        decide([(1, "ada", "a"), (2, "bob", "a")], {0: "a", 1: "a"})
        audit_files(private, tree="levels.csv")
        audit_files(private, tree=private / "levels.csv")
        audit_table(pa.table({"age": [1, 1, 2]}), quasi="age", k=2)
        with pytest.raises(PolicyError):
            audit(pa.table({"age": [1]}), policy={"anonymize": {"method": "none"}})
    shutil.rmtree(private)
    return folder


@pytest.fixture
def cases(scene, tmp_path):
    return shutil.copytree(scene, tmp_path / "cases")


def answers(folder: Path) -> list[dict]:
    return [read_case(folder / name)["answer"] for name in listed(folder)]


def test_every_call_is_kept_with_its_answer(scene):
    assert listed(scene) == [f"scene-{number:03d}" for number in range(1, 8)]
    verdicts = [answer["report"]["ok"] if "report" in answer else answer["error"] for answer in answers(scene)]
    assert verdicts == [True, False, False, False, False, False, "PolicyError"]
    entries = [read_case(scene / name)["entry"] for name in listed(scene)]
    assert entries == ["audit"] * 5 + ["audit_table"] + ["audit"]


def test_a_captured_case_answers_the_same_again(scene, capsys):
    assert compare_audits.main([str(scene)]) == 0
    assert capsys.readouterr().out.startswith("0 differences in 0 of 7 cases, 0 cases missing")


CHANGED = """
from dataclasses import replace
_audit = audit
def audit(*given, **named):
    found = _audit(*given, **named)
    changed = [replace(one, code=one.code.replace("below-z", "z")) for one in found.findings]
    changed = [replace(one, count=one.count + (one.code == "z")) for one in changed]
    return replace(found, findings=tuple(changed), metrics={**found.metrics, "released_rows": -1})
"""


def test_the_auditor_of_another_tree_is_compared(cases, tmp_path, capsys):
    source = compare_audits.ROOT / "src" / "shoal"
    copy = shutil.copytree(source, tmp_path / "tree" / "src" / "shoal")
    with (copy / "auditor" / "__init__.py").open("a") as file:
        file.write(CHANGED)
    assert compare_audits.main([str(cases), "--tree", str(tmp_path / "tree")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("finding below-z: gone in 4 cases") + 1].startswith("    scene-002: violation, count 1")
    assert lines[lines.index("finding z: new in 4 cases") + 1].startswith("    scene-002: violation, count 2")
    assert any(line.startswith("metrics.released_rows: changed in ") for line in lines)


def test_cases_that_are_missing_or_damaged_are_reported(cases, capsys):
    shutil.rmtree(cases / "scene-001")
    (cases / "scene-002" / "case.json").unlink()
    (cases / "scene-006" / "inputs.pickle").write_bytes(b"?")
    assert compare_audits.main([str(cases)]) == 1
    printed = capsys.readouterr().out
    assert printed.splitlines()[:2] == ["missing: scene-001", "missing: scene-002"]
    assert "error: new in 1 case\n    scene-006: UnpicklingError" in printed
    assert "in 1 of 5 cases, 2 cases missing" in printed


def report(**changes):
    finding = {"code": "below-k", "severity": "violation", "count": 3, "sentence": "Few.", "rows": [0, 1]}
    whole = {
        "ok": False, "findings": [finding], "not_checked": ["The trace."],
        "metrics": {"rows": 7, "share": 0.1, "sizes": [1, 2], "worst": [{"shown": 4}, {"shown": 5}]},
    }  # fmt: skip
    return {"report": {**whole, **changes}}


FEWER = {"code": "below-k", "severity": "warning", "count": 2, "sentence": "Other words.", "rows": [0, 1]}
METRICS = report()["report"]["metrics"]


@pytest.mark.parametrize(
    ("changes", "gone_to_new"),
    [
        ({"ok": True}, ("verdict", "promise broken", "nothing broken")),
        ({"findings": []}, ("finding below-k", "violation, count 3, rows 0 1", None)),
        (
            {"findings": [FEWER]},
            ("finding below-k", "violation, count 3, rows 0 1", "warning, count 2, rows 0 1"),
        ),
        ({"not_checked": []}, ("checks not possible", "1", "0")),
        ({"metrics": {**METRICS, "rows": 8}}, ("metrics.rows", "7", "8")),
        ({"metrics": {**METRICS, "rows": None}}, ("metrics.rows", "7", "null")),
        ({"metrics": {**METRICS, "share": 0.1000000001}}, ("metrics.share", "0.1", "0.1000000001")),
        ({"metrics": {**METRICS, "sizes": [2, 1]}}, ("metrics.sizes", "[1, 2]", "[2, 1]")),
        ({"metrics": {**METRICS, "worst": [{"shown": 4}]}}, ("metrics.worst.[1].shown", "5", None)),
        ({"metrics": {**METRICS, "more": 1}}, ("metrics.more", None, "1")),
    ],
)
def test_what_differs_is_named_in_both_directions(changes, gone_to_new):
    for before, now, expected in (
        (report(), report(**changes), gone_to_new),
        (report(**changes), report(), (gone_to_new[0], gone_to_new[2], gone_to_new[1])),
    ):
        assert [(one.fact, one.before, one.now) for one in differences("a", before, now)] == [expected]


def test_what_is_not_compared():
    words = report(findings=[{**report()["report"]["findings"][0], "sentence": "Other words."}], not_checked=["Other."])
    digits = report(metrics={**METRICS, "share": 0.1 + 1e-16})
    assert differences("a", report(), words) == differences("a", report(), digits) == []


def test_an_error_in_the_place_of_a_report_is_a_difference():
    facts = [(one.fact, one.kind) for one in differences("a", report(), {"error": "InputError"})]
    assert ("error", "new") in facts
    assert ("verdict", "gone") in facts
    assert ("finding below-k", "gone") in facts


def test_a_code_is_listed_with_three_examples():
    found = [one for case in "edcba" for one in differences(case, report(), report(findings=[]))]
    assert list(described(found)) == [
        "finding below-k: gone in 5 cases",
        *(f"    {case}: violation, count 3, rows 0 1" for case in "abc"),
        "    … and 2 more",
    ]


@pytest.mark.parametrize("place", [".", "tests/cases"])
def test_cases_stay_outside_of_the_repository(place, capsys):
    with pytest.raises(SystemExit):
        capture_audits.main([str(compare_audits.ROOT / place)])
    assert "choose a folder outside" in capsys.readouterr().err


def test_names_of_tests_are_names_of_files():
    assert file_name("tests/auditor/test_judge.py::test_a[1-b]") == "auditor.test_judge.test_a[1-b]"
    strange = [file_name(f"tests/test_a.py::test_b[{text}]") for text in ("a/b", "a b", "ä" * 300, "ö" * 300)]
    assert len({*strange}) == 4
    assert all("/" not in name and len(name.encode()) < 200 for name in strange)


TESTS = """
import pyarrow as pa
from shoal.auditor import audit
from shoal.auditor.checks import Found
from shoal.auditor.tables import audit as of_tables

POLICY = {"table": {"quasi": ["age"], "k": 2}}
TABLE = pa.table({"age": [1, 1, 2]})

class Live:
    def __arrow_c_stream__(self, schema=None):
        return TABLE.__arrow_c_stream__(schema)

def test_equal():
    assert not audit(TABLE, policy=POLICY).ok
    assert not audit(TABLE, policy=POLICY).ok

def test_live():
    assert not audit(Live(), policy=POLICY).ok

def test_patched(monkeypatch):
    monkeypatch.setattr(of_tables, "look_at_classes", lambda rows, **_: Found(sums={"rows": len(rows)}))
    assert audit(TABLE, policy=POLICY).ok
"""


def test_tests_are_captured(tmp_path):
    (tmp_path / "test_ages.py").write_text(TESTS)
    asked = [str(tmp_path / "out"), str(tmp_path), f"--rootdir={tmp_path}", "-n", "0"]
    command = [sys.executable, "-m", "tests.tools.capture_audits", *asked]
    ended = subprocess.run(command, cwd=compare_audits.ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert "kept 1 cases, 1 of them new; dropped 1 equal to another" in lines
    assert "set apart 1 that get another answer when they are replayed" in lines
    assert "    verdict: changed in 1 case" in lines
    assert lines[-2:] == ["not stored:", "        1  a live object: Live: test_ages.py::test_live"]
    assert listed(tmp_path / "out") == ["test_ages.test_equal-001"]
    assert json.loads((tmp_path / "out" / "apart" / "test_ages.test_patched-001" / "case.json").read_text())
