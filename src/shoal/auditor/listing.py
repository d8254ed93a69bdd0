"""All checks of the auditor, as they declare themselves: for `shoal audit --list` and for a table of the docs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any, Final

from shoal.auditor.checks import CHECKS
from shoal.auditor.findings import Severity

_SEVERITIES: Final = {Severity.VIOLATION: "broken", Severity.WARNING: "warning", Severity.INFO: "note"}
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A code of the report, and one of the checks that report it."""

    code: str
    severity: str
    """broken, warning or note."""
    families: tuple[str, ...]
    needs: tuple[str, ...]
    by: str
    """The key by which rows are divided."""
    sentence: str
    advice: str

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)

    def text(self) -> str:
        """Return a few lines for people."""
        needs = f"; needs {', '.join(self.needs)}" if self.needs else ""
        key = f"; divided by {self.by}" if self.by != "none" else ""
        lines = [f"{self.code} ({self.severity}; {', '.join(self.families)}{needs}{key})"]
        for words in (self.sentence, self.advice):
            lines += wrap(words, _WIDTH, initial_indent="    ", subsequent_indent="    ")
        return "\n".join(lines)


def entries() -> list[Entry]:
    """All checks, by code; functions that declare the same are one entry."""
    from shoal.auditor import audit  # noqa: F401 - families declare their checks as they are imported

    found = {
        Entry(one.code, _SEVERITIES[one.severity], one.families, one.needs, one.by, one.sentence, one.advice)
        for one in CHECKS.values()
    }
    return sorted(found)


def table() -> str:
    """The table of codes of docs/reference/audit.md."""
    lines = ["| code | severity | of | needs | what was found, and what to do |", "|---|---|---|---|---|"]
    for one in entries():
        words = f"{one.sentence} {one.advice}".strip().replace("|", "\\|")
        lines.append(
            f"| `{one.code}` | {one.severity} | {', '.join(one.families)} | {', '.join(one.needs)} | {words} |"
        )
    return "\n".join(lines) + "\n"
