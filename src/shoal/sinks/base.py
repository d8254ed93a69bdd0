"""The contract of every sink: rows in, receipts out.

A sink accepts rows. A sink of bytes (files, standard output) is composed of an encoder and a file; a sink of messages
(a broker) composes an encoder of messages. One system per file; :mod:`shoal.sinks.files` is the example to
follow. The run does not know which system it writes to.

The run decides when to commit. Its order makes a replay harmless: every sink commits, then the checkpoint with the
method's state, the source's position and the receipts is written, then every sink publishes. After a crash, `recover`
takes the sink back to the last receipt, and the rows after it are written again.

Files, and message systems without transactions, derive from :class:`PlainSink`: the newest complete checkpoint counts.
Sinks of messages number them and skip those that the system holds already (:mod:`shoal.sinks.numbered`). A sink with
transactions (Kafka) **decides** which checkpoint counts: `publish` commits the transaction together with the
checkpoint's name, and `published` reads the name back. Whatever else lies in the checkpoint folder does not count.
Its calls may raise :class:`Aborted`: the run then closes everything and goes back to the checkpoint that counts.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import pyarrow as pa

from shoal.errors import OutputError

Receipt = dict[str, Any]
"""What was committed, as values that fit in JSON, such as lengths and digests of files."""


class Aborted(OutputError):
    """A transaction was given up, for a reason that may pass: the run can write it again after the last checkpoint.

    Whether readers see the transaction is known only to the system. Another process has not taken over.
    """


class Sink(Protocol):
    """Where rows go. Call `published` if it decides, then `open` or `recover`, then the others."""

    @property
    def decides(self) -> bool:
        """Whether this sink records which checkpoint counts. At most one sink of a run does."""

    def published(self) -> tuple[str, ...]:
        """Names of the checkpoint published last and of the one before it; () if none ever was.

        Called once, before everything else. From here on an earlier process that still writes is shut out.
        """

    def open(self, schema: pa.Schema) -> None:
        """Start with nothing written."""

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        """Continue after a commit: rows written later are dropped, or ignored when they are written again.

        CheckpointError if committed output is missing or altered.
        """

    def write(self, rows: pa.RecordBatch) -> None:
        """Write rows; they may be lost until the next commit."""

    def commit(self, epoch: int) -> Receipt | None:
        """Make everything written durable; None if the sink cannot recover.

        With transactions: everything is acknowledged inside the open transaction, and not visible yet.
        `epoch` counts the commits of the run from 0; a commit repeated after a crash has the same number.
        """

    def publish(self, checkpoint: str) -> None:
        """The checkpoint of this name is durable: make everything committed visible, together with the name."""

    def finish(self) -> Receipt | None:
        """Publish the result under its name, after the last commit. Repeating it after a crash does no harm."""

    def verify(self, receipt: Receipt) -> None:
        """Check a finished output; CheckpointError if it is missing or was altered."""

    def clean(self) -> None:
        """Remove what only a repeated `finish` needs; called once the checkpoint records the end."""

    def close(self) -> None:
        """Close what is open; what was not committed may be lost."""


class PlainSink:
    """The part of the contract that a sink without transactions does not need: the newest checkpoint counts."""

    decides: ClassVar[bool] = False

    def published(self) -> tuple[str, ...]:
        """This sink does not know any."""
        return ()

    def publish(self, checkpoint: str) -> None:
        """Nothing to do: a commit made everything durable."""
