"""Find new input: files not seen before, and lines appended to known files."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from shoal.errors import InputError
from shoal.sources.input_file import InputFile

_EDGE: Final = 1024 * 1024
_GROWING: Final = ("csv", "jsonl")


@dataclass
class Seen:
    """The position in a file."""

    position: dict[str, int] | None = None
    records: int = 0
    size: int = -1
    """Its size when it was read to the end; -1 before that."""
    head: str = ""
    head_size: int = 0
    """A hash of its first bytes, and how many: they must not change."""
    ended_in_line: bool = False
    changed: int = 0
    """Its modification time when it was read to the end."""


@dataclass
class Sources:
    """All files read so far."""

    seen: dict[str, Seen] = field(default_factory=dict)

    @classmethod
    def of(cls, noted: dict[str, Any]) -> Sources:
        """Read from a note."""
        return cls({name: Seen(**own) for name, own in noted.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for a note."""
        return {name: vars(own).copy() for name, own in self.seen.items()}

    def unread(self, files: list[InputFile], kind: str) -> Iterator[tuple[InputFile, Seen]]:
        """Yield files with new content, in order; raise InputError if one was changed instead of appended to."""
        for file in files:
            own = self.seen.get(file.name) or self._moved(file)
            if own is None:
                own = self.seen[file.name] = Seen(head_size=min(file.size or 0, _EDGE))
                own.head = _head(file, own.head_size)
                yield file, own
            elif own.size < 0 or (file.size or 0) != own.size:
                _check_same(file, own, kind)
                yield file, own
            elif own.changed != _path(file).stat().st_mtime_ns:
                _check_same(file, own, kind)

    def _moved(self, file: InputFile) -> Seen | None:
        """Return the entry of a renamed file: the same file, or one that begins like a file that no longer exists."""
        heads: dict[int, str] = {}
        for name, own in self.seen.items():
            if not own.records or (file.size or 0) < max(own.size, own.head_size):
                continue
            if own.head_size not in heads:
                heads[own.head_size] = _head(file, own.head_size)
            is_gone = not os.path.exists(name) or os.path.samefile(_path(file), name)
            if heads[own.head_size] == own.head and is_gone:
                self.seen[file.name] = self.seen.pop(name)
                return own
        return None


def mark_read(file: InputFile, own: Seen, size: int) -> None:
    """Record that a file was read to the end, at this size."""
    own.size = size
    own.changed = _path(file).stat().st_mtime_ns
    own.head_size = min(size, _EDGE)
    own.head = _head(file, own.head_size)
    own.ended_in_line = size > 0 and _byte_at(file, size - 1) != b"\n"


class WholeLines:
    """A file that is still being written: everything after its last line end is ignored."""

    def __init__(self, file: InputFile) -> None:
        self._file = file
        self.size = _last_line_end(file)

    @property
    def name(self) -> str:
        """The name in messages."""
        return self._file.name

    def open(self) -> BinaryIO:
        """Open the bytes up to the last line end."""
        return io.BufferedReader(_Limited(self._file.open(), self.size))

    def open_seekable(self) -> Any:
        """Open the whole file: formats that need seeking are not appended to."""
        return self._file.open_seekable()


class _Limited(io.RawIOBase):
    def __init__(self, raw: BinaryIO, size: int) -> None:
        self._raw = raw
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        part = self._raw.read(min(len(buffer), self._left))
        self._left -= len(part)
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _check_same(file: InputFile, own: Seen, kind: str) -> None:
    size = file.size or 0
    if own.size >= 0 and (kind not in _GROWING or size < own.size):
        raise InputError(f"{file.name}: has changed since it was read; records come in new files, or as new lines")
    if _head(file, own.head_size) != own.head:
        raise InputError(f"{file.name}: has changed since it was read; put it back, or name the new one differently")
    if kind in _GROWING and own.ended_in_line and _byte_at(file, own.size) not in (b"\n", b"\r", b""):
        raise InputError(f"{file.name}: its last line has grown since it was read; write complete lines only")


def _path(file: InputFile) -> Path:
    assert file.path is not None, "standard input is refused by the policy"
    return file.path


def _head(file: InputFile, size: int) -> str:
    with _path(file).open("rb") as raw:
        return hashlib.blake2b(raw.read(size), digest_size=16).hexdigest()


def _byte_at(file: InputFile, at: int) -> bytes:
    with _path(file).open("rb") as raw:
        raw.seek(at)
        return raw.read(1)


def _last_line_end(file: InputFile) -> int:
    with _path(file).open("rb") as raw:
        end = raw.seek(0, io.SEEK_END)
        while end > 0:  # backwards, in pieces
            start = max(0, end - _EDGE)
            raw.seek(start)
            found = raw.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
