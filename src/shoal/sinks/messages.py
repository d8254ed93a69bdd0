"""A sink of numbered messages: everything that systems without transactions have in common.

A system is a :class:`Writer`: it appends messages to one log in order and knows how many it holds. After a crash the
messages that it holds already are skipped (:mod:`shoal.sinks.numbered`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

import pyarrow as pa

from shoal.avro.registry import RegistryUnreachable
from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable, persist
from shoal.encode.messages import MessageEncoder
from shoal.errors import CheckpointError, OutputError
from shoal.sinks.base import PlainSink, Receipt
from shoal.sinks.numbered import MessageNumbers

Start = int | str
"""Where the first message of a run goes in the log, as a value that fits in JSON."""
_BATCH_MESSAGES: Final = 1_000
_BATCH_BYTES: Final = 4 * 1024 * 1024
_START: Final = "start"


class Writer(Protocol):
    """Appends messages to one log."""

    @property
    def name(self) -> str:
        """The system, its address and the log, for messages."""

    def open(self, start: Start | None) -> tuple[Start, int]:
        """Connect; return where message 0 is or will be, and how many messages the log holds from there on.

        `start` is what an earlier process got; None begins at the end of the log. Unreachable: call it again.
        """

    def count(self) -> int | None:
        """How many messages the log has; None if it does not exist yet. For checks before a run."""

    def write(self, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> None:
        """Append messages, the first of which has this number.

        They may be on their way when this returns. Unreachable: some may have been appended; call it again with the
        same messages, those that the log holds are left out. OutputError if another process writes to the log.
        """

    def flush(self) -> None:
        """Wait until everything written is acknowledged; Unreachable: call it again."""

    def close(self) -> None:
        """Close the connection."""


class MessageSink(PlainSink):
    """Rows as messages, each exactly once."""

    def __init__(self, writer: Writer, encoder: MessageEncoder, *, give_up_seconds: float) -> None:
        self._writer, self._encoder = writer, encoder
        self._numbers = MessageNumbers(writer.name)
        self._patience = Patience(give_up_seconds)
        self._start: Start | None = None

    def open(self, schema: pa.Schema) -> None:
        open_encoder(self._encoder, schema, self._patience, self._failure)
        self._start, held = self._connect(None)
        self._numbers.start(held=held)

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        open_encoder(self._encoder, schema, self._patience, self._failure)
        self._start, held = self._connect(receipt[_START])
        self._numbers.recover(receipt, held=held)

    def _connect(self, start: Start | None) -> tuple[Start, int]:
        return persist(lambda: self._writer.open(start), self._patience, self._failure)

    def write(self, rows: pa.RecordBatch) -> None:
        number = self._numbers.written
        skipped = self._numbers.take(rows.num_rows)
        rows = rows.slice(skipped)
        if not rows.num_rows:
            return
        values, keys = self._encoder.values(rows), self._encoder.keys(rows)
        for start, end in _batches(values):
            part = values[start:end], None if keys is None else keys[start:end]
            self._write(number + skipped + start, *part)

    def _write(self, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> None:
        persist(lambda: self._writer.write(number, values, keys), self._patience, self._failure)

    def commit(self, epoch: int) -> Receipt:
        persist(self._writer.flush, self._patience, self._failure)
        return {**self._numbers.receipt, _START: self._start}

    def finish(self) -> Receipt:
        return {**self._numbers.receipt, _START: self._start}

    def verify(self, receipt: Receipt) -> None:
        _, held = self._connect(receipt[_START])
        if held < receipt["messages"]:
            raise CheckpointError(
                f"{self._writer.name}: messages of this finished run were removed; restore them, or start over"
            )

    def clean(self) -> None:
        """Nothing to remove."""

    def close(self) -> None:
        self._writer.close()

    def _failure(self, why: str) -> OutputError:
        return OutputError(f"{self._writer.name}: {why}; the next run continues where this one ended")


def open_encoder(
    encoder: MessageEncoder, schema: pa.Schema, patience: Patience, failure: Callable[[str], OutputError]
) -> None:
    """Open an encoder; wait for a registry that does not answer."""

    def attempt() -> None:
        try:
            encoder.open(schema)
        except RegistryUnreachable as trouble:
            raise Unreachable(str(trouble)) from None

    persist(attempt, patience, failure)


def _batches(values: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Where batches begin and end: of limited length and size, but at least one message each."""
    start = size = 0
    for at, value in enumerate(values):
        if at > start and (at - start >= _BATCH_MESSAGES or size + len(value) > _BATCH_BYTES):
            yield start, at
            start, size = at, 0
        size += len(value)
    if start < len(values):
        yield start, len(values)


def another_writer(name: str) -> OutputError:
    """The error if a log has grown by messages of another writer."""
    return OutputError(
        f"{name}: another process writes here too, so messages cannot be published exactly once; stop it, or name "
        "another place to write to"
    )


def lost_messages(name: str) -> OutputError:
    """The error if a log lost messages that it had acknowledged."""
    return OutputError(
        f"{name}: the system lost messages that it had acknowledged; restore them, or start over with a new checkpoint "
        "folder and another place to write to"
    )
