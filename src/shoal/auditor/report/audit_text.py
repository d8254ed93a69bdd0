"""An audit as lines of text: the verdict with its reasons, then the metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from shoal.auditor.findings import AuditReport, all_filled_in_words
from shoal.auditor.verdict import Verdict

_OWN_LINES: Final = ("epochs", "unchanged_columns", "filled_cells")
"""Metrics that are printed as tables or sentences."""
_LABELS: Final = {"k_s": "K_s", "ncp": "NCP", "p_sparse": "p_sparse"}
_PARTS: Final = {"records_by_k": "k = "}
"""What is printed before the parts of a metric."""
_NAMED: Final = 8
"""Things that are named where not all lines are shown."""
_HOW: Final = "all of it: shoal audit --all, --json, or --out report.html"

Block = tuple[str, list[str]]
"""Lines that are shown or left out together, and what they are called."""


def text_of(report: AuditReport, most: int | None = None, verdict: Verdict | None = None) -> str:
    """Return the text; with `most`, that many lines, of which the last one names what is left out.

    `verdict` is one that also says what attackers gain; by default that of the audit alone.
    """
    verdict = verdict or report.verdict
    blocks: list[Block] = [(reason.code or "checks not possible", reason.lines()) for reason in verdict.reasons]
    blocks += _metrics(report.metrics)
    count = sum(len(lines) for _, lines in blocks)
    left: list[str] = []
    if most is not None and count > most - 1:
        blocks, left = _first(blocks, most - 2)
    shown = [f"  {line}" for _, lines in blocks for line in lines]
    return "\n".join([f"audit of {report.method}: {verdict.sentence}", *shown, *_left_out(left)])


def _first(blocks: Sequence[Block], room: int) -> tuple[list[Block], list[str]]:
    """Return the blocks that fit, and the names of the others."""
    found: list[Block] = []
    left: list[str] = []
    for name, lines in blocks:
        if len(lines) <= room:
            found.append((name, lines))
            room -= len(lines)
        else:
            left.append(name)
    return found, left


def _left_out(names: Sequence[str]) -> list[str]:
    different = [name if names.count(name) == 1 else f"{names.count(name)} {name}" for name in dict.fromkeys(names)]
    more = f" and {len(different) - _NAMED} more" if len(different) > _NAMED else ""
    return [f"  not shown: {', '.join(different[:_NAMED])}{more} ({_HOW})"] if names else []


def metric_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Return all metrics as lines of text."""
    return [line for _, lines in _metrics(metrics) for line in lines]


def _metrics(metrics: Mapping[str, Any]) -> Iterator[Block]:
    for name, value in metrics.items():
        if name not in _OWN_LINES:
            yield name, [_metric(name, value)]
    if "filled_cells" in metrics:
        yield "filled_cells", [all_filled_in_words(metrics["filled_cells"])]
    yield "unchanged_columns", _unchanged_table(metrics.get("unchanged_columns"))
    yield "epochs", _epoch_table(metrics.get("epochs"))


def _unchanged_table(columns: Mapping[str, Any] | None) -> list[str]:
    if not columns:
        return []
    lines = [
        "published unchanged; share of rows whose value too few people have, alone and with the class",
        "  values  of one person    too few  with class    one person  with class   column",
    ]
    return lines + [
        f"  {found['values']:>6} {found['values_of_one_person']:>14} {found['share_below']:>10.4f} "
        f"{found['share_below_with_class']:>11.4f} {found['share_of_one_person']:>13.4f} "
        f"{found['share_of_one_person_with_class']:>11.4f}   {name} ({found['role']})"
        for name, found in columns.items()
    ]


def _metric(name: str, value: Any) -> str:
    """Return one line in words; what a mapping says about its own figures comes first."""
    label = _LABELS.get(name, name.replace("_", " "))
    if not isinstance(value, Mapping):
        return f"{label}: {_number(value)}"
    figures = dict(value)
    unit, how = figures.pop("unit", None), figures.pop("how", None)
    parts = [f"{figures.pop('sets')} {how}"] if how else []
    parts += [f"{_PARTS.get(name, '')}{part.replace('_', ' ')} {_number(inner)}" for part, inner in figures.items()]
    return f"{label}{f' in {unit}' if unit else ''}: {', '.join(parts)}"


def _number(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_number(inner)}" for name, inner in value.items())
    if value is None:
        return "–"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _epoch_table(epochs: Mapping[str, Any] | None) -> list[str]:
    if not epochs:
        return []
    lines = [f"epochs: {epochs['count']}; share of people over", "  people per set   all   active   shown"]
    lines += [_share_line(name, shares) for name, shares in epochs["shares"].items()]
    if epochs["worst"]:
        lines += ["most revealing epochs", "  start (UTC)            active   shown   unique of shown"]
    return lines + [_worst_line(worst) for worst in epochs["worst"]]


def _share_line(name: str, shares: Mapping[str, float | None]) -> str:
    cells = ("   –  " if share is None else f"{share:.4f}" for share in shares.values())
    return f"  {name:<12} " + "  ".join(cells)


def _worst_line(worst: Mapping[str, Any]) -> str:
    active = "–" if worst["active"] is None else worst["active"]
    start = datetime.fromtimestamp(worst["start_s"], UTC).isoformat(timespec="seconds").removesuffix("+00:00")
    return f"  {start:<20} {active:>8} {worst['shown']:>7}   {worst['unique_share']:.4f}"
