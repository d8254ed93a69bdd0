"""A live source and two sinks on the system in memory: one with transactions, one with numbered messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from shoal.decode.base import Decoded, Position, Refused
from shoal.errors import OutputError
from shoal.pipeline.wiring import Sinks
from shoal.sinks.base import Aborted, PlainSink, Receipt
from shoal.sinks.numbered import MessageNumbers
from shoal.sources.base import End, Idle, Mark, Polled
from tests.faults.live.process import Broken, Lost, Process
from tests.faults.live.system import Fenced, System


@dataclass(frozen=True)
class Silence:
    """Nothing arrives until this time."""

    now: int


@dataclass(frozen=True)
class Choice:
    """Two orders of the same records; which one, the source decides, and a second reading may decide otherwise.

    As when a partition is silent for so long that the others are not held back any more.
    """

    orders: tuple[tuple[Any, ...], tuple[Any, ...]]


Record = dict[str, Any] | None
"""None is a message that cannot be decoded."""
Script = Sequence[Record | Silence | Choice]


class MemorySource:
    """Reads a script of records, silences and choices.

    Parameters
    ----------
    is_stubborn
        Whether every process decides alike about what no checkpoint has recorded. Otherwise a process other than the
        first finds no silence, and takes the other order.
    fetch
        How many records to return at once.
    """

    name = "memory"
    inputs = 1
    numbers_rows = False
    is_live = True

    def __init__(self, process: Process, script: Script, schema: pa.Schema, *, is_stubborn: bool, fetch: int) -> None:
        self.schema, self._process, self._script = schema, process, script
        self._is_first = is_stubborn or process.number == 0
        self._fetch = fetch
        self.kept: list[Position] = []

    def identity(self) -> dict[str, str]:
        return {"memory": "visits"}

    def first_rows(self, columns: tuple[str, ...], count: int) -> pa.Table | None:
        return None

    def open(self, columns: tuple[str, ...], position: Position | None) -> None:
        self._at, self._rows, self._order = 0, 0, ()
        if position is not None:
            self._at, self._rows, self._order = position["at"], position["rows"], tuple(position["order"])

    def poll(self) -> Polled:
        if self._order:
            return self._records(list(self._order), of_choice=True)
        if self._at == len(self._script):
            return End()
        found = self._script[self._at]
        if isinstance(found, Silence):
            self._at += 1
            return Idle(found.now if self._is_first else None)
        if isinstance(found, Choice):
            self._at += 1
            self._order = found.orders[0 if self._is_first else 1]
            return Mark()
        try:
            first, records = self._process.step("fetch", self._read, lambda: self._read(back=2))
        except Lost:
            return Idle(None)
        return self._records(records[self._at - first :], of_choice=False)

    def _read(self, back: int = 0) -> tuple[int, list[Record]]:
        """The next records and the place of the first; after a reconnection a system may repeat some."""
        first = end = self._at
        while first > self._at - back and first and _is_record(self._script[first - 1]):
            first -= 1
        while end < min(self._at + self._fetch, len(self._script)) and _is_record(self._script[end]):
            end += 1
        return first, list(self._script[first:end])  # type: ignore[arg-type]

    def _records(self, records: list[Record], *, of_choice: bool) -> Decoded:
        refused = tuple(Refused(i, None, "cannot be read") for i, one in enumerate(records) if one is None)
        batch = pa.RecordBatch.from_pylist([one for one in records if one is not None], schema=self.schema)
        self._rows, self._last = self._rows + len(records), len(records)
        if of_choice:
            self._order = ()
        else:
            self._at += len(records)
        return Decoded(batch, refused, self.position)

    @property
    def position(self) -> Position:
        return {"at": self._at, "rows": self._rows, "order": list(self._order)}

    def keep(self, position: Position) -> None:
        self._process.surely("keep", lambda: None)
        self.kept.append(position)

    def leave(self, position: Position) -> None:
        pass

    def lag(self) -> int | None:
        return None

    def place(self, row: int) -> dict[str, Any]:
        assert self._rows - self._last <= row < self._rows, "it is asked about its last poll only"
        return {"topic": "visits", "offset": row}

    def close(self) -> None:
        pass


def _is_record(step: Record | Silence | Choice) -> bool:
    return not isinstance(step, Silence | Choice)


def _messages(rows: pa.RecordBatch) -> list[bytes]:
    return [orjson.dumps(row, default=str) for row in rows.to_pylist()]


class Transaction:
    """One transaction at a time, for rows and dead letters together.

    The metadata of its offsets has the name of the checkpoint, the one before it, and how many messages each topic has.
    """

    def __init__(self, process: Process, system: System, name: str = "rows") -> None:
        self._process, self._system, self._name = process, system, name
        self.partitions = system.partitions
        self._sequence = 0
        self._before = ""
        self.held: dict[str, int] = {}
        self.numbers: dict[str, MessageNumbers] = {}

    def begin(self) -> tuple[str, ...]:
        """Fence others; the names of the last checkpoints that were published."""
        self._epoch = self._process.surely("init", lambda: self._system.begin(self._name))
        found = self._process.surely("offsets", lambda: self._system.committed.get(self._name))
        if found is None:
            return ()
        self._before, before, self.held = json.loads(found[1])
        return tuple(filter(None, (self._before, before)))

    def produce(self, topic: str, partition: int, value: bytes) -> None:
        """Send a message."""
        self._call("produce", self._system.produce, self._sequence, topic, partition, value)
        self._sequence += 1

    def publish(self, checkpoint: str) -> None:
        """Show everything together with the name."""
        held = {topic: numbers.held for topic, numbers in self.numbers.items()}
        self._call(
            "send offsets", self._system.send_offsets, held["rows"], json.dumps([checkpoint, self._before, held])
        )
        self._call("commit", self._system.commit)
        self._before = checkpoint

    def flush(self) -> None:
        """Wait until everything is acknowledged."""
        self._call("flush", lambda name, epoch: None)

    def _call(self, step: str, act: Any, *values: Any) -> None:
        try:
            self._process.surely(step, lambda: act(self._name, self._epoch, *values))
        except Fenced:
            raise OutputError("another process writes to this topic; this one stops") from None
        except Broken:
            raise Aborted("the transaction was aborted") from None


class TransactionalSink:
    """The messages of one topic in a transaction."""

    def __init__(self, transaction: Transaction, topic: str) -> None:
        self._transaction, self._topic = transaction, topic
        self.decides = topic == "rows"
        self._numbers = transaction.numbers[topic] = MessageNumbers(topic)

    def published(self) -> tuple[str, ...]:
        return self._transaction.begin()

    def open(self, schema: pa.Schema) -> None:
        self._numbers.start(held=self._transaction.held.get(self._topic, 0))

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self._numbers.recover(receipt, held=self._transaction.held.get(self._topic, 0))

    def write(self, rows: pa.RecordBatch) -> None:
        first, messages = self._numbers.written, _messages(rows)
        for number in range(self._numbers.take(len(messages)), len(messages)):
            partition = (first + number) % self._transaction.partitions
            self._transaction.produce(self._topic, partition, messages[number])

    def commit(self, epoch: int) -> Receipt | None:
        self._transaction.flush()
        return self._numbers.receipt

    def publish(self, checkpoint: str) -> None:
        if self.decides:
            self._transaction.publish(checkpoint)

    def finish(self) -> Receipt | None:
        return self._numbers.receipt

    def verify(self, receipt: Receipt) -> None:
        pass

    def clean(self) -> None:
        pass

    def close(self) -> None:
        pass


def transactional_sinks(process: Process, system: System, name: str) -> Sinks:
    transaction = Transaction(process, system, name)
    return Sinks(TransactionalSink(transaction, "rows"), TransactionalSink(transaction, "letters"))


def numbered_sinks(process: Process, system: System, name: str) -> Sinks:
    return Sinks(NumberedSink(process, system, "rows"), NumberedSink(process, system, "letters"))


class NumberedSink(PlainSink):
    """Messages with explicit numbers, visible as soon as they are written."""

    def __init__(self, process: Process, system: System, name: str) -> None:
        self._process, self._system, self._name = process, system, name
        self._numbers = MessageNumbers(name)

    def open(self, schema: pa.Schema) -> None:
        self._numbers.start(held=self._ask())

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self._numbers.recover(receipt, held=self._ask())

    def _ask(self) -> int:
        return int(self._process.surely("held", lambda: self._system.held(self._name)))

    def write(self, rows: pa.RecordBatch) -> None:
        first, messages = self._numbers.written, _messages(rows)
        for number in range(self._numbers.take(len(messages)), len(messages)):
            self._add(first + number, messages[number])

    def _add(self, number: int, value: bytes) -> None:
        self._process.surely("add", lambda: self._system.add(self._name, number, value))

    def commit(self, epoch: int) -> Receipt | None:
        self._process.surely("sync", lambda: None)
        return self._numbers.receipt

    def finish(self) -> Receipt | None:
        return self._numbers.receipt

    def verify(self, receipt: Receipt) -> None:
        pass

    def clean(self) -> None:
        pass

    def close(self) -> None:
        pass
