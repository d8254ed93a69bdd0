"""Check what happened to every record: decided once, for a reason that applies, and released unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Check, Found, check, look
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation
from shoal.auditor.rows.texts import same_values
from shoal.auditor.trace import DEAD, RELEASED, VERDICTS
from shoal.auditor.z.evidence import NO_EPOCH
from shoal.auditor.z.order import Clock
from shoal.auditor.z.promise import ZPromise

_REASONS: Final = ("late", "ahead", "null-person", "null-time", "bad-time", "unknown-value")
_OTHER_TRACE: Final = "Audit a release with the trace and the input of the same run; if they are, do not publish it."
_LOOK: Final = "Look at the record in the input and at its entry in the trace."
of_records = partial(check, families=("z",), by="record", needs=("truth", "trace"))
warns = partial(of_records, severity=Severity.WARNING)


@of_records("release-count", "The release and the trace do not have the same number of rows.", advice=_OTHER_TRACE)
def release_count(apart: int) -> int:
    return apart


@of_records("trace-verdict", "The trace contains an unknown verdict.", advice=_OTHER_TRACE)
def trace_verdict(rows: Relation, *_: Any) -> int:
    return int(((rows["entry"] >= 0) & (rows["verdict"] < 0)).sum())


@of_records("trace-row", "The trace names a record that the truth does not have.", advice=_OTHER_TRACE)
def trace_row(rows: Relation, *_: Any) -> int:
    return int((rows["record"] < 0).sum())


@of_records("decided-twice", "The trace decides a record more than once.", advice=_OTHER_TRACE)
def decided_twice(rows: Relation, *_: Any) -> int:
    return int(((rows["entry"] >= 0) & (rows["record"] >= 0) & ~rows["first"]).sum())


@of_records(
    "unusable-accepted", "A record without a person or a time was not refused.",
    advice="Whom such a record is about is not known, so it must count for nobody and not be published.")  # fmt: skip
def unusable_accepted(rows: Relation, *_: Any) -> int:
    return int((_has_verdict(rows, 0, 1) & ~rows["usable"]).sum())


def _has_verdict(rows: Relation, least: int, most: int) -> Bools:
    found: Bools = rows["first"] & (rows["verdict"] >= least) & (rows["verdict"] <= most)
    return found


@of_records(
    "unchecked-promise", "Why records were refused was not checked: the trace gives no reason.",
    advice="Give the trace as it was written: it must say why records were refused.")  # fmt: skip
def no_reason(rows: Relation, *_: Any) -> int:
    return int((_has_verdict(rows, DEAD, DEAD) & (rows.codes("reason") < 0)).sum())


@warns(
    "dead-without-cause", "A record was refused for an unknown reason, although nothing is wrong with it.", advice=_LOOK
)
def unknown_reason(rows: Relation, *_: Any) -> int:
    return _refused(rows, lambda reason: reason.split(".")[0] not in _REASONS)


@warns("dead-without-cause", "A record was refused for a reason that does not apply to it.", advice=_LOOK)
def wrong_reason(rows: Relation, *_: Any) -> int:
    """Only the order of arrivals shows whether late ones were late."""
    return _refused(rows, lambda reason: reason.startswith("null"))


@warns("dead-without-cause", "A record was refused for a reason that does not apply to it.", advice=_LOOK)
def refused_in_time(in_time: int) -> int:
    return in_time


def _refused(rows: Relation, matches: Any) -> int:
    fits = np.array([*map(matches, rows["reason"].texts), False], np.bool_)  # -1 picks the last
    return int((_has_verdict(rows, DEAD, DEAD) & rows["usable"] & fits[rows.codes("reason")]).sum())


@of_records("lost", "A record has no verdict although later records were decided.", advice=_OTHER_TRACE)
def lost(rows: Relation, promise: ZPromise, clock: Clock, closed: int) -> int:
    return int((_is_overtaken(rows, promise, clock, closed) & (rows["record"] < clock.newest)).sum())


@of_records(
    "pending", "Records had no verdict yet when the trace ended.", severity=Severity.INFO,
    advice="Nothing to do: the run ended before they could be decided.")  # fmt: skip
def pending(rows: Relation, promise: ZPromise, clock: Clock, closed: int) -> int:
    return int((rows["entry"] < 0).sum()) - int(lost.function(rows, promise, clock, closed))


@warns(
    "trace-ends-early", "Nothing may be pending, but the trace ends before the input does.",
    advice="Give the whole trace, or the input that the run had read and no more.")  # fmt: skip
def trace_ends_early(rows: Relation, promise: ZPromise, clock: Clock, closed: int) -> int:
    is_possible = promise.lateness_ns or promise.k is not None
    return 0 if is_possible else int(pending.function(rows, promise, clock, closed))


def _is_overtaken(rows: Relation, promise: ZPromise, clock: Clock, closed: int) -> Bools:
    """Mark records without a verdict that cannot wait for one.

    They are overtaken by the accepted record that belongs last, or, where rows wait for the end of their epoch, by this
    epoch: it is decided up to the record `closed`. A restart decides about everything before it.
    """
    record, time, start = rows["record"], rows["time"], clock.starts(rows["record"])
    last = (-1, 0, 0) if clock.last is None else clock.last
    is_before = (time < last[1]) | ((time == last[1]) & (record < last[2]))
    if promise.k is not None:
        ended = last[1] // promise.rotation_ns
        is_before = (rows["epoch"] < ended) | ((rows["epoch"] == ended) & (record < closed))
    found = (
        ~rows["usable"] | (start < int(clock.starts(np.array([clock.newest]))[0])) | ((start == last[0]) & is_before)
    )
    undecided: Bools = (rows["entry"] < 0) & found
    return undecided


def last_closed(promise: ZPromise, clock: Clock, rows: Relation) -> int:
    """The newest accepted record that waited for the end of the last epoch; -1 if there is none."""
    if clock.last is None:
        return -1
    in_last = (clock.starts(rows["record"]) == clock.last[0]) & (rows["epoch"] == clock.last[1] // promise.rotation_ns)
    return int(rows["record"][rows["accepted"] & (rows["waited"] != NO_EPOCH) & in_last].max(initial=-1))


@of_records(
    "trace-group", "A released row did not wait for the end of its epoch, or a row waited for another epoch.",
    advice="k people share a set only at the end of its epoch: no row may be published before.")  # fmt: skip
def trace_group(rows: Relation, promise: ZPromise, *_: Any) -> int:
    if promise.k is None:
        return 0
    wrong = (rows["waited"] != NO_EPOCH) & (rows["waited"] != rows["epoch"])
    wrong |= (rows["waited"] == NO_EPOCH) & (rows["verdict"] == RELEASED)
    return int((wrong & rows["accepted"]).sum())


# ---- released rows and their records


@of_records(
    "not-in-truth", "A released row has no row in the truth.",
    advice="The row is invented or changed, or the input is not that of this release: do not publish it.")  # fmt: skip
def without_record(rows: Relation, *_: Any) -> Bools:
    found: Bools = (rows["row"] >= 0) & (rows["record"] < 0)
    return found


@of_records(
    "wrong-time", "A released row has another time than its record.",
    advice="Times are published unchanged. A changed one can mark a row: do not publish this release.")  # fmt: skip
def wrong_time(rows: Relation, *_: Any) -> Bools:
    found: Bools = (rows["row"] >= 0) & (rows["record"] >= 0) & (rows["time"] != rows["at"])
    return found


@of_records(
    "wrong-carry", "A released row carries other values than its record.",
    advice="Carried columns are published unchanged. A changed value can mark a row: do not publish this.")  # fmt: skip
def wrong_carry(rows: Relation, promise: ZPromise, *_: Any) -> Any:
    other = np.zeros(len(rows), np.bool_)
    for name in promise.carry:
        other |= ~same_values(rows[f"true {name}"], rows[f"released {name}"])
    return other & (rows["row"] >= 0) & (rows["record"] >= 0)


ALL: Final = (trace_verdict, trace_row, decided_twice, unusable_accepted, no_reason, unknown_reason, wrong_reason, lost,
              pending, trace_ends_early, trace_group)  # fmt: skip
OF_ROWS: Final = (without_record, wrong_time, wrong_carry)


def check_each(checks: Iterable[Check], promise: ZPromise, clock: Clock, closed: int, rows: Relation) -> Found:
    """Check records; count the verdicts of the trace, and the records without one."""
    counts = {name: int((rows["verdict"] == number).sum()) for number, name in enumerate(VERDICTS)}
    counts["undecided"] = int((rows["entry"] < 0).sum())
    return Found(look(rows, checks, promise, clock, closed), counts)
