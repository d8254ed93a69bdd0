"""The trace: the released row of every record, and what it shows about the items of labels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from shoal.auditor.checks import Found, all_found, look
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.entries import has_columns
from shoal.auditor.rows.texts import matched
from shoal.auditor.sets.records import TRUTH, Records, Sets, sets_check

_ENTRIES: Final[Shape] = {"entry": int, "record": int, "position": int}
_LAST: Final[Shape] = {"record": int, "row": int, "kept_back": bool}
_NEEDS: Final = ("truth", "trace")
_BAD_TRACE: Final = "Then the trace proves nothing. Give the truth, trace and release of one run, unchanged."


@sets_check("trace-broken", "The trace names a record or a row that does not exist.", by="record", needs=_NEEDS,
            advice=_BAD_TRACE)  # fmt: skip
def names_nothing(trace: Relation, records: int, rows: int) -> Bools:
    """Mark entries whose record or row is out of range."""
    return ~_fits(trace, records, rows)


@sets_check("trace-broken", "The trace names a record or a released row twice.", by="record", needs=_NEEDS,
            advice=_BAD_TRACE)  # fmt: skip
def named_twice(numbers: Ints) -> int:
    """Count how often a number comes again."""
    return len(numbers) - len(np.unique(numbers))


@sets_check("undecided", "Records are not in the trace.", by="none", needs=_NEEDS,
            advice="Nothing says what became of these people. Give the whole trace of the run.")  # fmt: skip
def undecided(records: int, named: int) -> int:
    """Count the records that no entry names."""
    return records - named


@sets_check("record-missing", "According to the trace, records with items were not released.", by="record",
            needs=_NEEDS, advice="k is counted over people who are not there. Run the method again.")  # fmt: skip
def kept_back(heads: Relation, sizes: Ints) -> Bools:
    """Mark records with an item that may be released, for which some entry has no row."""
    return np.asarray(heads["kept_back"] & (sizes > 0))


def _fits(trace: Relation, records: int, rows: int) -> Bools:
    fits: Bools = (trace["record"] >= 0) & (trace["record"] < records) & (trace["position"] < rows)
    return fits


def join_trace(truth: Records, released: int, notes: Notes) -> Records | None:
    """Return the records with the released row of each; None if the trace has no columns that say so.

    Rows are those of the last entry of a record; -1 for records that were not released or are not in the trace.
    """
    place, records = truth.place, truth.counts.records
    if not has_columns(place, ("row", "position"), notes):
        return None
    trace = place.read("trace", _entries, _ENTRIES)
    by_record = place.divide(trace, ("record",), partial(_look_at_records, records, released))
    by_row = place.divide(trace, ("position",), partial(_look_at_rows, records, released))
    whole = all_found([*by_record, *by_row])
    notes.findings += whole.findings
    notes.findings += undecided(records, whole.sums.get("named", 0))
    last = place.regroup(trace, ("record",), partial(_last_entries, records, released), _LAST)
    table = place.both(truth.table, last, ("record",), partial(matched, by="record"), {**TRUTH, "kept_back": bool})
    placed = replace(truth, table=table)
    notes.findings += all_found(placed.divide(_look_at_kept_back)).findings
    return placed


def _entries(rows: Rows, first: int) -> Relation:
    entry = np.arange(first, first + len(rows))
    return Relation({"entry": entry, "record": rows.numbers("row"), "position": rows.numbers("position")})


def _look_at_records(records: int, rows: int, trace: Relation) -> Found:
    found = look(trace, (names_nothing,), records, rows)
    record = trace["record"][_fits(trace, records, rows)]
    return Found(found + named_twice(record), {"named": len(np.unique(record))})


def _look_at_rows(records: int, rows: int, trace: Relation) -> Found:
    position = trace["position"][_fits(trace, records, rows)]
    return Found(named_twice(position[position >= 0]))


def _last_entries(records: int, rows: int, trace: Relation) -> Relation:
    trace = trace.take(_fits(trace, records, rows)).ordered("record", "entry")
    record, back = trace["record"], trace["record"][trace["position"] < 0]
    last = np.append(record[1:] != record[:-1], True)[: len(record)]
    row = np.maximum(trace["position"][last], -1)
    return Relation({"record": record[last], "row": row, "kept_back": np.isin(record[last], back)})


def _look_at_kept_back(heads: Relation, sets: Sets) -> Found:
    return Found(look(heads.only("kept_back"), (kept_back,), sets.sizes))


def only_released(part: Relation) -> Relation:
    """Return the records that have a released row."""
    return part.take(part["row"] >= 0).only(*TRUTH)
