"""One helper thread: it reads the next piece of a batch and publishes the last one while the current one is decided.

Decisions depend on each other; hashing, pseudonyms and building rows do not. The kernels release the interpreter lock,
so both threads run in parallel. The decisions do not depend on it.
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
    """Rows of a piece: small enough that both threads soon have work, large enough to be worth the handover."""
    return min(max(SMALLEST_PIECE, -(-rows // 4)), LARGEST_PIECE)


def soon(function: Callable[_P, _Made], *args: _P.args, **kwargs: _P.kwargs) -> Callable[[], _Made]:
    """Call a function in the helper thread; calling the returned function waits for the result."""
    return _thread().submit(function, *args, **kwargs).result


def one_ahead(function: Callable[[_Item], _Made], items: Iterable[_Item]) -> Iterator[_Made]:
    """Map a function over items, always one item ahead in the helper thread."""
    waiting: Callable[[], _Made] | None = None
    for item in items:
        following = soon(function, item)
        if waiting is not None:
            yield waiting()
        waiting = following
    if waiting is not None:
        yield waiting()
