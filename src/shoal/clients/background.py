"""Calls that may take long, in a thread of their own, so that the caller can do something else meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from queue import SimpleQueue
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Background(Generic[_T]):
    """Runs one call at a time."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Future[_T], Callable[[], _T]] | None] = SimpleQueue()
        self._running: Future[_T] | None = None
        threading.Thread(target=self._serve, name=f"shoal {name}", daemon=True).start()

    def call(self, work: Callable[[], _T], seconds: float) -> _T | None:
        """What a call returns; None if it is not ready within this time.

        The next `call` then waits for the same one, whatever it was given.
        """
        if self._running is None:
            self._running = Future()
            self._calls.put((self._running, work))
        try:
            result = self._running.result(seconds)
        except FutureTimeout:
            if not self._running.done():
                return None
            self._running = None
            raise
        except BaseException:
            self._running = None
            raise
        self._running = None
        return result

    def close(self) -> None:
        """End the thread after its call, without waiting."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (one := self._calls.get()) is not None:
            future, work = one
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
