"""Steps of an audit on Spark: work on files, work on bins of rows, and results that are merged.

Work is a function from messages to messages. A message is addressed to a bin: all messages of a bin meet in one task of
the next step. A result has no bin; it travels to the end, where the driver collects it.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from shoal.spark.cluster.workers import InWorker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BIN, _KIND, _DATA = "bin", "kind", "data"
_SCHEMA: Final = pa.schema([(_BIN, pa.int32()), (_KIND, pa.string()), (_DATA, pa.binary())])
RESULT: Final = "result"


@dataclass(frozen=True, slots=True)
class Message:
    """Something for a bin, or a result."""

    bin: int
    kind: str
    data: bytes


def result(found: Any) -> Message:
    """A result for the driver; small, however many rows there are."""
    return Message(0, RESULT, pickle.dumps(found))


OnItem = Callable[[Any], Iterator[Message]]
"""Work on a file."""
OnBin = Callable[[int, dict[str, list[bytes]]], Iterator[Message]]
"""Work on a bin: its number, and its messages by kind."""


@dataclass(frozen=True, slots=True)
class Step:
    """Work on bins, the number of bins, and files that join here."""

    bins: int
    work: OnBin
    items: Sequence[Any] = ()
    read: OnItem | None = None


class Engine(Protocol):
    """Runs an audit: here, or on Spark."""

    def run(self, items: Sequence[Any], first: OnItem, *steps: Step) -> list[Any]:
        """Work on every item, then on the bins of each step; return all results."""

    @property
    def tasks(self) -> int:
        """How many tasks run at a time."""


# ---- on executors


@dataclass(frozen=True, slots=True)
class _Items:
    items: tuple[Any, ...]
    work: OnItem

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from map(_row, self.work(self.items[number]))


@dataclass(frozen=True, slots=True)
class _Bins:
    work: OnBin

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        messages = (message for batch in batches for message in _messages(batch))
        for number, own in groupby(messages, key=attrgetter("bin")):
            kinds: dict[str, list[bytes]] = {}
            for message in own:
                if message.kind == RESULT:
                    yield _row(message)
                else:
                    kinds.setdefault(message.kind, []).append(message.data)
            if kinds:
                yield from map(_row, self.work(number, kinds))


def _row(message: Message) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {_BIN: [message.bin], _KIND: [message.kind], _DATA: [message.data]}, schema=_SCHEMA
    )


def _messages(batch: pa.RecordBatch) -> Iterator[Message]:
    columns = (batch.column(name).to_pylist() for name in (_BIN, _KIND))
    for at, (number, kind) in enumerate(zip(*columns, strict=True)):
        yield Message(number, kind, batch.column(_DATA)[at].as_py())


class SparkEngine:
    """Runs every step as tasks of a Spark session."""

    def __init__(self, session: SparkSession, errors: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._session, self._errors = session, errors

    @property
    def tasks(self) -> int:
        """How many tasks run at a time."""
        return int(self._session.sparkContext.defaultParallelism)

    def run(self, items: Sequence[Any], first: OnItem, *steps: Step) -> list[Any]:
        """Work on every item, then on the bins of each step; return all results."""
        from pyspark.sql import functions as f
        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(_SCHEMA)

        def started(items: Sequence[Any], work: OnItem) -> Any:
            numbers = self._session.range(0, len(items), 1, max(len(items), 1))
            return numbers.mapInArrow(InWorker(_Items(tuple(items), work)), schema)

        frame = started(items, first)
        for step in steps:
            if step.read is not None:
                frame = frame.union(started(step.items, step.read))
            frame = frame.repartitionById(step.bins, f.col(_BIN)).sortWithinPartitions(_BIN)
            frame = frame.mapInArrow(InWorker(_Bins(step.work)), schema)
        with self._errors():
            found = frame.filter(f.col(_KIND) == RESULT).select(_DATA).collect()
        return [pickle.loads(row[0]) for row in found]


class LocalEngine:
    """Runs every step in this process, bin by bin; for tests of what is merged."""

    tasks = 2

    def run(self, items: Sequence[Any], first: OnItem, *steps: Step) -> list[Any]:
        """Work on every item, then on the bins of each step; return all results."""
        batches = [_row(message) for item in items for message in first(item)]
        for step in steps:
            if step.read is not None:
                batches += [_row(message) for item in step.items for message in step.read(item)]
            messages = sorted((m for batch in batches for m in _messages(batch)), key=attrgetter("bin"))
            assert all(0 <= message.bin < step.bins for message in messages)
            batches = list(_Bins(step.work)(map(_row, messages)))
        found = (message for batch in batches for message in _messages(batch))
        return [pickle.loads(message.data) for message in found if message.kind == RESULT]
