"""Decompressed byte streams that return every good byte before they raise an error."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final, Literal

import numpy as np
import pyarrow as pa

from shoal.errors import InputError, TruncatedInput

Compression = Literal["auto", "none", "gzip", "zstd"]
COMPRESSIONS: Final = ("auto", "none", "gzip", "zstd")

_READ_BYTES: Final = 256 * 1024
_WRITE_BYTES: Final = 1024 * 1024
_GZIP_WBITS: Final = 31  # zlib: gzip header and trailer, largest window
_UNTOUCHED: Final = 0xFF  # a byte UTF-8 never holds


def detect(magic: bytes) -> Literal["none", "gzip", "zstd"]:
    """Detect the compression by the first four bytes: file names may be wrong.

    >>> detect(bytes.fromhex("1f8b0800")), detect(b"user")
    ('gzip', 'none')
    """
    if magic[:2] == b"\x1f\x8b":
        return "gzip"
    # A skippable frame (0x184D2A50 to 5F) comes first in files of parallel compressors.
    is_skippable = magic[1:4] == b"\x2a\x4d\x18" and 0x50 <= magic[0] <= 0x5F
    return "zstd" if magic == b"\x28\xb5\x2f\xfd" or is_skippable else "none"


def decompress(raw: BinaryIO, kind: Literal["gzip", "zstd"], *, name: str) -> BinaryIO:
    """Wrap a compressed stream; closing the result closes `raw`."""
    chunks = _gunzip(raw, name) if kind == "gzip" else _unzstd(raw, name)
    return ChunkStream(chunks, raw)  # type: ignore[return-value]


class ChunkStream(io.RawIOBase):
    """Bytes from an iterator of chunks.

    An error of the iterator is raised only after all bytes before it were returned; a buffered reader on top would lose
    those bytes. `read(n)` returns n bytes unless the stream ends or breaks off.
    """

    def __init__(self, chunks: Iterator[bytes], raw: BinaryIO) -> None:
        self._chunks = chunks
        self._raw = raw
        self._chunk = memoryview(b"")
        self._failure: InputError | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = -1 if size is None else size
        parts: list[bytes] = []
        have = 0
        while (wanted < 0 or have < wanted) and self._fill():
            part = self._chunk if wanted < 0 else self._chunk[: wanted - have]
            self._chunk = self._chunk[len(part) :]
            parts.append(bytes(part))
            have += len(part)
        if self._failure is not None and not parts and wanted != 0:
            raise self._failure
        return b"".join(parts)

    def readall(self) -> bytes:
        return self.read(-1)

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()

    def _fill(self) -> bool:
        while not self._chunk and self._failure is None:
            try:
                chunk = next(self._chunks, None)
            except InputError as failure:
                self._failure = failure
                return False
            if chunk is None:
                return False
            self._chunk = memoryview(chunk)
        return bool(self._chunk)


def _gunzip(raw: BinaryIO, name: str) -> Iterator[bytes]:
    engine = zlib.decompressobj(wbits=_GZIP_WBITS)
    fresh = True  # at the start of a member, where the file may end
    while data := raw.read(_READ_BYTES):
        while data:
            if fresh and not (data := data.lstrip(b"\0")):
                break  # tapes and some tools pad the end with zeros
            fresh = False
            before = engine.copy()
            try:
                chunk = engine.decompress(data, _WRITE_BYTES)
            except zlib.error:
                yield from _until_corrupt(before, data)
                raise _corrupt(name, "gzip") from None
            yield chunk
            data = engine.unconsumed_tail
            if engine.eof:
                data = engine.unused_data
                engine, fresh = zlib.decompressobj(wbits=_GZIP_WBITS), True
    if not fresh:
        yield engine.flush()
        raise _truncated(name, "gzip")


def _until_corrupt(engine: zlib._Decompress, data: bytes) -> Iterator[bytes]:
    """Repeat the failed call byte by byte, to return what can be decompressed before the bad byte."""
    for at in range(len(data)):
        try:
            yield engine.decompress(data[at : at + 1])
        except zlib.error:
            return


def _unzstd(raw: BinaryIO, name: str) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    buffer = np.empty(_WRITE_BYTES, dtype=np.uint8)
    while True:
        # A failing call does not report how much it wrote; the untouched rest of the buffer shows it. Binary data whose
        # last byte before the break equals the mark loses that byte, which can only be part of a broken message.
        buffer.fill(_UNTOUCHED)
        try:
            size = stream.readinto(buffer)
        except OSError as error:
            touched = np.flatnonzero(buffer != _UNTOUCHED)
            yield buffer[: touched[-1] + 1 if len(touched) else 0].tobytes()
            is_cut = "runcated" in str(error)
            raise (_truncated if is_cut else _corrupt)(name, "zstd") from None
        if not size:
            return
        yield buffer[:size].tobytes()


def _truncated(name: str, kind: str) -> TruncatedInput:
    return TruncatedInput(f"{name}: the {kind} data breaks off before its end; fetch the whole file again")


def _corrupt(name: str, kind: str) -> InputError:
    return InputError(f"{name}: the {kind} data is damaged from some point on; fetch the file again")
