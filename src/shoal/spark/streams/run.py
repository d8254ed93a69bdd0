"""`shoal run --engine spark` on a stream: files that keep coming, or topics of Kafka, in micro-batches.

The driver plans each micro-batch: it records which files or offsets it reads, and only then are they read. So a
micro-batch that is repeated after a crash has the same records, and what it decides is published once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from shoal.crypto.keys import Secret, key_warning
from shoal.errors import PolicyError
from shoal.methods.base import StreamMethod
from shoal.methods.registry import METHODS
from shoal.methods.release import DEAD, RELEASED, SUPPRESSED, UNREADABLE
from shoal.methods.settings import Duration
from shoal.observe.counts import Commit as Committed
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.ownership import Ownership
from shoal.pipeline.stopping import Stop, on_signals
from shoal.pipeline.summary import outcome_warning
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.sinks.durable import make_folder
from shoal.spark.blocks import BLOCKS, block_of
from shoal.spark.deciding import SHARDS, check_settings, head_columns
from shoal.spark.frames import mapped
from shoal.spark.letters import dead_letters
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.rows import numbered
from shoal.spark.session import find_spark, readable_errors, start_session
from shoal.spark.streams.dataframes import check_stream
from shoal.spark.streams.growing_files import GrowingFiles
from shoal.spark.streams.micro_batches import MicroBatches, Output, Taken
from shoal.spark.streams.plans import Plans
from shoal.spark.streams.release_folder import ReleaseFolder
from shoal.spark.streams.state import Commit, StateFolder, schema_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHORTEST_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.2
"""How often a waiting run looks whether it is asked to stop."""


class Source(Protocol):
    """Where a stream reads."""

    def plan(self, before: Commit | None) -> dict[str, Any] | None:
        """What the next micro-batch reads, as values that fit in JSON; None if there is nothing new."""

    def take(self, session: SparkSession, plan: Mapping[str, Any], before: Commit | None) -> Taken:
        """The planned records."""

    def keep(self, commit: Commit) -> None:
        """Everything up to this commit is published."""

    def close(self) -> None:
        """Close connections."""


class RunOutput(Output, Protocol):
    """Where a stream of a policy publishes."""

    def start(self, last: Commit | None) -> None:
        """Begin, or go on after a commit."""

    def close(self) -> None:
        """Close connections."""


class SparkStream:
    """One run of a policy with ``[checkpoint]`` on Spark: to the end of its source, or until it is stopped.

    Parameters
    ----------
    follow
        Of files: wait for more of them, until it is stopped.
    once
        Stop when everything that is there is decided as far as it is due; what is pending stays pending.
    """

    def __init__(
        self,
        policy: Policy,
        observer: Observer,
        *,
        master: str | None = None,
        shards: int = SHARDS,
        settings: Mapping[str, str] | None = None,
        stop: Stop | None = None,
        follow: bool = False,
        once: bool = False,
        take_over: bool = False,
        as_json: bool = False,
    ) -> None:
        self.policy, self.observer, self._shards = policy, observer, shards
        self._master, self._settings, self._stop = master, settings, stop or Stop()
        self._is_endless, self._once = policy.source.is_endless or follow, once
        self._takes_over, self._as_json = take_over, as_json
        self._warnings = list(policy.warnings)

    def execute(self) -> RunSummary:
        """Run until everything is read, or until it is stopped."""
        find_spark()
        secret = shared_secret()
        check_stream_policy(self.policy)
        assert self.policy.checkpoint is not None
        method = make_anonymizer(self.policy, secret)
        recipe = Recipe.of(method)
        check_settings(recipe)
        check_stream(recipe, "", "")
        self._warn(key_warning())
        folder = self.policy.checkpoint.path.path.absolute()
        with ExitStack() as stack:
            make_folder(folder, mode=0o700)
            ownership = Ownership(folder, take_over=self._takes_over)
            stack.callback(ownership.release)
            source = make_source(self.policy, method, recipe, until_end=not self.waits)
            output = make_output(self.policy, folder, secret)
            stack.callback(source.close)
            stack.callback(output.close)
            session = start_session(self._master, self._settings)
            stack.enter_context(readable_errors())
            stack.enter_context(on_signals(self._stop, as_json=self._as_json))  # Spark has set one of its own
            batches = MicroBatches(method, recipe, folder, self._shards, output, ownership.require)
            try:
                return _Loop(self, session, batches, source, output).run()
            finally:
                session.catalog.clearCache()

    def _warn(self, *sentences: str | None) -> None:
        for sentence in filter(None, sentences):
            self._warnings.append(sentence)
            self.observer.warn(sentence)

    # ---- for the loop

    @property
    def every(self) -> float:
        """Seconds from the start of a micro-batch to that of the next."""
        assert self.policy.checkpoint is not None
        every = self.policy.checkpoint.every
        return every.ns / 1e9 if isinstance(every, Duration) else _SHORTEST_SECONDS

    @property
    def waits(self) -> bool:
        """Whether it waits for more records where there are none."""
        return self._is_endless and not self._once

    @property
    def finishes(self) -> bool:
        """Whether what is pending is decided when everything is read: the stream ends there."""
        return not self._is_endless and not self._once

    @property
    def stop(self) -> Stop:
        """Whether it is asked to stop."""
        return self._stop

    def summary(self, method: StreamMethod, commit: Commit | None, clock: _Clock, *, stopped: bool) -> RunSummary:
        """What all runs of this stream have done."""
        policy, more = self.policy, commit.more if commit else {}
        counts = {RELEASED: 0, SUPPRESSED: 0, DEAD: 0, **more.get("counts", {})}
        reasons = {name: count for name, count in counts.items() if name not in (RELEASED, SUPPRESSED, DEAD)}
        unreadable = more.get("unreadable", 0)
        if unreadable:
            reasons["null-person"] -= unreadable
            reasons = {name: count for name, count in {**reasons, UNREADABLE: unreadable}.items() if count}
        rows, numbers_rows = commit.end if commit else 0, more.get("numbers_rows", False)
        found = RunSummary(
            rows_in=rows, released=counts[RELEASED], suppressed=counts[SUPPRESSED], dead=counts[DEAD],
            pending=rows - counts[RELEASED] - counts[SUPPRESSED] - counts[DEAD], dead_by_reason=reasons,
            seconds=clock.seconds, rows_per_second=(rows - clock.rows_before) / max(clock.seconds, 1e-9),
            files=len(more.get("files", ())), resumed=clock.rows_before > 0, since=more.get("since"), stopped=stopped,
            live_pairs=more.get("live_pairs", 0), state_bytes=more.get("state_bytes", 0),
            metrics=more.get("metrics", {}), delay_unit=policy.anonymize.delay_unit,
            guarantee=method.guarantee.statement + ("; each row counted as one person" if numbers_rows else ""),
            released_to=policy.sink.name, dead_letters=policy.dead_letters.where,
            trace=str(policy.trace.path.path) if policy.trace else None, warnings=list(self._warnings),
            suppressed_left=getattr(policy.anonymize, "suppressed", "drop") == "root",
        )  # fmt: skip
        if not stopped:
            found.outcome = outcome_warning(found, method.explain, policy.anonymize.advice)
            found.warnings += [found.outcome] if found.outcome else []
        return found


class _Clock:
    """Time since the first micro-batch of this process."""

    def __init__(self, rows_before: int) -> None:
        self.rows_before, self._start = rows_before, time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start


class _Loop:
    """Plans micro-batches and decides them, one after another."""

    def __init__(
        self, stream: SparkStream, session: SparkSession, batches: MicroBatches, source: Source, output: RunOutput
    ) -> None:
        self._stream, self._session, self._batches = stream, session, batches
        self._source, self._output = source, output
        self._plans = Plans(batches.state)
        self._last = StateFolder(batches.state).last()
        self._clock = _Clock(self._last.end if self._last else 0)

    def run(self) -> RunSummary:
        """Until the end of the source, or until it is asked to stop."""
        stream, last = self._stream, self._last
        if last is not None and last.more.get("ended"):
            found = stream.summary(self._batches.method, last, self._clock, stopped=False)
            found.finished_before = True
            return found
        self._batches.require_same(last)
        self._output.start(last)
        if last is not None:
            stream.observer.resumed(last.end)
            self._output.show(last)  # the run may have been killed between the commit and this
            self._source.keep(last)
        stream.stop.is_reading = True
        while not stream.stop.is_asked:
            due = time.monotonic() + stream.every
            if self._step():
                self._wait_until(due if stream.waits else 0.0)
            elif stream.waits:
                self._wait_until(due)
            else:
                break
        if stream.finishes and not stream.stop.is_asked and self._last is not None:
            self._decide(self._nothing, is_end=True)
        ended = self._last is not None and bool(self._last.more.get("ended"))
        return stream.summary(self._batches.method, self._last, self._clock, stopped=not ended)

    def _step(self) -> bool:
        """Decide the next micro-batch, if there are records for it; returns whether there were."""
        number = self._next
        plan = self._plans.read(number)
        if plan is None:
            plan = self._source.plan(self._last)
            if plan is None:
                return False
            self._plans.write(number, plan)
        self._decide(partial(self._source.take, self._session, plan), is_end=False)
        return True

    @property
    def _next(self) -> int:
        return 0 if self._last is None else self._last.batch + 1

    def _decide(self, take: Callable[[Commit | None], Taken], *, is_end: bool) -> None:
        start = time.perf_counter()

        def since(before: Commit | None) -> Taken:
            taken, first = take(before), (before.more if before else {}).get("since")
            now = first or datetime.now(UTC).isoformat(timespec="seconds")
            return Taken(taken.rows, taken.letters, {**taken.more, "since": now})

        self._last = commit = self._batches.decide(self._session, self._next, since, is_end=is_end)
        self._session.catalog.clearCache()
        self._source.keep(commit)
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
        while not self._stream.stop.is_asked and (left := due - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            self._stream.observer.turn()


def _empty_block(types: Any, head: Any, batches: Any) -> Any:
    import pyarrow as pa

    for batch in batches:
        if batch.num_rows:
            yield block_of(0, 0, pa.RecordBatch.from_pylist([], schema=types), head)


def make_source(policy: Policy, method: StreamMethod, recipe: Recipe, *, until_end: bool) -> Source:
    """Where the policy reads; `until_end`: of topics, up to their ends as they are now."""
    head = head_columns(recipe, method.columns)
    if isinstance(policy.source, MessageSource):
        from shoal.spark.streams.kafka_source import TopicOffsets

        return TopicOffsets(policy, method, head, until_end=until_end)
    return GrowingFiles(policy, method, head)


def make_output(policy: Policy, folder: Any, secret: Secret) -> RunOutput:
    """Where the policy publishes."""
    if isinstance(policy.sink, MessageSink):
        from shoal.spark.streams.kafka_output import TopicOutput

        return TopicOutput(policy, folder, secret)
    return ReleaseFolder.of(policy, secret)


def check_stream_policy(policy: Policy) -> None:
    """Refuse what a stream on Spark cannot read, decide or write, with what to do."""
    if METHODS[policy.anonymize.METHOD].family not in ("z", "tuples"):
        raise PolicyError(
            f"[anonymize] method: {policy.anonymize.METHOD} does not decide streams on Spark; leave [checkpoint] out "
            "and read files as a batch, or run it on one machine"
        )
    for name, section in (("source", policy.source), ("sink", policy.sink)):
        if isinstance(section, MessageSource | MessageSink) and section.kind != "kafka":
            raise PolicyError(f"[{name}] kind: on Spark only files and Kafka; run {section.kind} on one machine")
    if isinstance(policy.source, MessageSource) and policy.source.workers > 1:
        raise PolicyError("[source] workers: on Spark executors share the partitions; leave it out")
    if policy.checkpoint is None:
        raise PolicyError("[checkpoint]: is missing; a stream on Spark needs a folder for its state; add the section")
