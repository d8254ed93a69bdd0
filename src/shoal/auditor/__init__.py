"""The independent judge: it shares no code with what publishes and reads every file itself."""

from shoal.auditor.judge import audit
from shoal.auditor.report import AuditReport, Finding, Severity

__all__ = ["AuditReport", "Finding", "Severity", "audit"]
