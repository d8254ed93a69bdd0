"""What `shoal.anonymize` returns: the frame, what was decided, and how to check and show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from shoal.auditor import AuditReport, audit, report_windows
from shoal.auditor.report.audit_text import text_of
from shoal.auditor.report.evidence_report import EvidenceReport, report_evidence
from shoal.auditor.report.verdict_block import block_of
from shoal.auditor.verdict import Verdict
from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError, PolicyError
from shoal.frames.losses import losses_of
from shoal.frames.page import html_of
from shoal.frames.summary import headline, index_note, lines_of
from shoal.inspection import Proposal
from shoal.inspection.columns.column_names import printable
from shoal.inspection.columns.roles import Role

NOT_AUDITED: Final = "not audited yet: audit() checks it"


@dataclass(frozen=True, eq=False)
class Anonymized:
    """An anonymized data frame with what was decided about every row.

    ``frame`` may be published, in the order of release; everything else is private, ``trace`` and ``truth`` above all.
    Do not publish the index or the order of the input with it: either tells whose row is whose.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"id": list(range(60)), "age": [20 + row % 30 for row in range(60)]})
    >>> result = shoal.anonymize(people, k=5, person="id", quasi=["age"])
    >>> print(repr(result).splitlines()[0])
    <Anonymized: 60 of 60 rows released>
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
    dropped_index: str = ""
    """What the index of a pandas frame had; it is not published."""

    @property
    def roles(self) -> list[Role]:
        """What each column was taken for, and why; empty if a policy was given.

        Examples
        --------
        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"id": list(range(60)), "age": [20 + row % 30 for row in range(60)]})
        >>> [(role.column, role.role) for role in shoal.anonymize(people, k=5, person="id").roles]
        [('id', 'person'), ('age', 'quasi')]
        """
        return [] if self.proposal is None else self.proposal.roles

    @property
    def questions(self) -> list[str]:
        """What was guessed and only a person can decide.

        Examples
        --------
        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"id": list(range(60)), "pulse": [60 + row % 30 for row in range(60)]})
        >>> shoal.anonymize(people, k=5, person="id").questions
        ["can somebody know 'pulse' of a person? If not, it may be sensitive or carried"]
        """
        return [] if self.proposal is None else self.proposal.questions

    @property
    def losses(self) -> dict[str, float]:
        """What was lost of every quasi-identifier, from 0 (all exact) to 1 (nothing left).

        Examples
        --------
        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"id": list(range(60)), "age": [20 + row // 10 * 5 for row in range(60)]})
        >>> shoal.anonymize(people, k=5, person="id", quasi=["age"]).losses
        {'age': 0.0}
        """
        return losses_of(self.rows, self.policy)

    def audit(self) -> AuditReport:
        """Check the release with code that shares nothing with the publisher.

        It is done once; from then on the result shows the verdict, too.

        Examples
        --------
        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"id": list(range(60)), "age": [20 + row % 30 for row in range(60)]})
        >>> shoal.anonymize(people, k=5, person="id", quasi=["age"]).audit().ok
        True
        """
        return self._audited

    def report(self, path: str | PathLike[str] | None = None) -> str:
        """Return the promise, the counts, the roles and the audit as text; for events also who stands out.

        With a path that ends in ``.html`` also write a page of evidence: promise, audit, simulated attacks, class
        sizes, losses and utility. The page shows distributions of the input, so only its owner may read it.

        Examples
        --------
        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"id": list(range(60)), "age": [20 + row % 30 for row in range(60)]})
        >>> result = shoal.anonymize(people, k=5, person="id", quasi=["age"])
        >>> result.report().splitlines()[0]
        '60 of 60 rows released'
        """
        if path is not None:
            _write_page(Path(path), self._evidence)
        audited = self.audit()
        lines = [headline(self.counts), *lines_of(self), "", text_of(audited, verdict=self._verdict)]
        if self.metrics.get("z") is None and self.proposal is not None and self.proposal.family == "z":
            lines += ["", report_windows(self.rows, policy=self.policy, truth=self.truth).text()]
        return "\n".join(lines)

    def plot(self, path: str | PathLike[str] | None = None) -> Any:
        """Draw what was lost of each column, how many rows look alike, and what an attacker learns.

        Returns a matplotlib figure, and writes it as a PNG if a path is given. Each attack that was simulated is
        compared with guessing without the release and with the raw data.

        Examples
        --------
        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"id": list(range(60)), "age": [20 + row % 30 for row in range(60)]})
        >>> figure = shoal.anonymize(people, k=5, person="id", quasi=["age"]).plot()
        >>> figure.axes[0].get_title(loc="left")
        'What each column lost'
        """
        from shoal.figures.release import draw_release

        found = self._evidence.content
        return draw_release(
            headline(self.counts), self.counts, self._drawn_losses(found), found["classes"],
            found["attacks"]["attacks"], path,
        )  # fmt: skip

    @property
    def verdict(self) -> str:
        """The verdict of the audit as one sentence, with what simulated attackers gain once `report` or `plot` ran.

        Examples
        --------
        >>> import pyarrow as pa, shoal
        >>> people = pa.table({"id": list(range(60)), "age": [20 + row % 30 for row in range(60)]})
        >>> result = shoal.anonymize(people, k=5, person="id", quasi=["age"])
        >>> result.verdict
        'not audited yet: audit() checks it'
        >>> result.audit().verdict.sentence == result.verdict
        True
        """
        return NOT_AUDITED if self._verdict is None else self._verdict.sentence

    @property
    def _verdict(self) -> Verdict | None:
        """The verdict as far as it is known; showing a result does not audit it."""
        if "_evidence" in self.__dict__:
            return self._evidence.verdict
        return self._audited.verdict if "_audited" in self.__dict__ else None

    @cached_property
    def _audited(self) -> AuditReport:
        return audit(self.rows, truth=self.truth, trace=self.trace, policy=self.policy)

    @cached_property
    def _evidence(self) -> EvidenceReport:
        return report_evidence(self.rows, self.truth, self.policy, trace=self.trace)

    def _drawn_losses(self, found: Mapping[str, Any]) -> dict[str, float]:
        if "columns" in found:  # also under a policy that is a file
            losses = {one["name"]: one["loss"] for one in found["columns"]}
            return {printable(name): losses[name] for name in self.rows.column_names if name in losses}
        if "items_generalized" in self.metrics:
            return {"different items": self.metrics["items_generalized"],
                    "what people have": self.metrics["occurrences_generalized"]}  # fmt: skip
        return {}

    def __repr__(self) -> str:
        return "\n".join([f"<Anonymized: {headline(self.counts)}>", *lines_of(self)])

    def _repr_html_(self) -> str:
        notes = [*self.questions, *self.warnings]
        notes += [f"index: {index_note(self.dropped_index)}"] if self.dropped_index else []
        verdict = f"<p>{NOT_AUDITED}</p>" if self._verdict is None else block_of(self._verdict.to_dict())
        return html_of(headline(self.counts), self.statement, verdict, self.counts, self.losses, self.roles, notes)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.rows.__arrow_c_stream__(requested_schema)


def _write_page(path: Path, evidence: EvidenceReport) -> None:
    if path.suffix != ".html":
        raise PolicyError(f"path: {path.name} does not end in .html; the report is one page of HTML")
    try:
        write_file(path, evidence.html(), private=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another path") from None
