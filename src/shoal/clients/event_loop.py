"""An asyncio event loop in a thread of its own, for clients that only speak asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from shoal.clients.trouble import Unreachable

_T = TypeVar("_T")


class EventLoop:
    """Runs coroutines of a client while the caller waits; the client's own tasks run on in between."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda *_: None)  # the call that fails reports it; tasks may hold data
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"shoal {name}", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, _T], seconds: float) -> _T:
        """The result of a coroutine; Unreachable if it takes longer than this."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except FutureTimeout:
            future.cancel()
            raise Unreachable(f"{self._name} did not answer within {seconds:.0f} s") from None

    def close(self) -> None:
        """Cancel what still runs and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel_all)
            self._thread.join(5)
        if not self._thread.is_alive() and not self._loop.is_closed():
            self._loop.close()

    def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.call_soon(self._loop.call_later, 0.05, self._loop.stop)
        else:
            self._loop.stop()
