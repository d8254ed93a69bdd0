"""How the command line tells of a run on sets."""

from __future__ import annotations

from shoal.observe.set_counts import SetSummary


def set_lines(summary: SetSummary) -> list[str]:
    """A summary for people."""
    is_distance = summary.error_kind == "distance"
    unit = "m on average from an item to the middle of its block" if is_distance else "of 1 (NCP)"
    lines = [
        f"rows in        {summary.rows_in:>12,}",
        f"  dead letters {summary.dead:>12,}",
        *(f"    {reason:<20} {count:>6,}" for reason, count in summary.dead_by_reason.items()),
        f"records        {summary.records:>12,}",
        f"  released     {summary.released:>12,}",
    ]
    if summary.empty_records:
        lines.append(f"  left empty   {summary.empty_records:>12,}  (nothing usable in them; not published)")
    lines += [
        f"items          {summary.items:>12,}  different ones, of {summary.blocks_before:,} that are known",
        f"blocks         {summary.blocks_after:>12,}  of {summary.blocks_before:,} before "
        f"({summary.blocks_used:,} of them in use)",
        f"error          {summary.error:>12,g}  {unit}",
        f"time           {summary.seconds:>12,.1f}  s",
        "promise",
        *(f"  {line}" for line in summary.statement.splitlines()),
        f"released to    {summary.released_to}",
        f"certificate    {summary.certificate_file}",
        f"blocks         {summary.blocks_file}  (which items a label stands for)",
    ]
    lines += [f"warning        {warning}" for warning in summary.warnings]
    if summary.dead:
        lines.append(f"dead letters   {summary.dead_letters}")
    if summary.trace:
        lines.append(f"trace          {summary.trace}  (private: for the auditor)")
    return lines
