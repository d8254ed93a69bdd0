"""Helper threads: they read pieces of a batch, count shards of its values and publish rows, next to the calling thread.

The kernels release the interpreter lock, so all threads run in parallel. A thread that needs a result that no helper
has begun to make makes it itself: no thread waits while there is work. The decisions do not depend on any of this.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Final, ParamSpec, TypeVar

import pyarrow as pa

SMALLEST_PIECE: Final = 16_384
LARGEST_PIECE: Final = 32_768
"""Larger pieces fit the cache less well, and leave threads with nothing to do at the end of a batch."""
_PIECES_OF_A_THREAD: Final = 2
"""Each thread has something to do while the last pieces are counted or published."""
_MOST_HELPERS: Final = 2
"""There are two shards of values, and counting takes half of the time, so a third helper would wait."""

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
    """Rows of a piece: small enough that all threads have some, large enough to be worth the handover."""
    pieces = _PIECES_OF_A_THREAD * (helpers() + 1)
    return min(max(SMALLEST_PIECE, -(-rows // pieces)), LARGEST_PIECE)


def pieces_of(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches, divided into pieces."""
    pieces = []
    for batch in batches:
        rows = piece_rows(batch.num_rows)
        pieces += [batch.slice(start, rows) for start in range(0, batch.num_rows, rows)]
    return pieces


def soon(function: Callable[_P, _Made], *args: _P.args, **kwargs: _P.kwargs) -> Callable[[], _Made]:
    """Call a function in a helper thread; the returned function gives the result, or calls it if no helper has yet."""
    future = _pool().submit(function, *args, **kwargs)
    return lambda: function(*args, **kwargs) if future.cancel() else future.result()


def gathered(waiting: Sequence[Callable[[], _Made]]) -> list[_Made]:
    """All results of soon(), in order; the caller begins with the last, because helpers begin with the first."""
    return [result() for result in reversed(waiting)][::-1]


def each(function: Callable[[_Item], _Made], items: Sequence[_Item], *, rows: int) -> list[_Made]:
    """Map a function over items in all threads, if they are about enough rows to be worth the handover."""
    if rows <= SMALLEST_PIECE:
        return [function(item) for item in items]
    waiting = [soon(function, item) for item in items[1:]]
    return [function(items[0]), *gathered(waiting)]


def ahead(function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
    """Map a function over items; helper threads work on the next items while the caller uses one."""
    waiting: deque[Callable[[], _Made]] = deque()
    for item in items:
        waiting.append(soon(function, item) if waiting else partial(function, item))  # the caller begins with the first
        if len(waiting) > helpers():
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()
