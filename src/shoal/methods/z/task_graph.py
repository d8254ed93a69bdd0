"""Tasks that depend on each other, done by all threads: each thread takes the most urgent task that is ready.

No thread waits for a helper that has not begun: the calling thread does whatever no helper takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from threading import Condition

from shoal.methods.z import helper_thread


class Task:
    """A call that is ready once all tasks in `after` are done; of ready tasks, the one of least rank is begun first."""

    __slots__ = ("_call", "followers", "rank", "waits")

    def __init__(self, rank: tuple[int, ...], call: Callable[[], None], after: Iterable[Task] = ()) -> None:
        self.rank, self._call = rank, call
        self.followers: list[Task] = []
        self.waits = 0
        """How many tasks must be done before."""
        for one in after:
            one.followers.append(self)
            self.waits += 1

    def __lt__(self, other: Task) -> bool:
        return self.rank < other.rank

    def run(self) -> list[Task]:
        """Do it; return the tasks that may be ready now."""
        self._call()
        return self.followers


def run_all(tasks: list[Task]) -> None:
    """Do all tasks in all threads; raise the first error."""
    work = _Work(tasks)
    helping = [helper_thread.soon(work.run) for _ in range(helper_thread.helpers())]
    work.run()
    for done in helping:
        done()  # one that has not begun finds nothing to do
    if work.error is not None:
        raise work.error


class _Work:
    """Tasks not done yet, shared by all threads."""

    def __init__(self, tasks: list[Task]) -> None:
        self._left = len(tasks)
        self._ready = [task for task in tasks if not task.waits]
        heapify(self._ready)
        self._changed = Condition()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Do tasks until none is left."""
        try:
            task = self._next([])
            while task is not None:
                task = self._next(task.run(), done=1)
        except BaseException as error:  # raised again in the calling thread
            self._stop(error)

    def _next(self, followers: list[Task], done: int = 0) -> Task | None:
        """Wait for a task that is ready; None if nothing is left to do."""
        with self._changed:
            self._left -= done
            for one in followers:
                one.waits -= 1
                if not one.waits:
                    heappush(self._ready, one)
            if len(self._ready) > 1 or not self._left:
                self._changed.notify_all()
            while not self._ready and self._left > 0:
                self._changed.wait()
            return heappop(self._ready) if self._ready and self._left > 0 else None

    def _stop(self, error: BaseException) -> None:
        with self._changed:
            self._left, self.error = 0, self.error or error
            self._ready.clear()
            self._changed.notify_all()
