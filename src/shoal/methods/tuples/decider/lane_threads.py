"""Threads for lanes: they run in parallel, and a thread whose lane is done helps with waiting tasks.

The kernels, Arrow and NumPy release the interpreter lock, so threads run at the same time. The output does not depend
on which thread did what.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, Generic, TypeVar

_Made = TypeVar("_Made")


@cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="shoal-lane")


os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads do not survive a fork


class Task(Generic[_Made]):
    """A work-stealing map over range(count): helpers compute some items, the caller of result() the rest."""

    def __init__(self, work: Callable[[int], _Made], count: int, helpers: int = 0) -> None:
        self._work, self._count, self._helpers = work, count, helpers
        self._numbers = iter(range(count))
        self._made: dict[int, _Made] = {}

    def help(self) -> bool:
        """Compute one more item; False where none is left to begin."""
        number = next(self._numbers, None)  # no two threads get the same
        if number is None:
            return False
        self._made[number] = self._work(number)
        return True

    def result(self) -> list[_Made]:
        """All items; threads that are idle help with those that are left."""
        helping = [_helpers(self._helpers).submit(self._help_all) for _ in range(min(self._helpers, self._left()))]
        try:
            self._help_all()
        finally:
            wait_for(helping)
        return [self._made[number] if number in self._made else self._work(number) for number in range(self._count)]

    def _left(self) -> int:
        """About how many items a helper could compute besides the caller."""
        return self._count - len(self._made) - 1

    def _help_all(self) -> None:
        while self.help():
            pass


class Tasks:
    """Tasks in the order in which their results are needed, for this many threads."""

    def __init__(self, threads: int) -> None:
        self.helpers = threads - 1
        """Threads besides the calling one."""
        self._waiting: deque[Task[Any]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def start(self, work: Callable[[int], _Made], count: int) -> Callable[[], list[_Made]]:
        """Let idle threads compute work(0), work(1), …; the returned function gives all of them."""
        task = Task(work, count, self.helpers)
        self._waiting.append(task)
        return task.result

    def help(self) -> bool:
        """Compute one item of the first task; False where there is none."""
        while self._waiting:
            first = self._waiting[0]
            try:
                if first.help():
                    return True
            except Exception:  # the caller of result() computes it again and gets the error
                return True
            if self._waiting and self._waiting[0] is first:
                self._waiting.popleft()
        return False


def run_all(jobs: Sequence[Callable[[], object]], tasks: Tasks) -> None:
    """Run all jobs at once, the first in the calling thread: give it the longest, others must wake up first."""
    unfinished = list(jobs)

    def take_part(job: Callable[[], object]) -> None:
        try:
            job()
        finally:
            unfinished.pop()
        while unfinished and tasks.help():
            pass

    own, *others = jobs
    under_way = [_helpers(len(others)).submit(take_part, job) for job in others]
    try:
        take_part(own)
    finally:
        wait_for(under_way)
    for one in under_way:
        one.result()


def run_helped(job: Callable[[], _Made], tasks: Tasks) -> _Made:
    """Run a job in the calling thread; meanwhile other threads help with tasks."""
    if not tasks:
        return job()
    unfinished = [job]

    def help_meanwhile() -> None:
        while unfinished and tasks.help():
            pass

    helping = [_helpers(tasks.helpers).submit(help_meanwhile) for _ in range(tasks.helpers)]
    try:
        return job()
    finally:
        unfinished.clear()
        wait_for(helping)


def wait_for(futures: Sequence[Future[Any]]) -> None:
    """Wait: no thread may still be at work when the caller goes on."""
    for one in futures:
        one.exception()
