"""How far a batch on Spark is: the tasks of the stages that run now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from shoal.observe.observer import Observer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS: Final = 1.0


@contextmanager
def watched(session: SparkSession, observer: Observer) -> Iterator[None]:
    """Tell an observer every second how far Spark is."""
    tracker, ended = session.sparkContext.statusTracker(), Event()

    def tell() -> None:
        while not ended.wait(_SECONDS):
            try:
                sentence = tasks_of(tracker)
            except Exception:  # Spark has stopped; the run reports it
                return
            if sentence:
                observer.step(sentence)

    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def tasks_of(tracker: Any) -> str:
    """How many tasks of the stages that run now are done; empty if none runs."""
    found = [tracker.getStageInfo(number) for number in sorted(tracker.getActiveStageIds())]
    return ", ".join(
        f"Spark stage {stage.stageId}: {stage.numCompletedTasks:,} of {stage.numTasks:,} tasks"
        for stage in found
        if stage is not None
    )
