"""Dead letters: which records could not be used and why, one JSON object a line, for the owner alone."""

from __future__ import annotations

import base64
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.crypto.sealing import seal
from shoal.sinks.files import FileSink
from shoal.sinks.marks import Mark


class DeadLetters:
    """Appends to a file that is there from the first letter on.

    Parameters
    ----------
    keep_rows
        Also keep the record itself, sealed where a key was given.
    in_place
        False: letters appear, and replace earlier ones, when all is finished.
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
        self._sink = FileSink(path, private=True, in_place=in_place, checked=checked)
        self._secret = secret
        self.keep_rows = keep_rows

    def open(self, position: dict[str, Any] | int | None) -> None:
        """Go back to a position, or to a length; None starts anew."""
        self._out = self._sink.resume(Mark(**position) if isinstance(position, dict) else position)

    def write(self, letter: dict[str, Any], record: pa.RecordBatch | None = None) -> None:
        """Add a letter: file, row, line, column, reason; `record` is a batch of one row."""
        if self.keep_rows and record is not None:
            letter = {**letter, **self._kept(record)}
        self._out.write(orjson.dumps(letter, option=orjson.OPT_APPEND_NEWLINE))

    def _kept(self, batch: pa.RecordBatch) -> dict[str, Any]:
        record = {name: _plain(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        if self._secret is None:
            return {"record": record}
        sealed = seal(self._secret, orjson.dumps(record), purpose="dead letter")
        return {"sealed": base64.b64encode(sealed).decode()}

    def commit(self) -> int:
        """Bring everything to the disk; give the length."""
        return self._sink.commit()

    def position(self) -> dict[str, Any] | None:
        """What was committed last, as `open` takes it."""
        return asdict(self._sink.mark) if self._sink.mark else None

    def finish(self) -> None:
        """Nothing more will come."""
        self._sink.finish()

    def clean(self) -> None:
        """Nothing is left over."""

    def discard(self) -> None:
        """Give up: letters that are not in place go."""
        self._sink.discard()

    def close(self) -> None:
        """Let go of the file."""
        self._sink.close()


def _plain(column: Any) -> Any:
    """The only value of a column as JSON can hold it; Python's own times would lose nanoseconds."""
    kind = column.type
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind):
        return column[0].as_py()
    try:
        return column.cast(pa.string())[0].as_py()
    except pa.ArrowException:
        return str(column[0].as_py())
