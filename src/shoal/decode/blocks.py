"""A growing and shrinking window on a stream of bytes."""

from __future__ import annotations

import io
from typing import BinaryIO, Final

from shoal.errors import InputError

BLOCK_BYTES: Final = 4 * 1024 * 1024
MAX_RECORD_BYTES: Final = 16 * 1024 * 1024

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_UTF_16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


class Blocks:
    """`data` holds the bytes of the stream from `offset` on, as far as they were read.

    A stream that breaks off ends like one that is complete; `failure` then holds the error to raise when all
    that came before is used.
    """

    def __init__(self, stream: BinaryIO, *, name: str, block_bytes: int) -> None:
        self._stream = stream
        self.name = name
        self._block_bytes = block_bytes
        self.data = b""
        self.offset = 0
        self.is_complete = False
        self.failure: InputError | None = None

    def grow(self) -> None:
        """Read on: as much as there is already or more, so that a long record is not looked at too often.

        A live stream gives what it has.
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
        """Forget the first bytes."""
        self.data = self.data[size:]
        self.offset += size

    def skip_to(self, offset: int) -> None:
        """Go forward to a place in the stream: by a jump where it can, else by reading."""
        if offset > self.offset + len(self.data) and self._stream.seekable():
            self.data = b""
            self.offset = min(offset, self._stream.seek(0, io.SEEK_END))
            self._stream.seek(self.offset)
        while self.offset + len(self.data) < offset and not self.is_complete:
            self.drop(len(self.data))
            self.grow()
        if not self.offset <= offset <= self.offset + len(self.data):
            raise self.failure or InputError(
                f"{self.name}: has changed since it was read before; start without the checkpoint"
            )
        self.drop(offset - self.offset)

    def mark_bytes(self) -> int:
        """Size of the byte order mark at the start; InputError when it is that of UTF-16."""
        while len(self.data) < 3 and not self.is_complete:
            self.grow()
        if self.data.startswith(_UTF_16_MARKS):
            raise InputError(f"{self.name}: is UTF-16 text; convert it to UTF-8")
        return len(_BYTE_ORDER_MARK) if self.data.startswith(_BYTE_ORDER_MARK) else 0

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()
