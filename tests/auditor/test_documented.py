"""Every code and metric of the auditor is in docs/reference/audit.md, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import shoal.auditor
from shoal.auditor.checks import CHECKS
from shoal.auditor.listing import entries
from shoal.auditor.tables.sensitive import CODES
from shoal.auditor.tuples.diversity.diversity import _SENTENCES
from shoal.auditor.tuples.values import FAULTS
from tests.docs.check_tables import filled

SOURCES = sorted(Path(shoal.auditor.__file__).parent.rglob("*.py"))
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "audit.md"
BY_TABLE = {"wrong-carry", "wrong-sensitive", *_SENTENCES, *FAULTS, *CODES}
"""Codes that are looked up where they are used."""


def calls() -> list[ast.Call]:
    return [node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def codes_used() -> set[str]:
    findings = [call for call in calls() if name_of(call) in ("violation", "warning", "info", "note") and call.args]
    firsts = [call.args[0] for call in findings]
    firsts += [call.args[1] for call in calls() if name_of(call) == "_add" and len(call.args) > 1]
    return BY_TABLE | {one.value for one in firsts if isinstance(one, ast.Constant)}


def documented(page: str) -> set[str]:
    firsts = re.findall(r"^\| (`[^|]*) \|", page, flags=re.MULTILINE)
    return {name for cell in firsts for name in re.findall(r"`([^`]+)`", cell)}


def test_codes():
    listed = {one.code for one in entries()}
    assert listed == codes_used() | {code for code, _ in CHECKS}
    assert documented(PAGE.read_text().split("## Metrics")[0]) == listed


def test_the_table_of_codes_is_current():
    text = PAGE.read_text()
    assert filled(text) == text, "run make tables"


def test_every_check_says_what_to_do():
    assert [one.code for one in CHECKS.values() if not (one.sentence.endswith(".") and one.advice.endswith("."))] == []


def test_metrics():
    text = "".join(path.read_text() for path in SOURCES)
    used = set(re.findall(r"metrics\[\"(\w+)\"\]", text))
    found = documented(PAGE.read_text().split("## Metrics")[1])
    by_size = {f"{name}_sets_of_<size>" for name in ("risk_before", "risk_after", "released")}
    assert found - used == {
        "l",
        "entropy_l",
        "t",
        "recursive_c",
        "alpha",
        "beta",
        "t_distance",
        *by_size,
    }
    assert used <= found
