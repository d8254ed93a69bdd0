"""An encoder and a sink joined: rows in, committed bytes out."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Final, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.crypto.keys import Secret
from shoal.crypto.safe_open import open_to_read
from shoal.crypto.sealing import MAGIC, seal, unseal
from shoal.encode.base import Encoder, Writer
from shoal.errors import VaultError
from shoal.sinks.files import FileSink, PartsSink, StandardOutput, check_target
from shoal.sinks.marks import Mark

_ROWS_A_PART: Final = 5_000_000
_ROWS_A_SEALED_PIECE: Final = 500_000
_LENGTH: Final = struct.Struct("<Q")
_TRACE: Final = "trace"


Position = dict[str, Any]
"""What a checkpoint notes of an output: lengths and digests, as JSON can hold them."""


class Outlet(Protocol):
    """Where rows leave."""

    def open(self, schema: pa.Schema, position: Position | None) -> None:
        """Begin, or go back to where `commit` was and forget what came after."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows."""

    def commit(self) -> None:
        """Bring everything to the disk."""

    def position(self) -> Position | None:
        """What was committed last, as `open` takes it."""

    def verify(self, position: Position) -> None:
        """Check a finished output; CheckpointError where it is not as it was."""

    def finish(self) -> None:
        """Show the result under its name. Once more after a crash gives the same."""

    def clean(self) -> None:
        """Remove what was needed only to finish again: called when the end is on record."""

    def close(self) -> None:
        """Let go."""


class FileOutlet:
    """One file. It can be committed more than once if the format can be appended to."""

    def __init__(self, encoder: Encoder, sink: FileSink | StandardOutput) -> None:
        self._encoder = encoder
        self._sink = sink
        self._writer: Writer | None = None

    def open(self, schema: pa.Schema, position: Position | None) -> None:
        self._schema = schema
        mark = Mark(**position) if position else None
        self._out = self._sink.resume(mark) if isinstance(self._sink, FileSink) else self._sink.begin()
        self._is_fresh = not (mark and mark.length)

    def write(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows:
            self._piece().write(batch)
            if isinstance(self._sink, StandardOutput):
                self._sink.commit()  # whoever reads the pipe is waiting

    def _piece(self) -> Writer:
        if self._writer is None:
            self._writer = self._encoder.open(self._out, self._schema, fresh=self._is_fresh)
            self._is_fresh = False
        return self._writer

    def commit(self) -> None:
        if self._is_fresh or self._writer is not None:  # a file without rows still says what its columns are
            self._piece().close()
            self._writer = None
        self._sink.commit()

    def position(self) -> Position | None:
        mark = self._sink.mark if isinstance(self._sink, FileSink) else None
        return asdict(mark) if mark else None

    def verify(self, position: Position) -> None:
        if isinstance(self._sink, FileSink):
            self._sink.verify(Mark(**position))

    def finish(self) -> None:
        self._sink.finish()

    def clean(self) -> None:
        pass

    def discard(self) -> None:
        """Give up: nothing of a file that is not finished stays."""
        _abandon(self._writer)
        self._sink.discard()

    def close(self) -> None:
        _abandon(self._writer)
        self._sink.close()


class FolderOutlet:
    """A folder of part files; every commit ends a part."""

    def __init__(self, encoder: Encoder, sink: PartsSink, *, rows_a_part: int = _ROWS_A_PART) -> None:
        self._encoder = encoder
        self._sink = sink
        self._rows_a_part = rows_a_part
        self._writer: Writer | None = None
        self._rows = 0

    def open(self, schema: pa.Schema, position: Position | None) -> None:
        self._schema = schema
        self._sink.resume(None if position is None else _marks(position))

    def write(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        self._piece().write(batch)
        self._rows += batch.num_rows
        if self._rows >= self._rows_a_part:
            self.commit()

    def _piece(self) -> Writer:
        if self._writer is None:
            self._writer = self._encoder.open(self._sink.begin(), self._schema, fresh=True)
            self._rows = 0
        return self._writer

    def commit(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._sink.commit()

    def position(self) -> Position:
        return {"parts": [list(astuple(mark)) for mark in self._sink.marks]}

    def verify(self, position: Position) -> None:
        marks = _marks(position)
        self._sink.verify(marks)
        self._sink.refuse_foreign(len(marks), is_finished=True)

    def finish(self) -> None:
        if not self._sink.paths():  # no rows at all: one part that says what the columns are
            self._piece()
        self.commit()
        self._sink.finish()

    def clean(self) -> None:
        pass

    def close(self) -> None:
        _abandon(self._writer)
        self._sink.close()


class AssembledOutlet:
    """One file of a format that cannot be appended to: parts beside it until the end, then one file of them."""

    def __init__(self, encoder: Encoder, path: Path, *, private: bool = False) -> None:
        self._encoder = encoder
        folder = path.with_name(path.name + ".parts")
        self._parts = PartsSink(folder, encoder.suffix, private=private, checked=True)
        self._folder = FolderOutlet(encoder, self._parts)
        self._target = FileSink(path, private=private, checked=True)
        self._joined: Mark | None = None

    def open(self, schema: pa.Schema, position: Position | None) -> None:
        self._schema = schema
        # The parts go only when the end is on record; a run that lost that record finds the file alone.
        joined = (position or {}).get("joined")
        if joined and not self._parts.folder.exists():
            self.verify({"joined": joined})
            self._joined, self._parts.marks = Mark(**joined), _marks(position or {})
        else:
            check_target(self._target.path)
            self._folder.open(schema, position)

    def write(self, batch: pa.RecordBatch) -> None:
        self._folder.write(batch)

    def commit(self) -> None:
        self._folder.commit()

    def position(self) -> Position:
        joined = {"joined": asdict(self._joined)} if self._joined else {}
        return {**self._folder.position(), **joined}

    def verify(self, position: Position) -> None:
        self._target.verify(Mark(**position["joined"]))

    def finish(self) -> None:
        """Join the parts, checked once more; they stay until the end is on record."""
        if self._joined:
            return
        self._folder.finish()
        self._parts.verify(self._parts.marks)
        with ExitStack() as stack:
            pieces = [stack.enter_context(open_to_read(path)) for path in self._parts.paths()]
            self._encoder.join(pieces, self._target.resume(None), self._schema)
        self._target.commit()
        self._joined = self._target.mark
        self._target.finish()

    def clean(self) -> None:
        self._parts.remove()

    def close(self) -> None:
        self._folder.close()
        self._target.close()


def _marks(position: Position) -> list[Mark]:
    return [Mark(*entry) for entry in position["parts"]]


class SealedEncoder(Encoder):
    """Pieces of another format, each sealed before it reaches the disk; a length stands before each."""

    appendable: ClassVar[bool] = True

    def __init__(self, inner: Encoder, secret: Secret) -> None:
        self._inner = inner
        self._secret = secret

    @property
    def suffix(self) -> str:
        return self._inner.suffix + ".sealed"

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _SealedWriter(self._inner, self._secret, out, schema)


class _SealedWriter(Writer):
    def __init__(self, inner: Encoder, secret: Secret, out: BinaryIO, schema: pa.Schema) -> None:
        self._inner, self._secret, self._out, self._schema = inner, secret, out, schema
        self._begin()

    def _begin(self) -> None:
        self._memory = io.BytesIO()
        self._writer = self._inner.open(self._memory, self._schema, fresh=True)
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROWS_A_SEALED_PIECE:
            self.close()
            self._begin()

    def abandon(self) -> None:
        self._writer.abandon()

    def close(self) -> None:
        self._writer.close()
        sealed = seal(self._secret, self._memory.getvalue(), purpose=_TRACE)
        self._out.write(_LENGTH.pack(len(sealed)) + sealed)


def _abandon(writer: Writer | None) -> None:
    """A piece that is still open when its outlet is closed belongs to a run that failed."""
    if writer is not None:
        writer.abandon()


def is_sealed_trace(path: Path) -> bool:
    """Whether a trace was sealed when it was written."""
    with path.open("rb") as file:
        return file.read(_LENGTH.size + len(MAGIC))[_LENGTH.size :] == MAGIC


def read_sealed_trace(path: Path, secret: Secret) -> pa.Table:
    """Open a sealed trace."""
    with closing(path.open("rb")) as file:
        tables = [pq.read_table(io.BytesIO(unseal(secret, piece, purpose=_TRACE))) for piece in _pieces(file, path)]
    return pa.concat_tables(tables, promote_options="permissive")


def _pieces(file: BinaryIO, path: Path) -> Iterator[bytes]:
    while head := file.read(_LENGTH.size):
        (length,) = _LENGTH.unpack(head.ljust(_LENGTH.size, b"\x00"))
        piece = file.read(length)
        if len(piece) < length:
            raise VaultError(f"{path}: the sealed trace breaks off; its run may still be going on")
        yield piece
