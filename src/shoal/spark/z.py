"""z-anonymity on Spark, identical to one machine: rows are admitted once, in order; then values are judged in shards.

1. One task sees times and people in the order of arrival: it moves the time of the stream and refuses late rows.
2. Rows go to shards by (column, value): whether a value is published depends on the people behind this value alone.
3. Each shard judges its rows by the time of the whole stream.
4. Rows with several columns are joined by their number.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.snapshots import pack_state, unpack_state
from shoal.methods.base import DEAD, RELEASED, Release
from shoal.methods.z.admission import Clock
from shoal.spark.columns import (
    DECIDED,
    DECISION,
    DELAY,
    DETAILS,
    NOTE,
    ORDER,
    REASON,
    ROW,
    SHARD,
    VERDICT,
    cast,
    decision_schema,
    wire_schema,
)
from shoal.spark.decisions import Decisions
from shoal.spark.frames import by_shard, mapped, quoted, shards_of, types_of, without
from shoal.spark.recipe import Recipe
from shoal.spark.rows import NumberedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ints = npt.NDArray[np.int64]
_TRACED: Final = ("row", "verdict", "reason", "group", "delay")
_SAME_IN_SPARK: Final = (pa.string(), pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.bool_())
"""Types of which two values are the same text exactly if Spark has the same text for them."""


def decide_z(rows: NumberedRows, recipe: Recipe, *, shards: int) -> Decisions:
    """Decide all rows of a finite stream."""
    method: Any = recipe.make()
    method.bind(rows.types)
    schema, settings = decision_schema(method.output_schema), recipe.settings()
    needed = _admission_columns(settings)
    skeleton = rows.frame.select(ROW, *map(quoted, needed)).repartition(1).sortWithinPartitions(ROW)
    admitted = mapped(skeleton, AdmitRows(recipe, rows.types, needed), schema).persist()
    clock = whole_clock([row[0] for row in admitted.where(f"{NOTE} is not null").orderBy(ROW).select(NOTE).collect()])
    refused = admitted.where(f"{NOTE} is null")
    usable = without(rows.frame, refused)
    assigned = _assigned(usable, rows, recipe, settings, shards)
    judge = JudgeShards(recipe, rows.types, rows.frame.sparkSession.sparkContext.broadcast(clock), rows.end)
    judged = mapped(by_shard(assigned, shards), judge, schema)
    if len(settings.attributes) > 1:
        judged = _joined(judged)
    names = method.trace_schema.names
    return Decisions(
        refused.union(judged).persist(), method.output_schema, shards=shards, rows=rows,
        trace_of=lambda _: ZTrace(tuple(names[len(_TRACED) :])), metrics_of=lambda *_: {},
    )  # fmt: skip


# ---- admission


def _admission_columns(settings: Any) -> tuple[str, ...]:
    """Columns that admission reads: times and persons, and values that a hierarchy may refuse."""
    listed = [column.name for column in settings.attributes if column.hierarchy is not None]
    return (settings.roles.person, settings.roles.time, *listed)


@dataclass(frozen=True, slots=True)
class AdmitRows:
    """Admits rows that come in their order, all in one task; columns that admission does not read are null."""

    recipe: Recipe
    types: pa.Schema
    needed: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        method: Any = self.recipe.make()
        method.bind(self.types)
        schema = decision_schema(method.output_schema)
        for batch in batches:
            first = int(batch.column(ROW)[0].as_py())
            admitted = method.admit(self._whole(batch))
            refused = method.refused(admitted)
            if refused.num_rows:
                numbers = np.asarray(refused.column("row"))
                yield _decisions(refused, numbers, numbers, None, schema)
            yield _note(schema, first, _packed(admitted.clock))
        yield _note(schema, method.counts["pushed"], _packed(method.admit_end().clock))

    def _whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        known = cast(batch, pa.schema([self.types.field(name) for name in self.needed]))
        columns = [
            known.column(field.name) if field.name in self.needed else pa.nulls(batch.num_rows, field.type)
            for field in self.types
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.types)


def _packed(clock: Clock) -> str:
    state = pack_state({"restarts": list(clock.restarts)}, {"numbers": clock.numbers, "newest": clock.newest})
    return base64.b64encode(state).decode()


def whole_clock(packed: list[str]) -> Clock:
    """The clock of the whole stream, made of those of all calls; the last one is that of the end."""
    clocks = [unpack_state(base64.b64decode(text)) for text in packed]
    numbers, newest = (np.concatenate([clock.arrays[name] for clock in clocks]) for name in ("numbers", "newest"))
    restarts = [number for clock in clocks for number in clock.header["restarts"]]
    return Clock(numbers, newest, tuple(restarts), is_end=True).condensed()


def clock_between(clock: Clock, start: int, stop: int) -> Clock:
    """How time moved with the arrivals from `start` up to, not including, `stop`; it has at least one entry."""
    first, last = np.searchsorted(clock.numbers, [start, stop]).tolist()
    numbers, newest = clock.numbers[first:last], clock.newest[first:last]
    if first and (not len(numbers) or numbers[0] > start):
        numbers, newest = np.append(start, numbers), np.append(clock.newest[first - 1], newest)
    return Clock(numbers, newest, tuple(number for number in clock.restarts if start <= number < stop))


# ---- shards


def _assigned(usable: DataFrame, rows: NumberedRows, recipe: Recipe, settings: Any, shards: int) -> DataFrame:
    """Rows with their shard. Spark assigns the values of a single column without a hierarchy; else the method does."""
    from pyspark.sql import functions as f

    columns = settings.attributes
    if len(columns) == 1 and columns[0].hierarchy is None and rows.types.field(columns[0].name).type in _SAME_IN_SPARK:
        text = f.coalesce(f.col(quoted(columns[0].name)).cast("string"), f.col(ROW).cast("string"))
        return usable.withColumn(SHARD, f.pmod(f.xxhash64(text), f.lit(shards)).cast("int"))
    schema = pa.schema([*(field for field in types_of(usable) if field.name != SHARD), (SHARD, pa.int32())])
    return mapped(usable, SplitRows(recipe, rows.types, shards, schema), schema)


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Assigns rows to shards by column and value; a row goes to every shard that owns one of its values."""

    recipe: Recipe
    types: pa.Schema
    shards: int
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        method: Any = None
        nothing = np.empty(0, dtype=np.int64)
        for batch in batches:
            if method is None:
                method = self.recipe.make()
                method.bind(self.types)
            read = method.read_admitted(cast(batch, self.types), batch.column(ROW), Clock(nothing, nothing))
            for shard, part in enumerate(method.split(read, self.shards)):
                if len(part):
                    yield self._sent(batch, part, shard)

    def _sent(self, batch: pa.RecordBatch, part: Any, shard: int) -> pa.RecordBatch:
        order = np.argsort(np.asarray(batch.column(ROW)), kind="stable")
        places = order[np.searchsorted(np.asarray(batch.column(ROW))[order], part.numbers)]
        wire = cast(part.batch, wire_schema(self.types))
        columns = [
            pa.repeat(pa.scalar(shard, pa.int32()), len(part)) if field.name == SHARD
            else wire.column(field.name) if field.name in wire.schema.names
            else batch.column(field.name).take(pa.array(places))
            for field in self.schema
        ]  # fmt: skip
        columns = [column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class JudgeShards:
    """Judges shards on an executor; rows come sorted by shard and number."""

    recipe: Recipe
    types: pa.Schema
    clock: Any
    """Broadcast: the clock of the whole stream."""
    end: int
    """The number after the last record's."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _, parts in shards_of(batches):
            shard = ZShard(self.recipe, self.types, self.clock.value)
            for part in parts:
                yield shard.judge(part)
            yield from shard.finish(self.end)


class ZShard:
    """Judges the rows of one shard in their order."""

    def __init__(self, recipe: Recipe, types: pa.Schema, clock: Clock) -> None:
        self._method: Any = recipe.make()
        self._method.bind(types)
        self._types, self._clock = types, clock
        self._schema = decision_schema(self._method.output_schema)
        self._lateness_ns = recipe.settings().lateness_ns
        self._next = 0
        self._open = self._times = np.empty(0, dtype=np.int64)
        """Numbers and times of the rows that are not decided yet."""

    def judge(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Judge rows; the stream's time moves as far as the last of them."""
        numbers = np.asarray(batch.column(ROW))
        clock = clock_between(self._clock, self._next, int(numbers[-1]) + 1)
        self._next = int(numbers[-1]) + 1
        read = self._method.read_admitted(cast(batch, self._types), numbers, clock)
        self._open = np.concatenate((self._open, read.numbers))
        self._times = np.concatenate((self._times, read.times))
        return self._decided(self._method.judge(read))

    def finish(self, end: int) -> Iterator[pa.RecordBatch]:
        """Judge what waits: the stream has ended."""
        rest = clock_between(self._clock, self._next, end)
        last = Clock(np.array([end]), self._clock.newest[-1:], is_end=True)
        for clock in (rest, last):
            yield self._decided(self._method.judge(self._nothing(clock)))
        found = {"live_pairs": self._method.live_pairs, "state_bytes": self._method.state_bytes}
        yield _note(self._schema, None, orjson.dumps(found).decode())

    def _nothing(self, clock: Clock) -> Any:
        return self._method.read_admitted(pa.RecordBatch.from_pylist([], schema=self._types), [], clock)

    def _decided(self, release: Release) -> pa.RecordBatch:
        numbers = np.asarray(release.trace.column("row"))
        places = np.searchsorted(self._open, numbers)
        times = self._times[places]
        is_open = np.ones(len(self._open), dtype=np.bool_)
        is_open[places] = False
        self._open, self._times = self._open[is_open], self._times[is_open]
        turns = turns_of(self._clock, numbers, times, self._lateness_ns)
        shown = cast(release.rows, wire_schema(self._method.output_schema))
        return _decisions(release.trace, turns, times, shown, self._schema)


def turns_of(clock: Clock, numbers: Ints, times: Ints, lateness_ns: int) -> Ints:
    """The number of the arrival with which each row is decided: the first that makes it too late for earlier ones."""
    if not lateness_ns:
        return numbers
    start = int(np.searchsorted(clock.numbers, clock.restarts[-1])) if clock.restarts else 0
    places = np.searchsorted(clock.newest[start:], times + lateness_ns)
    turns: Ints = np.append(clock.numbers[start:], np.iinfo(np.int64).max)[places]
    return np.maximum(turns, numbers)


def _decisions(
    trace: pa.RecordBatch, turns: Ints, times: Ints, shown: pa.RecordBatch | None, schema: pa.Schema
) -> pa.RecordBatch:
    """A trace and the rows that it releases, as decisions: by turn, refused ones last, then by time and number."""
    count, rows = trace.num_rows, trace.column("row")
    verdicts = trace.column("verdict").cast(pa.string())
    is_shown, is_dead = (np.asarray(pc.equal(verdicts, verdict)) for verdict in (RELEASED, DEAD))
    details = np.column_stack(
        [np.asarray(trace.column(name)).astype(np.int32) for name in trace.schema.names[len(_TRACED) :]]
    )
    lists = pa.FixedSizeListArray.from_arrays(pa.array(details.ravel()), details.shape[1])
    about: dict[str, Any] = {
        ROW: rows, VERDICT: verdicts, REASON: trace.column("reason").cast(pa.string()), DELAY: trace.column("delay"),
        DETAILS: lists, DECIDED: turns, ORDER: times, SHARD: is_dead.astype(np.int32),
    }  # fmt: skip
    taken = pa.array(np.cumsum(is_shown) - 1, mask=~is_shown)
    columns = []
    for field in schema:
        if field.name in about:
            columns.append(pa.array(about[field.name]).cast(field.type))
        elif field.name in DECISION.names or shown is None:
            columns.append(pa.nulls(count, field.type))
        else:
            columns.append(shown.column(field.name).take(taken))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _note(schema: pa.Schema, row: int | None, text: str) -> pa.RecordBatch:
    known = {ROW: row, NOTE: text}
    return pa.RecordBatch.from_pylist([{name: known.get(name) for name in schema.names}], schema=schema)


def _joined(judged: DataFrame) -> DataFrame:
    """Each record once: with the values that their shards publish; released if any shard releases it."""
    from pyspark.sql import functions as f

    records, notes = judged.where(f"{NOTE} is null"), judged.where(f"{NOTE} is not null")
    others = [name for name in judged.columns if name not in (ROW, VERDICT)]
    found = records.groupBy(ROW).agg(
        f.min(VERDICT).alias(VERDICT), *(f.first(quoted(name), ignorenulls=True).alias(name) for name in others)
    )
    return found.select(*map(quoted, judged.columns)).union(notes)


@dataclass(frozen=True, slots=True)
class ZTrace:
    """Turns decisions about events into the trace that one machine would write."""

    thresholds: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the trace."""
        kinds = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.int64())
        fixed = list(zip(_TRACED, kinds, strict=True))
        return pa.schema([*fixed, *((name, pa.int64()) for name in self.thresholds)])

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The trace of decisions, batch by batch."""
        for batch in batches:
            flat = np.asarray(batch.column(DETAILS).flatten()).reshape(-1, len(self.thresholds)).astype(np.int64)
            columns = [batch.column(ROW), batch.column(VERDICT), batch.column(REASON),
                       pa.nulls(batch.num_rows, pa.int64()), batch.column(DELAY)]  # fmt: skip
            columns += [pa.array(flat[:, place]) for place in range(len(self.thresholds))]
            columns = [column.cast(field.type) for column, field in zip(columns, self.schema, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema)
