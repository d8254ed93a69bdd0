"""The pump: source → decode → anonymizer → encode → sink, checkpointed as it goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np
import pyarrow as pa

from shoal.anonymizers.base import DEAD, VERDICTS, Anonymizer, Release
from shoal.decode.base import Decoded, Decoder
from shoal.errors import InputError
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.building import make_anonymizer, make_decoder, make_files, make_outlet, make_trace_outlet
from shoal.pipeline.checkpoints import Checkpoint, CheckpointFolder, Phase, Progress, require_same_run
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.outlets import Outlet
from shoal.policy import Policy, load_policy
from shoal.policy.fields import Duration
from shoal.sources.files import InputFile
from shoal.vault.keys import as_secret, secret_from_environment

_RUN_SECTIONS = ("stream", "source", "anonymize", "sink", "dead_letters", "trace")


class Pipeline:
    """A policy, ready to run.

    Examples
    --------
    ``Pipeline.from_policy("policy.toml").run()`` reads, anonymizes and writes what the policy says, and returns a
    summary of counts.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    @classmethod
    def from_policy(cls, path: str | PathLike[str], *, checkpoint: str | PathLike[str] | None = None) -> Self:
        """Read and check a policy file; `checkpoint` names a folder in place of the policy's own."""
        return cls(load_policy(path, checkpoint=checkpoint))

    def run(self, observer: Observer | None = None) -> RunSummary:
        """Run to the end of the input, or go on where an earlier run of the same policy was stopped."""
        return _Run(self.policy, observer or Observer()).execute()


class _Run:
    """One run from start, or from a checkpoint, to end."""

    def __init__(self, policy: Policy, observer: Observer) -> None:
        self.policy = policy
        self.observer = observer
        self.started = time.perf_counter()
        self.files = make_files(policy)
        checkpoint = policy.checkpoint
        self.folder = CheckpointFolder(checkpoint.path.path, warn=observer.warn) if checkpoint else None
        self.every = checkpoint.every if checkpoint else None
        self.anonymizer: Anonymizer = make_anonymizer(policy, self.folder.secret if self.folder else as_secret(None))
        self.types: dict[str, pa.DataType] | None = None
        self.last_checkpoint = (self.started, 0)
        self.is_resumed = False

    def execute(self) -> RunSummary:
        try:
            return self._execute()
        finally:
            if self.folder is not None:
                self.folder.release()

    def _execute(self) -> RunSummary:
        marks = {file.name: file.fingerprint() for file in self.files} if self.folder else {}
        self.progress = Progress(policy=self.policy.fingerprint(*_RUN_SECTIONS), sources=marks)
        self._take_up()
        if self.progress.phase == "done":
            return self._summary(finished_before=True)
        self._bind()
        self._open_outlets()
        try:
            if self.progress.phase == "reading":
                self._read_all()
                self._commit("finishing")
            for outlet in self.outlets.values():
                outlet.finish()
            self._commit("done")
        finally:
            for outlet in self.outlets.values():
                outlet.close()
        return self._summary()

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
        self.observer.resumed(self.anonymizer.counts["pushed"])

    def _bind(self) -> None:
        """Fix the columns' types by the first file, so that the output's columns are known."""
        with self._decoder(self.files[0]) as decoder:
            self.anonymizer.bind(decoder.schema)
            self.types = decoder.types

    def _decoder(self, file: InputFile) -> Decoder:
        return make_decoder(self.policy, file, self.anonymizer.columns, self.types)

    def _open_outlets(self) -> None:
        policy, key = self.policy, secret_from_environment()
        is_resumable = self.folder is not None
        self.rows: Outlet = make_outlet(policy, resumable=is_resumable)
        self.letters = DeadLetters(
            policy.dead_letters.path.path, keep_rows=policy.dead_letters.keep_rows, secret=key
        )
        self.trace = (
            make_trace_outlet(policy.trace.path.path, resumable=is_resumable, secret=key) if policy.trace else None
        )
        positions = self.progress.outlets
        self.outlets: dict[str, Any] = {"rows": self.rows, "letters": self.letters}
        if self.progress.phase == "reading":
            self.letters.open(positions.get("letters"))
            self.rows.open(self.anonymizer.output_schema, positions.get("rows"))
        if self.trace is not None:
            self.outlets["trace"] = self.trace
            self.trace.open(self.anonymizer.trace_schema, positions.get("trace"))
        if self.folder is not None and not self.is_resumed:
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
        with self._decoder(self.files[number]) as decoder:
            for decoded in decoder.batches(self.progress.position):
                first = self.anonymizer.counts["pushed"]
                self._hand_over(self.anonymizer.push_batch(decoded.batch), decoded, first)
                self.progress = replace(self.progress, position=decoded.position)
                self.observer.progress(self._summary())
                if self._is_checkpoint_due():
                    self._commit("reading")
        self.progress = replace(self.progress, file=number + 1, position=None)

    def _hand_over(self, release: Release, decoded: Decoded | None, first: int) -> None:
        """Send what was decided where it belongs."""
        self.rows.write(release.rows)
        if self.trace is not None:
            self.trace.write(release.trace)
        for letter, record in self._letters_of(release, decoded, first):
            self.letters.write(letter, record)

    def _letters_of(
        self, release: Release, decoded: Decoded | None, first: int
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
        """Dead letters of what was refused; the decoder's own reason wins where it had one."""
        verdicts = release.trace.column("verdict").indices.to_numpy()
        dead = release.trace.take(pa.array(np.flatnonzero(verdicts == VERDICTS.index(DEAD))))
        problems = {problem.row: problem for problem in decoded.problems} if decoded else {}
        for row, reason in zip(dead.column("row").to_pylist(), dead.column("reason").to_pylist(), strict=True):
            at, letter = row - first, self._letter(row)
            if decoded is not None and decoded.lines is not None and at >= 0:
                letter["line"] = int(decoded.lines[at])
            problem = problems.get(at)
            if problem is not None:
                yield {**letter, "column": problem.column, "reason": problem.reason}, None
                continue
            refusal = self.anonymizer.explain(reason)
            is_kept = self.letters.keep_rows and decoded is not None and at >= 0
            record = decoded.batch.slice(at, 1).to_pylist()[0] if is_kept and decoded else None
            yield {**letter, "column": refusal.column, "reason": refusal.sentence}, record
        self.progress = replace(self.progress, unreadable=self.progress.unreadable + len(problems))

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
        outlets = self.progress.outlets
        if phase != "done":
            outlets = {name: outlet.commit() for name, outlet in self.outlets.items()}
        self.progress = replace(self.progress, phase=phase, outlets=outlets)
        if self.folder is not None:
            self.folder.write(Checkpoint(self.progress, self.anonymizer.snapshot()))
        self.last_checkpoint = (time.perf_counter(), self.anonymizer.counts["pushed"])

    # ---- end

    def _summary(self, *, finished_before: bool = False) -> RunSummary:
        counts, policy = self.anonymizer.counts, self.policy
        seconds = time.perf_counter() - self.started
        return RunSummary(
            rows_in=counts["pushed"],
            released=counts["released"],
            suppressed=counts["suppressed"],
            dead=counts["dead"],
            dead_by_reason=self._dead_by_reason(),
            seconds=seconds,
            rows_per_second=counts["pushed"] / seconds if seconds else 0.0,
            files=len(self.files),
            resumed=self.is_resumed,
            finished_before=finished_before,
            live_pairs=getattr(self.anonymizer, "live_pairs", 0),
            state_bytes=getattr(self.anonymizer, "state_bytes", 0),
            guarantee=self.anonymizer.guarantee.statement,
            released_to=policy.sink.path.text,
            dead_letters=str(policy.dead_letters.path.path),
            trace=str(policy.trace.path.path) if policy.trace else None,
            failure=self.progress.failure,
            warnings=list(policy.warnings),
        )

    def _dead_by_reason(self) -> dict[str, int]:
        """Dead letters by reason; a record that could not be decoded reached the anonymizer without a person."""
        known = ("pushed", "released", "suppressed", "dead", "held")
        reasons = {name: count for name, count in self.anonymizer.counts.items() if name not in known}
        unreadable = self.progress.unreadable
        if unreadable:
            reasons["null-person"] -= unreadable
            reasons = {"unreadable": unreadable, **reasons}
        return {name: count for name, count in reasons.items() if count}
