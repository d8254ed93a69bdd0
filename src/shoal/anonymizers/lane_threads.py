"""Threads for lanes: work that can be done side by side, the caller doing its share.

The kernels, Arrow and NumPy let go of the interpreter lock, so threads really run at once. What comes out does not
depend on which of them did what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

_Made = TypeVar("_Made")


@cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="shoal-lane")


os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads do not survive a fork


def run_all(jobs: Sequence[Callable[[], object]]) -> None:
    """Do all jobs at once, the first in the thread that asks: give it the longest, others must wake up first."""
    own, *others = jobs
    under_way = [_helpers(len(others)).submit(job) for job in others]
    try:
        own()
    finally:
        for one in under_way:
            one.exception()  # nobody may still work on what the caller goes on with
    for one in under_way:
        one.result()


def share_out(work: Callable[[int], _Made], count: int, threads: int) -> list[_Made]:
    """What work makes of 0, 1, 2, …; each thread takes the next number when it is done with one."""
    numbers, made = iter(range(count)), dict[int, _Made]()

    def take_turns(numbers: Iterator[int]) -> None:
        for number in numbers:
            made[number] = work(number)

    run_all([lambda: take_turns(numbers)] * threads)
    return [made[number] for number in range(count)]
