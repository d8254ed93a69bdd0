"""Released rows for those who listen: `GET /released` streams them from the moment it is asked.

All listeners read the same recent rows, each at its own place, so a listener costs nothing while it does not read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from io import BytesIO
from threading import Lock
from typing import Final

import pyarrow as pa

from shoal.encode.jsonl import JsonlEncoder

MOST_BYTES: Final = 64 * 1024 * 1024
"""What is kept for listeners, for all of them together."""
MOST_LISTENERS: Final = 100
_PIECE_BYTES: Final = 1024
"""What a batch takes in addition to its rows, about."""


class TooSlow(Exception):
    """A listener has not read for so long that rows it did not read are gone."""


class _Piece:
    """Rows that were released together; encoded when the first listener reads them."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.nbytes = int(rows.nbytes) + _PIECE_BYTES
        self.lines: bytes | None = None
        self._rows = rows
        self._lock = Lock()

    def encoded(self) -> bytes:
        """The rows as JSON lines."""
        with self._lock:
            return self.lines if self.lines is not None else _lines(self._rows)


class Listener:
    """One stream of released rows. It ends when its reader falls too far behind, rather than leave out rows."""

    def __init__(self, rows: ReleasedRows, first: int) -> None:
        self._all = rows
        self.next = first

    async def get(self) -> bytes | None:
        """The next rows as JSON lines; None at the end. TooSlow: they are gone."""
        while (piece := self._all.piece(self)) is None:
            if not await self._all.wait(self):
                return None
        self.next += 1
        if piece.lines is None:
            await asyncio.to_thread(self._all.encode, piece)
        return piece.lines


class ReleasedRows:
    """The newest released rows, as long as there is a listener; without a listener it does nothing.

    Parameters
    ----------
    most_bytes
        How much is kept, for all listeners together: one that is further behind is cut off.
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._pieces: deque[_Piece] = deque()
        self._first = 0
        """The number of the oldest piece."""
        self._bytes = 0
        self._listeners: list[Listener] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._is_closed = False
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """What is kept."""
        return self._bytes

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows were released; called by the thread of the run."""
        if not self._listeners or not rows.num_rows:
            return
        piece = _Piece(rows)
        with self._lock:
            self._pieces.append(piece)
            self._bytes += piece.nbytes
            self._forget()
        self._wake()

    def _forget(self) -> None:
        """Drop what all listeners have read, and the oldest pieces beyond the bytes that may be kept."""
        read = min((one.next for one in self._listeners), default=self._first + len(self._pieces))
        while self._pieces and (self._first < read or (self._bytes > self._most_bytes and len(self._pieces) > 1)):
            self._bytes -= self._pieces.popleft().nbytes
            self._first += 1

    def _wake(self) -> None:
        """Let listeners go on that wait for rows: one call for all of them."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            waiting[0].get_loop().call_soon_threadsafe(_go_on, waiting)
        except RuntimeError:  # the loop is closed: the server has ended
            return

    # ---- for listeners, in the loop of the server

    def listen(self) -> Listener | None:
        """Begin a stream; None if there are too many."""
        with self._lock:
            if len(self._listeners) >= MOST_LISTENERS:
                return None
            listener = Listener(self, self._first + len(self._pieces))
            self._listeners = [*self._listeners, listener]
        return listener

    def leave(self, listener: Listener) -> None:
        """End a stream."""
        with self._lock:
            self._listeners = [one for one in self._listeners if one is not listener]
            self._forget()

    def piece(self, listener: Listener) -> _Piece | None:
        """What comes next; None if there is nothing yet. TooSlow if it is gone."""
        with self._lock:
            place = listener.next - self._first
            if place < 0:
                raise TooSlow
            return self._pieces[place] if place < len(self._pieces) else None

    async def wait(self, listener: Listener) -> bool:
        """Wait until there is something; returns False if there will be nothing."""
        with self._lock:
            if listener.next < self._first + len(self._pieces):
                return True
            if self._is_closed:
                return False
            news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(news)
        await news
        return True

    def encode(self, piece: _Piece) -> None:
        """Make the lines of a piece, once for all listeners."""
        lines = piece.encoded()
        with self._lock:
            if piece.lines is not None:
                return
            size = len(lines) + _PIECE_BYTES
            self._bytes += size - piece.nbytes if piece in self._pieces else 0
            piece.lines, piece.nbytes = lines, size

    def close(self) -> None:
        """End all streams once their rows are read."""
        with self._lock:
            self._is_closed = True
        self._wake()


def _go_on(waiting: list[asyncio.Future[None]]) -> None:
    for one in waiting:
        if not one.done():
            one.set_result(None)


def _lines(rows: pa.RecordBatch) -> bytes:
    out = BytesIO()
    JsonlEncoder().open(out, rows.schema, fresh=True).write(rows)
    return out.getvalue()
