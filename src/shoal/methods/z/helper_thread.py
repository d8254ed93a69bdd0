"""Helper threads: they read the next pieces of a batch and publish the last ones while the current one is decided.

Decisions depend on each other; hashing, pseudonyms and building rows do not. The kernels release the interpreter lock,
so all threads run in parallel. A thread that needs a result that no helper has begun to make makes it itself: no thread
waits while there is work. The decisions do not depend on any of this.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Final, ParamSpec, TypeVar

SMALLEST_PIECE: Final = 16_384
LARGEST_PIECE: Final = 65_536
_PIECES: Final = 8
"""Pieces of a batch, within the bounds above: enough of them keep all threads at work."""
_MOST_HELPERS: Final = 2
"""Reading and publishing take twice as long as deciding, so a third helper would wait."""

_P = ParamSpec("_P")
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def helpers() -> int:
    """The number of helper threads: one for each further processor, while that pays."""
    return max(1, min(len(os.sched_getaffinity(0)) - 1, _MOST_HELPERS))


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=helpers(), thread_name_prefix="shoal")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def piece_rows(rows: int) -> int:
    """Rows of a piece: small enough that all threads soon have work, large enough to be worth the handover."""
    return min(max(SMALLEST_PIECE, -(-rows // _PIECES)), LARGEST_PIECE)


def soon(function: Callable[_P, _Made], *args: _P.args, **kwargs: _P.kwargs) -> Callable[[], _Made]:
    """Call a function in a helper thread; the returned function gives the result, or calls it if no helper has yet."""
    future = _pool().submit(function, *args, **kwargs)
    return lambda: function(*args, **kwargs) if future.cancel() else future.result()


def ahead(function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
    """Map a function over items; helper threads work on the next items while the caller uses one."""
    waiting: deque[Callable[[], _Made]] = deque()
    for item in items:
        waiting.append(soon(function, item) if waiting else partial(function, item))  # the caller begins with the first
        if len(waiting) > helpers():
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()
