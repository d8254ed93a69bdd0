"""The trace of a release of rows: its entries, and which released row each is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import check
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.trace import RELEASED, SUPPRESSED, verdicts_of

FAMILIES: Final = ("tuples", "flexible")
_ADVICE: Final = "The evidence is damaged: run the method again and keep the trace as it was written."
More = Callable[[Rows], dict[str, Any]]
_alone: Final = partial(check, families=FAMILIES, by="none", needs=("trace",))


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a trace: ``entry``, ``record``, ``verdict``, ``row`` (the released row; -1 for none), and more."""

    table: Table
    shape: Shape
    is_linked: bool
    """Whether the release has as many rows as the trace says."""


def has_columns(place: Place, names: tuple[str, ...], notes: Notes) -> bool:
    """Whether there is a trace with these columns; without them it proves nothing, which fails the audit."""
    there = place.outline("trace").columns
    missing = [name for name in names if name not in there] if place.has("trace") else []
    if missing:
        notes.unchecked(f"The trace proves nothing: it has no column {', '.join(missing)}.")
    return place.has("trace") and not missing


def read_entries(place: Place, more: More, shape: Shape, notes: Notes, *, shows_suppressed: bool = False) -> Entries:
    """Read the trace; the released rows are in the order of its entries that have one."""
    counts = place.facts("trace", partial(_counts, shows_suppressed=shows_suppressed))
    entries, shown = (np.cumsum([0, *(count[at] for count in counts)]) for at in (0, 1))
    apart = abs(int(shown[-1]) - place.outline("release").rows)
    notes.findings += release_count(apart)
    if apart:
        notes.skip("Rows were not checked one by one: trace and release do not have the same number of rows.")
    before = dict(zip(entries.tolist(), shown.tolist(), strict=True)) if not apart else {}
    own: Shape = {"entry": int, "record": int, "verdict": int, "row": int, **shape}
    table = place.read("trace", partial(_entries, before, more, shows_suppressed=shows_suppressed), own)
    return Entries(table, own, is_linked=not apart)


@_alone(
    "release-count",
    "The release and the trace do not have the same number of rows.",
    advice="Give the whole release and its whole trace, both of one run.",
)
def release_count(apart: int) -> int:
    """Count the rows that one of them has more."""
    return apart


def _counts(rows: Rows, *, shows_suppressed: bool) -> tuple[int, int]:
    return len(rows), int(_is_shown(verdicts_of(rows), shows_suppressed=shows_suppressed).sum())


def _is_shown(verdict: Ints, *, shows_suppressed: bool) -> Bools:
    found: Bools = (verdict == RELEASED) | ((verdict == SUPPRESSED) & shows_suppressed)
    return found


def _entries(before: dict[int, int], more: More, rows: Rows, first: int, *, shows_suppressed: bool) -> Relation:
    verdict = verdicts_of(rows)
    is_shown = _is_shown(verdict, shows_suppressed=shows_suppressed)
    row = np.full(len(rows), -1, np.int64)
    if before:
        row[is_shown] = before[first] + np.arange(int(is_shown.sum()))
    own = {"entry": first + np.arange(len(rows)), "record": rows.numbers("row"), "verdict": verdict, "row": row}
    return Relation({**own, **more(rows)})


@_alone("trace-verdict", "The trace contains an unknown verdict.", advice=_ADVICE)
def trace_verdict(entries: Relation) -> int:
    """Count entries with another verdict than released, suppressed or dead."""
    return int((entries["verdict"] < 0).sum())


@_alone("trace-row", "The trace names a record that the truth does not have.", advice=_ADVICE)
def trace_row(entries: Relation) -> int:
    """Count entries about a record that does not exist."""
    return int((~entries["exists"]).sum())


@check(
    "decided-twice",
    "The trace decides a record more than once.",
    advice="A record that is published twice can be traced through both rows: do not publish this release.",
    families=FAMILIES,
    by="record",
    needs=("trace",),
)
def decided_twice(entries: Relation) -> int:
    """Count entries about a record that an earlier entry decides."""
    return int((entries["exists"] & ~entries["is_first"]).sum())
