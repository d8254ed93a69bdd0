"""The pump: source → decode → anonymizer → encode → sink, checkpointed as it goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.keys import as_secret, key_warning, secret_from_environment
from shoal.decode.base import Decoded, Decoder
from shoal.errors import CheckpointError, InputError
from shoal.methods.base import DEAD, Release, StreamMethod
from shoal.methods.settings import Duration
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.checkpoints import Checkpoint, CheckpointFolder, Phase, Progress, require_same_run
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.doctor.times import in_1970_words, is_in_1970
from shoal.pipeline.identifying import CarryCheck
from shoal.pipeline.near_refused import NearRefused
from shoal.pipeline.outcomes import outcome_warning
from shoal.pipeline.outlets import Outlet
from shoal.pipeline.preparing import PreparedDecoder
from shoal.pipeline.warmup import WorkClock, must_compile, timed_compiling
from shoal.pipeline.wiring import make_anonymizer, make_decoder, make_files, make_outlet, make_trace_outlet
from shoal.policy import Policy, load_policy
from shoal.sources.files import InputFile
from shoal.times import column_ns

_RUN_SECTIONS = ("stream", "source", "anonymize", "sink", "dead_letters", "trace")
_REFUSED_WAITING = "ahead"


class Pipeline:
    """A policy, ready to run.

    Examples
    --------
    ``Pipeline.from_policy("policy.toml").run()`` reads, anonymizes and writes what the policy says, and returns a
    summary of counts.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        policy.sink  # noqa: B018 - a policy without one is for another command; say so before anything is made

    @classmethod
    def from_policy(cls, path: str | PathLike[str], *, checkpoint: str | PathLike[str] | None = None) -> Self:
        """Read and check a policy file; `checkpoint` names a folder in place of the policy's own."""
        return cls(load_policy(path, checkpoint=checkpoint))

    def run(self, observer: Observer | None = None) -> RunSummary:
        """Run to the end of the input, or go on where an earlier run of the same policy was stopped."""
        if not self.policy.anonymize.IS_STREAM:
            from shoal.pipeline.sets.run import SetRun  # only such runs need it

            return SetRun(self.policy, observer or Observer()).execute()
        return _Run(self.policy, observer or Observer()).execute()


class _Run:
    """One run from start, or from a checkpoint, to end."""

    def __init__(self, policy: Policy, observer: Observer) -> None:
        self.policy = policy
        self.observer = observer
        self.files = make_files(policy)
        self.folder: CheckpointFolder | None = None
        self.every = policy.checkpoint.every if policy.checkpoint else None
        self.types: dict[str, pa.DataType] | None = None
        self.first: Decoder | None = None
        self.outlets: dict[str, Any] = {}
        self.is_resumed = False
        self.warnings = list(policy.warnings)
        self.has_checked_unit = policy.stream.time_unit is None
        self.rows_before = 0
        self.numbers_rows = False
        self.carry_check = CarryCheck(policy)

    def execute(self) -> RunSummary:
        for sentence in self.carry_check.on_files(self.files):
            self._warn(sentence)
        with ExitStack() as stack:
            checkpoint = self.policy.checkpoint
            self._warn_of_key()
            if checkpoint is not None:
                self.folder = CheckpointFolder(checkpoint.path.path, warn=self._warn)
                stack.callback(self.folder.release)
            secret = self.folder.secret if self.folder else as_secret(None)
            self.anonymizer: StreamMethod = make_anonymizer(self.policy, secret)
            stack.callback(self._close)
            self._start_clock(stack)
            return self._execute()

    def _start_clock(self, stack: ExitStack) -> None:
        """Everything is made: from here on it is rows that take time, and the compiling of kernels, which is known."""
        self.clock = WorkClock(stack.enter_context(timed_compiling()))
        self.last_checkpoint = (time.perf_counter(), 0)

    def _warn_of_key(self) -> None:
        sentence = key_warning()
        if sentence:
            self._warn(sentence)

    def _execute(self) -> RunSummary:
        marks = {file.name: file.fingerprint() for file in self.files} if self.folder else {}
        self.progress = Progress(policy=self.policy.fingerprint(*_RUN_SECTIONS), sources=marks)
        self._take_up()
        self.near = NearRefused(self.policy.hierarchies, self.progress.near)
        self._make_outlets()
        if self.progress.phase == "done":
            self._require_output()
            self._each_outlet("clean")  # a kill may have come between the last note and this
            return self._summary(finished_before=True)
        self.dead = self.anonymizer.counts["dead"]
        if must_compile(self.policy.anonymize.METHOD):
            self.observer.compiling()
        self._bind()
        self._open_outlets()
        if self.progress.phase == "reading":
            self._read_all()
            self._commit("finishing")
        self._each_outlet("finish")
        if self._positions() != self.progress.outlets:
            self._commit("finishing")  # both checkpoints that are kept must know the finished file
        self._commit("done")
        self._each_outlet("clean")
        for sentence in self.near.warnings():
            self._warn(sentence)
        return self._last_summary()

    def _require_output(self) -> None:
        """A finished run has nothing to do, unless what it made is gone or was altered."""
        place = self.policy.sink.path
        if not place.path.exists():
            raise CheckpointError(
                f"{place.text}: this run was finished, but its output is gone; put it back, or start over with a new "
                "checkpoint folder"
            )
        self.rows.verify(self.progress.outlets["rows"])

    def _each_outlet(self, step: Literal["commit", "finish", "clean", "close"]) -> None:
        for outlet in self.outlets.values():
            getattr(outlet, step)()

    def _close(self) -> None:
        if self.first is not None:
            self.first.close()
        self._each_outlet("close")

    # ---- start

    def _take_up(self) -> None:
        found = self.folder.latest() if self.folder else None
        if found is None:
            return
        assert self.folder is not None
        require_same_run(
            found.progress, policy=self.progress.policy, sources=self.progress.sources, folder=self.folder.path
        )
        self.progress = found.progress
        self.anonymizer.restore(found.snapshot)
        self.is_resumed = True
        self.rows_before = self.anonymizer.counts["pushed"]

    def _bind(self) -> None:
        """Fix the columns' types by the first file, so that the output's columns are known."""
        # It stays open to be read from: standard input cannot be opened a second time.
        self.first = self._decoder(self.files[0])
        schema = self.first.schema
        try:
            self.anonymizer.bind(schema)
        except InputError as error:
            raise InputError(f"{self.files[0].name}: {error}") from None
        self.types = self.first.types
        self.numbers_rows = isinstance(self.first, PreparedDecoder) and self.first.numbers_rows

    def _decoder(self, file: InputFile) -> Decoder:
        first = self.anonymizer.counts["pushed"]
        return make_decoder(self.policy, file, self.anonymizer.columns, self.types, first_row=first)

    def _decoder_of(self, number: int) -> Decoder:
        first, self.first = self.first, None
        if number == 0 and first is not None:
            return first
        if first is not None:
            first.close()
        return self._decoder(self.files[number])

    def _make_outlets(self) -> None:
        policy, key = self.policy, secret_from_environment()
        is_resumable = self.folder is not None
        letters = policy.dead_letters
        self.letters = DeadLetters(letters.path.path, keep_rows=letters.keep_rows, secret=key, checked=is_resumable)
        self.rows: Outlet = make_outlet(policy, resumable=is_resumable)
        self.trace: Outlet | None = None
        self.outlets = {"letters": self.letters, "rows": self.rows}
        if policy.trace is not None:
            self.trace = make_trace_outlet(policy.trace.path.path, resumable=is_resumable, secret=key)
            self.outlets["trace"] = self.trace

    def _open_outlets(self) -> None:
        positions = self.progress.outlets
        self.rows.open(self.anonymizer.output_schema, positions.get("rows"))
        self.letters.open(positions.get("letters"))
        if self.trace is not None:
            self.trace.open(self.anonymizer.trace_schema, positions.get("trace"))
        if self.is_resumed:
            self.observer.resumed(self.anonymizer.counts["pushed"])
        elif self.folder is not None:
            self._commit("reading")

    # ---- reading

    def _read_all(self) -> None:
        try:
            for number in range(self.progress.file, len(self.files)):
                self._read_file(number)
        except InputError as error:
            # What could be read was used; the run ends as if the input had ended here, and says so.
            self.progress = replace(self.progress, failure=str(error))
        self._hand_over(self.anonymizer.flush(), None, 0)

    def _read_file(self, number: int) -> None:
        is_new = number >= len(self.progress.bases)
        if is_new:
            bases = [*self.progress.bases, self.anonymizer.counts["pushed"]]
            self.progress = replace(self.progress, file=number, position=None, bases=bases)
        with self._decoder_of(number) as decoder:
            for decoded in decoder.batches(self.progress.position):
                first = self.anonymizer.counts["pushed"]
                self._check_unit(decoded.batch)
                if first == 0:
                    self._check_first_block(decoded.batch)
                self._hand_over(self.anonymizer.push_batch(decoded.batch), decoded, first)
                self._tell_changes()
                self.progress = replace(self.progress, position=decoded.position)
                self.observer.progress(self._summary())
                if self._is_checkpoint_due():
                    self._commit("reading")
        self.progress = replace(self.progress, file=number + 1, position=None)

    def _check_unit(self, batch: pa.RecordBatch) -> None:
        """Warn where the first times lie in 1970: in a wrong unit, windows are a thousand times too long."""
        stream = self.policy.stream
        if self.has_checked_unit or stream.time is None or stream.time not in batch.schema.names:
            return
        self.has_checked_unit = batch.num_rows > 0
        times, usable = column_ns(batch.column(stream.time))
        if is_in_1970(times[usable]):
            self._warn(in_1970_words(stream.time, stream.time_unit or "s"))

    def _warn(self, sentence: str) -> None:
        self.warnings.append(sentence)
        self.observer.warn(sentence)

    def _check_first_block(self, batch: pa.RecordBatch) -> None:
        for sentence in self.carry_check.on_first_block(batch):
            self._warn(sentence)

    def _hand_over(self, release: Release, decoded: Decoded | None, first: int) -> None:
        """Send what was decided where it belongs."""
        self.rows.write(release.rows)
        if self.trace is not None:
            self.trace.write(release.trace)
        dead = self.anonymizer.counts["dead"]
        if dead > self.dead:  # the trace costs, so it is only looked at where there is something to see
            self.dead = dead
            refused = release.trace.filter(pc.equal(release.trace.column("verdict").cast(pa.string()), DEAD))
            for letter, record in self._letters_of(refused, decoded, first):
                self.letters.write(letter, record)
            if decoded is not None:
                self.near.count(refused, decoded.batch, first, self.anonymizer.explain)
                self.progress = replace(self.progress, near=self.near.found)

    def _tell_changes(self) -> None:
        """Log every z that was set, where z follows the stream."""
        for change in getattr(self.anonymizer, "take_changes", list)():
            self.observer.z_set(f"{np.datetime64(change.start_ns, 'ns').astype('datetime64[s]')}Z", change.z)

    def _letters_of(
        self, refused: pa.RecordBatch, decoded: Decoded | None, first: int
    ) -> Iterator[tuple[dict[str, Any], pa.RecordBatch | None]]:
        """Dead letters of what was refused; the decoder's own reason wins where it had one."""
        problems = {problem.row: problem for problem in decoded.problems} if decoded else {}
        for row, reason in zip(refused.column("row").to_pylist(), refused.column("reason").to_pylist(), strict=True):
            at, letter, record = row - first, self._letter(row), None
            problem = problems.get(at)
            refusal = self.anonymizer.explain(reason)
            column, why = (problem.column, problem.reason) if problem else (refusal.column, refusal.sentence)
            if decoded is not None and self._is_refused_on_arrival(reason):
                if decoded.lines is not None:
                    letter["line"] = int(decoded.lines[at])
                if self.letters.keep_rows and problem is None:
                    record = decoded.batch.slice(at, 1)
            yield {**letter, "column": column, "reason": why}, record
        self.progress = replace(self.progress, unreadable=self.progress.unreadable + len(problems))

    def _is_refused_on_arrival(self, reason: str) -> bool:
        """Whether records are always refused for this reason in the batch they came with.

        One that waited to be sorted in may be refused in a later one, and a letter must not depend on where a batch
        ended.
        """
        is_sorted = self.policy.anonymize.SORTS_ROWS and self.anonymizer.guarantee.max_delay_ns
        return reason != _REFUSED_WAITING or not is_sorted

    def _letter(self, row: int) -> dict[str, Any]:
        """Where a record stands: its file and its number in it, from 1."""
        file = int(np.searchsorted(self.progress.bases, row, side="right")) - 1
        return {"file": self.files[file].name, "row": row - self.progress.bases[file] + 1}

    # ---- checkpoints

    def _is_checkpoint_due(self) -> bool:
        if self.folder is None:
            return False
        at, rows = self.last_checkpoint
        if isinstance(self.every, Duration):
            return time.perf_counter() - at >= self.every.ns / 1e9
        return self.anonymizer.counts["pushed"] - rows >= (self.every or 0)

    def _commit(self, phase: Phase) -> None:
        """Bring the output to the disk, then the state that goes with it: never the other way round."""
        if phase == "reading" or self.progress.phase == "reading":
            self._each_outlet("commit")
        self.progress = replace(self.progress, phase=phase, outlets=self._positions())
        if self.folder is not None:
            self.folder.write(Checkpoint(self.progress, self.anonymizer.snapshot()))
        self.last_checkpoint = (time.perf_counter(), self.anonymizer.counts["pushed"])

    def _positions(self) -> dict[str, Any]:
        return {name: outlet.position() for name, outlet in self.outlets.items()}

    # ---- end

    def _promise(self) -> str:
        each = "; each row was taken for one person" if self.numbers_rows else ""
        return f"{self.anonymizer.guarantee.statement}{each}"

    def _summary(self, *, finished_before: bool = False) -> RunSummary:
        counts, policy = self.anonymizer.counts, self.policy
        seconds = self.clock.seconds
        return RunSummary(
            rows_in=counts["pushed"],
            released=counts["released"],
            suppressed=counts["suppressed"],
            suppressed_left=getattr(policy.anonymize, "suppressed", "drop") == "root",
            pending=counts["pending"] if self.anonymizer.guarantee.keeps_pending else 0,
            dead=counts["dead"],
            dead_by_reason=self._dead_by_reason(),
            seconds=seconds,
            compiling_seconds=self.clock.compiling_seconds,
            rows_per_second=(counts["pushed"] - self.rows_before) / seconds if seconds else 0.0,
            files=len(self.files),
            resumed=self.is_resumed,
            finished_before=finished_before,
            live_pairs=getattr(self.anonymizer, "live_pairs", 0),
            state_bytes=getattr(self.anonymizer, "state_bytes", 0),
            metrics=self._metrics(),
            delay_unit=policy.anonymize.delay_unit,
            guarantee=self._promise(),
            released_to=policy.sink.path.text,
            dead_letters=str(policy.dead_letters.path.path),
            trace=str(policy.trace.path.path) if policy.trace else None,
            failure=self.progress.failure,
            warnings=list(self.warnings),
        )

    def _last_summary(self) -> RunSummary:
        summary = self._summary()
        summary.outcome = outcome_warning(summary, self.anonymizer.explain, self.policy.anonymize.advice)
        if summary.outcome:
            summary.warnings.append(summary.outcome)
        return summary

    def _metrics(self) -> dict[str, Any]:
        """What the method measured; its cost only where the policy says what a delay costs.

        It grows by a factor for every arrival of delay: with the default of 2% and a delay of 2,000 arrivals, to 1.6e17
        times the loss, which says nothing.
        """
        found = dict(getattr(self.anonymizer, "metrics", {}))
        if "alpha" not in self.policy.anonymize.model_fields_set:
            found.pop("cost", None)
        return found

    def _dead_by_reason(self) -> dict[str, int]:
        """Dead letters by reason; a record that could not be decoded reached the anonymizer without a person."""
        known = ("pushed", "released", "suppressed", "dead", "pending")
        reasons = {name: count for name, count in self.anonymizer.counts.items() if name not in known}
        unreadable = self.progress.unreadable
        if unreadable:
            reasons["null-person"] -= unreadable
            reasons = {"unreadable": unreadable, **reasons}
        return {name: count for name, count in reasons.items() if count}
