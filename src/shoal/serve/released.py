"""Released rows for those who listen: `GET /released` streams them from the moment it is asked."""

from __future__ import annotations

import asyncio
from io import BytesIO
from threading import Lock
from typing import Final

import pyarrow as pa

from shoal.encode.jsonl import JsonlEncoder

_MOST_BYTES: Final = 64 * 1024 * 1024
"""What a listener may be behind before its stream ends."""


class Listener:
    """One stream of released rows. It ends when its reader falls too far behind, rather than leave out rows."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[pa.RecordBatch | None] = asyncio.Queue()
        self._bytes = 0
        self._lock = Lock()

    def put(self, rows: pa.RecordBatch) -> bool:
        """Hand over rows, from any thread; returns whether the listener still listens."""
        with self._lock:
            self._bytes += rows.nbytes
            is_late = self._bytes > _MOST_BYTES
        return self._send(None if is_late else rows) and not is_late

    def end(self) -> None:
        """No more rows."""
        self._send(None)

    def _send(self, rows: pa.RecordBatch | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, rows)
        except RuntimeError:  # the loop is closed: the server has ended
            return False
        return True

    async def get(self) -> bytes | None:
        """The next rows as JSON lines; None at the end."""
        rows = await self._queue.get()
        if rows is None:
            return None
        with self._lock:
            self._bytes -= rows.nbytes
        return await asyncio.to_thread(_lines, rows)


class ReleasedRows:
    """Passes released rows on to all listeners; without one, it does nothing."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._lock = Lock()

    def add(self, rows: pa.RecordBatch) -> None:
        """Rows were released."""
        if not self._listeners or not rows.num_rows:
            return
        with self._lock:
            self._listeners = [one for one in self._listeners if one.put(rows)]

    def listen(self) -> Listener:
        """Begin a stream; called in the loop that reads it."""
        listener = Listener()
        with self._lock:
            self._listeners = [*self._listeners, listener]
        return listener

    def leave(self, listener: Listener) -> None:
        """End a stream."""
        with self._lock:
            self._listeners = [one for one in self._listeners if one is not listener]

    def close(self) -> None:
        """End all streams."""
        with self._lock:
            for one in self._listeners:
                one.end()
            self._listeners = []


def _lines(rows: pa.RecordBatch) -> bytes:
    out = BytesIO()
    JsonlEncoder().open(out, rows.schema, fresh=True).write(rows)
    return out.getvalue()
