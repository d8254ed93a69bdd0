"""Every code and metric of the auditor is in docs/reference/audit.md, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import shoal.auditor
from shoal.auditor.checks import CHECKS
from shoal.auditor.listing import entries
from tests.docs.check_tables import filled

SOURCES = sorted(Path(shoal.auditor.__file__).parent.rglob("*.py"))
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "audit.md"


def calls() -> list[ast.Call]:
    return [node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def codes_used() -> set[str]:
    """Codes of findings that no check made."""
    firsts = [call.args[0] for call in calls() if name_of(call) == "Finding" and call.args]
    return {one.value for one in firsts if isinstance(one, ast.Constant)}


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
    found = documented(PAGE.read_text().split("## Metrics")[1])
    named = {word for name in found for word in (name, name.removesuffix("_sets_of_<size>"))}
    assert {name for name in found if not {name, name.removesuffix("_sets_of_<size>")} & quoted(text)} == set()
    assert set(re.findall(r"metrics\[\"(\w+)\"\]", text)) <= named


def quoted(text: str) -> set[str]:
    """All words in quotes, and those that begin a text with braces."""
    return set(re.findall(r"\"(\w+?)(?:_sets_of_\{\w+\})?\"", text))
