"""What `shoal.anonymize` returns: the frame, what was decided, and how to check and show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from shoal.auditor import AuditReport, audit, report_windows
from shoal.frames.losses import losses_of
from shoal.frames.page import html_of
from shoal.inspection import Proposal
from shoal.inspection.column_names import printable
from shoal.inspection.roles import Role


@dataclass(frozen=True, eq=False)
class Anonymized:
    """An anonymized data frame with what was decided about every row.

    ``frame`` may be published, in the order of release; everything else is private, ``trace`` and ``truth`` above all.
    """

    frame: Any
    rows: pa.Table
    """The frame as Arrow, with ranges as struct<lo, hi>."""
    trace: Any
    truth: Any
    policy: Any
    counts: Mapping[str, int]
    """Rows in, released, suppressed, refused and pending."""
    refused: Mapping[str, str]
    """Why rows were refused, with how many."""
    statement: str
    """The promise."""
    proposal: Proposal | None
    warnings: tuple[str, ...]
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def roles(self) -> list[Role]:
        """What each column was taken for, and why; empty if a policy was given."""
        return [] if self.proposal is None else self.proposal.roles

    @property
    def questions(self) -> list[str]:
        """What was guessed and only a person can decide."""
        return [] if self.proposal is None else self.proposal.questions

    @property
    def losses(self) -> dict[str, float]:
        """What was lost of every quasi-identifier, from 0 (all exact) to 1 (nothing left)."""
        return losses_of(self.rows, self.policy)

    def audit(self) -> AuditReport:
        """Check the release with code that shares nothing with the publisher."""
        return audit(self.rows, truth=self.truth, trace=self.trace, policy=self.policy)

    def report(self) -> str:
        """The promise, the counts, the roles and the audit as text; for events also who can still be singled out."""
        lines = [*self._lines(), "", self.audit().text()]
        if self.metrics.get("z") is None and self.proposal is not None and self.proposal.family == "z":
            lines += ["", report_windows(self.rows, policy=self.policy, truth=self.truth).text()]
        return "\n".join(lines)

    def plot(self, path: Any = None) -> Any:
        """Draw what became of the rows and what was lost of each column; return the figure, or write it to a path."""
        from shoal.figures.release import draw_release

        return draw_release(self.counts, self.losses, path)

    def _lines(self) -> list[str]:
        shown = ", ".join(f"{count:,} {name}" for name, count in self.counts.items() if count or name == "refused")
        lines = [f"promise    {self.statement}", f"rows       {shown}"]
        if self.proposal is not None and self.proposal.missing:
            lines.append(f"missing    {self.proposal.anonymize['missing']}: {self.proposal.missing}")
        lines += [f"refused    {text}" for text in self.refused.values()]
        lines += [f"loss       {printable(name)} {loss:.3f}" for name, loss in self.losses.items()]
        if self.metrics.get("rare_patterns"):
            lines.append(f"missing    {self.metrics['rare_patterns']:,} rows suppressed: too few people lack the same "
                         "columns")  # fmt: skip
        if self.metrics.get("filled"):
            lines.append(f"filled     {self.metrics['filled']:,} values where the record has none")
        if "items_generalized" in self.metrics:
            found = self.metrics
            lines.append(f"items      {found['items_generalized']:.1%} of {found['items']:,} are generalized, "
                         f"{found['occurrences_generalized']:.1%} of what people have")  # fmt: skip
        if self.metrics.get("items_dropped"):
            found = self.metrics
            lines.append(f"dropped    {found['items_dropped']:.1%} of the items, which too few people have: "
                         f"{found['occurrences_dropped']:.1%} of what people have")  # fmt: skip
        kept = [one for one in self.roles if one.role != "drop"]
        lines += [f"role       {printable(one.column)}: {one.role} ({one.reason})" for one in kept]
        for reason in dict.fromkeys(one.reason for one in self.roles if one.role == "drop"):
            names = [printable(one.column) for one in self.roles if one.role == "drop" and one.reason == reason]
            lines.append(f"left out   {', '.join(names)} ({reason})")
        lines += [f"check      {question}" for question in self.questions]
        return lines + [f"warning    {text}" for text in self.warnings]

    def __repr__(self) -> str:
        return "\n".join(["<Anonymized>", *self._lines()])

    def _repr_html_(self) -> str:
        return html_of(self.statement, self.counts, self.losses, self.roles, [*self.questions, *self.warnings])

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.rows.__arrow_c_stream__(requested_schema)
