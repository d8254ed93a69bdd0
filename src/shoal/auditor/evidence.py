"""What an audit of rows looks at: the policy, the release, and the truth and the trace if there are any."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from shoal.auditor.checks import look
from shoal.auditor.engine import Place
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.layout import check_layout, count_odd_rows, layout
from shoal.auditor.policy import Policy, is_number, words_of
from shoal.auditor.reading.files import read
from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.reading.spellings import NUMBERS
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
    given = {"release": release, "truth": truth, "trace": trace}
    found = read_inputs(
        policy, {role: what for role, what in given.items() if what is not None or role == "release"}, name
    )
    released, known = found["release"], found.get("truth")
    is_counted = counts_rows(policy, None if known is None else Outline.of(known))
    return Evidence(policy, released, known, found.get("trace"), released.odd_rows, is_counted)


def read_inputs(policy: Policy, inputs: Mapping[str, Any], name: str = "release") -> dict[str, Rows]:
    """Read what was given, by role, into this process; errors call the release `name`."""
    formats, found = formats_of(policy), {}
    for role, what in inputs.items():
        part = "trace" if role == "trace" else "rows"
        rows = read(what, name=name if role == "release" else role, expected=formats[role], part=part)
        if role == "truth":
            rows = by_stream(rows, policy.section("stream"))
        if role == "release":
            rows = replace(rows, odd_rows=count_odd_rows(what, policy, formats[role]))
        found[role] = rows
    return found


def formats_of(policy: Policy) -> dict[str, Format]:
    """The formats of the files of a release, a truth and a trace of rows."""
    sink = replace(Format.of(policy.section("sink")), names_once=True)
    return {"release": sink, "truth": source_format(policy), "trace": Format()}


def counts_rows(policy: Policy, truth: Outline | None) -> bool:
    """Return whether the policy counts rows, not people; a real column named "row" names people."""
    return policy.section("stream").get("person") == "row" and (truth is None or not truth.has_row_column)


def source_format(policy: Policy) -> Format:
    """The format of the truth: what [source] says, and the columns and types with which a run reads it."""
    section = policy.section("source")
    used = frozenset(words_of({name: table for name, table in policy.content.items() if name != "source"}))
    declared, quasi = section.get("types", {}), policy.section("anonymize").get("quasi", {})
    types = {str(name): str(kind) for name, kind in declared.items() if name in used}
    tables = quasi.items() if isinstance(quasi, Mapping) else ()
    ranges = {name for name, table in tables if isinstance(table, Mapping) and is_number(table.get("low"))}
    declared_numbers = {name for name, kind in types.items() if kind in NUMBERS}
    numbers = frozenset(declared_numbers | (ranges - types.keys()))
    found = Format.of_source(section)
    spelling = replace(found.spelling, types=types, numbers=numbers)
    return replace(found, wanted=frozenset(words_of(policy.content)), spelling=spelling)


class Promise(Protocol):
    """What a policy promises of the rows of a release."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be released."""

    @property
    def method(self) -> str:
        """The method of the policy."""


def audit_release(place: Place, policy: Policy, promise: Promise, checks: Callable[[Notes], None]) -> AuditReport:
    """Check the columns and the layout of a release, then all that its family checks."""
    notes = Notes(counts_rows=counts_rows(policy, place.outline("truth") if place.has("truth") else None))
    with notes.guarded():
        release = place.outline("release")
        if check_columns(promise.columns, release, notes):
            notes.findings += look(release, (layout,))
            checks(notes)
    return notes.report(promise.method)


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
