"""Laws of stream methods: the output depends on the records alone, and every record is accounted for.

Each law is a function that raises LawBroken. It takes ``make``, a function that returns a new method (always with the
same key and parameters), and ``stream``, a table of records in arrival order. `is_same_in_another_process` pickles
``make``: pass a module-level function or a functools.partial of one. No message contains a value of the stream.
The laws about promises are in `shoal.testing.promise_laws`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final

import pyarrow as pa

from shoal.errors import InputError, ShoalError
from shoal.methods.base import StreamMethod
from shoal.methods.release import DEAD, RELEASED, SUPPRESSED
from shoal.testing.driving import (
    LawBroken,
    Make,
    Output,
    batches_of,
    digest,
    digests_elsewhere,
    on_own_buffers,
    one_batch,
    records_of,
    refusals_of,
    require,
    run,
)

BATCH_SIZES: Final = (1, 2, 7, 50)
ODD_VALUES: Final = (
    0.5, 2.0, float("nan"), float("inf"), True, b"x", 3, 2**63, 2**64 - 1, 2**70, None, "x", date(2026, 2, 2), time(1),
    timedelta(1), datetime(2026, 2, 2, tzinfo=UTC), Decimal("1.5"), 1j, ["x"], {"x": 1},
)  # fmt: skip
"""Values of types that people push into columns."""


# ---- batching


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
            batch = _batch_of(record)
            one, whole = make(), make()
            pushed = _outcome(one, partial(one.push, record))
            expected = None if batch is None else _outcome(whole, partial(whole.push_batch, batch))
            what = f"a {type(value).__name__} in column {name!r}"
            require(batch is not None or not one.counts[RELEASED], f"push publishes {what}, which no batch can have")
            require(batch is None or pushed == expected, f"push and push_batch treat {what} differently")


def missing_values_are_batched_like_records(make: Make, stream: pa.Table, *, columns: Sequence[str] = ()) -> None:
    """A batch in which a column has no value, at the start or later, ends as single records without that value do.

    Such a column has Arrow's null type, as tables made of Python values have it.
    """
    names = make().columns
    good = [{name: record[name] for name in names} for record in records_of(stream.slice(0, 12))]
    for name in columns or names:
        for start in (0, 5):
            records = [{**one, name: None} if start <= at < start + 3 else one for at, one in enumerate(good)]
            one, whole = make(), make()
            pushed = _outcome(one, partial(_push_all, one, records))
            pieces = [piece for piece in (records[:start], records[start : start + 3], records[start + 3 :]) if piece]
            batched = _outcome(whole, partial(_push_pieces, whole, pieces, stream.schema))
            require(pushed == batched, f"push and push_batch treat missing values in column {name!r} differently")


def _push_all(method: StreamMethod, records: Iterable[Mapping[str, object]]) -> None:
    for record in records:
        method.push(record)


def _push_pieces(method: StreamMethod, pieces: Iterable[Sequence[dict[str, object]]], schema: pa.Schema) -> None:
    for piece in pieces:
        kinds = [
            (name, pa.null() if all(record[name] is None for record in piece) else schema.field(name).type)
            for name in piece[0]
        ]
        method.push_batch(pa.Table.from_pylist(list(piece), schema=pa.schema(kinds)))


def _batch_of(record: Mapping[str, object]) -> pa.Table | None:
    """The batch of one record; None where Arrow has no column for a value."""
    try:
        return pa.table({name: _column_of(value) for name, value in record.items()})
    except (ValueError, TypeError, OverflowError):
        return None


def _column_of(value: object) -> pa.Array:
    is_large = isinstance(value, int) and 2**63 <= value < 2**64  # Arrow has a type for it, but does not infer it
    return pa.array([value], pa.uint64() if is_large else None)


def _outcome(method: StreamMethod, push: Callable[[], object]) -> dict[str, int] | str:
    try:
        push()
    except InputError:
        return "InputError"
    return method.counts


# ---- accounting


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


# ---- snapshots


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


# ---- refusals


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


# ---- other processes


def is_same_in_another_process(make: Make, stream: pa.Table) -> None:
    """The same key and input give the same output in every process.

    Otherwise a replay after a crash could publish a person under a second generalization.
    """
    require(digests_elsewhere([(make, stream)]) == [digest(make, stream)], "another process gives a different output")


# ---- flush


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


# ---- input


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
