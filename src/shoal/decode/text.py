"""What decoders of text formats share: blocks of bytes, and a stream that is opened once."""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Iterator
from typing import BinaryIO, Final, Generic, Protocol, TypeVar

import pyarrow as pa

from shoal.decode.base import Decoded, Decoder, Position
from shoal.errors import InputError

BLOCK_BYTES: Final = 4 * 1024 * 1024
MAX_RECORD_BYTES: Final = 16 * 1024 * 1024

HAS_NUL: Final = "a NUL byte in the record; remove it"
TOO_LONG: Final = "longer than the longest record allowed; raise max_record_bytes"

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class Blocks:
    """A window on a stream of bytes: `data` holds what was read of it, from `offset` on.

    A truncated stream ends like a complete one; `failure` then holds the error to raise after all records before it.
    """

    def __init__(self, stream: BinaryIO, *, name: str, block_bytes: int) -> None:
        self._stream = stream
        self.name = name
        self._block_bytes = block_bytes
        self.data = b""
        self.offset = 0
        self.is_complete = False
        self.failure: InputError | None = None

    @property
    def is_live(self) -> bool:
        """Whether the stream may fall silent: waiting for more of it would delay what it has sent."""
        return getattr(self._stream, "is_live", False)

    def grow(self) -> None:
        """Read at least as much again as `data` holds: doubling keeps the search for a long record linear.

        A live stream returns what it has.
        """
        read = getattr(self._stream, "read_some", self._stream.read)
        try:
            part = read(max(self._block_bytes, len(self.data)))
        except InputError as failure:
            part, self.failure = b"", failure
        except OSError as error:
            reason = error.strerror or type(error).__name__
            part, self.failure = b"", InputError(f"{self.name}: cannot be read any further ({reason})")
        self.is_complete = not part
        self.data += part

    def drop(self, size: int) -> None:
        """Drop the first bytes."""
        self.data = self.data[size:]
        self.offset += size

    def skip_to(self, offset: int) -> None:
        """Go forward to an offset: by a seek where the stream can, else by reading."""
        if offset > self.offset + len(self.data) and self._stream.seekable():
            self.data = b""
            self.offset = min(offset, self._stream.seek(0, io.SEEK_END))
            self._stream.seek(self.offset)
        while self.offset + len(self.data) < offset and not self.is_complete:
            self.drop(len(self.data))
            self.grow()
        if not self.offset <= offset <= self.offset + len(self.data):
            raise self.failure or InputError(
                f"{self.name}: has changed since the checkpoint; start without the checkpoint"
            )
        self.drop(offset - self.offset)

    def mark_bytes(self) -> int:
        """Size of the byte order mark at the start; InputError for UTF-16."""
        while len(self.data) < 3 and not self.is_complete:
            self.grow()
        if self.data.startswith(_UTF_16_MARKS):
            raise InputError(f"{self.name}: is UTF-16 text; convert it to UTF-8")
        return len(_BYTE_ORDER_MARK) if self.data.startswith(_BYTE_ORDER_MARK) else 0

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()


class Window(Protocol):
    """Takes records from the blocks of one file."""

    blocks: Blocks

    @property
    def position(self) -> Position:
        """Where the next record starts."""

    def go_to(self, position: Position) -> None:
        """Continue at a position given earlier."""


W = TypeVar("W", bound=Window)


class TextDecoder(Decoder, Generic[W]):
    """Records of a text file. The stream opened for the schema is used for the batches: a pipe opens only once."""

    _pending: W | None = None
    _schema: pa.Schema | None = None
    _block_bytes: int

    @property
    def schema(self) -> pa.Schema:
        if self._schema is None:
            self._pending = self._open()
        return self._schema

    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        window = self._take_pending() or self._open()
        try:
            if position is not None:
                window.go_to(position)
            yield from self._decoded(window)
            if window.blocks.failure is not None:
                raise window.blocks.failure
        finally:
            window.blocks.close()

    def close(self) -> None:
        pending = self._take_pending()
        if pending is not None:
            pending.blocks.close()

    @abstractmethod
    def _begin(self, blocks: Blocks) -> W:
        """Find where the records start, and set the schema if it is not known yet."""

    @abstractmethod
    def _decoded(self, window: W) -> Iterator[Decoded]:
        """All records from here on."""

    def _open(self) -> W:
        blocks = Blocks(self._stream(), name=self._file.name, block_bytes=self._block_bytes)
        try:
            return self._begin(blocks)
        except BaseException:
            blocks.close()
            raise

    def _stream(self) -> BinaryIO:
        """The bytes of the file, as text in UTF-8."""
        return self._file.open()

    def _take_pending(self) -> W | None:
        pending, self._pending = self._pending, None
        return pending
