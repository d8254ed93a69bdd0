"""Audits and attacks on Spark: the session and sealed traces around the auditor, which knows neither."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.auditor.attacks.class_sizes import CONTROL, RELEASE, TRUTH, attack_on, known_to_attackers
from shoal.auditor.attacks.outcome import AttackReport
from shoal.auditor.audit import FAMILIES, family_of, inputs_of
from shoal.auditor.conclusion import concluded
from shoal.auditor.findings import AuditReport
from shoal.auditor.policy import Policy, read_policy
from shoal.auditor.reading.memory import size_of
from shoal.auditor.reading.paths import table_paths
from shoal.auditor.spark import OnSpark
from shoal.auditor.task_files import File, Sealed, files_of
from shoal.encode.sealed import count_pieces, is_sealed_trace, read_sealed_piece
from shoal.spark.cluster.session import limit_batches, readable_errors, start_session
from shoal.spark.cluster.workers import InWorker


def audit(
    release: Any, truth: Any = None, trace: Any = None, policy: Any = None, *, max_memory: int | str | None = None
) -> AuditReport:
    """Check a release that one machine cannot hold, on Spark; the report is that of `shoal.audit`.

    Rows of one value, class or person meet in one task, where the functions of `shoal.audit` look at them; the driver
    adds up what they found. What cannot be checked on Spark is listed in ``not_checked``.

    Parameters
    ----------
    release, truth, trace
        Paths that every machine has: a file, a folder of part files or of micro-batches, a pattern, or a list of these.
        Each file is read by one task. Sealed traces are opened with the key of SHOAL_KEY_FILE. Files of a folder or
        pattern are read by name; those of the trace must be in the order of the release.
    policy
        The path of the policy file, its content as a dict, or the method.
    max_memory
        The memory that reading a file may take in a task, in bytes or as text ("2 GB").
    """
    return audit_on_spark(release, truth, sealed_trace(trace), policy, max_memory=max_memory)


def audit_on_spark(
    release: Any, truth: Any, trace: Any, policy: Any, *, max_memory: int | str | None, master: str | None = None
) -> AuditReport:
    """Audit with the session of this process, or a new one with this master."""
    session = start_session(master)
    limit_batches(session)
    written = read_policy(policy)
    family = FAMILIES[family_of(written)]
    formats, inputs = family.formats(written), inputs_of(written, release, truth, trace)
    files = [
        file
        for role, what in inputs.items()
        for file in files_of(what, role, formats[role], family.reader(written, role))
    ]
    with on_spark(session, written, files, max_memory) as place:
        report = family.report(place, written, inputs)
    return concluded(report, written, release, truth, trace, is_here=False)


def on_spark(session: Any, policy: Policy, files: Sequence[File], max_memory: int | str | None) -> OnSpark:
    """The place of an audit: tasks of a session, which read these files."""
    limit = None if max_memory is None else size_of(max_memory)
    return OnSpark(session, policy, files, max_memory=limit, errors=readable_errors, in_worker=InWorker)


def attack(
    release: Any, truth: Any, policy: Any = None, *, control: Any = None, knows: Sequence[str] | None = None,
    person: str | None = None, max_memory: int | str | None = None,
) -> AttackReport:  # fmt: skip
    """Measure on Spark, from the sizes of classes, how likely attackers who know quasi-identifiers pick a person's row.

    The rates are means over all released rows of 1 / rows of the class, for an attacker who finds the person's class;
    no people are drawn, so there is no interval. They are those of `shoal.attack` without a trace, with every record
    attacked, where ranges of different classes do not overlap, every record is another person and no value is
    missing. Attackers who compare every person with every class are listed with why not.

    Parameters
    ----------
    release, truth, control
        Paths that every machine has, as for `audit`. All records of the control group count.
    policy
        The policy of the release: a tuple method or flexible k. None for a table of another tool; then name ``knows``.
    knows
        The quasi-identifiers that attackers know; by default all of the policy.
    person
        Without a policy: the column of the truth that identifies people; by default each row is one.
    """
    return attack_on_spark(
        release, truth, policy, control=control, knows=knows, person=person, max_memory=max_memory
    )  # fmt: skip


def attack_on_spark(
    release: Any, truth: Any, policy: Any, *, control: Any, knows: Sequence[str] | None, person: str | None,
    max_memory: int | str | None, master: str | None = None,
) -> AttackReport:  # fmt: skip
    """Attack with the session of this process, or a new one with this master."""
    session = start_session(master)
    limit_batches(session)
    written = None if policy is None else read_policy(policy)
    known = known_to_attackers(written, knows, person)
    given = {RELEASE: release, TRUTH: truth} | ({} if control is None else {CONTROL: control})
    with on_spark(session, read_policy({}), known.files(written, given), max_memory) as place:
        return attack_on(place, known)


def sealed_trace(trace: Any) -> Any:
    """A trace in files: sealed ones as pieces that executors open, in the order in which they are read."""
    if isinstance(trace, Sequence) and not isinstance(trace, str):
        return [sealed_trace(one) for one in trace]
    if not isinstance(trace, str | Path):
        return trace
    return [_sealed(path.absolute()) if is_sealed_trace(path) else path for path in table_paths(trace, "trace")]


def _sealed(place: Path) -> Sealed:
    return Sealed(str(place), count_pieces(place), read_sealed_piece)
