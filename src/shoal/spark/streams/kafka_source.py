"""Topics of Kafka as a stream: a micro-batch reads a range of offsets of every partition.

Executors read with the client of a run on one machine: the same policy reaches the same brokers with the same login.
Messages are decoded one by one, and put in the order of one machine: by the running maximum of event time in their
partition, then by topic, partition and offset. What a later micro-batch reads is later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from shoal.decode.base import Decoded
from shoal.decode.messages import MessageDecoder
from shoal.errors import InputError, PolicyError
from shoal.methods.arrow_input import plain, plain_type, with_gaps
from shoal.methods.base import StreamMethod
from shoal.pipeline.live.wiring import message_decoder
from shoal.policy import Policy
from shoal.policy.live.systems import KafkaSource
from shoal.sources.kafka.partitions import decodable
from shoal.sources.kafka.ranges import OffsetReader
from shoal.sources.live import ordering_times
from shoal.sources.merging import NO_TIME
from shoal.sources.reader import Needs
from shoal.spark.dead_letters import Letter, dead_letters
from shoal.spark.outcome import Outcome
from shoal.spark.records.blocks import BLOCKS, about_of, block_of, slices_of
from shoal.spark.records.columns import BAD, LINE, TIME, cast, wire_schema
from shoal.spark.records.frames import mapped
from shoal.spark.records.numbering import NumberedRows, numbered
from shoal.spark.streams.micro_batches import Taken
from shoal.spark.streams.state import Commit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RANGE: Final = "_shoal_range"
_OFFSET_BITS, _PARTITION_BITS = 44, 12
_ROWS_OF_A_RANGE: Final = 50_000
Range = tuple[str, int, int, int]
"""Topic, partition, first offset, and the offset behind the last."""


class TopicOffsets:
    """The topics of a policy. With `until_end`, up to their ends as they are when the run begins."""

    def __init__(self, policy: Policy, method: StreamMethod, head: tuple[str, ...], *, until_end: bool) -> None:
        assert isinstance(policy.source, KafkaSource)
        if policy.source.start == "group":
            raise PolicyError('[source] start: on Spark a stream starts "earliest" or "latest"; set one of them')
        self._policy, self._section, self._method, self._head = policy, policy.source, method, head
        self._reader = open_reader(policy)
        self._until_end = until_end
        self._ends: dict[tuple[str, int], int] | None = None
        self._first: dict[tuple[str, int], int] = {}
        """Where a stream starts that begins with new messages."""

    def plan(self, before: Commit | None) -> dict[str, Any] | None:
        """The offsets that are new; None if there are none."""
        known = {tuple(place): offset for *place, offset in (before.more["offsets"] if before else ())}
        limits = self._reader.limits(self._section.topics)
        if self._until_end:
            self._ends = self._ends or {place: high for place, (_, high) in limits.items()}
        if self._section.start == "latest" and before is None:
            self._first = self._first or {place: high for place, (_, high) in limits.items()}
        ranges = []
        for place, (low, high) in limits.items():
            start = known.get(place, self._first.get(place, low))
            _require_there(self._reader.name, place, start, low, high)
            end = high if self._ends is None else min(high, self._ends.get(place, start))
            ranges.append((*place, start, max(start, end)))
        return {"ranges": ranges} if any(start < end for *_, start, end in ranges) else None

    def take(self, session: SparkSession, plan: Mapping[str, Any], before: Commit | None) -> Taken:
        """The planned messages, decoded and in order."""
        ranges: list[Range] = [tuple(one) for one in plan["ranges"]]
        more = before.more if before else {}
        decoder = self._learnt(ranges, more.get("types"))
        newest = {(topic, number): time for topic, number, time in more.get("newest", ())}
        schema = pa.schema([(field.name, plain_type(field.type)) for field in decoder.schema])
        work = ReadOffsets(self._policy, tuple(ranges), self._method.columns, decoder.types, schema, newest)
        messages = mapped(session.range(0, len(ranges), 1, len(ranges)), work, work.out).persist()
        person = str(self._policy.stream.person) if decoder.numbers_rows else None
        rows = _in_order(messages, schema, self._head, before.end if before else 0, person)
        for log, time in (
            messages.selectExpr(f"shiftright({LINE}, {_OFFSET_BITS}) log", TIME).groupBy("log").max(TIME).collect()
        ):
            topic, number, _ = self._place_of(log << _OFFSET_BITS)
            newest[topic, number] = time
        kept = {
            "offsets": [(topic, number, end) for topic, number, _, end in ranges],
            "newest": [(*place, time) for place, time in newest.items()],
            "types": decoder.types, "numbers_rows": decoder.numbers_rows,
        }  # fmt: skip
        return Taken(rows, lambda outcome: self._letters(outcome, rows), kept)

    def _learnt(self, ranges: list[Range], types: Mapping[str, str] | None) -> MessageDecoder:
        """A decoder that knows the types: of the micro-batches before, or by the first messages, log by log."""
        decoder = message_decoder(self._policy, self._method.columns, types)
        if not decoder.is_ready:
            for one in ranges:
                if any(decoder.learn(message.value() for message in found) for found in self._reader.read(*one)):
                    break
            decoder.learn((), is_last=True)
        return decoder

    def _place_of(self, code: int) -> tuple[str, int, int]:
        log, offset = code >> _OFFSET_BITS, code & (2**_OFFSET_BITS - 1)
        return self._section.topics[log >> _PARTITION_BITS], log & (2**_PARTITION_BITS - 1), offset

    def _letters(self, outcome: Outcome, rows: NumberedRows) -> tuple[list[Letter], int]:
        def place(row: int, code: int | None) -> dict[str, Any]:
            if code is None:
                return {"row": row + 1}
            topic, number, offset = self._place_of(code)
            return {"topic": topic, "partition": number, "offset": offset}

        return dead_letters(outcome, rows, self._method, place, is_live=True)

    def keep(self, commit: Commit) -> None:
        """Store the offsets of the group, for tools."""
        self._reader.keep({(topic, number): offset for topic, number, offset in commit.more["offsets"]})

    def close(self) -> None:
        """Close the connection."""
        self._reader.close()


def open_reader(policy: Policy) -> OffsetReader:
    """A reader with the policy's settings; secrets are read here, on the driver and on each executor."""
    section = policy.source
    assert isinstance(section, KafkaSource)
    return OffsetReader(section.brokers, section.group, section.settings("source"), give_up=section.give_up.ns / 1e9)


def _require_there(name: str, place: tuple[str, int], start: int, low: int, high: int) -> None:
    if low <= start <= high:
        return
    what = f"messages {start:,} to {low - 1:,} were deleted before they were read" if start < low else (
        f"it ends at message {high:,}, but {start:,} were read; it was deleted and created again"
    )  # fmt: skip
    raise InputError(
        f"{name}: topic {place[0]}, partition {place[1]}: {what}; start over with a new checkpoint folder and another "
        "place to write to"
    )


@dataclass(frozen=True, slots=True)
class ReadOffsets:
    """Reads and decodes ranges of offsets on an executor."""

    policy: Policy
    ranges: tuple[Range, ...]
    columns: tuple[str, ...]
    types: Mapping[str, str]
    schema: pa.Schema
    newest: Mapping[tuple[str, int], int]
    """The newest time of every partition before these messages."""

    @property
    def out(self) -> pa.Schema:
        """The columns, why a message was refused, its time for the order and its place."""
        more = [(BAD, pa.string()), (TIME, pa.int64()), (LINE, pa.int64())]
        return pa.schema([*wire_schema(self.schema), *more])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in batch.column(0).to_pylist():
                yield from self._read(self.ranges[at])

    def _read(self, one: Range) -> Iterator[pa.RecordBatch]:
        topic, number, start, end = one
        if start == end:
            return
        decoder = message_decoder(self.policy, self.columns, self.types)
        needs = Needs(decoder.needs_keys, decoder.needs_headers, times=True)
        newest = self.newest.get((topic, number), NO_TIME)
        section = self.policy.source
        assert isinstance(section, KafkaSource)
        log = section.topics.index(topic) << _PARTITION_BITS | number
        reader = open_reader(self.policy)
        try:
            for found in reader.read(topic, number, start, end):
                messages = decodable(found, needs)
                decoded = decoder.decode(messages)
                times = np.maximum.accumulate(np.maximum(ordering_times(decoder, decoded, messages), newest))
                newest = int(times[-1])
                offsets = np.array([message.offset() for message in found], dtype=np.int64)
                yield self._batch(decoded, times, (log << _OFFSET_BITS) + offsets)
        finally:
            reader.close()

    def _batch(self, decoded: Decoded, times: Any, places: Any) -> pa.RecordBatch:
        names = decoded.batch.schema.names
        columns = [
            plain(decoded.batch.column(field.name)) if field.name in names
            else pa.nulls(decoded.batch.num_rows, field.type)  # the number of the row as the person
            for field in self.schema
        ]  # fmt: skip
        rows = cast(pa.RecordBatch.from_arrays(columns, names=self.schema.names), self.schema)
        if decoded.refused:
            rows = with_gaps(rows, decoded.places)
        bad = about_of(decoded.rows, None, {one.row: (one.column, one.reason) for one in decoded.refused}).column(BAD)
        wire = cast(rows, wire_schema(self.schema))
        return pa.RecordBatch.from_arrays([*wire.columns, bad, pa.array(times), pa.array(places)], schema=self.out)


def _in_order(
    messages: DataFrame, schema: pa.Schema, head: tuple[str, ...], first: int, person: str | None
) -> NumberedRows:
    """Number the messages in their order: divided at fixed times, sorted within each part.

    The times are chosen once, so that a part that is computed again has the same messages.
    """
    from pyspark.sql import functions as f

    session, count = messages.sparkSession, messages.count()
    parts = max(1, min(session.sparkContext.defaultParallelism, count // _ROWS_OF_A_RANGE))
    bounds: list[float] = []
    if parts > 1:
        bounds = sorted(set(messages.approxQuantile(TIME, [part / parts for part in range(1, parts)], 0.01)))
    part = f.lit(0)
    for bound in bounds:
        part = part + f.when(messages[TIME] >= int(bound), 1).otherwise(0)
    divided = messages.withColumn(_RANGE, part.cast("int")).repartitionById(len(bounds) + 1, f.col(_RANGE))
    packed = mapped(divided.sortWithinPartitions(_RANGE, TIME, LINE), PackMessages(schema, head), BLOCKS).persist()
    return numbered(packed, schema, head, first=first, person=person)


@dataclass(frozen=True, slots=True)
class PackMessages:
    """Packs decoded messages into blocks, with their places and why some could not be decoded."""

    schema: pa.Schema
    head: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        block = 0
        for batch in batches:
            for piece in slices_of(batch):
                about = pa.record_batch({LINE: piece.column(LINE), BAD: piece.column(BAD)})
                rows = cast(piece.select(self.schema.names), self.schema)
                yield block_of(int(piece.column(_RANGE)[0].as_py()), block, rows, self.head, about)
                block += 1
