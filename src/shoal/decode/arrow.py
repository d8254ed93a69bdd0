"""Arrow IPC, both the stream and the file format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import pyarrow as pa

from shoal.decode.base import Decoded, Position
from shoal.decode.tables import TableDecoder, pieces
from shoal.errors import InputError, TruncatedInput

_FILE_MAGIC: Final = b"ARROW1\0\0"
_END_MAGIC: Final = b"ARROW1"
_TAIL_BYTES: Final = 64 * 1024


class ArrowDecoder(TableDecoder):
    """Batches of an Arrow stream or file, distinguished by the first bytes.

    After its first eight bytes a file is a stream and is read as one. So it may come from a pipe, and the complete
    batches of a truncated file are still used.
    """

    _opened: tuple[BinaryIO, Any] | None = None
    _is_file = False

    @property
    def schema(self) -> pa.Schema:
        return self._resolve(self._reader().schema)

    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        first, skip = (position["batch"], position["row"]) if position else (0, 0)
        schema = self.schema
        try:
            for number, batch in enumerate(self._read()):
                if number < first:
                    continue
                for part, after in pieces(batch, skip if number == first else 0):
                    is_end = after == batch.num_rows
                    after_part = {"batch": number + is_end, "row": 0 if is_end else after}
                    yield self._decode(part, schema, after_part)
        finally:
            self.close()

    def close(self) -> None:
        if self._opened is not None:
            stream, _ = self._opened
            self._opened = None
            stream.close()

    def _read(self) -> Iterator[pa.RecordBatch]:
        reader = self._reader()
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                self._check_end()
                return
            except (pa.ArrowException, OSError):
                raise self._broken() from None
            yield batch

    def _reader(self) -> Any:
        if self._opened is None:
            stream = self._file.open()
            try:
                self._opened = stream, self._open(stream)
            except BaseException:
                stream.close()
                raise
        return self._opened[1]

    def _open(self, stream: BinaryIO) -> Any:
        magic = stream.read(len(_FILE_MAGIC))
        if not magic:
            raise InputError(f"{self._file.name}: is empty; it has no schema")
        self._is_file = magic == _FILE_MAGIC
        source = _Rejoined(b"" if self._is_file else magic, stream)
        try:
            return pa.ipc.open_stream(pa.PythonFile(source, mode="r"))
        except InputError:
            raise
        except (pa.ArrowException, OSError):
            raise InputError(
                f"{self._file.name}: is not an Arrow stream or file, or breaks off in its schema; check the path"
            ) from None

    def _check_end(self) -> None:
        """A file ends with the magic bytes it begins with; a stream may end after any message."""
        tail = b""
        while self._is_file and (part := self._stream.read(_TAIL_BYTES)):
            tail = (tail + part)[-len(_END_MAGIC) :]
        if self._is_file and tail != _END_MAGIC:
            raise self._truncated()

    def _broken(self) -> InputError:
        if not self._stream.read(1):
            return self._truncated()
        return InputError(f"{self._file.name}: the Arrow data is damaged from some point on; fetch the file again")

    def _truncated(self) -> TruncatedInput:
        return TruncatedInput(f"{self._file.name}: breaks off before its end; fetch the whole file again")

    @property
    def _stream(self) -> BinaryIO:
        assert self._opened is not None
        return self._opened[0]


class _Rejoined:
    """A stream that first returns the bytes that were read from it before."""

    closed = False

    def __init__(self, prefix: bytes, stream: BinaryIO) -> None:
        self._prefix = prefix
        self._stream = stream

    def read(self, size: int) -> bytes:
        head, self._prefix = self._prefix[:size], self._prefix[size:]
        return head + self._stream.read(size - len(head)) if len(head) < size else head
