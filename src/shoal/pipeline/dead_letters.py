"""Dead letters: which records could not be used and why, one JSON object each.

They go to a file that only its owner can read, or to a topic or stream next to that of the rows.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.sealing import seal
from shoal.decode.base import Decoded
from shoal.errors import PolicyError
from shoal.methods.base import StreamMethod
from shoal.policy import Policy
from shoal.sinks.atomic_file import AtomicFile
from shoal.sinks.base import Receipt, Sink
from shoal.sinks.marks import Mark
from shoal.sources.base import Source

_REFUSED_WHILE_PENDING: Final = "ahead"
LATE: Final = "late"
LATE_ON_A_LIVE_STREAM: Final = (
    "older than the newest event by more than `lateness`, or than the time that passed while nothing arrived; send "
    "records sooner, or raise lateness, or lag in [source]"
)
_LETTERS_AT_ONCE: Final = 1_000
LETTERS: Final = pa.schema([("letter", pa.string())])
"""The rows that a sink of letters takes."""


class DeadLetters:
    """A file of letters, created with the first letter.

    Parameters
    ----------
    keep_rows
        Also keep the record itself, sealed if there is a key.
    in_place
        False: letters appear, and replace earlier ones, only when the run is finished.
    checked
        Compute a digest of the letters, for a checkpoint.
    """

    def __init__(
        self,
        path: Path,
        *,
        keep_rows: bool = False,
        secret: Secret | None = None,
        in_place: bool = True,
        checked: bool = False,
    ) -> None:
        self._file = AtomicFile(path, private=True, in_place=in_place, checked=checked)
        self._secret = secret
        self.keep_rows = keep_rows

    def open(self, receipt: Receipt | int | None) -> None:
        """Go back to a receipt, or to a length in bytes; None starts a new file."""
        self._out = self._file.resume(Mark(**receipt) if isinstance(receipt, dict) else receipt)

    def write(self, letter: dict[str, Any], record: pa.RecordBatch | None = None) -> None:
        """Add a letter: file, row, line, column, reason; `record` is a batch of one row."""
        if self.keep_rows and record is not None:
            letter = {**letter, **_kept(record, self._secret)}
        self._out.write(orjson.dumps(letter, option=orjson.OPT_APPEND_NEWLINE))

    def commit(self, epoch: int = 0) -> int:
        """Sync everything to disk; return the length in bytes."""
        return self._file.commit()

    def publish(self, checkpoint: str) -> None:
        """Nothing to do: a commit made everything durable."""

    @property
    def receipt(self) -> Receipt | None:
        """The last commit, as `open` accepts it."""
        return asdict(self._file.mark) if self._file.mark else None

    def finish(self) -> None:
        """Close the file: no more letters will come."""
        self._file.finish()

    def clean(self) -> None:
        """Nothing to do: letters are written in place."""

    def discard(self) -> None:
        """Remove unfinished letters, unless they are in place."""
        self._file.discard()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class LetterMessages:
    """Letters as messages: a topic or stream next to that of the rows, in the same transaction where there is one.

    Parameters
    ----------
    sink
        Takes rows with one column, the text of the letter.
    secret
        Records that are kept are sealed with it; without it none is kept.
    """

    def __init__(self, sink: Sink, *, secret: Secret | None = None) -> None:
        self._sink, self._secret = sink, secret
        self._written: list[str] = []
        self.receipt: Receipt | None = None
        """The last commit, as `open` accepts it."""

    @property
    def keep_rows(self) -> bool:
        """Whether a letter keeps its record."""
        return self._secret is not None

    def open(self, receipt: Receipt | int | None) -> None:
        """Start, or go back to a receipt."""
        self._written.clear()
        if isinstance(receipt, dict):
            self._sink.recover(LETTERS, receipt)
        else:
            self._sink.open(LETTERS)

    def write(self, letter: dict[str, Any], record: pa.RecordBatch | None = None) -> None:
        """Add a letter: place, column, reason; `record` is a batch of one row."""
        if self._secret is not None and record is not None:
            letter = {**letter, **_kept(record, self._secret)}
        self._written.append(orjson.dumps(letter).decode())
        if len(self._written) >= _LETTERS_AT_ONCE:
            self._send()

    def _send(self) -> None:
        if self._written:
            self._sink.write(pa.record_batch([pa.array(self._written, pa.string())], schema=LETTERS))
            self._written = []

    def commit(self, epoch: int) -> None:
        """Hand over everything."""
        self._send()
        self.receipt = self._sink.commit(epoch)

    def publish(self, checkpoint: str) -> None:
        """The checkpoint of this name is durable."""
        self._sink.publish(checkpoint)

    def finish(self) -> None:
        """No more letters will come."""
        self.receipt = self._sink.finish()

    def clean(self) -> None:
        """Remove what only a repeated `finish` needs."""
        self._sink.clean()

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()


def make_letters(
    policy: Policy, sink: Sink | None, secret: Secret | None, *, resumable: bool
) -> DeadLetters | LetterMessages:
    """Where refused records are listed; `sink` if they go to the system of the rows."""
    letters = policy.dead_letters
    if sink is None:
        return DeadLetters(letters.path.path, keep_rows=letters.keep_rows, secret=secret, checked=resumable)
    if letters.keep_rows and secret is None:
        raise PolicyError(
            f"[dead_letters] keep_rows: records are sent to {letters.name} only sealed; set SHOAL_KEY_FILE, name a "
            "file in [dead_letters] path, or leave it out"
        )
    return LetterMessages(sink, secret=secret if letters.keep_rows else None)


def _kept(batch: pa.RecordBatch, secret: Secret | None) -> dict[str, Any]:
    record = {name: _json_value(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    if secret is None:
        return {"record": record}
    sealed = seal(secret, orjson.dumps(record), purpose="dead letter")
    return {"sealed": base64.b64encode(sealed).decode()}


def _json_value(column: Any) -> Any:
    """The only value of a column, for JSON; times are text, because Python's would lose nanoseconds."""
    kind = column.type
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        return column[0].as_py()
    try:
        return column.cast(pa.string())[0].as_py()
    except pa.ArrowException:
        return str(column[0].as_py())


class LetterWriter:
    """Turns refused records of a stream into dead letters."""

    def __init__(
        self,
        letters: DeadLetters | LetterMessages,
        source: Source,
        method: StreamMethod,
        *,
        sorts_rows: bool,
        rows_before: int = 0,
    ) -> None:
        self._letters, self._source, self._method = letters, source, method
        self._rows_before = rows_before  # of the stream, before the method's first row
        # A record that waits to be sorted may be refused in a later batch than the one it came with, and a letter must
        # not depend on where a batch ended.
        self._waits = bool(sorts_rows and method.guarantee.max_delay_ns)

    def write(self, dead: pa.RecordBatch, decoded: Decoded | None, first: int) -> None:
        """Write a letter for every record in a trace of refused ones; a reason given by the source is preferred.

        `decoded` are the latest records, `first` is the number of the first of them in the stream.
        """
        refused = {one.row: one for one in decoded.refused} if decoded else {}
        for row, reason in zip(dead.column("row").to_pylist(), dead.column("reason").to_pylist(), strict=True):
            at, record = row - first, None
            has_waited = self._waits and reason == _REFUSED_WHILE_PENDING
            # A live source forgets where a record was; its number is the same after a restart.
            number = self._rows_before + row
            letter = {"row": number + 1} if has_waited and self._source.is_live else self._source.place(number)
            undecoded = refused.get(at)
            if undecoded is not None:
                column, why = undecoded.column, undecoded.reason
            else:
                refusal = self._method.explain(reason)
                column, why = refusal.column, refusal.sentence
                if reason == LATE and self._source.is_live:
                    why = LATE_ON_A_LIVE_STREAM
            if decoded is not None and not has_waited:
                if decoded.lines is not None:
                    letter["line"] = int(decoded.lines[at])
                if self._letters.keep_rows and undecoded is None:
                    record = decoded.records([at])
            self._letters.write({**letter, "column": column, "reason": why}, record)
