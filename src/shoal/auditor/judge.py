"""The way in: read the evidence and hand it to the judge of the method's family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from shoal.auditor.findings import AuditReport
from shoal.auditor.flexible.judge import audit_flexible
from shoal.auditor.flexible.promise import METHOD as FLEXIBLE
from shoal.auditor.inputs import Evidence, Policy, read_policy, words_of
from shoal.auditor.layout import count_odd_rows
from shoal.auditor.reading.files import Format, read
from shoal.auditor.reading.memory import limited
from shoal.auditor.reading.rows import by_stream
from shoal.auditor.sets.judge import audit_sets
from shoal.auditor.sets.promise import METHODS as SET_METHODS
from shoal.auditor.tuples.judge import audit_tuples
from shoal.auditor.tuples.promise import METHODS as TUPLE_METHODS
from shoal.auditor.z.judge import audit_z
from shoal.errors import PolicyError

FAMILIES: Final[dict[str, Callable[[Evidence], AuditReport]]] = {
    "z-anonymity": audit_z,
    **dict.fromkeys(TUPLE_METHODS, audit_tuples),
    FLEXIBLE: audit_flexible,
}


def audit(
    release: Any, truth: Any = None, trace: Any = None, policy: Any = None, *, max_memory: int | str | None = None
) -> AuditReport:
    """Check a release against what its policy promised.

    Parameters
    ----------
    release, truth, trace
        A path (a file, a pattern, or a folder of part files in name order; CSV, JSON lines, Parquet or Arrow,
        plain, gzip or zstd), an Arrow table or batch, a data frame, an object with ``.rows`` and ``.trace``,
        or a list of these; for releases of sets also lists of sets and text with a record a line.
        ``truth`` is the raw input; ``trace`` is what the run wrote for the auditor.
        Without them less can be checked, and the report says what.
    policy
        The path of the policy file, or its content as a dict. It says what was promised.
    max_memory
        How much memory the audit may take, in bytes or as text ("8 GB"); half of the machine's unless given. Files
        that would take more are refused.

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
        return _audit(release, truth, trace, read_policy(policy))


def _audit(release: Any, truth: Any, trace: Any, written: Policy) -> AuditReport:
    method = str(written.section("anonymize").get("method"))
    if method in SET_METHODS:  # sets come in forms of their own, so their judge reads them itself
        return audit_sets(written, release, truth, trace)
    judge = FAMILIES.get(method)
    if judge is None:
        raise PolicyError(f"[anonymize] method: the auditor knows {', '.join((*FAMILIES, *SET_METHODS))}")
    stream = written.section("stream")
    source, sink = Format.of_source(written.section("source")), Format.of(written.section("sink"))
    source = replace(source, wanted=frozenset(words_of(written.content)))
    sink = replace(sink, names_once=True)
    return judge(
        Evidence(
            policy=written,
            release=read(release, name="release", expected=sink),
            truth=None if truth is None else by_stream(read(truth, name="truth", expected=source), stream),
            trace=None if trace is None else read(trace, name="trace", expected=Format(), part="trace"),
            odd_rows=count_odd_rows(release, written, sink),
        )
    )
