"""The entry: find the judge of the method's family and let it check the release on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shoal.auditor.findings import AuditReport
from shoal.auditor.policy import Policy, read_policy
from shoal.auditor.reading.memory import size_of
from shoal.errors import PolicyError
from shoal.spark.auditor.engine import Engine
from shoal.spark.auditor.flexible.judge import audit_flexible
from shoal.spark.auditor.sets.audit import audit_sets
from shoal.spark.auditor.tables import audit_table
from shoal.spark.auditor.tuples.judge import audit_tuples
from shoal.spark.auditor.z.judge import audit_z

_TUPLES: Final = ("fads", "fads-varied", "fast", "k-varp", "iot-anonymization", "castle", "least-loss")
_JUDGES: Final[dict[str, Callable[[Engine, Policy, Any, Any, Any, int | None], AuditReport]]] = {
    "z-anonymity": audit_z,
    "flexible-k": audit_flexible,
    "k^m": audit_sets,
    "k^m-apriori": audit_sets,
    **dict.fromkeys(_TUPLES, audit_tuples),
}


def audit_on(
    engine: Engine, release: Any, truth: Any = None, trace: Any = None, policy: Any = None, *, max_memory: Any = None
) -> AuditReport:
    """Check a release in files against what its policy promised. `max_memory` is that of a task."""
    written = read_policy(policy)
    limit = None if max_memory is None else size_of(max_memory)
    if "table" in written.content:
        return audit_table(engine, written, release, limit)
    method = str(written.section("anonymize").get("method"))
    judge = _JUDGES.get(method)
    if judge is None:
        raise PolicyError(
            f"[anonymize] method: {method} is not audited on Spark; there are {', '.join(_JUDGES)} and plain tables. "
            "Use shoal audit without --engine spark"
        )
    return judge(engine, written, release, truth, trace, limit)
