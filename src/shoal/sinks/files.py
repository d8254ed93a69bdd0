"""Rows to files and standard output: an encoder and a file that appears only when it is complete."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import asdict, astuple
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from shoal.crypto.safe_open import open_to_read
from shoal.encode.base import Encoder, Writer
from shoal.sinks.atomic_file import AtomicFile, check_target
from shoal.sinks.base import PlainSink, Receipt
from shoal.sinks.durable import Guarded
from shoal.sinks.marks import Mark
from shoal.sinks.part_files import PartFiles

_ROWS_A_PART: Final = 5_000_000


class FileSink(PlainSink):
    """One file. It can be committed more than once if the format can be appended to."""

    def __init__(self, encoder: Encoder, file: AtomicFile) -> None:
        self._encoder = encoder
        self._file = file
        self._writer: Writer | None = None

    def open(self, schema: pa.Schema) -> None:
        self._begin(schema, self._file.resume(None), is_empty=True)

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        mark = Mark(**receipt)
        self._begin(schema, self._file.resume(mark), is_empty=not mark.length)

    def _begin(self, schema: pa.Schema, out: BinaryIO, *, is_empty: bool) -> None:
        self._schema, self._out, self._is_empty = schema, out, is_empty

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._piece().write(rows)

    def _piece(self) -> Writer:
        if self._writer is None:
            self._writer = self._encoder.open(self._out, self._schema, fresh=self._is_empty)
            self._is_empty = False
        return self._writer

    def _end_piece(self) -> None:
        if self._is_empty or self._writer is not None:  # a file without rows still has its columns
            self._piece().close()
            self._writer = None

    def commit(self, epoch: int) -> Receipt | None:
        self._end_piece()
        self._file.commit()
        return self._receipt()

    def _receipt(self) -> Receipt | None:
        return asdict(self._file.mark) if self._file.mark else None

    def finish(self) -> Receipt | None:
        self._file.finish()
        return self._receipt()

    def verify(self, receipt: Receipt) -> None:
        self._file.verify(Mark(**receipt))

    def clean(self) -> None:
        """Nothing to remove."""

    def discard(self) -> None:
        """Remove an unfinished file."""
        _abandon(self._writer)
        self._file.discard()

    def close(self) -> None:
        _abandon(self._writer)
        self._file.close()


class StandardOutputSink(PlainSink):
    """Standard output: every batch is flushed at once, because the reader of a pipe waits for it."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._out = Guarded(sys.stdout.buffer, "standard output", keep_open=True)
        self._writer: Writer | None = None

    def open(self, schema: pa.Schema) -> None:
        self._schema = schema

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        raise NotImplementedError("a policy with a checkpoint does not write to standard output")

    def write(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._piece().write(rows)
            self._out.flush()

    def _piece(self) -> Writer:
        if self._writer is None:
            self._writer = self._encoder.open(self._out, self._schema, fresh=True)  # type: ignore[arg-type]
        return self._writer

    def commit(self, epoch: int) -> Receipt | None:
        """Nothing can be recovered, so this only flushes."""
        self._out.flush()
        return None

    def finish(self) -> Receipt | None:
        self._piece().close()
        self._writer = None
        self._out.flush()
        return None

    def verify(self, receipt: Receipt) -> None:
        """What was written cannot be read back."""

    def clean(self) -> None:
        """Nothing to remove."""

    def close(self) -> None:
        _abandon(self._writer)


class FolderSink(PlainSink):
    """A folder of part files; every commit ends a part."""

    def __init__(self, encoder: Encoder, parts: PartFiles, *, rows_a_part: int = _ROWS_A_PART) -> None:
        self._encoder = encoder
        self._parts = parts
        self._rows_a_part = rows_a_part
        self._writer: Writer | None = None
        self._rows = 0

    def open(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._parts.resume(None)

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self._schema = schema
        self._parts.resume(marks_of(receipt))

    def write(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        self._piece().write(rows)
        self._rows += rows.num_rows
        if self._rows >= self._rows_a_part:
            self._end_part()

    def _piece(self) -> Writer:
        if self._writer is None:
            self._writer = self._encoder.open(self._parts.begin(), self._schema, fresh=True)
            self._rows = 0
        return self._writer

    def _end_part(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._parts.commit()

    def commit(self, epoch: int) -> Receipt:
        self._end_part()
        return self._receipt()

    def _receipt(self) -> Receipt:
        return {"parts": [list(astuple(mark)) for mark in self._parts.marks]}

    def finish(self) -> Receipt:
        if not self._parts.paths():  # no rows at all: one part that has the columns
            self._piece()
        self._end_part()
        self._parts.finish()
        return self._receipt()

    def verify(self, receipt: Receipt) -> None:
        marks = marks_of(receipt)
        self._parts.verify(marks)
        self._parts.refuse_foreign(len(marks), is_finished=True)

    def clean(self) -> None:
        """Nothing to remove."""

    def close(self) -> None:
        _abandon(self._writer)
        self._parts.close()


class JoinedFileSink(PlainSink):
    """One file of a format that cannot be appended to: part files next to it, joined at the end."""

    def __init__(self, encoder: Encoder, path: Path, *, private: bool = False) -> None:
        self._encoder = encoder
        folder = path.with_name(path.name + ".parts")
        self._parts = PartFiles(folder, encoder.suffix, private=private, checked=True)
        self._folder = FolderSink(encoder, self._parts)
        self._file = AtomicFile(path, private=private, checked=True)
        self._joined: Mark | None = None

    def open(self, schema: pa.Schema) -> None:
        self._schema = schema
        check_target(self._file.path)
        self._folder.open(schema)

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self._schema = schema
        # Parts are removed only after the checkpoint records the end; a run that lost that checkpoint finds the file
        # alone.
        if "joined" in receipt and not self._parts.folder.exists():
            self.verify(receipt)
            self._joined, self._parts.marks = Mark(**receipt["joined"]), marks_of(receipt)
        else:
            check_target(self._file.path)
            self._folder.recover(schema, receipt)

    def write(self, rows: pa.RecordBatch) -> None:
        self._folder.write(rows)

    def commit(self, epoch: int) -> Receipt:
        return {**self._folder.commit(epoch), **self._joined_receipt()}

    def _joined_receipt(self) -> Receipt:
        return {"joined": asdict(self._joined)} if self._joined else {}

    def finish(self) -> Receipt:
        """Verify the parts again and join them; they stay until the checkpoint records the end."""
        if not self._joined:
            self._folder.finish()
            self._parts.verify(self._parts.marks)
            with ExitStack() as stack:
                pieces = [stack.enter_context(open_to_read(path)) for path in self._parts.paths()]
                self._encoder.join(pieces, self._file.resume(None), self._schema)
            self._file.commit()
            self._joined = self._file.mark
            self._file.finish()
        return {"parts": [list(astuple(mark)) for mark in self._parts.marks], **self._joined_receipt()}

    def verify(self, receipt: Receipt) -> None:
        self._file.verify(Mark(**receipt["joined"]))

    def clean(self) -> None:
        self._parts.remove()

    def close(self) -> None:
        self._folder.close()
        self._file.close()


def marks_of(receipt: Receipt) -> list[Mark]:
    """The marks of part files in a receipt."""
    return [Mark(*entry) for entry in receipt["parts"]]


def _abandon(writer: Writer | None) -> None:
    """Drop a piece that is still open when its sink is closed: the run failed."""
    if writer is not None:
        writer.abandon()
