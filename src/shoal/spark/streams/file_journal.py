"""The names of all files that a stream has read: a file in the folder of the state to which names are only appended.

A commit has the length that counts, so that it costs what is new and not what was ever read. Names behind that length
are of a micro-batch that was not committed: they are not read, and the next ones are written over them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict

import orjson

from shoal.crypto.private_files import sync_folder
from shoal.crypto.safe_open import open_or_create
from shoal.errors import CheckpointError
from shoal.sinks.durable import make_folder, output_error

JOURNAL: Final = "files-read.jsonl"
_FILES: Final = "files"
_OLD: Final = (
    "was written by an older version of shoal, which kept the names of all files in every commit; finish the stream "
    "with that version, or start over with a new checkpoint folder and another place to write to"
)


class Written(TypedDict):
    """What a commit knows of the journal."""

    count: int
    bytes: int
    sha256: str


class FileJournal:
    """The names of files, up to a commit."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / JOURNAL
        self._names: set[str] = set()
        self._hash = hashlib.sha256()
        self._length = 0

    def names(self, more: Mapping[str, Any]) -> set[str]:
        """The names by a commit; they are read from the disk only once."""
        written = _written(self._path.parent, more)
        if (self._length, self._hash.hexdigest()) != (written["bytes"], written["sha256"]):
            self._load(written)
        return self._names

    def written(self, more: Mapping[str, Any], new: Sequence[str]) -> dict[str, Written]:
        """What the next commit has to know, if these names are appended after those of a commit."""
        self.names(more)
        data, digest = _lines(new), self._hash.copy()
        digest.update(data)
        count = len(self._names) + len(new)
        return {_FILES: {"count": count, "bytes": self._length + len(data), "sha256": digest.hexdigest()}}

    def append(self, more: Mapping[str, Any], new: Sequence[str]) -> None:
        """Append names after those of a commit, durably, whatever an attempt before has appended there."""
        self.names(more)
        data = _lines(new)
        with output_error(self._path):
            make_folder(self._path.parent)
            with os.fdopen(open_or_create(self._path), "r+b") as file:
                if file.seek(0, os.SEEK_END) < self._length:
                    raise self._damaged()
                file.truncate(self._length)
                file.seek(self._length)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self._path.parent)
        self._names.update(new)
        self._hash.update(data)
        self._length += len(data)

    def _load(self, written: Written) -> None:
        length = written["bytes"]
        try:
            with self._path.open("rb") as file:
                data = file.read(length)
        except FileNotFoundError:
            data = b""
        digest = hashlib.sha256(data)
        if len(data) != length or digest.hexdigest() != written["sha256"]:
            raise self._damaged()
        self._names = set(map(orjson.loads, data.splitlines()))
        self._hash, self._length = digest, length

    def _damaged(self) -> CheckpointError:
        return CheckpointError(
            f"{self._path}: does not have the names of files that the last commit knows; restore the folder from a "
            "backup, or start over with a new one and another place to write to"
        )


def read_count(more: Mapping[str, Any]) -> int:
    """How many files a stream has read by a commit."""
    found = more.get(_FILES)
    return int(found["count"]) if isinstance(found, Mapping) else 0


def require_journal(folder: Path, more: Mapping[str, Any]) -> None:
    """Raise CheckpointError if the names of files that a commit knows are not there."""
    FileJournal(folder).names(more)


def _written(folder: Path, more: Mapping[str, Any]) -> Written:
    found = more.get(_FILES, {"count": 0, "bytes": 0, "sha256": hashlib.sha256().hexdigest()})
    if not isinstance(found, Mapping):
        raise CheckpointError(f"{folder}: {_OLD}")
    return Written(count=found["count"], bytes=found["bytes"], sha256=found["sha256"])


def _lines(names: Sequence[str]) -> bytes:
    return b"".join(orjson.dumps(name) + b"\n" for name in names)
