"""The run of a stream: poll the source, push records into the method, write what it releases, commit when due.

A commit is, in this order: sinks committed; one checkpoint with the state of the method, the position of the source and
the receipts of the sinks; sinks publish, with the name of the checkpoint; the source is told; old checkpoints are
removed. A run that was killed resumes from the checkpoint that the sink published, or from the newest one if no sink
keeps a record of that: sinks drop or skip what came later, the source returns the same records again, and the method
decides the same about them.

Time that passes without a record (:class:`~shoal.sources.base.Idle`) changes decisions too, and no source returns it a
second time. So it is written to a checkpoint *before* it is passed to the method, and a resumed run repeats it first.
The same holds for decisions of the source (:class:`~shoal.sources.base.Mark`).

A sink may give up a transaction (:class:`~shoal.sinks.base.Aborted`). The run then closes its source and its sinks and
resumes from the checkpoint that counts, like a new process (:mod:`shoal.pipeline.live.going_back`).

A live run ends only when it is asked to (:mod:`shoal.pipeline.stopping`): it commits, and pending records
stay pending.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Final

import numpy as np

from shoal.crypto.keys import Secret, as_secret, key_warning
from shoal.errors import CheckpointError, InputError
from shoal.methods.base import StreamMethod
from shoal.methods.release import Release
from shoal.observe.counts import Commit, RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.checkpoints import (
    Checkpoint,
    CheckpointFolder,
    CommitTimer,
    Phase,
    Progress,
    require_same_policy,
    require_same_sources,
)
from shoal.pipeline.checks.near_labels import NearRefused
from shoal.pipeline.checks.record_checks import RecordChecks
from shoal.pipeline.dead_letters import LetterWriter
from shoal.pipeline.key_changes import require_keys_to_come, require_same_keys
from shoal.pipeline.learning import learn
from shoal.pipeline.live.going_back import GoingBack
from shoal.pipeline.outputs import Outputs, dead_trace, detach_files
from shoal.pipeline.stopping import Stop
from shoal.pipeline.summary import RunReport
from shoal.pipeline.upgrade import SECTIONS, section_marks
from shoal.pipeline.warmup import CompileTimer, WorkClock, must_compile, timed_compiling
from shoal.pipeline.wiring import make_anonymizer, make_source
from shoal.policy import Policy
from shoal.sinks.base import Aborted
from shoal.sources.base import Decoded, End, Idle, Mark, Source

_ADVANCE_EVERY_NS: Final = 1_000_000_000
"""Idle time is passed to the method at most once in this time: each time costs a checkpoint."""


class StreamRun:
    """One run of a stream method, from the start or from a checkpoint to the end of its source.

    Parameters
    ----------
    source
        Where records come from; by default the ``[source]`` of the policy.
    stop
        Lets others stop a live run.
    take_over
        Continue although another process uses the checkpoints; that one stops at its next commit.
    """

    method: StreamMethod
    source: Source
    report: RunReport

    def __init__(
        self,
        policy: Policy,
        observer: Observer,
        source: Source | None = None,
        *,
        stop: Stop | None = None,
        take_over: bool = False,
    ) -> None:
        self.policy, self.observer = policy, observer
        self._given_source, self._stop, self._takes_over = source, stop or Stop(), take_over
        self._folder: CheckpointFolder | None = None
        self._warnings = list(policy.warnings)
        self._checks = RecordChecks(policy)
        self._going_back = GoingBack(policy, self._stop, observer.warn)

    def execute(self) -> RunSummary:
        """Run to the end."""
        self.source = self._make_source()
        self._warn(*self._checks.before_run(self.source))
        with ExitStack() as stack:
            self._warn(key_warning())
            if self.policy.checkpoint is not None:
                path = self.policy.checkpoint.path.path
                self._folder = CheckpointFolder(path, warn=self._warn, take_over=self._takes_over)
                stack.callback(self._folder.release)
            secret = self._folder.secret if self._folder else as_secret(None)
            if self._folder is not None and self.policy.worker is not None:
                require_same_keys(self._folder.path.parent, secret)
            compiling = stack.enter_context(timed_compiling())
            while True:
                try:
                    return self._attempt(secret, compiling)
                except Aborted as error:
                    self._going_back.after(error, self._folder)
                    self.source = self._make_source()

    def _attempt(self, secret: Secret, compiling: CompileTimer) -> RunSummary:
        """Run from the beginning, or from the checkpoint that counts."""
        self._advanced_to: int | None = None
        self._has_news = False
        with ExitStack() as stack:
            self.method = self._make_method(secret)
            stack.callback(self.source.close)
            self.outputs = self._make_outputs(resumable=self._folder is not None)
            stack.callback(self.outputs.close)
            # Everything is set up: from here on time is spent on rows, and on compiling, which is measured.
            clock = WorkClock(compiling)
            self.timer = CommitTimer(self.policy.checkpoint.every if self.policy.checkpoint else None)
            return self._execute(clock)

    def _make_source(self) -> Source:
        return self._given_source or make_source(self.policy)

    def _make_method(self, secret: Secret) -> StreamMethod:
        return make_anonymizer(self.policy, secret)

    def _make_outputs(self, *, resumable: bool) -> Outputs:
        return Outputs(self.policy, resumable=resumable)

    def _execute(self, clock: WorkClock) -> RunSummary:
        identity = self.source.identity() if self._folder else {}
        now = datetime.now(UTC).isoformat(timespec="seconds") if self.source.is_live else None
        self.progress = Progress(
            policy=self.policy.fingerprint(*SECTIONS), sections=section_marks(self.policy), sources=identity, since=now,
            later_keys=self._folder.secret.later_marks if self._folder else {},
        )  # fmt: skip
        is_resumed = self._resume()
        self.report = RunReport(self.policy, self.method, clock, is_resumed=is_resumed, files=self.source.inputs)
        if self.progress.phase == "done":
            self.outputs.verify(self.progress.receipts)
            self.outputs.clean()  # the run may have been killed between its last checkpoint and this
            self.source.leave(self.progress.position or {})
            _require_end(self.policy, self._folder)
            return self.report.last_summary(self.progress, self._warnings, finished_before=True)
        self._start(is_resumed=is_resumed)
        if self.progress.phase == "reading":
            self._read()
            if self._stop.is_asked:
                return self.report.summary(self.progress, self._warnings, stopped=True)
            self._commit("finishing")
        receipts = self.outputs.finish()
        if receipts != self.progress.receipts:
            self.progress = replace(self.progress, receipts=receipts)
            self._write_checkpoint("finishing")  # both checkpoints that are kept must know the finished files
        self._write_checkpoint("done")
        self.outputs.clean()
        self.source.leave(self.progress.position or {})
        self._warn(*self.near.warnings())
        return self.report.last_summary(self.progress, self._warnings)

    def _warn(self, *sentences: str | None) -> None:
        for sentence in filter(None, sentences):
            if sentence in self._warnings:  # an attempt before this one has met it
                continue
            self._warnings.append(sentence)
            self.observer.warn(sentence)

    # ---- start

    def _resume(self) -> bool:
        """Go back to the checkpoint that counts, if there is one."""
        if self._folder is None:
            return False
        found = self._folder.load(self.outputs.published()) if self.outputs.decides else self._folder.latest()
        if found is None:
            return False
        require_same_policy(found.progress, policy=self.progress.policy, folder=self._folder.path)
        require_same_sources(found.progress, self.progress.sources)
        if self._folder.has_old_key:
            raise CheckpointError(f"{self._folder.path}: the key has changed; continue with --upgrade")
        self.method.restore(found.snapshot)
        secret = self._folder.secret
        require_keys_to_come(found.progress.later_keys, secret, self.method, is_live=self.source.is_live)
        self.progress = replace(found.progress, later_keys=secret.later_marks)
        if self.source.is_live and not self.outputs.decides:
            # The run may have been killed between the two copies of a recorded decision.
            self._folder.repeat(found)
        return True

    def _start(self, *, is_resumed: bool) -> None:
        """Fix the types of the columns, which determine those of the output, and open the outputs."""
        if self.policy.anonymize.COMPILES and must_compile(self.policy.anonymize.METHOD):
            self.observer.compiling()
        self.source.open(self.method.columns, self.progress.position)
        schema, self.report.numbers_rows = self.source.schema, self.source.numbers_rows
        try:
            self.method.bind(schema)
        except InputError as error:
            raise InputError(f"{self.source.name}: {error}") from None
        if not is_resumed:
            learn(self.policy, self.method)
        self.near = NearRefused(self.policy.hierarchies, self.progress.near)
        self.letter_writer = LetterWriter(
            self.outputs.letters,
            self.source,
            self.method,
            sorts_rows=self.policy.anonymize.SORTS_ROWS,
            rows_before=self.progress.rows_before,
        )
        if self._takes_over:
            detach_files(self.policy)
        self.outputs.open(self.method, self.progress.receipts)
        if is_resumed:
            self.observer.resumed(self.method.counts["pushed"])
        elif self._folder is not None:
            self._commit("reading", copies=2 if self.source.is_live else 1)

    # ---- the loop

    def _read(self) -> None:
        self._stop.is_reading = True
        if self.progress.advance_to is not None:  # the run was killed after this was written
            self._advance(self.progress.advance_to)
        try:
            while not self._stop.is_asked and not isinstance(polled := self.source.poll(), End):
                self.observer.turn()
                if isinstance(polled, Idle):
                    self._idle(polled.now)
                elif isinstance(polled, Mark):
                    self._record()
                else:
                    self._push(polled)
        except InputError as error:
            if self.source.is_live:
                raise  # nothing ended: the next run continues at the last checkpoint
            # What could be read was used; the run ends as if the input ended here, and reports it.
            self.progress = replace(self.progress, failure=str(error))
        if not self._stop.is_asked:
            self._hand_over(self.method.flush())
        elif self._has_news:
            self._commit("reading")

    def _push(self, decoded: Decoded) -> None:
        first = self.method.counts["pushed"]
        self._warn(*self._checks.on_batch(decoded.batch, is_first=first == 0))
        self._hand_over(self.method.push_batch(decoded.batch, refused=decoded.places), decoded, first)
        self._has_news = True
        self.report.note_time(decoded.batch)
        self.observer.progress(self.report.progress())
        self._commit_if_due()

    def _idle(self, now: int | None) -> None:
        """Pass time to the method, if it waits for time. Record it first: no source repeats idle time."""
        if now is None or not self.method.pending or now < (self._advanced_to or 0) + _ADVANCE_EVERY_NS:
            self._commit_if_due()
            return
        self.progress = replace(self.progress, advance_to=now)
        self._record()
        self._advance(now)

    def _advance(self, now: int) -> None:
        self._hand_over(self.method.advance(np.datetime64(now, "ns")))
        self.progress = replace(self.progress, advance_to=None)
        self._advanced_to, self._has_news = now, True

    def _hand_over(self, release: Release, decoded: Decoded | None = None, first: int = 0) -> None:
        """Write what was decided."""
        self.outputs.write(release)
        self.observer.decided(decoded, first, release)
        dead = self.method.counts["dead"]
        if dead > self.report.dead:  # building the trace costs, so only where there is something in it
            self.report.dead = dead
            refused = dead_trace(release)
            self.letter_writer.write(refused, decoded, first)
            if decoded is not None:
                self.near.count(refused, decoded, first, self.method.explain)
                self.progress = replace(self.progress, near=self.near.found)
        for change in self.method.take_changes():
            self.observer.z_set(change.moment, change.z)

    # ---- commits

    def _commit_if_due(self) -> None:
        if self._has_news and self.timer.is_due(self.method.counts["pushed"]):
            self._commit("reading")

    def _record(self) -> None:
        """Commit what a replay would not decide alike.

        If no sink decides which checkpoint counts, rows that follow may be visible before the next checkpoint. So both
        checkpoints that are kept must know the decision: one of them may turn out to be damaged.
        """
        if self._folder is not None:
            self._commit("reading", copies=1 if self.outputs.decides else 2)

    def _commit(self, phase: Phase, *, copies: int = 1) -> None:
        """Make the output durable, then the state that belongs to it, in this order."""
        if self._folder is not None:
            self._folder.require_own()
        start = perf_counter()
        receipts = self.outputs.commit(self.progress.epoch)
        self.progress = replace(self.progress, receipts=receipts, position=self.source.position)
        size = self._write_checkpoint(phase, copies=copies)
        self.observer.committed(lambda: self._committed(size, perf_counter() - start))

    def _committed(self, size: int, seconds: float) -> Commit:
        return self.report.committed(self.progress, self._warnings, size=size, seconds=seconds, lag=self.source.lag())

    def _write_checkpoint(self, phase: Phase, *, copies: int = 1) -> int:
        """Write a checkpoint; only when it is durable, show what belongs to it and remove older ones.

        Returns the size of the method's state in it.
        """
        self.progress = replace(self.progress, phase=phase, epoch=self.progress.epoch + 1)
        snapshot = b""
        if self._folder is not None:
            snapshot = self.method.snapshot()
            self._folder.commit(Checkpoint(self.progress, snapshot), self._show, copies=copies)
        self._has_news = False
        self.timer.restart(self.method.counts["pushed"])
        return len(snapshot)

    def _show(self, checkpoint: str) -> None:
        self.outputs.publish(checkpoint)
        self._going_back.succeed()
        self.source.keep(self.progress.position or {})


def _require_end(policy: Policy, folder: CheckpointFolder | None) -> None:
    """A run that ended is not taken up again: others may continue behind it."""
    if folder is not None and policy.source.is_endless:
        raise CheckpointError(
            f'{folder.path}: this run has ended by until = "end"; to continue behind it on Kafka, set start '
            '= "group", another checkpoint folder and another transactional_id; else start over with another '
            "folder and another place to write to"
        )
