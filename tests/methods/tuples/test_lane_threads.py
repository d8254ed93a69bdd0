"""Jobs side by side, and tasks done by who is early."""

from __future__ import annotations

import threading

import pytest

from shoal.methods.tuples.decider.lane_threads import Task, Tasks, run_all, run_helped


def test_a_task_is_done_by_who_needs_it():
    assert Task(lambda number: number * number, 4).result() == [0, 1, 4, 9]
    assert Task(str, 0).result() == []


def test_helpers_do_a_part_of_it_and_nothing_is_done_twice():
    done = []
    task = Task(lambda number: done.append(number) or -number, 3)
    assert [task.help(), task.help()] == [True, True]
    assert task.result() == [0, -1, -2]
    assert done == [0, 1, 2]
    assert not task.help()


def test_tasks_are_helped_with_in_order():
    done, tasks = [], Tasks(2)
    assert not tasks.help()
    for name in "ab":
        tasks.start(lambda number, name=name: done.append(name + str(number)), 2)
    while tasks.help():
        pass
    assert done == ["a0", "a1", "b0", "b1"]


def test_an_error_meets_who_needs_the_result():
    tasks = Tasks(2)
    result = tasks.start(lambda number: 1 // number, 2)
    while tasks.help():
        pass
    with pytest.raises(ZeroDivisionError):
        result()


@pytest.mark.parametrize("early", [0, 1])
def test_who_is_early_does_tasks_until_the_last_job_is_done(early):
    all_done = threading.Event()
    tasks, done_by = Tasks(2), set()

    def note(number):
        done_by.add(threading.get_ident())
        if number == 4:
            all_done.set()

    tasks.start(note, 5)
    at_work = []

    def work(number):
        at_work.append(threading.get_ident())
        if number != early:
            assert all_done.wait(10)

    run_all([lambda: work(0), lambda: work(1)], tasks)
    assert all_done.is_set()
    assert len(set(at_work)) == 2
    assert len(done_by) == 1


def test_one_job_needs_no_other_thread():
    seen = []
    run_all([lambda: seen.append(threading.current_thread())], Tasks(2))
    assert seen == [threading.current_thread()]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_a_job_is_raised_when_all_have_ended(failing):
    ended = []

    def work(number):
        if number == failing:
            raise ValueError("no")
        ended.append(number)

    with pytest.raises(ValueError, match="no"):
        run_all([lambda: work(0), lambda: work(1)], Tasks(2))
    assert ended == [1 - failing]


def test_threads_help_while_one_job_runs():
    tasks, done = Tasks(2), threading.Event()

    def work(number):
        if number == 2:
            done.set()
        return threading.current_thread()

    results = tasks.start(work, 3)
    assert run_helped(lambda: done.wait(10), tasks)
    assert all(thread is not threading.current_thread() for thread in results())


def test_a_job_that_fails_while_threads_help():
    tasks = Tasks(2)
    tasks.start(lambda number: number, 1)
    with pytest.raises(ZeroDivisionError):
        run_helped(lambda: 1 // 0, tasks)
    assert run_helped(lambda: 5, Tasks(2)) == 5
