"""An audit as one page of HTML: the verdict, all findings with what to do, what was not checked, and the metrics."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from shoal.auditor.findings import AuditReport, all_filled_in_words
from shoal.auditor.report.audit_text import metric_lines
from shoal.auditor.report.frame import page_of, soft, table_of
from shoal.auditor.report.verdict_block import block_of
from shoal.errors import OutputError, PolicyError


def write_page(report: AuditReport, path: Path) -> None:
    """Write the page, for its owner only: some metrics are counts of the private input."""
    if path.suffix != ".html":
        raise PolicyError(f"path: {path.name} does not end in .html; the report is one page of HTML")
    try:
        path.unlink(missing_ok=True)  # another name may lead to an older file
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(page(report))
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}); choose another path") from None


def page(report: AuditReport) -> str:
    """Return the page."""
    found = report.to_dict()
    metrics = escape("\n".join(metric_lines(report.metrics)))
    body = (
        f"{block_of(found['verdict'], advises=False)}"
        f"<p>{soft('Private: some of the metrics are counts of the input.')}</p>"
        f"<h2>Findings</h2>{findings_of(found)}"
        f'<h2>Metrics</h2><pre tabindex="0">{metrics}</pre>'
    )
    return page_of(f"Audit of a release of {report.method}", body)


def findings_of(found: Mapping[str, Any]) -> str:
    """Return the findings of an audit, given as its dict, and what was not checked, as HTML."""
    rows = [[str(one["severity"]), f"<code>{escape(one['code'])}</code>", f"{one['count']:,}",
             f"{escape(one['sentence'])}<br>{soft('What to do: ' + one['advice']) if one['advice'] else ''}"]
            for one in found["findings"]]  # fmt: skip
    table = table_of(["severity", "code", "rows", "finding"], rows, (2,)) if rows else "<p>No findings.</p>"
    filled = found["metrics"].get("filled_cells")
    missing = f"<p>{escape(all_filled_in_words(filled))}.</p>" if filled is not None else ""
    gaps = "".join(f"<li>{escape(sentence)}</li>" for sentence in found["not_checked"])
    return table + missing + (f"<h3>Not checked</h3><ul>{gaps}</ul>" if gaps else "")
