"""The independent judge: it shares no code with what publishes and reads every file itself."""

from shoal.auditor.judge import audit
from shoal.auditor.report import AuditReport, Finding, Severity
from shoal.auditor.windows import report_windows
from shoal.auditor.windows_report import WindowReport

__all__ = ["AuditReport", "Finding", "Severity", "WindowReport", "audit", "report_windows"]
