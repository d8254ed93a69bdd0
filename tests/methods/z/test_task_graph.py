"""Tasks are done after those they need, the most urgent first, in all threads."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from random import Random

import pytest

from shoal.methods.z import helper_thread
from shoal.methods.z.task_graph import Task, run_all


class BusyPool:
    """Helpers that never begin."""

    def submit(self, function, *args, **kwargs):
        return Future()


@pytest.fixture(params=[0, 1, 3], ids="{} helpers".format)
def _threads(request, monkeypatch):
    monkeypatch.setattr(helper_thread, "helpers", lambda: max(1, request.param))
    with ThreadPoolExecutor(max(1, request.param)) as pool:
        monkeypatch.setattr(helper_thread, "_pool", lambda: pool if request.param else BusyPool())
        yield


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("seed", range(5))
def test_every_task_is_done_once_and_after_those_it_needs(seed):
    random, done, tasks, needs = Random(seed), [], [], []
    for number in range(60):
        needs.append(random.sample(range(number), min(number, random.randrange(3))))
        after = [tasks[one] for one in needs[-1]]
        tasks.append(Task((random.randrange(4), number), lambda number=number: done.append(number), after))
    run_all(tasks)
    assert sorted(done) == list(range(60))
    place = {number: at for at, number in enumerate(done)}
    assert all(place[one] < place[number] for number in range(60) for one in needs[number])


def test_of_ready_tasks_the_most_urgent_is_begun_first(monkeypatch):
    monkeypatch.setattr(helper_thread, "_pool", BusyPool)
    done = []
    first = Task((9,), lambda: done.append("first"))
    later = [Task((rank,), lambda rank=rank: done.append(rank), [first]) for rank in (3, 1, 2)]
    run_all([*later, first])
    assert done == ["first", 1, 2, 3]


@pytest.mark.usefixtures("_threads")
def test_an_error_reaches_the_caller_and_nothing_that_needs_the_task_is_done():
    done = []
    broken = Task((0,), lambda: 1 // 0)
    tasks = [broken, Task((0,), lambda: done.append(1), [broken])]
    with pytest.raises(ZeroDivisionError):
        run_all(tasks)
    assert not done
