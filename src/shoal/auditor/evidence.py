"""What an audit looks at: the policy, the release, and the truth and the trace if there are any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from shoal.auditor.layout import count_odd_rows
from shoal.auditor.policy import Policy, words_of
from shoal.auditor.reading.files import Format, read
from shoal.auditor.reading.rows import Rows, by_stream


@dataclass(frozen=True, slots=True)
class Evidence:
    """The auditor's inputs, read."""

    policy: Policy
    release: Rows
    truth: Rows | None
    trace: Rows | None
    odd_rows: int = 0
    """Rows of the release's text files that are laid out differently from the others."""


def read_evidence(policy: Policy, release: Any, truth: Any, trace: Any) -> Evidence:
    """Read the inputs of an audit of rows, as the policy describes their formats."""
    source = replace(Format.of_source(policy.section("source")), wanted=frozenset(words_of(policy.content)))
    sink = replace(Format.of(policy.section("sink")), names_once=True)
    rows = read(release, name="release", expected=sink)
    known = None
    if truth is not None:
        known = by_stream(read(truth, name="truth", expected=source), policy.section("stream"))
    decided = None if trace is None else read(trace, name="trace", expected=Format(), part="trace")
    return Evidence(policy, rows, known, decided, count_odd_rows(release, policy, sink))
