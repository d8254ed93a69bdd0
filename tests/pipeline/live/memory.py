"""A system of messages in memory: what a module of `shoal.pipeline.live` has, without a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from shoal.decode.messages import Messages
from shoal.pipeline.live.parts import Finding, Output, SinkParts, Sinks, SourceParts
from shoal.sinks.base import PlainSink
from shoal.sinks.numbered import MessageNumbers
from shoal.sources.base import End, Polled


class MemorySystem:
    """Topics by name; `log` holds (value, key, time, headers) of every message to read."""

    PROMISE = "every record is published exactly once, as long as the process lives"

    def __init__(self, log: list[tuple[Any, ...]]) -> None:
        self.log = log
        self.topics: dict[str, list[tuple[bytes | None, bytes]]] = {}
        self.seen: list[SourceParts | SinkParts] = []
        self.findings: list[Finding] = [Finding("good", "the broker in memory answers")]
        self.failure: Exception | None = None
        self.left: list[int] = []

    def make_source(self, parts: SourceParts) -> MemorySource:
        self.seen.append(parts)
        return MemorySource(self, parts)

    def make_sinks(self, parts: SinkParts) -> Sinks:
        self.seen.append(parts)
        letters = MemorySink(self, parts.letters) if parts.letters is not None else None
        return Sinks(MemorySink(self, parts.rows), letters)

    def check_source(self, parts: SourceParts) -> Iterator[Finding]:
        yield from self.findings

    def check_sinks(self, parts: SinkParts) -> Iterator[Finding]:
        yield Finding("good", f"the topic {parts.rows.name} may be written")


class MemorySource:
    """Reads the log a few messages at a time, up to its end."""

    is_live = True
    name = "the topic in memory"
    inputs = 1
    STEP = 7

    def __init__(self, system: MemorySystem, parts: SourceParts) -> None:
        self._system, self._parts = system, parts

    def identity(self) -> dict[str, str]:
        return {"memory": "live"}

    def first_rows(self, columns: tuple[str, ...], count: int) -> None:
        return None

    def open(self, columns: tuple[str, ...], position: dict[str, Any] | None) -> None:
        found = position or {"next": 0, "types": None}
        self._next = found["next"]
        self._decoder = self._parts.open_decoder(columns, found["types"])
        for message in self._system.log[self._next :]:
            if self._decoder.learn([message[0]]):
                break
        self._decoder.learn([], is_last=True)

    @property
    def schema(self) -> pa.Schema:
        return self._decoder.schema

    @property
    def numbers_rows(self) -> bool:
        return self._decoder.numbers_rows

    @property
    def position(self) -> dict[str, Any]:
        return {"next": self._next, "types": self._decoder.types}

    def poll(self) -> Polled:
        if self._system.failure is not None:
            raise self._system.failure
        messages = self._system.log[self._next : self._next + self.STEP]
        if not messages:
            return End()
        first, self._next = self._next, self._next + len(messages)
        values, keys, times, headers = ([one[at] for one in messages] for at in range(4))
        decoded = self._decoder.decode(Messages(values, keys, times, headers))
        return self._decoder.numbered(decoded, first)

    def keep(self, position: dict[str, Any]) -> None:
        pass

    def leave(self, position: dict[str, Any]) -> None:
        self._system.left.append(position["next"])

    def lag(self) -> int:
        return len(self._system.log) - self._next

    def place(self, row: int) -> dict[str, Any]:
        return {"topic": "memory", "offset": row}

    def close(self) -> None:
        pass


class MemorySink(PlainSink):
    """Appends to a topic."""

    def __init__(self, system: MemorySystem, output: Output) -> None:
        self._topic = system.topics.setdefault(output.name, [])
        self._encoder, self._numbers = output.encoder, MessageNumbers(output.name)

    def open(self, schema: pa.Schema) -> None:
        self._encoder.open(schema)
        self._numbers.start(held=len(self._topic))

    def recover(self, schema: pa.Schema, receipt: dict[str, Any]) -> None:
        self._encoder.open(schema)
        self._numbers.recover(receipt, held=len(self._topic))

    def write(self, rows: pa.RecordBatch) -> None:
        values = self._encoder.values(rows)
        keys = self._encoder.keys(rows) or [None] * len(values)
        skip = self._numbers.take(len(values))
        self._topic += list(zip(keys, values, strict=True))[skip:]

    def commit(self, epoch: int) -> dict[str, Any]:
        return self._numbers.receipt

    finish = commit_again = lambda self: self._numbers.receipt

    def verify(self, receipt: dict[str, Any]) -> None:
        pass

    def clean(self) -> None:
        pass

    def close(self) -> None:
        pass
