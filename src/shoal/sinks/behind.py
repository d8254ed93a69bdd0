"""Write behind: rows are encoded and written in another thread while the next ones are anonymized."""

from __future__ import annotations

from collections import deque
from threading import Condition, Thread
from typing import Final

import pyarrow as pa

from shoal.sinks.base import PlainSink, Receipt, Sink

_HELD_BYTES: Final = 32 * 1024 * 1024
"""Rows may wait up to this size; then `write` waits."""


class WriteBehind(PlainSink):
    """A sink whose rows are written in a thread, in order. Every other call first waits until all are written.

    An error of the thread is raised by the next call.
    """

    def __init__(self, sink: Sink, *, held_bytes: int = _HELD_BYTES) -> None:
        self._sink = sink
        self._most = held_bytes
        self._rows: deque[pa.RecordBatch] = deque()
        self._bytes = 0
        self._changed = Condition()
        self._error: BaseException | None = None
        self._is_closed = False
        self._thread: Thread | None = None

    def open(self, schema: pa.Schema) -> None:
        self._sink.open(schema)

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self._sink.recover(schema, receipt)

    def write(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        if self._thread is None:
            self._thread = Thread(target=self._work, name="shoal write behind", daemon=True)
            self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < self._most or self._error is not None)
            self._raise()
            self._rows.append(rows)
            self._bytes += rows.nbytes
            self._changed.notify_all()

    def commit(self, epoch: int) -> Receipt | None:
        self._drain()
        return self._sink.commit(epoch)

    def finish(self) -> Receipt | None:
        self._drain()
        return self._sink.finish()

    def verify(self, receipt: Receipt) -> None:
        self._sink.verify(receipt)

    def clean(self) -> None:
        self._sink.clean()

    def close(self) -> None:
        """Stop; rows that wait are dropped."""
        with self._changed:
            self._is_closed = True
            self._rows.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
        self._sink.close()

    def _drain(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._bytes or self._error is not None)
            self._raise()

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._rows or self._is_closed)
                if self._is_closed:
                    return
                rows = self._rows.popleft()
            try:
                self._sink.write(rows)
            except BaseException as error:  # raised again by the next call
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._bytes -= rows.nbytes
                self._changed.notify_all()
