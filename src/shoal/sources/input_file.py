"""One file or standard input as decompressed bytes."""

from __future__ import annotations

import hashlib
import io
import os
import select
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from shoal.errors import InputError
from shoal.sources.compression import Compression, decompress, detect

STANDARD_INPUT: Final = "-"
MEMORY_LIMIT_BYTES: Final = 1024**3
"""The most that is read into memory for a format that needs random access."""

_EDGE_BYTES: Final = 1024 * 1024
_IDLE_SECONDS: Final = 0.005
"""After this long without input, what a live stream has sent so far is processed."""


class InputFile:
    """One file or standard input; opened as often as needed (standard input: once)."""

    def __init__(self, path: Path | None, *, compression: Compression = "auto") -> None:
        self.path = path
        self._compression = compression
        self._used = False

    def __repr__(self) -> str:
        return f"InputFile({self.name!r})"

    @property
    def name(self) -> str:
        """The name used in messages."""
        return "standard input" if self.path is None else str(self.path)

    @property
    def size(self) -> int | None:
        """Size as stored (compressed); None if unknown."""
        found = self._stat()
        return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None

    def open(self) -> BinaryIO:
        """The decompressed bytes. `read(n)` raises TruncatedInput or InputError after the last good byte."""
        kind, raw = self._sniff()
        return raw if kind == "none" else decompress(raw, kind, name=self.name)

    def open_seekable(self) -> Any:
        """An Arrow file with random access; a compressed file or a pipe is read into memory."""
        if self.size is not None:
            kind, raw = self._sniff()
            raw.close()
            if kind == "none":
                return pa.OSFile(str(self.path), mode="r")
        return self._in_memory()

    def fingerprint(self) -> str:
        """Identify the content: size, modification time, hash of both ends. Pipes have none: "-"."""
        found = self._stat()
        if found is None or not stat.S_ISREG(found.st_mode):
            return STANDARD_INPUT
        digest = hashlib.blake2b(digest_size=16)
        with self._raw() as raw:
            digest.update(raw.read(_EDGE_BYTES))
            raw.seek(max(0, found.st_size - _EDGE_BYTES))
            digest.update(raw.read(_EDGE_BYTES))
        return f"{found.st_size}-{found.st_mtime_ns}-{digest.hexdigest()}"

    def _stat(self) -> os.stat_result | None:
        if self.path is None:
            return None
        try:
            return self.path.stat()
        except OSError as error:
            raise unreadable(self.name, error) from None

    def _raw(self) -> BinaryIO:
        if self.path is None:
            return self._standard_input()
        try:
            return self.path.open("rb")
        except OSError as error:
            raise unreadable(self.name, error) from None

    def _standard_input(self) -> BinaryIO:
        if self._used:
            raise InputError("standard input: it can be read only once; write it to a file first")
        self._used = True
        return _Unclosed(sys.stdin.buffer)  # type: ignore[return-value]

    def _sniff(self) -> tuple[Any, BinaryIO]:
        raw = self._raw()
        if self._compression == "none":
            return "none", raw
        try:
            magic = _read_up_to(raw, 4)
        except OSError as error:
            raw.close()
            raise unreadable(self.name, error) from None
        kind = detect(magic) if self._compression == "auto" and len(magic) == 4 else self._compression
        if raw.seekable():
            raw.seek(-len(magic), io.SEEK_CUR)
        else:
            raw = _Prefixed(magic, raw)  # type: ignore[assignment]
        return "none" if kind == "auto" else kind, raw

    def _in_memory(self) -> Any:
        parts: list[bytes] = []
        have = 0
        with self.open() as stream:
            while part := stream.read(_EDGE_BYTES):
                parts.append(part)
                have += len(part)
                if have > MEMORY_LIMIT_BYTES:
                    raise InputError(
                        f"{self.name}: larger than {MEMORY_LIMIT_BYTES // 1024**2} MiB, and this format "
                        "cannot be read piece by piece from a pipe or compressed file; uncompress it first"
                    )
        return pa.BufferReader(b"".join(parts))


def unreadable(name: str, error: OSError) -> InputError:
    """The error for a file or folder that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"{name}: does not exist; check the path")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{name}: is a folder where a file is needed; name a file in it")
    if isinstance(error, PermissionError):
        return InputError(f"{name}: cannot be read; check the permissions of the file and its folders")
    return InputError(f"{name}: cannot be read ({error.strerror or type(error).__name__})")


def _read_up_to(raw: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := raw.read(size - len(data))):
        data += part
    return data


class _Prefixed(io.RawIOBase):
    """A pipe that first returns the bytes that were read to detect the compression."""

    def __init__(self, prefix: bytes, raw: BinaryIO) -> None:
        self._prefix = prefix
        self._raw = raw

    @property
    def is_live(self) -> bool:
        """Whether the pipe may fall silent; a named pipe is read in blocks, like a file."""
        return getattr(self._raw, "is_live", False)

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if not self._prefix:
            return self._raw.read(-1 if size is None else size)
        if size is None or size < 0:
            head, self._prefix = self._prefix, b""
            return head + self._raw.read()
        head, self._prefix = self._prefix[:size], self._prefix[size:]
        return head + (self._raw.read(size - len(head)) if len(head) < size else b"")

    def read_some(self, size: int) -> bytes:
        """Bytes read before, or what the pipe has."""
        if self._prefix:
            return self.read(min(size, len(self._prefix)))
        read: Callable[[int], bytes] = getattr(self._raw, "read_some", self._raw.read)
        return read(size)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _Unclosed(io.RawIOBase):
    """Standard input, which stays open when a reader closes it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

    @property
    def is_live(self) -> bool:
        """Whether standard input is a pipe or a terminal, not a file."""
        try:
            return not stat.S_ISREG(os.fstat(self._raw.fileno()).st_mode)
        except (OSError, ValueError):  # not a real file
            return False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1, /) -> bytes:
        return self._raw.read(-1 if size is None else size)

    def read_some(self, size: int) -> bytes:
        """Up to `size` bytes: waits for the first, then returns what is there, so that a live stream is not delayed."""
        try:
            place = self._raw.fileno()
        except (OSError, ValueError):  # not a real file
            return self.read(size)
        part = self._raw.read1(size)  # type: ignore[attr-defined]
        parts = [part]
        size -= len(part)
        while part and size > 0 and select.select([place], [], [], _IDLE_SECONDS)[0]:
            part = self._raw.read1(size)  # type: ignore[attr-defined]
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
