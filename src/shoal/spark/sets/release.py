"""Sets as they are published: labels on executors, rows in the order of the release, and the digest that binds them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.sets.data import Codes, Ints
from shoal.methods.sets.records import ReadRecords
from shoal.pipeline.sets.release import BATCH_ROWS, as_bytes, binding, release_batches, trace_table, used_labels
from shoal.spark.records.blocks import BODY, one_row, packed, unpacked
from shoal.spark.records.columns import ORDER, SHARD, cast, wire_schema
from shoal.spark.records.frames import mapped, quoted
from shoal.spark.sets.reading import DEALT, ITEMS, SetBlock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SET, _COUNT = "set", "count"
_DISTINCT: Final = pa.schema([(_SET, pa.binary()), (_COUNT, pa.int64())])
_AT_ONCE: Final = 50_000


class SparkSetRelease:
    """See :class:`shoal.pipeline.sets.people.Shown`."""

    def __init__(
        self, sets: DataFrame, positions: Sequence[Ints], labels: tuple[str, ...], used: Codes, people: int,
        numbers: Ints, order: Ints,
    ) -> None:  # fmt: skip
        self._sets, self._positions = sets, positions
        self.labels, self._used, self.used = labels, used, len(used)
        self._people, self._numbers, self._order = people, numbers, order

    def __len__(self) -> int:
        return len(self._order)

    def frame(self, schema: pa.Schema, separator: str | None = None, *, pack: bool = False) -> DataFrame:
        """The rows in the order of the release, a partition for each batch."""
        from pyspark.sql import functions as f

        context, ranges = self._sets.sparkSession.sparkContext, max(-(-len(self) // BATCH_ROWS), 1)
        dealt = mapped(self._sets, DealPositions(context.broadcast(self._positions), ranges), DEALT)
        ranged = dealt.repartitionById(ranges, f.col(quoted(SHARD)))
        work = ShowRange(schema, separator, context.broadcast(self.labels), pack)
        return mapped(ranged, work, DEALT if pack else wire_schema(schema))

    def batches(self, schema: pa.Schema, separator: str | None) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the release; the driver holds one batch at a time."""
        for row in self.frame(schema, separator, pack=True).toLocalIterator(prefetchPartitions=True):
            yield unpacked(pa.scalar(bytes(row[BODY]), pa.binary()))

    def bound_to(self, certificate: Mapping[str, Any]) -> str:
        """The digest of the certificate and of all sets, in the order of their bytes."""
        from pyspark.sql import functions as f

        names, rank = used_labels(self.labels, self._used)
        context = self._sets.sparkSession.sparkContext
        distinct = mapped(self._sets, DistinctSets(context.broadcast(rank)), _DISTINCT)
        counted = distinct.groupBy(_SET).agg(f.sum(_COUNT).alias(_COUNT)).orderBy(_SET)
        found = binding(certificate, names)
        for row in mapped(counted, PackSets(), DEALT).toLocalIterator(prefetchPartitions=True):
            batch = unpacked(pa.scalar(bytes(row[BODY]), pa.binary()))
            for record, count in zip(batch.column(_SET), batch.column(_COUNT), strict=True):
                content = record.as_py()
                for _ in range(count.as_py()):
                    found.update(len(content).to_bytes(8, "little") + content)
        return str(found.hexdigest())

    def trace(self) -> pa.RecordBatch:
        """Private: where each person's set is."""
        return trace_table(self._people, self._numbers, self._order)


@dataclass(frozen=True, slots=True)
class DealPositions:
    """Sends sets to the ranges of the release that they are in."""

    positions: Any
    """Broadcast: by part, the position of each set."""
    ranges: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at, part in enumerate(batch.column(SHARD).to_pylist()):
                block, positions = SetBlock.of(batch.slice(at, 1)), self.positions.value[part]
                items = pa.LargeListArray.from_arrays(pa.array(block.starts), pa.array(block.items))
                sets = pa.record_batch({ORDER: positions, ITEMS: items})
                places = positions // BATCH_ROWS
                for number in np.unique(places).tolist():
                    own = pa.array(np.flatnonzero(places == number))
                    yield one_row(DEALT, {SHARD: number, BODY: packed(sets.take(own))})


@dataclass(frozen=True, slots=True)
class ShowRange:
    """Puts the sets of a range in order and shows their labels."""

    schema: pa.Schema
    separator: str | None
    labels: Any
    pack: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = [(number.as_py(), unpacked(body)) for batch in batches
                for number, body in zip(batch.column(SHARD), batch.column(BODY), strict=True)]  # fmt: skip
        if not rows:
            return
        table = pa.Table.from_batches([sets for _, sets in rows]).combine_chunks()
        lists = table.column(ITEMS).combine_chunks()
        sets = ReadRecords(np.asarray(lists.offsets), np.asarray(lists.values), self.labels.value)
        order = np.argsort(np.asarray(table.column(ORDER)), kind="stable")
        for batch in release_batches(sets, order, self.schema, self.separator):
            if self.pack:
                yield one_row(DEALT, {SHARD: rows[0][0], BODY: packed(batch)})
            else:
                yield cast(batch, wire_schema(self.schema))


@dataclass(frozen=True, slots=True)
class DistinctSets:
    """The different sets of a part, as bytes, and how many people have each."""

    rank: Any
    """Broadcast: the rank of each label among those in use."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for at in range(batch.num_rows):
                block = SetBlock.of(batch.slice(at, 1))
                rank: npt.NDArray[np.uint32] = self.rank.value
                found = Counter(as_bytes(block.starts, block.items, rank))
                yield pa.RecordBatch.from_pydict({_SET: list(found), _COUNT: list(found.values())}, schema=_DISTINCT)


@dataclass(frozen=True, slots=True)
class PackSets:
    """Packs sorted sets, so that the driver reads them by the thousands."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for begin in range(0, batch.num_rows, _AT_ONCE):
                yield one_row(DEALT, {SHARD: 0, BODY: packed(batch.slice(begin, _AT_ONCE))})
