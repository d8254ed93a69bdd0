"""`shoal run --engine spark` on a stream: files that keep coming, or topics of Kafka, in micro-batches.

The driver plans each micro-batch: it records which files or offsets it reads, and only then are they read. So a
micro-batch that is repeated after a crash has the same records, and what it decides is published once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from shoal.crypto.keys import key_warning
from shoal.errors import PolicyError
from shoal.methods.base import StreamMethod
from shoal.methods.registry import METHODS
from shoal.methods.release import DEAD, RELEASED, SUPPRESSED
from shoal.methods.settings import Duration
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.outcome import add_outcome
from shoal.pipeline.ownership import Ownership
from shoal.pipeline.stopping import Stop, on_signals
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.sinks.durable import make_folder
from shoal.spark.cluster.session import find_spark, readable_errors, start_session
from shoal.spark.families import SHARDS, check_settings
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.streams.dataframe_sink import check_stream
from shoal.spark.streams.file_journal import read_count
from shoal.spark.streams.loop import Clock, MicroBatchLoop
from shoal.spark.streams.micro_batches import MicroBatches
from shoal.spark.streams.source_and_output import make_output, make_source
from shoal.spark.streams.state import Commit
from shoal.spark.summary import summarize

_SHORTEST_SECONDS: Final = 1.0
"""Between micro-batches if `[checkpoint] every` is a number of records, which then bounds them."""


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
            source = make_source(self.policy, method, recipe, until_end=not self.waits, finishes=self.finishes)
            output = make_output(self.policy, folder, secret)
            stack.callback(source.close)
            stack.callback(output.close)
            session = start_session(self._master, self._settings)
            stack.enter_context(readable_errors())
            stack.enter_context(on_signals(self._stop, as_json=self._as_json))  # Spark has set one of its own
            batches = MicroBatches(method, recipe, folder, self._shards, output, ownership.require)
            try:
                return MicroBatchLoop(self, session, batches, source, output).run()
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

    def summary(self, method: StreamMethod, commit: Commit | None, clock: Clock, *, stopped: bool) -> RunSummary:
        """What all runs of this stream have done."""
        more = commit.more if commit else {}
        counts = {RELEASED: 0, SUPPRESSED: 0, DEAD: 0, **more.get("counts", {})}
        rows = commit.end if commit else 0
        found = summarize(
            self.policy, method, counts, unreadable=more.get("unreadable", 0), warnings=self._warnings,
            numbers_rows=more.get("numbers_rows", False), rows_in=rows,
            pending=rows - counts[RELEASED] - counts[SUPPRESSED] - counts[DEAD], seconds=clock.seconds,
            rows_per_second=(rows - clock.rows_before) / max(clock.seconds, 1e-9), files=read_count(more),
            resumed=clock.rows_before > 0, since=more.get("since"), stopped=stopped,
            live_pairs=more.get("live_pairs", 0), state_bytes=more.get("state_bytes", 0),
            metrics=more.get("metrics", {}),
        )  # fmt: skip
        if not stopped:
            add_outcome(found, self.policy, method.explain)
        return found


def check_stream_policy(policy: Policy) -> None:
    """Refuse what a stream on Spark cannot read, decide or write, with what to do."""
    if METHODS[policy.anonymize.METHOD].family == "sets":
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
