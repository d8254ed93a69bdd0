"""All checks of the auditor, as they declare themselves: for `shoal audit --list` and for a table of the docs."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, Final

from shoal.auditor.advice import ADVICE
from shoal.auditor.checks import CHECKS
from shoal.auditor.findings import Severity

_SEVERITIES: Final = {Severity.VIOLATION: "broken", Severity.WARNING: "warning", Severity.INFO: "note"}
_UNDECLARED: Final = Path(__file__).with_name("undeclared.tsv")
"""Codes that an audit reports by itself, without a check that looks at rows."""
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """A code of the report, and one of the checks that report it."""

    code: str
    severity: str
    """broken, warning or note."""
    families: tuple[str, ...]
    needs: tuple[str, ...]
    by: str
    """The key by which rows are divided; empty if it is not declared."""
    sentence: str
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return a few lines for people."""
        needs = f"; needs {', '.join(self.needs)}" if self.needs else ""
        key = f"; divided by {self.by}" if self.by not in ("", "none") else ""
        lines = [f"{self.code} ({self.severity}; {', '.join(self.families)}{needs}{key})"]
        for words in (self.sentence, self.advice):
            lines += wrap(words, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        return "\n".join(lines)


def entries() -> list[Entry]:
    """All checks, by code."""
    from shoal.auditor import audit  # noqa: F401 - families declare their checks as they are imported

    declared = [
        Entry(one.code, _SEVERITIES[one.severity], one.families, one.needs, one.by, one.sentence, one.advice)
        for one in CHECKS.values()
    ]
    known = {(one.code, family) for one in declared for family in one.families}
    return sorted({*declared, *_undeclared(known)}, key=_order)


def _order(one: Entry) -> tuple[str, ...]:
    return one.code, one.severity, *one.families, one.sentence, *one.needs, one.by, one.advice


def _undeclared(known: set[tuple[str, str]]) -> Iterator[Entry]:
    """What is in the list, for the families that do not declare a check of the code."""
    with _UNDECLARED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            families = tuple(name for name in row["families"].split(", ") if (row["code"], name) not in known)
            if families:
                words = row["what was found"]
                sentence = f"{words[0].upper()}{words[1:]}."
                code, needs = row["code"], tuple(row["needs"].split())
                yield Entry(code, row["severity"], families, needs, "", sentence, ADVICE.get(code, ""))


def table() -> str:
    """The table of codes of docs/reference/audit.md."""
    lines = ["| code | severity | of | needs | what was found, and what to do |", "|---|---|---|---|---|"]
    for one in entries():
        words = f"{one.sentence} {one.advice}".strip().replace("|", "\\|")
        lines.append(
            f"| `{one.code}` | {one.severity} | {', '.join(one.families)} | {', '.join(one.needs)} | {words} |"
        )
    return "\n".join(lines) + "\n"
