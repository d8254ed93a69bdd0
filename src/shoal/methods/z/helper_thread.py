"""One more thread: it reads the next piece of a batch and writes out the last while the present one is decided.

Deciding is one step after another by nature; hashing, pseudonyms and building rows are not. The kernels let go of the
interpreter lock, so the two really run side by side. What is decided does not depend on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final, ParamSpec, TypeVar

SMALLEST_PIECE: Final = 16_384
LARGEST_PIECE: Final = 65_536

_P = ParamSpec("_P")
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


@lru_cache(maxsize=1)
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="shoal")


os.register_at_fork(after_in_child=_thread.cache_clear)  # threads do not survive a fork


def piece_rows(rows: int) -> int:
    """Rows of a piece: small enough that both threads soon have work, large enough to be worth a handover."""
    return min(max(SMALLEST_PIECE, -(-rows // 4)), LARGEST_PIECE)


def soon(function: Callable[_P, _Made], *args: _P.args, **kwargs: _P.kwargs) -> Callable[[], _Made]:
    """Call a function in the other thread; calling what is returned waits for the result."""
    return _thread().submit(function, *args, **kwargs).result


def one_ahead(function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
    """The function of each item, always made one item ahead in the other thread."""
    waiting: Callable[[], _Made] | None = None
    for item in items:
        following = soon(function, item)
        if waiting is not None:
            yield waiting()
        waiting = following
    if waiting is not None:
        yield waiting()
