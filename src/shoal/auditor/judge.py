"""The entry: find the judge of the method's family and let it check the release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shoal.auditor.findings import AuditReport
from shoal.auditor.flexible.judge import audit_flexible
from shoal.auditor.policy import Policy, read_policy
from shoal.auditor.reading.memory import limited
from shoal.auditor.sets.judge import audit_sets
from shoal.auditor.tuples.judge import audit_tuples
from shoal.auditor.z.judge import audit_z
from shoal.errors import PolicyError

JUDGES: Final[dict[str, Callable[[Policy, Any, Any, Any], AuditReport]]] = {
    "z-anonymity": audit_z,
    "fads": audit_tuples,
    "fads-varied": audit_tuples,
    "fast": audit_tuples,
    "k-varp": audit_tuples,
    "iot-anonymization": audit_tuples,
    "castle": audit_tuples,
    "least-loss": audit_tuples,
    "flexible-k": audit_flexible,
    "k^m": audit_sets,
    "k^m-apriori": audit_sets,
}
"""By method: the judge of its family, which takes the policy, the release, the truth and the trace."""


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
        judge = JUDGES.get(str(written.section("anonymize").get("method")))
        if judge is None:
            raise PolicyError(f"[anonymize] method: the auditor knows {', '.join(JUDGES)}")
        return judge(written, release, truth, trace)
