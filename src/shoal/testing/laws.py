"""The laws of stream methods, as functions that raise LawBroken.

Each takes ``make``, a function that returns a new method (always with the same key and parameters), and ``stream``, a
table of records in arrival order. `is_same_in_another_process` pickles ``make``: pass a module-level function or a
functools.partial of one. No message contains a value of the stream.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor import audit
from shoal.errors import InputError, ShoalError
from shoal.methods.base import DEAD, RELEASED, SUPPRESSED, Release, StreamMethod
from shoal.testing.driving import (
    Make,
    Output,
    batches_of,
    digest,
    digests_elsewhere,
    on_own_buffers,
    one_batch,
    records_of,
    refusals_of,
    run,
)
from shoal.times import column_ns

BATCH_SIZES: Final = (1, 2, 7, 50)
ODD_VALUES: Final = (
    0.5, 2.0, float("nan"), float("inf"), True, b"x", 3, 2**70, None, "x", date(2026, 2, 2), time(1), timedelta(1),
    datetime(2026, 2, 2, tzinfo=UTC), Decimal("1.5"), 1j, ["x"], {"x": 1},
)  # fmt: skip
"""Values of types that people push into columns."""
_FLAT: Final = 1.5
"""Largest allowed ratio of the memory after ten times the stream to the memory after the stream once."""
_NO_PROMISE: Final = frozenset(
    {"target-missed", "identifying-carry", "identifying-together", "identifying-sensitive", "one-person-share"}
)
"""Findings about the stream, not the method: a missed target, and columns whose values identify people."""


class LawBroken(AssertionError):
    """A method breaks a law."""


def require(kept: bool, sentence: str) -> None:  # noqa: FBT001
    """Raise LawBroken unless the law is kept."""
    if not kept:
        raise LawBroken(sentence)


# ---- 1 batching


def batching_is_invisible(make: Make, stream: pa.Table, *, sizes: Sequence[int] = BATCH_SIZES) -> None:
    """Rows, trace and state do not depend on how the stream is cut into batches, down to single records."""
    expected = run(make(), [one_batch(stream)])
    for size in sizes:
        got = run(make(), batches_of(stream, size))
        require(got.rows == expected.rows, f"batches of {size} rows release different rows than one batch")
        require(got.trace == expected.trace, f"batches of {size} rows give a different trace than one batch")
        require(got.state == expected.state, f"batches of {size} rows end in a different state than one batch")
    _pushing_is_batching(make, stream, expected)


def _pushing_is_batching(make: Make, stream: pa.Table, expected: Output) -> None:
    single = make()
    single.bind(stream.schema)
    rows = [row for record in records_of(stream) for row in single.push(record)]
    rows += single.flush().rows.to_pylist()
    require(rows == expected.rows, "single records release different rows than one batch")
    require(single.snapshot() == expected.state, "single records end in a different state than one batch")


def records_are_refused_like_batches(make: Make, stream: pa.Table, *, columns: Sequence[str] | None = None) -> None:
    """A record with a value of an unusual type is accepted, refused or rejected as a batch of that record is.

    Where Arrow has no column for the value, so that no such batch exists, the record is not published.
    """
    good = next(record for record in records_of(stream) if None not in record.values())
    for name in columns or make().columns:
        for value in ODD_VALUES:
            record = {column: value if column == name else good[column] for column in make().columns}
            try:
                batch = pa.Table.from_pylist([record])
            except (ValueError, TypeError, OverflowError):
                batch = None
            one, whole = make(), make()
            pushed = _outcome(one, partial(one.push, record))
            expected = None if batch is None else _outcome(whole, partial(whole.push_batch, batch))
            what = f"a {type(value).__name__} in column {name!r}"
            require(batch is not None or not one.counts[RELEASED], f"push publishes {what}, which no batch can have")
            require(batch is None or pushed == expected, f"push and push_batch treat {what} differently")


def _outcome(method: StreamMethod, push: Callable[[], object]) -> dict[str, int] | str:
    try:
        push()
    except InputError:
        return "InputError"
    return method.counts


# ---- 2 accounting


def everything_is_accounted_for(make: Make, stream: pa.Table, *, size: int = 7) -> None:
    """Pushed = released + suppressed + dead + pending at every moment; no record is lost or decided twice."""
    anonymizer, decided, published, pushed = make(), [], 0, 0
    is_root = anonymizer.guarantee.parameters.get("suppressed") == "root"  # then suppressed rows are published as roots
    in_output = (RELEASED, SUPPRESSED) if is_root else (RELEASED,)
    for batch in [*batches_of(stream, size), None]:
        release = anonymizer.flush() if batch is None else anonymizer.push_batch(batch)
        pushed += 0 if batch is None else batch.num_rows
        decided += release.trace.to_pylist()
        published += release.rows.num_rows
        counts = anonymizer.counts
        require(counts["pushed"] == pushed, "counts['pushed'] is not the number of pushed records")
        total = counts[RELEASED] + counts[SUPPRESSED] + counts[DEAD] + anonymizer.pending
        require(total == pushed, "pushed is not released + suppressed + dead + pending")
        expected = sum(counts[verdict] for verdict in in_output)
        require(expected == published, "counts and rows disagree on how many were released")
        require(len(decided) == pushed - anonymizer.pending, "a record has no verdict in the trace and is not pending")
        for verdict in (RELEASED, SUPPRESSED, DEAD):
            found = sum(row["verdict"] == verdict for row in decided)
            require(found == counts[verdict], f"counts and trace disagree on how many are {verdict}")
    numbers = {row["row"] for row in decided}
    require(len(numbers) == len(decided), "a record was decided twice")
    require(numbers <= set(range(stream.num_rows)), "a record was decided that was never pushed")
    pending = anonymizer.pending if anonymizer.guarantee.keeps_pending else 0
    require(len(numbers) == stream.num_rows - pending, "a record was lost")
    reasons = all((row["reason"] is not None) == (row["verdict"] == DEAD) for row in decided)
    require(reasons, "a dead record has no reason, or another record has one")
    for reason in {row["reason"] for row in decided} - {None}:
        require(bool(anonymizer.explain(reason).sentence), "explain() has no sentence for a reason")


# ---- 3 snapshots


def snapshots_are_invisible(make: Make, stream: pa.Table, *, size: int = 7) -> None:
    """Continuing from a snapshot taken at any point gives the same output as continuing without one."""
    expected = run(make(), batches_of(stream, size))
    anonymizer, releases = make(), []
    for batch in batches_of(stream, size):
        state = anonymizer.snapshot()
        require(anonymizer.snapshot() == state, "two snapshots of the same state differ")
        anonymizer = make().restore(state)
        require(anonymizer.snapshot() == state, "a restored method has a different snapshot")
        releases.append(anonymizer.push_batch(batch))
    got = Output.of([*releases, anonymizer.flush()], anonymizer)
    require(got == expected, "restoring before every batch changes the output")
    _snapshots_are_pure(make, stream, expected)


def _snapshots_are_pure(make: Make, stream: pa.Table, expected: Output) -> None:
    """Taking a snapshot after every single record changes nothing."""
    watched = make()
    watched.bind(stream.schema)
    rows = []
    for record in records_of(stream):
        watched.snapshot()
        rows += watched.push(record)
    rows += watched.flush().rows.to_pylist()
    require((rows, watched.snapshot()) == (expected.rows, expected.state), "taking snapshots changes the output")


# ---- 4 refusals


def refusals_change_nothing(make: Make, stream: pa.Table, *, refused: Iterable[Any] | None = None) -> None:
    """A refused batch, before or in the middle of the stream, leaves the snapshot unchanged, byte for byte."""
    half = stream.num_rows // 2
    for pushed in (stream.slice(0, 0), stream.slice(0, half)):
        anonymizer = make()
        anonymizer.push_batch(pushed)
        before = anonymizer.snapshot()
        for batch in refusals_of(stream, anonymizer.columns) if refused is None else refused:
            try:
                anonymizer.push_batch(batch)
            except ShoalError:
                require(anonymizer.snapshot() == before, "a refused batch changed the state")
            else:
                raise LawBroken("an invalid batch was not refused")


# ---- 5 other processes


def is_same_in_another_process(make: Make, stream: pa.Table) -> None:
    """The same key and input give the same output in every process.

    Otherwise a replay after a crash could publish a person under a second generalization.
    """
    require(digests_elsewhere([(make, stream)]) == [digest(make, stream)], "another process gives a different output")


# ---- 6 flush


def flush_leaves_nothing(make: Make, stream: pa.Table) -> None:
    """After a flush nothing is pending, and a second flush gives nothing and changes nothing.

    Where the guarantee lets rows stay pending (`keeps_pending`), they may, but then no row is suppressed.
    """
    anonymizer = make()
    anonymizer.push_batch(stream)
    anonymizer.flush()
    is_pending = anonymizer.guarantee.keeps_pending
    require(anonymizer.pending == 0 or is_pending, "records are pending after a flush")
    require(anonymizer.counts[SUPPRESSED] == 0 or not is_pending, "a row is suppressed where rows may stay pending")
    state = anonymizer.snapshot()
    again = anonymizer.flush()
    require(again.rows.num_rows == again.trace.num_rows == 0, "a second flush gives something")
    require(anonymizer.snapshot() == state, "a second flush changes the state")


# ---- 7 and 8 bounds


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


# ---- 9 input


def inputs_are_left_alone(make: Make, stream: pa.Table, *, size: int = 7) -> None:
    """Input buffers are neither written to nor read after the call."""
    expected = run(make(), batches_of(stream, size))
    anonymizer, releases = make(), []
    for batch in batches_of(stream, size):
        copy, buffers = on_own_buffers(batch)
        before = [bytes(buffer) for buffer in buffers]
        releases.append(anonymizer.push_batch(copy))
        require([bytes(buffer) for buffer in buffers] == before, "an input buffer was written to")
        for buffer in buffers:
            buffer[:] = b"\x00" * len(buffer)
    got = Output.of([*releases, anonymizer.flush()], anonymizer)
    require(got == expected, "an input buffer was read after the call")


# ---- 10 output


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


# ---- 11 errors


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


# ---- 12 the auditor


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
