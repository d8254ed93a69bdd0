"""A run on Spark in which chosen tasks are run twice at the same time: python -m tests.spark.speculation MASTER POLICY.

The first attempt waits until a speculative one has done its work; then it does its own, and only after that the
speculative one ends. So both write everything that a task writes, and Spark counts one of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from shoal.observe.observer import Observer
from shoal.policy import load_policy
from shoal.spark.cluster.workers import InWorker
from shoal.spark.run import SparkRun
from shoal.spark.streams.run import SparkStream
from tests.spark.scene import SETTINGS

SPECULATION = {
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1", "spark.speculation.efficiency.enabled": "false",
    "spark.speculation.task.duration.threshold": "2s",
}  # fmt: skip
TWICE = ("WriteRanges", "JudgeShards", "WriteParts", "DecideShards", "ContinueShards", "ContinueFlexible", "SealTrace")
"""Tasks that write files or decide: those whose second attempt could do harm."""
_PARTITION = {"JudgeShards": 1}  # the first one of its stage has the refused records
_PATIENCE = 300
"""Seconds until an attempt counts as hanging."""


class Twice:
    """Does the work of a task in two attempts, if it has rows."""

    def __init__(self, work: Any, folder: Path) -> None:
        self._work, self._folder = work, folder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        rows = list(batches)
        name, attempt = f"{type(self._work).__name__}-{context.stageId()}", context.attemptNumber()
        if context.partitionId() != _PARTITION.get(type(self._work).__name__, 0) or attempt > 1:
            yield from self._work(iter(rows))
            return
        if not attempt:
            self._wait_for(f"{name}-1")
        found = list(self._work(iter(rows)))
        (self._folder / f"{name}-{attempt}").touch()
        if attempt:
            self._wait_for(f"{name}-0")
        yield from found

    def _wait_for(self, name: str) -> None:
        until = time.monotonic() + _PATIENCE
        while not (self._folder / name).exists():
            if time.monotonic() > until:
                raise AssertionError(f"no attempt {name}")
            Event().wait(0.01)


def main(master: str, policy_path: str) -> None:
    """Run a policy, as a stream if it has a checkpoint; notes about attempts go to the folder `attempts`."""
    from pyspark.sql.classic.dataframe import DataFrame

    folder = Path(policy_path).with_name("attempts")
    folder.mkdir()
    apply = DataFrame.mapInArrow

    def applied(self: Any, work: Any, *more: Any, **options: Any) -> Any:
        if isinstance(work, InWorker) and type(work.work).__name__ in TWICE:
            work = Twice(work.work, folder)
        return apply(self, work, *more, **options)

    DataFrame.mapInArrow = applied  # type: ignore[method-assign]
    policy = load_policy(Path(policy_path))
    kind: Any = SparkRun if policy.checkpoint is None else SparkStream
    kind(policy, Observer(), master=master, shards=3, settings={**SETTINGS, **SPECULATION}).execute()


if __name__ == "__main__":
    main(*sys.argv[1:])
