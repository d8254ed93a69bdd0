"""Threads for lanes: they run side by side, and who is done early does chores until the last one is.

The kernels, Arrow and NumPy let go of the interpreter lock, so threads really run at once. What comes out does not
depend on which of them did what.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Generic, TypeVar

_Made = TypeVar("_Made")


@cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="shoal-lane")


os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads do not survive a fork


class Chore(Generic[_Made]):
    """Something to be made of 0, 1, 2, …: helpers make some of it, who needs it makes the rest."""

    def __init__(self, work: Callable[[int], _Made], count: int) -> None:
        self._work, self._count = work, count
        self._numbers = iter(range(count))
        self._made: dict[int, _Made] = {}

    def help(self) -> bool:
        """Make one more; False where nothing is left to begin."""
        number = next(self._numbers, None)  # no two threads get the same
        if number is None:
            return False
        self._made[number] = self._work(number)
        return True

    def result(self) -> list[_Made]:
        """Everything; only asked for while nobody helps."""
        while self.help():
            pass
        return [self._made[number] if number in self._made else self._work(number) for number in range(self._count)]


class Chores:
    """Chores in the order in which they will be needed."""

    def __init__(self) -> None:
        self._waiting: deque[Chore[Any]] = deque()

    def add(self, chore: Chore[Any]) -> None:
        """Let others help with this one too."""
        self._waiting.append(chore)

    def help(self) -> bool:
        """Do a bit of the first chore; False where there is none."""
        while self._waiting:
            first = self._waiting[0]
            try:
                if first.help():
                    return True
            except Exception:  # who needs it will do it again, and meet the error
                return True
            if self._waiting and self._waiting[0] is first:
                self._waiting.popleft()
        return False


def run_all(jobs: Sequence[Callable[[], object]], chores: Chores) -> None:
    """Do all jobs at once, the first in the thread that asks: give it the longest, others must wake up first."""
    unfinished = list(jobs)

    def take_part(job: Callable[[], object]) -> None:
        try:
            job()
        finally:
            unfinished.pop()
        while unfinished and chores.help():
            pass

    own, *others = jobs
    under_way = [_helpers(len(others)).submit(take_part, job) for job in others]
    try:
        take_part(own)
    finally:
        for one in under_way:
            one.exception()  # nobody may still be at work when the caller goes on
    for one in under_way:
        one.result()
