"""Read ahead: while records are anonymized, the next ones are decoded in another thread."""

from __future__ import annotations

from queue import Empty, Queue
from threading import Event, Thread
from typing import Any, Final

import pyarrow as pa

from shoal.sources.base import End, FiniteSource, Polled, Position, Source

_BATCHES: Final = 2
"""Decoded and not polled yet, at most."""
_TICK: Final = 0.1
"""Seconds after which a waiting thread looks whether the source was closed."""


class ReadAhead(FiniteSource):
    """A source that ends, read ahead in a thread. Records, positions and errors are those of the source itself."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ready: Queue[tuple[Polled | BaseException, Position]] = Queue(_BATCHES)
        self._is_closed = Event()
        self._thread: Thread | None = None
        self._position: Position | None = None
        self._last: Polled | BaseException = End()
        self._has_ended = False

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def schema(self) -> pa.Schema:
        return self._source.schema

    @property
    def inputs(self) -> int:
        return self._source.inputs

    @property
    def numbers_rows(self) -> bool:
        return self._source.numbers_rows

    def identity(self) -> dict[str, str]:
        return self._source.identity()

    def first_rows(self, columns: tuple[str, ...], count: int) -> pa.Table | None:
        return self._source.first_rows(columns, count)

    def open(self, columns: tuple[str, ...], position: Position | None) -> None:
        self._source.open(columns, position)

    def poll(self) -> Polled:
        if self._thread is None:
            self._thread = Thread(target=self._read, name="shoal read ahead", daemon=True)
            self._thread.start()
        if not self._has_ended:
            self._last, self._position = self._ready.get()
            self._has_ended = isinstance(self._last, End | BaseException)
        if isinstance(self._last, BaseException):
            raise self._last
        return self._last

    @property
    def position(self) -> Position:
        return self._source.position if self._position is None else self._position

    def place(self, row: int) -> dict[str, Any]:
        return self._source.place(row)

    def close(self) -> None:
        self._is_closed.set()
        while self._thread is not None and self._thread.is_alive():
            try:
                self._ready.get_nowait()  # so that a thread that waits to hand over goes on
            except Empty:
                self._thread.join(_TICK)
        self._source.close()

    def _read(self) -> None:
        found: Polled | BaseException | None = None
        while not isinstance(found, End | BaseException) and not self._is_closed.is_set():
            try:
                found = self._source.poll()
            except BaseException as error:  # raised again where it is polled
                found = error
            self._ready.put((found, self._source.position))
