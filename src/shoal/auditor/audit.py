"""The entry: find the family of the policy's method, and check the release on this machine or on another place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from shoal.auditor.conclusion import concluded
from shoal.auditor.engine import Here, Place
from shoal.auditor.evidence import formats_of, read_inputs
from shoal.auditor.findings import AuditReport
from shoal.auditor.flexible.audit import audit_flexible
from shoal.auditor.policy import METHODS, Policy, read_policy
from shoal.auditor.reading.files import Reader, read
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.paths import Format
from shoal.auditor.sets.audit import audit_sets
from shoal.auditor.sets.evidence import formats_of_sets, sets_here
from shoal.auditor.tables.audit import audit_tables, formats_of_tables, open_tables, reader_of_tables
from shoal.auditor.tuples.audit import audit_tuples
from shoal.auditor.z.audit import audit_z
from shoal.errors import PolicyError

Inputs = Mapping[str, Any]
"""What was given, by role: release, truth, trace; or a plain table and its population."""


def _in_memory(policy: Policy, inputs: Inputs) -> AbstractContextManager[Place]:
    return nullcontext(Here(read_inputs(policy, inputs)))


@dataclass(frozen=True, slots=True)
class Family:
    """How releases of a family are audited, here and on Spark."""

    audit: Callable[..., AuditReport]
    """Takes the place and the policy, and what was given in the roles of `given`."""
    given: tuple[str, ...] = ()
    here: Callable[[Policy, Inputs], AbstractContextManager[Place]] = _in_memory
    """Opens what was given in this process."""
    formats: Callable[[Policy], Mapping[str, Format]] = formats_of
    """By role: the format of its files."""
    reader: Callable[[Policy, str], Reader] = lambda _policy, _role: read
    """What reads a file of a role in a task."""

    def report(self, place: Place, policy: Policy, inputs: Inputs) -> AuditReport:
        """Audit what a place has read."""
        return self.audit(place, policy, *(inputs.get(role) for role in self.given))


FAMILIES: Final[dict[str, Family]] = {
    "z": Family(audit_z),
    "tuples": Family(audit_tuples),
    "flexible": Family(audit_flexible),
    "sets": Family(audit_sets, ("release",), sets_here, formats_of_sets),
    "table": Family(audit_tables, here=open_tables, formats=formats_of_tables, reader=reader_of_tables),
}


def family_of(policy: Policy) -> str:
    """The family whose checks a policy asks for."""
    if "table" in policy.content:
        return "table"
    found = METHODS.get(str(policy.section("anonymize").get("method")))
    if found is None:
        raise PolicyError(f"[anonymize] method: the auditor knows {', '.join(METHODS)}")
    return found


def inputs_of(policy: Policy, release: Any, truth: Any = None, trace: Any = None) -> dict[str, Any]:
    """What was given, by role."""
    if "table" not in policy.content:
        given = {"release": release, "truth": truth, "trace": trace}
    else:
        population = policy.section("table").get("population")
        given = {"table": release, "population": policy.located(population)}
    return {role: what for role, what in given.items() if what is not None or role in ("release", "table")}


def audit(
    release: Any, truth: Any = None, trace: Any = None, policy: Any = None, *, max_memory: int | str | None = None
) -> AuditReport:
    """Check a release against what its policy promised.

    Parameters
    ----------
    release, truth, trace
        A path (a file, a pattern, or a folder of part files in name order; CSV, JSON lines, Parquet or Arrow,
        uncompressed, gzip or zstd), an Arrow table or batch, a data frame, an object with ``.rows`` and ``.trace``,
        or a list of these; for releases of sets also lists of sets and text with one record per line.
        ``truth`` is the raw input; ``trace`` is what the run wrote for the auditor.
        Without them less can be checked, and the report says what was not.
    policy
        The path of the policy file, its content as a dict, or the method that released the rows. It states the promise.
        A policy with ``[table]`` is about a plain table of any tool: see :func:`audit_table`.
    max_memory
        The memory that the audit may use, in bytes or as text ("8 GB"); by default half of the machine's. Files
        that need more are refused.

    Examples
    --------
    >>> import pyarrow as pa
    >>> truth = pa.table({"ts": [1, 2], "user": ["ada", "bob"], "site": ["a.example", "a.example"]})
    >>> policy = {
    ...     "stream": {"person": "user", "time": "ts"},
    ...     "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"},
    ... }
    >>> good = pa.table({"ts": [2], "user": ["0" * 32], "site": ["a.example"]})
    >>> audit(good, truth, policy=policy).ok
    True
    >>> early = pa.table({"ts": [1], "user": ["0" * 32], "site": ["a.example"]})
    >>> [found.code for found in audit(early, truth, policy=policy).violations]
    ['below-z']
    """
    with limited(max_memory):
        written = read_policy(policy)
        family = FAMILIES[family_of(written)]
        inputs = inputs_of(written, release, truth, trace)
        with family.here(written, inputs) as place:
            report = family.report(place, written, inputs)
        return concluded(report, written, release, truth, trace)


def audit_table(
    table: Any,
    *,
    quasi: Sequence[str] | str,
    sensitive: Sequence[str] | str = (),
    person: str | None = None,
    population: Any = None,
    suppressed: str | None = None,
    max_memory: int | str | None = None,
    **bounds: Any,
) -> AuditReport:
    """Measure a table of any tool, and check what is promised about it.

    Parameters
    ----------
    table, population
        A path, an Arrow table, a data frame, or a list of these. Files are read in batches.
    quasi
        The columns that others may know. Rows with equal values in all of them are a class.
    sensitive
        The columns that others must not learn.
    person
        The column that names people, if the table has it: people are counted then, else rows.
    suppressed
        Rows whose quasi-identifiers all are this text ("*") do not count.
    max_memory
        In bytes or as text ("8 GB"); rows that do not fit are sorted on disk.
    bounds
        What is promised of every class: ``k``; ``m`` (k holds for anyone who knows m values); ``l``, ``entropy_l``,
        ``recursive_l`` = (c, l); ``t``, with ``t_distance`` "ordered" or "equal"; ``alpha``; ``beta``; ``presence`` =
        (least, largest), with ``population``. What is not promised is measured.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": ["20-29", "20-29", "30-39", "30-39"], "illness": ["flu", "cold", "flu", "flu"]})
    >>> report = audit_table(table, quasi="age", sensitive="illness", k=2, l=2)
    >>> report.metrics["smallest_k"], [found.code for found in report.violations]
    (2, ['below-l'])
    """
    columns = {"person": person, "population": population, "suppressed": suppressed}
    given = {key: value for key, value in (columns | bounds).items() if value is not None}
    return audit(table, policy={"table": {"quasi": quasi, "sensitive": sensitive, **given}}, max_memory=max_memory)
