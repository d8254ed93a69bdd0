"""The result of an audit: findings, what could not be checked, and metrics of the release."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.errors import ShoalError

ROWS: Final = "rows, not people"
"""What a verdict is about if nothing says whose a row is."""
ROWS_NAMED: Final = 10
_OWN_LINES: Final = ("epochs", "unchanged_columns", "filled_cells")
"""Metrics that are printed as tables or sentences."""
_LABELS: Final = {"k_s": "K_s", "ncp": "NCP", "p_sparse": "p_sparse"}
_PARTS: Final = {"records_by_k": "k = "}
"""What is printed before the parts of a metric."""


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

    def text(self) -> str:
        """Return one line for people."""
        rows = ", ".join(map(str, self.rows)) + (", …" if self.count > len(self.rows) else "")
        where = f" [released rows {rows}]" if self.rows else ""
        return f"{self.severity} {self.code} ({self.count}): {self.sentence}{where}"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdict on a release."""

    method: str
    findings: tuple[Finding, ...]
    not_checked: tuple[str, ...]
    metrics: Mapping[str, Any]
    counts_rows: bool = False
    """Whether nothing says whose a row is: then k rows are promised, which may be of fewer people."""

    def __repr__(self) -> str:
        return f"<{self._headline()}>"

    def __str__(self) -> str:
        return self.text()

    @property
    def ok(self) -> bool:
        """Whether no violation was found. Read `not_checked` too: it lists what this does not cover."""
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
        return {
            "method": self.method,
            "ok": self.ok,
            "about": self.about,
            "findings": [found.to_dict() for found in self.findings],
            "not_checked": list(self.not_checked),
            "metrics": dict(self.metrics),
        }

    def text(self) -> str:
        """Return a summary for people."""
        lines = [self._headline()]
        lines += [f"  {found.text()}" for found in self.findings]
        lines += [f"  not checked: {sentence}" for sentence in self.not_checked]
        lines += _numbers(self.metrics)
        return "\n".join(lines)

    def _headline(self) -> str:
        found = "nothing broken in what could be checked" if self.not_checked else "nothing broken"
        verdict = found if self.ok else "PROMISE BROKEN"
        gaps = f", {len(self.not_checked)} checks not possible" if self.not_checked else ""
        verdict += f" for {ROWS}" if self.counts_rows else ""
        return (
            f"audit of {self.method}: {verdict} "
            f"({len(self.violations)} violations, {len(self.warnings)} warnings{gaps})"
        )


def _numbers(metrics: Mapping[str, Any]) -> list[str]:
    plain = [_metric(name, value) for name, value in metrics.items() if name not in _OWN_LINES]
    filled = [f"  {all_filled_in_words(metrics['filled_cells'])}"] if "filled_cells" in metrics else []
    return plain + filled + _unchanged_table(metrics.get("unchanged_columns")) + _epoch_table(metrics.get("epochs"))


def filled_in_words(cells: int, columns: Mapping[str, int]) -> str:
    """Say how many cells show something that their record does not have."""
    by_column = ", ".join(f"{count:,} in {name}" for name, count in columns.items())
    who = f"{cells:,} cell shows" if cells == 1 else f"{cells:,} cells show"
    return f"{who} something although the record has nothing there{f': {by_column}' if by_column else ''}"


def all_filled_in_words(found: Mapping[str, Any]) -> str:
    """Say how many cells are filled, and how many of them at the root, from the metric ``filled_cells``."""
    words, at_root = filled_in_words(found["cells"], found["columns"]), found["at_root"]
    return f"{words}; {at_root:,} of them in suppressed rows published at the root" if at_root else words


def _unchanged_table(columns: Mapping[str, Any] | None) -> list[str]:
    if not columns:
        return []
    lines = [
        "  published unchanged; share of rows whose value too few people have, alone and with the class",
        "    values  of one person    too few  with class    one person  with class   column",
    ]
    return lines + [
        f"    {found['values']:>6} {found['values_of_one_person']:>14} {found['share_below']:>10.4f} "
        f"{found['share_below_with_class']:>11.4f} {found['share_of_one_person']:>13.4f} "
        f"{found['share_of_one_person_with_class']:>11.4f}   {name} ({found['role']})"
        for name, found in columns.items()
    ]


def _metric(name: str, value: Any) -> str:
    """Return one line in words; what a mapping says about its own figures comes first."""
    label = _LABELS.get(name, name.replace("_", " "))
    if not isinstance(value, Mapping):
        return f"  {label}: {_number(value)}"
    figures = dict(value)
    unit, how = figures.pop("unit", None), figures.pop("how", None)
    parts = [f"{figures.pop('sets')} {how}"] if how else []
    parts += [f"{_PARTS.get(name, '')}{part.replace('_', ' ')} {_number(inner)}" for part, inner in figures.items()]
    return f"  {label}{f' in {unit}' if unit else ''}: {', '.join(parts)}"


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_number(inner)}" for name, inner in value.items())
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _epoch_table(epochs: Mapping[str, Any] | None) -> list[str]:
    if not epochs:
        return []
    lines = [f"  epochs: {epochs['count']}; share of people over", "    people per set   all   active   shown"]
    lines += [_share_line(name, shares) for name, shares in epochs["shares"].items()]
    if epochs["worst"]:
        lines += ["  most revealing epochs", "    start (UTC)            active   shown   unique of shown"]
    return lines + [_worst_line(worst) for worst in epochs["worst"]]


def _share_line(name: str, shares: Mapping[str, float | None]) -> str:
    cells = ("   –  " if share is None else f"{share:.4f}" for share in shares.values())
    return f"    {name:<12} " + "  ".join(cells)


def _worst_line(worst: Mapping[str, Any]) -> str:
    active = "–" if worst["active"] is None else worst["active"]
    start = datetime.fromtimestamp(worst["start_s"], UTC).isoformat(timespec="seconds").removesuffix("+00:00")
    return f"    {start:<20} {active:>8} {worst['shown']:>7}   {worst['unique_share']:.4f}"


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
    """Collects the findings of all checks."""

    findings: list[Finding] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    numbers: npt.NDArray[np.int64] | None = None
    """The number of every row that is checked, rising, if these are a part of the release."""
    counts_rows: bool = False
    """Whether the policy counts rows, not people."""

    def violation(
        self, code: str, sentence: str, *, rows: npt.NDArray[np.bool_] | None = None, count: int | None = None
    ) -> None:
        """Report a broken promise, if any row is marked or the count is above 0."""
        self._add(Severity.VIOLATION, code, sentence, rows, count)

    def warning(
        self, code: str, sentence: str, *, rows: npt.NDArray[np.bool_] | None = None, count: int | None = None
    ) -> None:
        """Report something that breaks no promise but deserves attention."""
        self._add(Severity.WARNING, code, sentence, rows, count)

    def info(self, code: str, sentence: str, *, count: int) -> None:
        """Report something good to know."""
        self._add(Severity.INFO, code, sentence, None, count)

    def skip(self, sentence: str) -> None:
        """Report a check that was not possible because an input was not given."""
        if sentence not in self.not_checked:
            self.not_checked.append(sentence)

    def unchecked(self, sentence: str, *, count: int = 1) -> None:
        """Report a promise that the given inputs should prove and do not; this fails the audit."""
        self.violation("unchecked-promise", sentence, count=count)

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

    def _add(
        self, severity: Severity, code: str, sentence: str, rows: npt.NDArray[np.bool_] | None, count: int | None
    ) -> None:
        total = int(rows.sum()) if count is None and rows is not None else (count or 0)
        if total:
            named = () if rows is None else self._named(np.flatnonzero(rows)[:ROWS_NAMED])
            self.findings.append(Finding(code, severity, total, sentence, named))

    def _named(self, rows: npt.NDArray[np.int64]) -> tuple[int, ...]:
        return tuple((rows if self.numbers is None else self.numbers[rows]).tolist())
