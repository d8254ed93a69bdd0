"""Inputs that follow a script: bytes in pieces, or records, idle times and errors at chosen points."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any, BinaryIO, cast

import pyarrow as pa

from shoal.sources.base import Decoded, End, FiniteSource, Idle, Polled, Position

Step = bytes | Exception


class ScriptedFile:
    """A file for decoders; every `open` starts the script again.

    Parameters
    ----------
    script
        Pieces of bytes and exceptions. No read crosses the end of a piece. An exception is raised when it is reached,
        and again by every later read.

    Examples
    --------
    >>> from shoal.errors import TruncatedInput
    >>> file = ScriptedFile([b"user,ts", b"\\nann,1\\n", TruncatedInput("broke off")])
    >>> stream = file.open()
    >>> stream.read(100), stream.read(3)
    (b'user,ts', b'\\nan')
    """

    def __init__(self, script: Iterable[Step], *, name: str = "scripted") -> None:
        self._script = tuple(script)
        self._name = name
        self.openings = 0

    @property
    def name(self) -> str:
        """The name used in messages."""
        return self._name

    def open(self) -> BinaryIO:
        """The bytes from the start."""
        self.openings += 1
        return cast(BinaryIO, _Playing(self._script))

    def open_seekable(self) -> Any:
        """An Arrow file over the whole script; an error of the script is raised at once."""
        self.openings += 1
        return pa.BufferReader(_Playing(self._script).readall())


class _Playing(io.RawIOBase):
    def __init__(self, script: tuple[Step, ...]) -> None:
        self._left = list(script)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        while self._left:
            step = self._left[0]
            if isinstance(step, Exception):
                raise step
            taken = step if size < 0 else step[:size]
            self._left[:1] = [step[len(taken) :]] if len(taken) < len(step) else []
            if taken or size == 0:
                return taken
        return b""

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer)
        taken = self.read(len(view))
        view[: len(taken)] = taken
        return len(taken)

    def readall(self) -> bytes:
        pieces = []
        while piece := self.read():
            pieces.append(piece)
        return b"".join(pieces)


class ScriptedSource(FiniteSource):
    """A source that follows a script of batches, idle times, marks and errors.

    Parameters
    ----------
    script
        Batches, :class:`~shoal.sources.base.Idle` and :class:`~shoal.sources.base.Mark` are returned by `poll`; an
        exception is raised. The source ends after the last step. A position is the number of steps up to the last one
        that was not idle.
    schema
        The columns of the batches.

    Examples
    --------
    >>> batch = pa.record_batch({"user": ["ann", "bob"]})
    >>> source = ScriptedSource([batch, Idle(1)], schema=batch.schema)
    >>> source.open(("user",), None)
    >>> source.poll().rows, source.poll(), source.poll()
    (2, Idle(now=1), End())
    """

    name = "scripted"
    inputs = 1
    numbers_rows = False

    def __init__(self, script: Iterable[pa.RecordBatch | Polled | Exception], *, schema: pa.Schema) -> None:
        self.schema = schema
        self._script = tuple(script)
        self._step = self._after = 0

    def identity(self) -> dict[str, str]:
        """Scripts of the same name count as the same input."""
        return {self.name: "-"}

    def first_rows(self, columns: tuple[str, ...], count: int) -> pa.Table | None:
        """None: a script is read once."""

    def open(self, columns: tuple[str, ...], position: Position | None) -> None:
        """Go to a step; the columns are those of the script."""
        self._step = self._after = position["step"] if position else 0

    def poll(self) -> Polled:
        """Take the next step."""
        if self._step == len(self._script):
            return End()
        step = self._script[self._step]
        self._step += 1
        if isinstance(step, Exception):
            raise step
        if not isinstance(step, Idle):
            self._after = self._step
        return Decoded(step, (), self.position) if isinstance(step, pa.RecordBatch) else step

    @property
    def position(self) -> Position:
        """The steps taken, up to the last one that was not idle."""
        return {"step": self._after}

    def place(self, row: int) -> dict[str, Any]:
        """The number of the record, from 1."""
        return {"row": row + 1}

    def close(self) -> None:
        """Nothing is open."""
