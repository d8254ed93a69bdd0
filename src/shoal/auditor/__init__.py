"""The independent judge: it shares no code with what publishes and reads every file itself."""

from shoal.auditor.attacks.attack import attack
from shoal.auditor.attacks.outcome import Attack, AttackReport
from shoal.auditor.audit import audit, audit_table
from shoal.auditor.findings import AuditReport, Finding, Severity
from shoal.auditor.report.windows import report_windows
from shoal.auditor.report.windows_report import WindowReport

__all__ = [
    "Attack", "AttackReport", "AuditReport", "Finding", "Severity", "WindowReport", "attack", "audit", "audit_table",
    "report_windows",
]  # fmt: skip
