"""Dead letters: which records could not be used and why, one JSON object a line, for the owner alone."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson

from shoal.sinks.files import FileSink
from shoal.vault.keys import Secret
from shoal.vault.sealing import seal


class DeadLetters:
    """Appends to a file that is there from the first letter on.

    Parameters
    ----------
    keep_rows
        Also keep the record itself, sealed where a key was given.
    """

    def __init__(self, path: Path, *, keep_rows: bool = False, secret: Secret | None = None) -> None:
        self._sink = FileSink(path, private=True, in_place=True)
        self._secret = secret
        self.keep_rows = keep_rows

    def open(self, position: int | None) -> None:
        """Go back to a position; None starts anew."""
        self._out = self._sink.resume(position)

    def write(self, letter: dict[str, Any], record: dict[str, Any] | None = None) -> None:
        """Add a letter: file, row, line, column, reason."""
        if self.keep_rows and record is not None:
            letter = {**letter, **self._kept(record)}
        self._out.write(orjson.dumps(letter, option=orjson.OPT_APPEND_NEWLINE))

    def _kept(self, record: dict[str, Any]) -> dict[str, Any]:
        if self._secret is None:
            return {"record": record}
        sealed = seal(self._secret, orjson.dumps(record, default=str), purpose="dead letter")
        return {"sealed": base64.b64encode(sealed).decode()}

    def commit(self) -> int:
        """Bring everything to the disk; give the length."""
        return self._sink.commit()

    def finish(self) -> None:
        """Nothing more will come."""
        self._sink.finish()

    def close(self) -> None:
        """Let go of the file."""
        self._sink.close()
