"""Dead letters: which records could not be used and why, one JSON object per line, readable only by the owner."""

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
from shoal.methods.base import StreamMethod
from shoal.sinks.atomic_file import AtomicFile
from shoal.sinks.base import Receipt
from shoal.sinks.marks import Mark
from shoal.sources.base import Source

_REFUSED_WHILE_PENDING: Final = "ahead"


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
            letter = {**letter, **self._kept(record)}
        self._out.write(orjson.dumps(letter, option=orjson.OPT_APPEND_NEWLINE))

    def _kept(self, batch: pa.RecordBatch) -> dict[str, Any]:
        record = {name: _json_value(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        if self._secret is None:
            return {"record": record}
        sealed = seal(self._secret, orjson.dumps(record), purpose="dead letter")
        return {"sealed": base64.b64encode(sealed).decode()}

    def commit(self) -> int:
        """Sync everything to disk; return the length in bytes."""
        return self._file.commit()

    @property
    def receipt(self) -> Receipt | None:
        """The last commit, as `open` accepts it."""
        return asdict(self._file.mark) if self._file.mark else None

    def finish(self) -> None:
        """Close the file: no more letters will come."""
        self._file.finish()

    def discard(self) -> None:
        """Remove unfinished letters, unless they are in place."""
        self._file.discard()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


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

    def __init__(self, letters: DeadLetters, source: Source, method: StreamMethod, *, sorts_rows: bool) -> None:
        self._letters, self._source, self._method = letters, source, method
        # A record that waits to be sorted may be refused in a later batch than the one it came with, and a letter must
        # not depend on where a batch ended.
        self._waits = bool(sorts_rows and method.guarantee.max_delay_ns)

    def write(self, dead: pa.RecordBatch, decoded: Decoded | None, first: int) -> None:
        """Write a letter for every record in a trace of refused ones; a reason given by the source is preferred.

        `decoded` are the latest records, `first` is the number of the first of them in the stream.
        """
        refused = {one.row: one for one in decoded.refused} if decoded else {}
        for row, reason in zip(dead.column("row").to_pylist(), dead.column("reason").to_pylist(), strict=True):
            at, letter, record = row - first, self._source.place(row), None
            undecoded = refused.get(at)
            if undecoded is not None:
                column, why = undecoded.column, undecoded.reason
            else:
                refusal = self._method.explain(reason)
                column, why = refusal.column, refusal.sentence
            if decoded is not None and not (self._waits and reason == _REFUSED_WHILE_PENDING):
                if decoded.lines is not None:
                    letter["line"] = int(decoded.lines[at])
                if self._letters.keep_rows and undecoded is None:
                    record = decoded.records([at])
            self._letters.write({**letter, "column": column, "reason": why}, record)
