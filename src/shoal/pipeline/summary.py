"""What a run reports: a few counts on the way, and everything at the end."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from shoal.methods.base import StreamMethod, statement_for_rows
from shoal.methods.release import refused_by_reason
from shoal.observe.counts import Commit, RunSummary
from shoal.pipeline.checkpoints import Progress
from shoal.pipeline.outcome import add_outcome
from shoal.pipeline.warmup import WorkClock
from shoal.policy import Policy
from shoal.policy.fields import Location
from shoal.schema import ROWS
from shoal.times import column_ns


class RunReport:
    """Builds the summaries of one run of a stream method."""

    def __init__(self, policy: Policy, method: StreamMethod, clock: WorkClock, *, is_resumed: bool, files: int) -> None:
        self._policy, self._method, self._clock, self._files = policy, method, clock, files
        self.numbers_rows = policy.stream.person == ROWS
        """Whether rows are counted, not people; not known before the source is open: there may be a column "row"."""
        self._is_resumed = is_resumed
        self._rows_before = method.counts["pushed"] if is_resumed else 0
        self.dead = method.counts["dead"]
        """Records refused so far whose dead letters are written."""
        self._latest_ns: int | None = None

    def note_time(self, batch: pa.RecordBatch) -> None:
        """Remember the time of the last record of a batch, if it has one."""
        time = self._policy.stream.time
        if time in batch.schema.names and batch.num_rows:
            times, usable = column_ns(batch.column(time).slice(batch.num_rows - 1))
            if usable[0]:
                self._latest_ns = int(times[0])

    def progress(self) -> RunSummary:
        """The counts so far: cheap, for every batch."""
        counts, seconds = self._method.counts, self._clock.seconds
        return RunSummary(
            rows_in=counts["pushed"],
            released=counts["released"],
            suppressed=counts["suppressed"],
            dead=counts["dead"],
            dead_by_reason=refused_by_reason(counts),
            seconds=seconds,
            compiling_seconds=self._clock.compiling_seconds,
            rows_per_second=(counts["pushed"] - self._rows_before) / seconds if seconds else 0.0,
        )

    def summary(
        self,
        progress: Progress,
        warnings: list[str],
        *,
        finished_before: bool = False,
        stopped: bool = False,
    ) -> RunSummary:
        """The full summary."""
        policy, method, found = self._policy, self._method, self.progress()
        found.suppressed_left = getattr(policy.anonymize, "suppressed", "drop") == "root"
        found.pending = method.pending if method.guarantee.keeps_pending or stopped else 0
        found.files = self._files
        found.resumed, found.finished_before, found.stopped = self._is_resumed, finished_before, stopped
        found.live_pairs, found.state_bytes = method.live_pairs, method.state_bytes
        found.metrics, found.delay_unit = self._metrics(), policy.anonymize.delay_unit
        promised = method.guarantee.statement
        found.guarantee = statement_for_rows(promised) if self.numbers_rows else promised
        place = policy.sink.place
        is_file = place is not None and not place.is_standard
        found.released_to = _name(place, stopped=stopped) if place is not None and is_file else policy.sink.name
        found.dead_letters = policy.dead_letters.where
        found.trace = _name(policy.trace.path, stopped=stopped) if policy.trace else None
        found.since = progress.since
        found.failure, found.warnings = progress.failure, list(warnings)
        return found

    def last_summary(self, progress: Progress, warnings: list[str], *, finished_before: bool = False) -> RunSummary:
        """The same at the end of the input, with a warning if little is left of it."""
        found = self.summary(progress, warnings, finished_before=finished_before)
        add_outcome(found, self._policy, self._method.explain)
        return found

    def committed(
        self, progress: Progress, warnings: list[str], *, size: int, seconds: float, lag: int | None
    ) -> Commit:
        """What is known at a commit."""
        promised = self._method.guarantee
        arrivals = promised.max_delay_arrivals
        longest = promised.max_delay_ns / 1e9 if promised.max_delay_ns is not None else arrivals
        summary = self.summary(progress, warnings)
        return Commit(summary, self._method.pending, size, seconds, lag, self._latest_ns, longest)

    def _metrics(self) -> dict[str, Any]:
        """The metrics of the method; its cost only if the policy states what a delay costs.

        It grows by a factor for every arrival of delay: with the default of 2% and a delay of 2,000 arrivals, to 1.6e17
        times the loss, which is meaningless.
        """
        found = dict(self._method.metrics)
        if "alpha" not in self._policy.anonymize.model_fields_set:
            found.pop("cost", None)
        return found


def _name(place: Location, *, stopped: bool) -> str:
    """A file has its own name when the run is finished."""
    return str(place.working if stopped else place.path)
