"""Files, folders, globs and standard input as sources of bytes."""

from __future__ import annotations

import glob
import hashlib
import io
import os
import select
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa

from shoal.errors import InputError, PolicyError
from shoal.sources.compression import COMPRESSIONS, Compression, decompress, detect

STANDARD_INPUT: Final = "-"
MEMORY_LIMIT_BYTES: Final = 1024**3
"""Most that is read into memory where a format needs to jump about in a stream that cannot."""

_LEFTOVERS: Final = (".partial", ".tmp", ".dead.jsonl")
_EDGE_BYTES: Final = 1024 * 1024
_IDLE_SECONDS: Final = 0.005
"""A live stream that is silent for so long is used as far as it came."""


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
        """What people are shown."""
        return "standard input" if self.path is None else str(self.path)

    @property
    def size(self) -> int | None:
        """Bytes as stored (compressed); None where it is not known before the end."""
        found = self._stat()
        return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None

    def open(self) -> BinaryIO:
        """The decompressed bytes. `read(n)` raises TruncatedInput or InputError after the last good byte."""
        kind, raw = self._sniff()
        return raw if kind == "none" else decompress(raw, kind, name=self.name)

    def open_seekable(self) -> Any:
        """An Arrow file that can jump about; what is compressed or a pipe is read into memory."""
        if self.size is not None:
            kind, raw = self._sniff()
            raw.close()
            if kind == "none":
                return pa.OSFile(str(self.path), mode="r")
        return self._in_memory()

    def fingerprint(self) -> str:
        """Tell one content from another: size, time of change, hash of both ends. Pipes have none: "-"."""
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
            raise _unreadable(self.name, error) from None

    def _raw(self) -> BinaryIO:
        if self.path is None:
            return self._standard_input()
        try:
            return self.path.open("rb")
        except OSError as error:
            raise _unreadable(self.name, error) from None

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
            raise _unreadable(self.name, error) from None
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


class FileSource:
    """A file, a glob, a folder or "-", or several of them one after another.

    A folder gives its regular files in name order, without hidden ones, subfolders and what unfinished or
    earlier runs leave behind (`*.partial`, `*.tmp`, `*.dead.jsonl`). A file met twice is read once.
    """

    def __init__(
        self, path: str | Sequence[str], *, compression: Compression = "auto", base: Path | None = None
    ) -> None:
        if compression not in COMPRESSIONS:
            raise PolicyError(f"compression: must be one of {', '.join(COMPRESSIONS)}")
        self._paths = (path,) if isinstance(path, str) else tuple(path)
        self._compression = compression
        self._base = base

    def files(self) -> list[InputFile]:
        """What there is to read, in order; InputError when a path matches nothing."""
        found: dict[Path | None, None] = {}
        for text in self._paths:
            try:
                found.update(dict.fromkeys(self._resolve(text)))
            except OSError as error:
                raise _unreadable(str(self._full(text)), error) from None
        return [InputFile(path, compression=self._compression) for path in found]

    def _full(self, text: str) -> Path:
        return Path(text) if self._base is None else self._base / text

    def _resolve(self, text: str) -> Sequence[Path | None]:
        if text == STANDARD_INPUT:
            return [None]
        path = self._full(text)
        if path.is_dir():
            return _require(sorted(_usable(path.iterdir())), f"{path}: there is no file to read in this folder")
        if path.exists() or not glob.has_magic(text):
            path.stat()
            return [path]
        matches = map(Path, glob.glob(str(path), recursive=True))
        return _require(sorted(_usable(matches)), f"{path}: no file matches; check the pattern")


def _usable(paths: Iterator[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.name.startswith(".") and not path.name.endswith(_LEFTOVERS) and path.is_file():
            yield path


def _require(paths: list[Path], sentence: str) -> list[Path]:
    if not paths:
        raise InputError(sentence)
    return paths


def _unreadable(name: str, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return InputError(f"{name}: there is no such file; check the path")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{name}: is a folder where a file is needed; name a file in it")
    if isinstance(error, PermissionError):
        return InputError(f"{name}: may not be read; check the permissions of the file and its folders")
    return InputError(f"{name}: cannot be read ({error.strerror or type(error).__name__})")


def _read_up_to(raw: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (part := raw.read(size - len(data))):
        data += part
    return data


class _Prefixed(io.RawIOBase):
    """A pipe with the bytes already looked at put back in front."""

    def __init__(self, prefix: bytes, raw: BinaryIO) -> None:
        self._prefix = prefix
        self._raw = raw

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
        """What was put back, or what the pipe has."""
        if self._prefix:
            return self.read(min(size, len(self._prefix)))
        read: Callable[[int], bytes] = getattr(self._raw, "read_some", self._raw.read)
        return read(size)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _Unclosed(io.RawIOBase):
    """Standard input, which stays open when a reader is done with it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def read(self, size: int | None = -1, /) -> bytes:
        return self._raw.read(-1 if size is None else size)

    def read_some(self, size: int) -> bytes:
        """Up to size bytes: what is there, once something is, so that a live stream is not held back."""
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
