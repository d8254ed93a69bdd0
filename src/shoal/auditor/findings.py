"""The result of an audit: findings, what could not be checked, and metrics of the release."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from shoal.errors import ShoalError

if TYPE_CHECKING:
    from shoal.auditor.verdict import Verdict

ROWS: Final = "rows, not people"
"""What a verdict is about if nothing says whose a row is."""
ROWS_NAMED: Final = 10


class Severity(StrEnum):
    """How bad a finding is: a violation breaks the promise, a warning does not."""

    VIOLATION = "violation"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. ``rows`` are the first few affected released rows, counted from 0; never a person's value."""

    code: str
    severity: Severity
    count: int
    sentence: str
    rows: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "code": self.code,
            "severity": str(self.severity),
            "count": self.count,
            "sentence": self.sentence,
            "rows": list(self.rows),
        }


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found; its `verdict` says in one sentence what became of the promise.

    Examples
    --------
    >>> AuditReport("fads", (), (), {"smallest_k": 7, "counted_in_classes": "people"})
    <audit of fads: promise kept; the smallest crowd has 7 people>
    """

    method: str
    findings: tuple[Finding, ...]
    not_checked: tuple[str, ...]
    metrics: Mapping[str, Any]
    counts_rows: bool = False
    """Whether nothing says whose a row is: then k rows are promised, which may be of fewer people."""
    gap: str = ""
    """Why the policy's main promise cannot have been counted, whatever was found; see `shoal.auditor.verdict`."""

    def __repr__(self) -> str:
        counts = [(len(self.warnings), "warning", "warnings"),
                  (len(self.not_checked), "check not possible", "checks not possible")]  # fmt: skip
        more = "".join(f"; {count} {one if count == 1 else several}" for count, one, several in counts if count)
        return f"<audit of {self.method}: {self.verdict.sentence}{more}>"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from shoal.auditor.report.verdict_block import block_of

        return block_of(self.verdict.to_dict())

    @property
    def verdict(self) -> Verdict:
        """What became of the promise, as one sentence with its reasons, worst first."""
        from shoal.auditor.verdict import verdict_of

        return verdict_of(self)

    @property
    def ok(self) -> bool:
        """Whether no violation was found. Read `verdict` too: it says if the promise could be checked at all."""
        return not self.violations

    @property
    def about(self) -> str:
        """What the verdict is about."""
        return ROWS if self.counts_rows else "people"

    @property
    def violations(self) -> tuple[Finding, ...]:
        """Findings that break the promise."""
        return tuple(found for found in self.findings if found.severity is Severity.VIOLATION)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """Findings that break no promise but deserve attention."""
        return tuple(found for found in self.findings if found.severity is Severity.WARNING)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        from shoal.auditor.checks import advice_of

        return {
            "method": self.method,
            "ok": self.ok,
            "about": self.about,
            "verdict": self.verdict.to_dict(),
            "findings": [{**one.to_dict(), "advice": advice_of(one.code, self.method)} for one in self.findings],
            "not_checked": list(self.not_checked),
            "metrics": dict(self.metrics),
        }

    def text(self, most: int | None = None) -> str:
        """Return a summary for people: the verdict, its reasons, and the metrics; of long ones the first lines."""
        from shoal.auditor.report.audit_text import text_of

        return text_of(self, most)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the audit as one page of HTML, which only its owner may read: it has counts of the private input."""
        from shoal.auditor.report.audit_page import write_page

        write_page(self, Path(path))


def filled_in_words(cells: int, columns: Mapping[str, int]) -> str:
    """Say how many cells show something that their record does not have."""
    by_column = ", ".join(f"{count:,} in {name}" for name, count in columns.items())
    who = f"{cells:,} cell shows" if cells == 1 else f"{cells:,} cells show"
    return f"{who} something although the record has nothing there{f': {by_column}' if by_column else ''}"


def all_filled_in_words(found: Mapping[str, Any]) -> str:
    """Say how many cells are filled, and how many of them at the root, from the metric ``filled_cells``."""
    words, at_root = filled_in_words(found["cells"], found["columns"]), found["at_root"]
    return f"{words}; {at_root:,} of them in suppressed rows published at the root" if at_root else words


class CheckFailed(Exception):
    """A check failed on another machine; says where, never with data."""


def where_failed(error: Exception) -> str:
    """Say what failed and where, without the message, which may contain data."""
    if isinstance(error, CheckFailed):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"


@dataclass(slots=True)
class Notes:
    """Collects findings, checks that were not possible, and metrics."""

    findings: list[Finding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    counts_rows: bool = False
    """Whether the policy counts rows, not people."""

    def skip(self, sentence: str) -> None:
        """Report a check that was not possible because an input was not given."""
        if sentence not in self.not_checked:
            self.not_checked.append(sentence)

    def unchecked(self, sentence: str, *, count: int = 1) -> None:
        """Report a promise that the given inputs should prove and do not; this fails the audit."""
        from shoal.auditor.checks import unchecked_promise

        self.findings += unchecked_promise(sentence, count)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Report a check that fails on damaged inputs as a finding, without the message, which may contain data."""
        try:
            yield
        except (ShoalError, MemoryError):
            raise
        except Exception as error:
            self.unchecked(
                f"The inputs are damaged: a check failed ({where_failed(error)}); nothing after it was checked. "
                "Write the files again, or report this as a bug of the auditor."
            )

    def report(self, method: str) -> AuditReport:
        """Return the report, violations first."""
        ranks = list(Severity)
        findings = sorted(self.findings, key=lambda found: ranks.index(found.severity))
        return AuditReport(method, tuple(findings), tuple(self.not_checked), self.metrics, self.counts_rows)
