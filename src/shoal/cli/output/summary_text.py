"""The summary of a run as text, one line for each count."""

from __future__ import annotations

from typing import Any, Final

from shoal.cli.output.program import from_here
from shoal.observe.counts import RunSummary, SetSummary

_LONG: Final = 0.1
_NOTHING: Final = 2**31 - 1


def summary_lines(summary: RunSummary) -> list[str]:
    """The summary of a run, as text."""
    if summary.finished_before:
        counts = f"{summary.rows_in:,} rows, {summary.released:,} released"
        return [f"this run was finished before; nothing was changed ({counts})"]
    if isinstance(summary, SetSummary):
        return _set_lines(summary)
    lines = [
        *(["stopped after a checkpoint; start the same command again to continue"] if summary.stopped else []),
        f"rows in        {summary.rows_in:>12,}" + (f"  since {summary.since}" if summary.since else ""),
        f"  released     {summary.released:>12,}  {_share(summary.released, summary.rows_in)}",
        *_kept_back(summary),
        f"  refused      {summary.dead:>12,}  {_share(summary.dead, summary.rows_in)}",
    ]
    lines += [f"    {reason:<20} {count:>6,}" for reason, count in summary.dead_by_reason.items()]
    lines += _metric_lines(summary)
    lines += [
        f"speed          {summary.rows_per_second:>12,.0f}  rows/s ({_seconds(summary)})",
        f"promise        {summary.guarantee}",
        f"released to    {from_here(summary.released_to)}",
    ]
    if summary.dead:
        lines.append(f"dead letters   {from_here(summary.dead_letters)}  (why rows were refused)")
    if summary.trace:
        lines.append(f"trace          {from_here(summary.trace)}  (private: for the auditor)")
    return lines


def _seconds(summary: RunSummary) -> str:
    compiling = summary.compiling_seconds
    return f"{summary.seconds:.1f} s" + (f", without {compiling:.1f} s of compiling" if compiling >= _LONG else "")


def _kept_back(summary: RunSummary) -> list[str]:
    """Rows that were not released: suppressed, or pending if the method suppresses none or the run was stopped."""
    words = "(in the checkpoint)" if summary.stopped else "(too few people so far; they are still in the source)"
    left = "  (published fully generalized)" if summary.suppressed_left and summary.suppressed else ""
    pending = f"  pending      {summary.pending:>12,}  {_share(summary.pending, summary.rows_in)}  {words}"
    suppressed = f"  suppressed   {summary.suppressed:>12,}  {_share(summary.suppressed, summary.rows_in)}{left}"
    if not summary.pending:
        return [suppressed]
    return [suppressed, pending] if summary.stopped else [pending]


def _metric_lines(summary: RunSummary) -> list[str]:
    """Loss and delay, if the method measures them."""
    found, unit = summary.metrics, summary.delay_unit
    if not found:
        return []
    if "epochs_met" in found:
        return [_target_line(found)]
    if "pending" in found:  # K_s is not known before the first round
        return _flexible_lines(found)
    lines = [
        f"average loss   {found['loss']:>12.3f}  of 1, over what rows carry ({found['loss_all']:.3f} over all columns)",
        f"average delay  {found['delay']:>12,.1f}  {unit} (longest {found['max_delay']:,g})",
        f"clusters       {found['formed']:>12,}  formed, {found['merged']:,} of them with different values "
        f"missing; {found['reused']:,} rows published by reuse",
    ]
    counted = [
        ("clamped", "clamped", "values"),
        ("rare gaps", "rare_patterns", "rows suppressed because too few people lack the same columns"),
        ("filled", "filled", "values where the record has none"),
    ]
    return lines + [f"{title:<13}  {found[name]:>12,}  {words}" for title, name, words in counted if found.get(name)]


def _target_line(found: dict[str, Any]) -> str:
    """How often an adaptive z met its target."""
    return (
        f"target met in  {found['epochs_met']:>12,}  of {found['epochs_shown']:,} epochs with released rows "
        f"({found['epochs']:,} are complete); z is {z_words(found['z'])} now"
    )


def z_words(z: int) -> str:
    """A z as text."""
    return f"{z:,}" if z < _NOTHING else "so high that nothing is released"


def _flexible_lines(found: dict[str, Any]) -> list[str]:
    """What flexible k-anonymity lost, and how many values its trees do not list."""
    columns = ", ".join(
        f"{name.removeprefix('loss_')} {loss:.3f}" for name, loss in found.items() if name.startswith("loss_")
    )
    lines = [f"average loss   {found['loss']:>12.3f}  of 1: {columns}"]
    unknown = {
        name.removeprefix("unknown_"): int(count) for name, count in found.items() if name.startswith("unknown_")
    }
    return lines + [
        f'unlisted       {count:>12,}  values of column {name!r}, published as "unknown" or pending'
        for name, count in unknown.items()
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:6.1%}" if whole else ""


def _dropped_lines(summary: SetSummary) -> list[str]:
    if not summary.items_dropped:
        return []
    return [
        f"dropped        {summary.items_dropped:>12,}  items that too few people have, "
        f"{summary.entries_dropped_share:.1%} of what people have; not part of the error"
    ]


def _block_lines(summary: SetSummary) -> list[str]:
    """How many blocks there are, or labels if each record has its own, and how many items they generalize."""
    share = _share(summary.items_generalized, summary.blocks_before).strip()
    generalized = f"generalized    {summary.items_generalized:>12,}  items"
    if summary.recoding == "local":
        labels = f"labels         {summary.blocks_used:>12,}  for {summary.blocks_before:,} items"
        return [labels, f"{generalized} in at least one record, {share} of all; the others stay as they are"]
    return [
        f"blocks         {summary.blocks_after:>12,}  of {summary.blocks_before:,} before "
        f"({summary.blocks_used:,} of them in use)",
        f"{generalized}, {share} of all; the others stay as they are",
    ]


def _set_lines(summary: SetSummary) -> list[str]:
    """The summary of a run, as text."""
    is_distance = summary.error_kind == "distance"
    unit = "m on average from an item to the middle of its block" if is_distance else "of 1 (NCP)"
    lines = [
        f"rows in        {summary.rows_in:>12,}",
        f"  refused      {summary.dead:>12,}",
        *(f"    {reason:<20} {count:>6,}" for reason, count in summary.dead_by_reason.items()),
        f"records        {summary.records:>12,}",
        f"  released     {summary.released:>12,}",
    ]
    if summary.empty_records:
        lines.append(f"  left empty   {summary.empty_records:>12,}  (no usable item; not published)")
    lines += [
        f"items          {summary.items:>12,}  different ones, of {summary.blocks_before:,} that are known",
        *_block_lines(summary),
        *_dropped_lines(summary),
        f"error          {summary.error:>12,g}  {unit}",
        f"time           {summary.seconds:>12,.1f}  s",
        "promise",
        *(f"  {line}" for line in summary.statement.splitlines()),
        f"released to    {from_here(summary.released_to)}",
        f"certificate    {from_here(summary.certificate_file)}",
        f"blocks         {from_here(summary.blocks_file)}  (which items a label stands for)",
    ]
    lines += [f"warning        {warning}" for warning in summary.warnings]
    if summary.dead:
        lines.append(f"dead letters   {from_here(summary.dead_letters)}  (why rows were refused)")
    if summary.trace:
        lines.append(f"trace          {from_here(summary.trace)}  (private: for the auditor)")
    return lines
