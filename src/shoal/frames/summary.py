"""What `shoal.anonymize` did, as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shoal.inspection.columns.column_names import printable

if TYPE_CHECKING:
    from shoal.frames.result import Anonymized


def headline(counts: Mapping[str, int]) -> str:
    """How many of how many are released.

    >>> headline({"rows": 2000, "released": 1890, "suppressed": 110, "refused": 0, "pending": 0})
    '1,890 of 2,000 rows released, 110 suppressed'
    """
    unit = "sets" if "sets" in counts else "rows"
    missing = "".join(f", {counts[name]:,} {name}" for name in ("suppressed", "refused", "pending") if counts[name])
    return f"{counts['released']:,} of {counts[unit]:,} {unit} released{missing}"


def index_note(dropped: str) -> str:
    """What became of the index of a pandas frame."""
    return f"not published: {dropped}, which may link rows to people; rows are in the order of release"


def lines_of(result: Anonymized) -> list[str]:
    """Promise, counts, losses, roles, questions and warnings."""
    shown = ", ".join(f"{count:,} {name}" for name, count in result.counts.items() if count or name == "refused")
    lines = [f"promise    {result.statement}", f"audit      {result.verdict}", f"rows       {shown}"]
    if result.proposal is not None and result.proposal.missing:
        lines.append(f"missing    {result.proposal.anonymize['missing']}: {result.proposal.missing}")
    lines += [f"refused    {text}" for text in result.refused.values()]
    lines += [f"loss       {printable(name)} {loss:.3f}" for name, loss in result.losses.items()]
    found = result.metrics
    if found.get("rare_patterns"):
        lines.append(f"missing    {found['rare_patterns']:,} rows suppressed: too few people lack the same columns")
    if found.get("filled"):
        lines.append(f"filled     {found['filled']:,} values where the record has none")
    lines += [f"index      {index_note(result.dropped_index)}"] if result.dropped_index else []
    if "items_generalized" in found:
        lines.append(f"items      {found['items_generalized']:.1%} of {found['items']:,} are generalized, "
                     f"{found['occurrences_generalized']:.1%} of what people have")  # fmt: skip
    if found.get("items_dropped"):
        lines.append(f"dropped    {found['items_dropped']:.1%} of the items, which too few people have: "
                     f"{found['occurrences_dropped']:.1%} of what people have")  # fmt: skip
    kept = [one for one in result.roles if one.role != "drop"]
    lines += [f"role       {printable(one.column)}: {one.role} ({one.reason})" for one in kept]
    for reason in dict.fromkeys(one.reason for one in result.roles if one.role == "drop"):
        names = [printable(one.column) for one in result.roles if one.role == "drop" and one.reason == reason]
        lines.append(f"left out   {', '.join(names)} ({reason})")
    lines += [f"check      {question}" for question in result.questions]
    return lines + [f"warning    {text}" for text in result.warnings]
