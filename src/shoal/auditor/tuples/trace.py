"""The trace of a tuple stream: its entries next to the records they decide, and what can be wrong with each.

Entries have ``record``, ``verdict``, ``row`` (the released row), ``group``, ``delay``, ``reused``, ``event``,
``reason``, and what is known of the record. ``exists``: it names a record. ``is_first``: the first entry for it.
``counted``: that, and not refused. ``formed``: published together with the cluster it forms. Records that nothing
decides have entry -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.checks import check, look
from shoal.auditor.counting import combined
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Finding, Notes, Severity
from shoal.auditor.reading.columns import Bools
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.entries import decided_twice, read_entries, trace_row, trace_verdict
from shoal.auditor.rows.texts import kept, matched, texts_of, united
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED
from shoal.auditor.tuples.promise import TuplePromise

_NOT_IN_TRUTH: Final = ("null-time", "bad-time", "ahead")
"""Reasons for a refusal that the truth does not show."""
_FAMILIES: Final = ("tuples",)
_DAMAGED: Final = "The evidence is damaged: run the method again and keep the trace as it was written."
_MARKS: Final[Shape] = {"exists": bool, "is_first": bool, "counted": bool, "formed": bool}
_OWN: Final[Shape] = {
    "group": int, "delay": int, "reused": bool, "says_reused": bool, "event": int, "k": int, "reason": str,
    "carriers": str,
}  # fmt: skip
_alone: Final = partial(check, families=_FAMILIES, by="none", needs=("trace",))
_of_record: Final = partial(check, families=_FAMILIES, by="record", needs=("truth", "trace"))


def read_decisions(
    place: Place, promise: TuplePromise, records: Table, shape: Shape, notes: Notes
) -> tuple[Table, Shape, bool]:
    """Read the trace; return its entries next to the records (None: no truth), and whether it fits the release."""
    rows = place.outline("trace").rows
    # Without the truth: as many records as could be pending next to those decided, so that memory stays bounded.
    limit = 10 * rows + 10_000_000 if records is None else place.outline("truth").rows
    more = partial(_more, limit, len(promise.quasi))
    entries = read_entries(place, more, _OWN, notes, shows_suppressed=promise.shows_suppressed)
    if records is None:
        own: Shape = {**entries.shape, **_MARKS}
        return place.regroup(entries.table, ("record",), partial(_marked, limit), own), own, entries.is_linked
    own = {**entries.shape, **shape, **_MARKS}
    work = partial(_beside_records, limit)
    return place.both(entries.table, records, ("record",), work, own), own, entries.is_linked


def _more(limit: int, width: int, rows: Rows) -> dict[str, Any]:
    """What entries of tuples have besides: -1, or nothing, where a column is not there."""
    event, said = rows.numbers("event"), texts_of(rows, "reused")
    known = [text.lower() in {"true", "1", "false", "0"} for text in said.texts]
    yes = [text.lower() in {"true", "1"} for text in said.texts]
    carriers = _written(read_lists(rows, "carriers", width))
    return {
        "group": rows.numbers("group"),
        "delay": rows.numbers("delay"),
        "reused": np.array([*yes, False], np.bool_)[said.codes],
        "says_reused": np.array([*known, False], np.bool_)[said.codes],
        "event": np.where(event < limit, event, -1),
        "k": rows.numbers("k"),
        "reason": texts_of(rows, "reason"),
        "carriers": carriers,
    }


def _beside_records(limit: int, entries: Relation, records: Relation) -> Relation:
    found = _marked(limit, matched(entries, records, "record"))
    lost = ~np.isin(records["record"], found["record"])
    if not lost.any():
        return found
    return united(found, records.take(lost))


def _marked(limit: int, entries: Relation) -> Relation:
    if not (entries["entry"][1:] > entries["entry"][:-1]).all():
        entries = entries.take(np.argsort(entries["entry"]))
    record, verdict = entries["record"], entries["verdict"]
    exists = (record >= 0) & (record < limit)
    first = np.zeros(len(record), np.bool_)
    first[np.unique(record, return_index=True)[1]] = True
    first &= exists
    counted = first & ((verdict == RELEASED) | (verdict == SUPPRESSED))
    reused = entries["reused"] & (verdict == RELEASED)
    formed = counted & (verdict == RELEASED) & (entries["group"] >= 0) & ~reused
    return entries.having(exists=exists, is_first=first, counted=counted, formed=formed, reused=reused)


# ---- lists


def read_lists(trace: Rows, name: str, width: int) -> npt.NDArray[np.int64]:
    """Return lists of ``width`` whole numbers as a matrix; -1 for rows without such a list."""
    found = [np.zeros((0, width), np.int64)]
    for piece in trace.pieces(name):
        column = lists(piece, pa.list_(pa.int64()))
        matrix = np.full((len(column), width), -1, np.int64)
        fits = np.asarray(pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)) == width
        flat = pc.fill_null(pc.list_flatten(column.filter(pa.array(fits))), -1)
        matrix[fits] = np.asarray(flat.to_numpy(zero_copy_only=False), np.int64).reshape(-1, width)
        found.append(matrix)
    return np.concatenate(found)


def lists(piece: Any, kind: Any) -> Any:
    """Return lists of a type; null for anything else."""
    if not isinstance(piece, list):
        column = piece.combine_chunks() if isinstance(piece, pa.ChunkedArray) else piece
        try:
            return column.cast(kind)
        except pa.ArrowException:  # the file has another type
            piece = column.to_pylist()
    return pa.array([_list(value, kind) for value in piece], kind)


def _list(value: Any, kind: Any) -> Any:
    try:
        return pa.scalar(value if isinstance(value, list) else None, kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _written(matrix: npt.NDArray[np.int64]) -> Texts:
    """Lists of numbers as texts, so that rows with equal lists share one."""
    code = combined([matrix[:, at] for at in range(matrix.shape[1])], len(matrix))
    first = np.unique(code, return_index=True)[1]
    return Texts(code, [" ".join(map(str, line)) for line in matrix[first].tolist()])


# ---- entries one by one


@_alone("trace-group", "The trace has a released row without a cluster, or another row with one.", advice=_DAMAGED)
def trace_group(entries: Relation, _: TuplePromise) -> int:
    """Count entries whose verdict and cluster contradict each other."""
    return int(((entries["verdict"] == RELEASED) != (entries["group"] >= 0)).sum())


@_alone(
    "k-lowered",
    "The trace says a lower k was in force than promised.",
    advice="The run had another policy than this one: audit with its own, and publish only if that is enough.",
)
def k_lowered(entries: Relation, promise: TuplePromise) -> int:
    """Count released rows with a lower k."""
    written = entries["k"]
    return int(((entries["verdict"] == RELEASED) & (written >= 0) & (written < promise.k)).sum())


@_alone(
    "unchecked-promise",
    "Which rows were published by an earlier cluster is not known: the trace has no usable column reused.",
    advice=_DAMAGED,
)
def unknown_reuse(entries: Relation, _: TuplePromise) -> int:
    """Count released rows of which the trace does not say whether their cluster was new."""
    return int(((entries["verdict"] == RELEASED) & ~entries["says_reused"]).sum())


OF_ENTRY: Final = (trace_verdict, trace_row, decided_twice)
OF_TUPLE_ENTRY: Final = (trace_group, k_lowered, unknown_reuse)


# ---- entries next to their records


@_of_record(
    "unusable-accepted",
    "A record without a person, or with a value outside its domain or hierarchy, was not refused.",
    advice="Such a record counts as a person it may not be: refuse it, or widen the domain in the policy.",
)
def unusable_accepted(entries: Relation) -> Bools:
    """Mark decided records that should have been refused."""
    found: Bools = entries["counted"] & ~entries["usable"]
    return found


@_of_record(
    "unchecked-promise", "Why records were refused was not checked: the trace gives no reason.", advice=_DAMAGED
)
def no_reason(entries: Relation) -> int:
    """Count refused records without a reason."""
    return int(((entries["verdict"] == DEAD) & (entries.codes("reason") < 0)).sum())


@_of_record(
    "dead-without-cause",
    "A record was refused for a reason that does not apply to it.",
    advice="People are missing from the release who need not be: look at the run's report of refused records.",
    severity=Severity.WARNING,
)
def dead_without_cause(entries: Relation) -> int:
    """Count usable records that were refused for a reason that the truth would show."""
    reasons: Sequence[str] = entries["reason"].texts
    is_checkable = np.array([*(reason.split(":")[0] not in _NOT_IN_TRUTH for reason in reasons), False], np.bool_)
    dead = (entries["verdict"] == DEAD) & entries["exists"] & entries["usable"]
    return int((dead & is_checkable[entries.codes("reason")]).sum())


def look_at_entries(place: Place, decisions: Table, promise: TuplePromise, *, has_truth: bool) -> list[Finding]:
    """Look at every entry."""
    parts = place.divide(decisions, ("record",), partial(_of_entries, promise, has_truth))
    return [finding for part in parts for finding in part]


def _of_entries(promise: TuplePromise, has_truth: bool, rows: Relation) -> list[Finding]:  # noqa: FBT001 - private
    entries = kept(rows, rows["entry"] >= 0)
    findings = look(entries, OF_ENTRY) + look(entries, OF_TUPLE_ENTRY, promise)
    if has_truth:
        findings += look(entries, (unusable_accepted, no_reason, dead_without_cause))
    return findings
