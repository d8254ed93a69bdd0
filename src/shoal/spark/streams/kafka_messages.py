"""Messages of Kafka on executors: read and decoded by range of offsets, surveyed, and put in order.

Executors read with the client of a run on one machine: the same policy reaches the same brokers with the same login.
Messages are decoded one by one, and put in the order of one machine: by the running maximum of event time in their
partition, then by topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.decode.base import Decoded
from shoal.methods.arrow_input import plain, with_gaps
from shoal.pipeline.live.wiring import message_decoder
from shoal.policy import Policy
from shoal.policy.live.systems import KafkaSource
from shoal.sources.kafka.partitions import decodable
from shoal.sources.kafka.ranges import OffsetReader
from shoal.sources.live import ordering_times
from shoal.sources.merging import NO_TIME
from shoal.sources.reader import Needs
from shoal.spark.records.blocks import BLOCKS, about_of, block_of, slices_of
from shoal.spark.records.columns import BAD, LINE, TIME, cast, wire_schema
from shoal.spark.records.frames import mapped
from shoal.spark.records.numbering import NumberedRows, numbered
from shoal.spark.streams.frontier import Frontier, Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG: Final = "_shoal_log"
_RANGE: Final = "_shoal_range"
_OFFSET_BITS, _PARTITION_BITS = 44, 12
_ROWS_OF_A_RANGE: Final = 50_000
Range = tuple[str, int, int, int]
"""Topic, partition, first offset, and the offset behind the last."""


def open_reader(policy: Policy) -> OffsetReader:
    """A reader with the policy's settings; secrets are read here, on the driver and on each executor."""
    section = policy.source
    assert isinstance(section, KafkaSource)
    return OffsetReader(section.brokers, section.group, section.settings("source"), give_up=section.give_up.ns / 1e9)


def code_of(topics: Sequence[str], place: Place) -> int:
    """A partition as a number, in the order of the stream; the places of its messages begin with it."""
    return topics.index(place[0]) << _PARTITION_BITS | place[1]


def place_of(topics: Sequence[str], code: int) -> tuple[str, int, int]:
    """Topic, partition and offset of a message, from the number of its place."""
    log, offset = code >> _OFFSET_BITS, code & (2**_OFFSET_BITS - 1)
    return topics[log >> _PARTITION_BITS], log & (2**_PARTITION_BITS - 1), offset


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
        log = code_of(section.topics, (topic, number))
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


class Found(NamedTuple):
    """What was found in a partition."""

    rows: int
    newest: int
    """Running maximum of event time."""


class Cut(NamedTuple):
    """Where the frontier divides a partition."""

    rows: int
    """Messages before it."""
    end: int
    """The offset behind the last of them; 0 if there are none."""
    newest: int
    """Running maximum of event time before it, if there are messages."""
    next: int
    """Running maximum of event time at the first message behind it, if there is one."""


class Survey:
    """Messages that were read and decoded to find how far a micro-batch goes; they stay stored on the executors.

    The micro-batch takes those before the frontier, and so each of them is read once.
    """

    def __init__(self, session: SparkSession, work: ReadOffsets) -> None:
        ranges = len(work.ranges)
        self._messages = mapped(session.range(0, ranges, 1, ranges), work, work.out).persist()

    def found(self) -> dict[int, Found]:
        """How many messages every partition has, and how far its time goes; by the partition's number."""
        from pyspark.sql import functions as f

        rows = self._logs().groupBy(_LOG).agg(f.count("*"), f.max(TIME)).collect()
        return {log: Found(count, newest) for log, count, newest in rows}

    def cuts(self, frontier: Frontier) -> dict[int, Cut]:
        """Where the frontier divides every partition."""
        from pyspark.sql import functions as f

        is_before, offset = _is_before(frontier), f.col(LINE).bitwiseAND(f.lit(2**_OFFSET_BITS - 1))
        rows = self._logs().groupBy(_LOG).agg(
            f.count_if(is_before),
            f.coalesce(f.max(f.when(is_before, offset)) + 1, f.lit(0)),
            f.coalesce(f.max(f.when(is_before, f.col(TIME))), f.lit(NO_TIME)),
            f.coalesce(f.min(f.when(~is_before, f.col(TIME))), f.lit(NO_TIME)),
        )  # fmt: skip
        return {row[0]: Cut(*row[1:]) for row in rows.collect()}

    def before(self, frontier: Frontier) -> DataFrame:
        """The messages before the frontier."""
        return self._logs().where(_is_before(frontier)).drop(_LOG)

    def forget(self) -> None:
        """Remove the messages from the executors."""
        self._messages.unpersist()

    def _logs(self) -> DataFrame:
        return self._messages.selectExpr("*", f"shiftright({LINE}, {_OFFSET_BITS}) {_LOG}")


def _is_before(frontier: Frontier) -> Any:
    """Whether a message is before the frontier, for Spark."""
    from pyspark.sql import functions as f

    time, log = f.col(TIME), f.col(_LOG)
    return (time < f.lit(frontier.time)) | ((time == f.lit(frontier.time)) & (log <= f.lit(frontier.log)))


def in_order(
    messages: DataFrame, count: int, schema: pa.Schema, head: tuple[str, ...], first: int, person: str | None
) -> NumberedRows:
    """Number the messages in their order: divided at fixed times, sorted within each part.

    The times are chosen once, so that a part that is computed again has the same messages.
    """
    from pyspark.sql import functions as f

    parts = max(1, min(messages.sparkSession.sparkContext.defaultParallelism, count // _ROWS_OF_A_RANGE))
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
