"""Jobs side by side, and chores done by who is early."""

from __future__ import annotations

import threading

import pytest

from shoal.methods.tuples.lane_threads import Chore, Chores, run_all


def test_a_chore_is_done_by_who_needs_it():
    assert Chore(lambda number: number * number, 4).result() == [0, 1, 4, 9]
    assert Chore(str, 0).result() == []


def test_helpers_do_a_part_of_it_and_nothing_is_done_twice():
    done = []
    chore = Chore(lambda number: done.append(number) or -number, 3)
    assert [chore.help(), chore.help()] == [True, True]
    assert chore.result() == [0, -1, -2]
    assert done == [0, 1, 2]
    assert not chore.help()


def test_chores_are_helped_with_in_order():
    done, chores = [], Chores()
    assert not chores.help()
    for name in "ab":
        chores.add(Chore(lambda number, name=name: done.append(name + str(number)), 2))
    while chores.help():
        pass
    assert done == ["a0", "a1", "b0", "b1"]


def test_an_error_meets_who_needs_the_result():
    chore, chores = Chore(lambda number: 1 // number, 2), Chores()
    chores.add(chore)
    while chores.help():
        pass
    with pytest.raises(ZeroDivisionError):
        chore.result()


@pytest.mark.parametrize("early", [0, 1])
def test_who_is_early_does_chores_until_the_last_job_is_done(early):
    all_done = threading.Event()
    chores, done_by = Chores(), set()

    def note(number):
        done_by.add(threading.get_ident())
        if number == 4:
            all_done.set()

    chores.add(Chore(note, 5))
    at_work = []

    def work(number):
        at_work.append(threading.get_ident())
        if number != early:
            assert all_done.wait(10)

    run_all([lambda: work(0), lambda: work(1)], chores)
    assert all_done.is_set()
    assert len(set(at_work)) == 2
    assert len(done_by) == 1


def test_one_job_needs_no_other_thread():
    seen = []
    run_all([lambda: seen.append(threading.current_thread())], Chores())
    assert seen == [threading.current_thread()]


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_a_job_is_raised_when_all_have_ended(failing):
    ended = []

    def work(number):
        if number == failing:
            raise ValueError("no")
        ended.append(number)

    with pytest.raises(ValueError, match="no"):
        run_all([lambda: work(0), lambda: work(1)], Chores())
    assert ended == [1 - failing]
