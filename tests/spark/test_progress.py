"""What a user sees while a batch runs on Spark."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from shoal.observe.observer import Observer
from shoal.spark.cluster import progress
from shoal.spark.cluster.progress import tasks_of, watched


class Tracker:
    """Stages that run, as Spark names them."""

    def __init__(self, *stages: tuple[int, int, int]) -> None:
        self._stages = {
            number: SimpleNamespace(stageId=number, numCompletedTasks=done, numTasks=tasks)
            for number, done, tasks in stages
        }
        self.asked = Event()

    def getActiveStageIds(self) -> list[int]:
        self.asked.set()
        return [*self._stages, 99]  # one that has ended meanwhile

    def getStageInfo(self, number: int) -> Any:
        return self._stages.get(number)


class Told(Observer):
    def __init__(self) -> None:
        self.steps: list[str] = []
        self.heard = Event()

    def step(self, sentence: str) -> None:
        self.steps.append(sentence)
        self.heard.set()


def session_with(tracker: Any) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_the_tasks_of_all_stages_are_shown() -> None:
    assert tasks_of(Tracker()) == ""
    assert tasks_of(Tracker((7, 3, 1600), (6, 0, 2))) == (
        "Spark stage 6: 0 of 2 tasks, Spark stage 7: 3 of 1,600 tasks"
    )


def test_an_observer_hears_of_them_while_a_run_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS", 0.001)
    told = Told()
    with watched(session_with(Tracker((4, 1, 2))), told):
        assert told.heard.wait(30)
    assert set(told.steps) == {"Spark stage 4: 1 of 2 tasks"}
    quiet, idle = Told(), Tracker()
    with watched(session_with(idle), quiet):
        assert idle.asked.wait(30)
    assert quiet.steps == []


def test_a_spark_that_stopped_is_reported_by_the_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS", 0.001)
    asked = Event()

    class Stopped:
        def getActiveStageIds(self) -> list[int]:
            asked.set()
            raise ConnectionRefusedError

    with watched(session_with(Stopped()), Told()):
        assert asked.wait(30)
