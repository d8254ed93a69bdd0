"""Laws of stream methods: a method keeps what it promises about delay, memory, output, errors and anonymity.

Functions as in `shoal.testing.laws`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor import audit
from shoal.errors import ShoalError
from shoal.methods.release import DEAD, Release
from shoal.testing.driving import LawBroken, Make, batches_of, records_of, refusals_of, require
from shoal.times import column_ns

_FLAT: Final = 1.5
"""Largest allowed ratio of the memory after ten times the stream to the memory after the stream once."""
_NO_PROMISE: Final = frozenset(
    {
        "target-missed", "identifying-carry", "identifying-together", "identifying-sensitive", "one-person-share",
        "filled-cells",
    }
)  # fmt: skip
"""Findings about the stream or a default, not the method: a missed target, columns whose values identify people, cells
that are filled in."""


# ---- bounds


def delay_is_bounded(make: Make, stream: pa.Table, *, time: str, by_clock: bool = False) -> None:
    """No record waits longer than the guarantee allows, if the caller advances time whenever a record is due.

    Time moves with records; between two records only the caller can move it. A record waits from its own time on, or
    with ``by_clock`` from the time of the stream when the record arrived.
    """
    anonymizer = make()
    bound = anonymizer.guarantee.max_delay_ns
    if bound is None:
        return
    times, usable = column_ns(stream.column(time).combine_chunks())
    waiting: dict[int, int] = {}
    clock = int(times.min(initial=0))
    for row, batch in enumerate(batches_of(stream, 1)):
        due = sorted({when + bound for when in waiting.values() if usable[row] and when + bound <= int(times[row])})
        for now in due:
            _remove_decided(anonymizer.advance(np.datetime64(now, "ns")), waiting, bound)
            late = [when for when in waiting.values() if when + bound <= now]
            require(not late, "a record that is due is still pending")
            clock = max(clock, now)
        waiting[row] = max(clock, int(times[row])) if by_clock else int(times[row])
        dead = _remove_decided(anonymizer.push_batch(batch), waiting, bound)
        clock = clock if row in dead else max(clock, int(times[row]))
        require(len(waiting) == anonymizer.pending, "`pending` is not the number of records without a verdict")


def _remove_decided(release: Release, waiting: dict[int, int], bound: int) -> set[int]:
    """Remove decided rows from `waiting`; return the dead rows."""
    trace = release.trace.to_pylist()
    for row in trace:
        waiting.pop(row["row"], None)
        require(row["verdict"] == DEAD or 0 <= row["delay"] <= bound, "a record waited longer than the bound")
    return {row["row"] for row in trace if row["verdict"] == DEAD}


def arrivals_bound_the_delay(make: Make, stream: pa.Table) -> None:
    """No record is pending for more arrivals than the guarantee allows, and the trace has the right delays."""
    anonymizer = make()
    bound = anonymizer.guarantee.max_delay_arrivals
    if bound is None:
        return
    waiting: dict[int, int] = {}
    came = 0
    for row, batch in enumerate(batches_of(stream, 1)):
        trace = anonymizer.push_batch(batch).trace.to_pylist()
        if not any(one["row"] == row and one["verdict"] == DEAD for one in trace):
            waiting[row] = came
            came += 1
        _count_arrivals(trace, waiting, came - 1, bound)
        late = any(came - 1 - number >= bound for number in waiting.values())
        require(not late, "a record that is due is still pending")
        require(len(waiting) == anonymizer.pending, "`pending` is not the number of records without a verdict")
    _count_arrivals(anonymizer.flush().trace.to_pylist(), waiting, came - 1, bound)


def _count_arrivals(trace: list[dict[str, Any]], waiting: dict[int, int], now: int, bound: int) -> None:
    for one in trace:
        if one["verdict"] == DEAD:
            continue
        delay = now - waiting.pop(one["row"], now)
        require(one["delay"] == delay, "a delay in the trace is not the number of arrivals the record was pending")
        require(delay <= bound, "a record was pending for more arrivals than the guarantee allows")


def pending_is_bounded(make: Make, stream: pa.Table) -> None:
    """At no time are more records pending than the guarantee allows."""
    anonymizer = make()
    bound = anonymizer.guarantee.max_pending
    for batch in batches_of(stream, 1):
        anonymizer.push_batch(batch)
        require(bound is None or anonymizer.pending <= bound, "more records are pending than the guarantee allows")


def memory_is_flat(make: Make, lap: Callable[[int], pa.Table], *, laps: int = 2) -> None:
    """Ten times the stream needs no more memory. ``lap(n)`` is the n-th equal part of a steady stream."""
    for is_single in (False, True):
        anonymizer, sizes = make(), []
        for number in range(10 * laps):
            if is_single:
                for record in records_of(lap(number)):
                    anonymizer.push(record)
            else:
                anonymizer.push_batch(lap(number))
            sizes.append(anonymizer.state_bytes + len(anonymizer.snapshot()))
        require(max(sizes[laps:]) <= _FLAT * max(sizes[:laps]), "memory grows with the length of the stream")


# ---- output


def output_is_as_promised(make: Make, stream: pa.Table, *, persons: Collection[str]) -> None:
    """Every release has the promised schema, even when empty, and contains no person identifier of the input.

    ``persons`` are the identifiers to look for; leave out those in columns the policy carries on purpose.
    """
    anonymizer = make()
    anonymizer.push_batch(stream.slice(0, 0))
    promised, traced = anonymizer.output_schema, anonymizer.trace_schema
    releases = [anonymizer.push_batch(batch) for batch in batches_of(stream, 7)]
    releases += [anonymizer.push_batch(stream.slice(0, 0)), anonymizer.flush(), anonymizer.flush()]
    for release in releases:
        require(release.rows.schema.equals(promised), "a release does not have the promised schema")
        require(release.trace.schema.equals(traced), "a trace does not have the promised schema")
        release.rows.validate(full=True)
        release.trace.validate(full=True)
        require(not _names_any(release.rows, persons), "a release contains a person identifier")
    require(anonymizer.output_schema.equals(promised), "the promised schema changed during the run")


def _names_any(rows: pa.RecordBatch, persons: Collection[str]) -> bool:
    cells = {str(cell) for column in rows.columns for cell in column.to_pylist() if cell is not None}
    return any(person in cell for person in persons for cell in cells)


# ---- errors


def errors_tell_no_values(make: Make, stream: pa.Table, *, secrets: Collection[str], odd: Iterable[Any] = ()) -> None:
    """No error, nor any error in its chain, contains a value of the stream.

    ``odd`` are additional invalid records for ``push``; each may be refused or become a dead letter.
    """
    anonymizer = make()
    anonymizer.push_batch(stream)
    calls: list[Callable[[], Any]] = [
        partial(anonymizer.push_batch, batch) for batch in refusals_of(stream, anonymizer.columns)
    ]
    calls += [partial(anonymizer.push, record) for record in odd]
    calls += [partial(anonymizer.advance, "no time"), partial(anonymizer.restore, b"no snapshot")]
    calls += [partial(anonymizer.restore, anonymizer.snapshot()[:-1] + b"U")]
    for call in calls:
        try:
            call()
        except ShoalError as error:
            text = "".join(traceback.format_exception(error, chain=True))
            require(not any(secret in text for secret in secrets), "an error contains a value of the stream")
        except Exception as error:
            raise LawBroken(f"not a ShoalError: {type(error).__name__}") from None


# ---- the auditor


def auditor_finds_nothing(make: Make, stream: pa.Table, *, policy: Mapping[str, Any], size: int = 7) -> None:
    """The auditor, given input, trace and policy, finds no violation and nothing suppressed needlessly."""
    anonymizer = make()
    releases = [anonymizer.push_batch(batch) for batch in batches_of(stream, size)]
    releases.append(anonymizer.flush())
    rows = pa.Table.from_batches([release.rows for release in releases])
    trace = pa.Table.from_batches([release.trace for release in releases])
    report = audit(rows, truth=stream, trace=trace, policy=policy)
    codes = ", ".join(sorted({found.code for found in (*report.violations, *report.warnings)} - _NO_PROMISE))
    require(not codes, f"the auditor found: {codes}")
    require(not report.not_checked, f"the auditor could not check everything: {'; '.join(report.not_checked)}")
