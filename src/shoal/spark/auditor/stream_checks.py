"""The first steps of an audit of a stream: are the columns there, and do trace and release belong together?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Notes
from shoal.auditor.layout import check_layout
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import check_columns
from shoal.errors import InputError
from shoal.spark.auditor.facts import EntryFacts, FileFacts


def require_truth(facts: FileFacts, names: Sequence[str], person: str) -> None:
    """Raise InputError if the truth lacks a column; numbers of rows may stand for people."""
    there = facts.columns.get("truth", [])
    missing = [name for name in names if name not in there and not (name == "row" == person)]
    if missing and facts.count("truth"):
        raise InputError(f"truth: no column {', '.join(missing)}; check the policy and the file")


def check_release(facts: FileFacts, names: tuple[str, ...], notes: Notes) -> bool:
    """Check the columns and the layout of the release; return whether its rows can be checked."""
    there = {name: pa.nulls(0) for name in facts.columns.get("release", [])}
    if not check_columns(names, Rows(((there, np.zeros(0, np.bool_)),), "release", (), facts.hidden), notes):
        return False
    check_layout(facts.odd_rows, notes)
    return True


def has_columns(trace: EntryFacts, names: Sequence[str], notes: Notes) -> bool:
    """Check that the trace has what proves something."""
    missing = [name for name in names if name not in trace.columns]
    if missing:
        notes.unchecked(f"The trace proves nothing: it has no column {', '.join(missing)}.")
    return not missing


def is_as_long(trace: EntryFacts, released: int, what: str, notes: Notes) -> bool:
    """Check that the release has as many rows as the trace says; else `what` is not checked."""
    apart = abs(sum(trace.shown.values()) - released)
    notes.violation("release-count", "The release and the trace do not have the same number of rows.", count=apart)
    if apart:
        notes.skip(f"Rows, {what} and records were not checked: trace and release differ in length.")
    return not apart


def by_type(found: Iterable[Any]) -> dict[type, list[Any]]:
    """Results by what they are."""
    of: dict[type, list[Any]] = {}
    for part in found:
        of.setdefault(type(part), []).append(part)
    return of
