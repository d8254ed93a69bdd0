"""Audits on Spark: the session and sealed traces around the auditor, which knows neither."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.auditor.findings import AuditReport
from shoal.encode.sealed import count_pieces, is_sealed_trace, read_sealed_piece
from shoal.spark.auditor.engine import SparkEngine
from shoal.spark.auditor.entry import audit_on
from shoal.spark.auditor.shares import Sealed
from shoal.spark.session import limit_batches, readable_errors, start_session


def audit(
    release: Any, truth: Any = None, trace: Any = None, policy: Any = None, *, max_memory: int | str | None = None
) -> AuditReport:
    """Check a release that one machine cannot hold, on Spark; the report is that of `shoal.audit`.

    Releases of z-anonymity and of tuple methods, with truth and trace, of sets, and plain tables (``[table]`` of a
    policy). Rows of one value or class meet in one task, where the auditor's own functions judge them; the driver adds
    up what they found. What is checked on one machine only is listed in ``not_checked``.

    Parameters
    ----------
    release, truth, trace
        Paths that every machine has: a file, a folder of part files, a pattern, or a list of these. Each file is read
        by one task. A sealed trace is opened with the key of SHOAL_KEY_FILE.
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
    return audit_on(SparkEngine(session, readable_errors), release, truth, trace, policy, max_memory=max_memory)


def sealed_trace(trace: Any) -> Any:
    """A sealed trace as pieces that executors open; any other trace as it is."""
    if not isinstance(trace, str | Path) or not Path(trace).is_file() or not is_sealed_trace(Path(trace)):
        return trace
    place = Path(trace).absolute()
    return Sealed(str(place), count_pieces(place), read_sealed_piece)
