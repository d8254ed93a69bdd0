"""What an audit of rows looks at: the policy, the release, and the truth and the trace if there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.layout import check_layout, count_odd_rows
from shoal.auditor.policy import Policy, words_of
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, by_stream, counts_rows
from shoal.auditor.released_columns import check_columns


@dataclass(frozen=True, slots=True)
class Evidence:
    """The auditor's inputs, read."""

    policy: Policy
    release: Rows
    truth: Rows | None
    trace: Rows | None
    odd_rows: int = 0
    """Rows of the release's text files that are laid out differently from the others."""
    counts_rows: bool = False
    """Whether the policy counts rows, not people."""


def read_evidence(policy: Policy, release: Any, truth: Any, trace: Any, *, name: str = "release") -> Evidence:
    """Read the inputs of an audit of rows, as the policy describes their formats; errors call the release `name`."""
    source = replace(Format.of_source(policy.section("source")), wanted=frozenset(words_of(policy.content)))
    sink = replace(Format.of(policy.section("sink")), names_once=True)
    rows = read(release, name=name, expected=sink)
    stream = policy.section("stream")
    raw = None if truth is None else read(truth, name="truth", expected=source)
    known = None if raw is None else by_stream(raw, stream)
    decided = None if trace is None else read(trace, name="trace", expected=Format(), part="trace")
    return Evidence(policy, rows, known, decided, count_odd_rows(release, policy, sink), counts_rows(raw, stream))


class Promise(Protocol):
    """What a policy promises of the rows of a release."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be released."""

    @property
    def method(self) -> str:
        """The method of the policy."""


P = TypeVar("P", bound=Promise)


def audit_rows(
    evidence: Evidence, read_promise: Callable[[Policy], P], judge: Callable[[Evidence, P, Notes], None]
) -> AuditReport:
    """Check the columns and the layout of a release, then all that the judge of its family checks."""
    promise, notes = read_promise(evidence.policy), Notes(counts_rows=evidence.counts_rows)
    with notes.guarded():
        if check_columns(promise.columns, evidence.release, notes):
            check_layout(evidence.odd_rows, notes)
            judge(evidence, promise, notes)
    return notes.report(promise.method)
