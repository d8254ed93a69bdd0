"""The loop of a stream: it plans micro-batches and decides them, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from shoal.methods.base import StreamMethod
from shoal.observe.counts import Commit as Committed
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.stopping import Stop
from shoal.spark.dead_letters import dead_letters
from shoal.spark.families import head_columns
from shoal.spark.records.blocks import BLOCKS, block_of
from shoal.spark.records.frames import mapped
from shoal.spark.records.numbering import numbered
from shoal.spark.streams.micro_batches import MicroBatches, Taken
from shoal.spark.streams.plans import Plans
from shoal.spark.streams.source_and_output import RunOutput, Source
from shoal.spark.streams.state import Commit, StateFolder, next_batch, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_SECONDS: Final = 0.2
"""How often a waiting run looks whether it is asked to stop."""


class Run(Protocol):
    """The run that a loop is part of: how it waits and ends, and what it reports."""

    observer: Observer

    @property
    def every(self) -> float:
        """Seconds from the start of a micro-batch to that of the next."""

    @property
    def waits(self) -> bool:
        """Whether it waits for more records where there are none."""

    @property
    def finishes(self) -> bool:
        """Whether what is pending is decided when everything is read: the stream ends there."""

    @property
    def stop(self) -> Stop:
        """Whether it is asked to stop."""

    def summary(self, method: StreamMethod, commit: Commit | None, clock: Clock, *, stopped: bool) -> RunSummary:
        """What all runs of this stream have done."""


class Clock:
    """Time since the first micro-batch of this process."""

    def __init__(self, rows_before: int) -> None:
        self.rows_before, self._start = rows_before, time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start


class MicroBatchLoop:
    """Plans micro-batches and decides them, one after another."""

    def __init__(
        self, stream: Run, session: SparkSession, batches: MicroBatches, source: Source, output: RunOutput
    ) -> None:
        self._stream, self._session, self._batches = stream, session, batches
        self._source, self._output = source, output
        self._plans = Plans(batches.state)
        self._last = StateFolder(batches.state).last()
        self._clock = Clock(self._last.end if self._last else 0)

    def run(self) -> RunSummary:
        """Until the end of the source, or until it is asked to stop."""
        stream, last = self._stream, self._last
        self._batches.require_same(last)
        if last is not None:
            self._batches.recall(last)
        if last is not None and last.more.get("ended"):
            found = stream.summary(self._batches.method, last, self._clock, stopped=False)
            found.finished_before = True
            return found
        self._output.start(last)
        if last is not None:
            stream.observer.resumed(last.end)
            self._output.show(last)  # the run may have been killed between the commit and this
            self._source.keep(last)
        stream.stop.is_reading = True
        while not stream.stop.is_asked:
            due = time.monotonic() + stream.every
            plan = self._step()
            if plan is None and not (stream.waits or self._source.is_held):
                break
            if plan is None or (stream.waits and not plan.get("is_cut")):
                self._wait_until(due)
        if stream.finishes and not stream.stop.is_asked and self._last is not None:
            self._decide(self._nothing, is_end=True)
        ended = self._last is not None and bool(self._last.more.get("ended"))
        return stream.summary(self._batches.method, self._last, self._clock, stopped=not ended)

    def _step(self) -> Mapping[str, Any] | None:
        """Decide the next micro-batch, if there are records for it; returns its plan."""
        number = self._next
        plan = self._plans.read(number)
        if plan is None:
            plan = self._source.plan(self._session, self._last)
            if plan is None:
                return None
            self._plans.write(number, plan)
        self._decide(partial(self._source.take, self._session, plan), is_end=False)
        return plan

    @property
    def _next(self) -> int:
        return next_batch(self._last)

    def _decide(self, take: Callable[[Commit | None], Taken], *, is_end: bool) -> None:
        start = time.perf_counter()

        def since(before: Commit | None) -> Taken:
            taken, first = take(before), (before.more if before else {}).get("since")
            now = first or datetime.now(UTC).isoformat(timespec="seconds")
            return replace(taken, more={**taken.more, "since": now})

        self._last = commit = self._batches.decide(self._session, self._next, since, is_end=is_end)
        self._session.catalog.clearCache()
        self._source.keep(commit)
        for moment, z in commit.more.get("changes", ()):
            self._stream.observer.z_set(moment, z)
        summary = self._stream.summary(self._batches.method, commit, self._clock, stopped=True)
        self._stream.observer.progress(summary)
        self._stream.observer.committed(
            lambda: Committed(
                summary,
                summary.pending,
                checkpoint_bytes=summary.state_bytes,
                seconds=time.perf_counter() - start,
                lag=None,
                event_time_ns=None,
                promised_delay=None,
            )
        )

    def _nothing(self, before: Commit | None) -> Taken:
        """A micro-batch without records, for the end of the stream."""
        assert before is not None
        types = schema_of(before.more["schema"])
        head = head_columns(self._batches.recipe, self._batches.method.columns)
        blocks = mapped(self._session.range(0, 1, 1, 1), partial(_empty_block, types, head), BLOCKS).persist()
        rows = numbered(blocks, types, head, first=before.end)
        method = self._batches.method
        return Taken(rows, lambda outcome: dead_letters(outcome, rows, method, lambda row, line: {"row": row + 1}))

    def _wait_until(self, due: float) -> None:
        self._stream.observer.turn()  # also if the time has passed already
        while not self._stream.stop.is_asked and (left := due - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            self._stream.observer.turn()


def _empty_block(types: Any, head: Any, batches: Any) -> Any:
    import pyarrow as pa

    for batch in batches:
        if batch.num_rows:
            yield block_of(0, 0, pa.RecordBatch.from_pylist([], schema=types), head)
