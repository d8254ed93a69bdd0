"""`shoal run --engine spark`: files in, files out, the same policy, the same summary.

All files are one finite stream. Rows are written to a hidden folder and moved to their place when all of them are
there: a run that is killed before has published nothing. It is started again from the beginning.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shoal.crypto.keys import Secret, key_warning
from shoal.crypto.private_files import sync_folder
from shoal.errors import PolicyError
from shoal.methods.base import StreamMethod
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.checks.record_checks import RecordChecks
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.outcome import add_outcome
from shoal.pipeline.wiring import (
    make_anonymizer,
    make_encoder,
    make_file_source,
    make_files,
    make_parts,
)
from shoal.policy import Policy
from shoal.sinks.durable import output_error
from shoal.sources.input_file import InputFile
from shoal.spark.cluster.executor_check import Needs, first_and_last, require_executors
from shoal.spark.cluster.progress import watched
from shoal.spark.cluster.session import find_spark, readable_errors, start_session
from shoal.spark.dead_letters import dead_letters
from shoal.spark.families import SHARDS, check_settings, decide, head_columns
from shoal.spark.outcome import Decided, Outcome, WriteTrace
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.records.files import FileRows, read_files
from shoal.spark.records.part_writer import PartWriter, output_folder
from shoal.spark.sets.run import check_sampler, run_sets
from shoal.spark.summary import shows_suppressed, summarize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkRun:
    """One run of a policy on Spark, from all files to the end.

    Parameters
    ----------
    master
        Where executors are, such as ``local[4]`` or ``spark://host:7077``; by default that of ``spark-submit``.
    shards
        Into how many parts similar rows are divided, for methods on rows. What is published depends on it, never on
        the number of machines.
    """

    def __init__(
        self,
        policy: Policy,
        observer: Observer,
        *,
        master: str | None = None,
        shards: int = SHARDS,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.policy, self.observer, self._shards = policy, observer, shards
        self._master, self._settings = master, settings
        self._warnings = list(policy.warnings)

    def execute(self) -> RunSummary:
        """Run to the end."""
        if not self.policy.anonymize.IS_STREAM:
            check_sampler(self.policy.anonymize)
            check_supported(self.policy)
            return run_sets(self.policy, self.observer, master=self._master, settings=self._settings)
        find_spark()
        secret = shared_secret()
        check_supported(self.policy)
        method = make_anonymizer(self.policy, secret)
        recipe = Recipe.of(method)
        check_settings(recipe)
        folder, files = output_folder(self.policy), make_files(self.policy)
        self._warn(key_warning())
        self._warn(*RecordChecks(self.policy).before_run(make_file_source(self.policy, files)))
        self.observer.step("starting Spark")
        session = start_session(self._master, self._settings)
        with readable_errors(), watched(session, self.observer):
            require_executors(session, batch_needs(self.policy, recipe, folder, files))
            start = perf_counter()
            try:
                summary = self._execute(session, method, recipe, files, folder, secret)
            finally:
                session.catalog.clearCache()
            summary.seconds = perf_counter() - start
            summary.rows_per_second = summary.rows_in / summary.seconds
        return summary

    def _execute(
        self, session: SparkSession, method: StreamMethod, recipe: Recipe, files: Any, folder: Path, secret: Secret
    ) -> RunSummary:
        read = read_files(session, self.policy, files, method.columns, head_columns(recipe, method.columns))
        method.bind(read.rows.types)
        decided = decide(read.rows, recipe, shards=self._shards)
        if getattr(decided, "calibration", None) is not None:
            method.set_calibration(decided.calibration)  # type: ignore[attr-defined]
        for change in getattr(decided, "changes", ()):
            self.observer.z_set(change.moment, change.z)
        trace = None if self.policy.trace is None else WriteTrace(self.policy.trace.path.path.absolute(), recipe)
        outcome = self._publish(decided, folder, trace)
        unreadable = self._write_letters(outcome, read, method, secret)
        return self._summary(outcome, read, method, unreadable)

    def _warn(self, *sentences: str | None) -> None:
        for sentence in filter(None, sentences):
            self._warnings.append(sentence)
            self.observer.warn(sentence)

    def _publish(self, decided: Decided, folder: Path, trace: WriteTrace | None) -> Outcome:
        """Write the rows to a hidden folder, then move them to their place."""
        parts, encoder = make_parts(self.policy), make_encoder(self.policy)
        working = folder / f".attempt-{token_hex(8)}"  # executors of a run that was killed cannot write there
        with output_error(folder), _cleaned(folder):
            writer = PartWriter(working, encoder, decided.published)
            outcome = decided.publish(writer, trace, suppressed=shows_suppressed(self.policy))
            parts.resume(None)  # removes the parts of an earlier run, refuses files of others
            for number, path in enumerate(sorted(working.glob(f"part-*{encoder.suffix}"))):
                os.replace(path, folder / f"part-{number:05d}{encoder.suffix}")
            sync_folder(folder)
        return outcome

    def _write_letters(self, outcome: Outcome, read: FileRows, method: StreamMethod, secret: Secret) -> int:
        """Write the dead letters in the order of the records; return how many could not be decoded."""
        place = self.policy.dead_letters
        letters = DeadLetters(place.path.path, keep_rows=place.keep_rows, secret=secret)
        letters.open(None)

        def where(row: int, line: int | None) -> dict[str, Any]:
            return read.place(row) if line is None else {**read.place(row), "line": line}

        found, unreadable = dead_letters(outcome, read.rows, method, where, keep_rows=place.keep_rows)
        for letter, record in found:
            letters.write(letter, record)
        letters.commit()
        letters.finish()
        letters.close()
        return unreadable

    def _summary(self, outcome: Outcome, read: FileRows, method: StreamMethod, unreadable: int) -> RunSummary:
        found = summarize(
            self.policy, method, outcome.counts, unreadable=unreadable, numbers_rows=read.numbers_rows,
            warnings=self._warnings, rows_in=read.rows.count, files=len(read.files), metrics=outcome.metrics,
            live_pairs=outcome.live_pairs, state_bytes=outcome.state_bytes,
        )  # fmt: skip
        found.pending = int(outcome.metrics.get("pending", 0)) if method.guarantee.keeps_pending else 0
        add_outcome(found, self.policy, method.explain)
        return found


@contextmanager
def _cleaned(folder: Path) -> Iterator[None]:
    """Remove hidden folders of attempts before and after; remove the folder too if it is new and stays empty."""
    is_new = not folder.exists()

    def clean() -> None:
        for left in folder.glob(".attempt-*"):
            shutil.rmtree(left, ignore_errors=True)

    clean()
    try:
        yield
    finally:
        clean()
        if is_new:
            with suppress(OSError):  # it has files
                folder.rmdir()


def batch_needs(policy: Policy, recipe: Recipe, folder: Path, files: Sequence[InputFile]) -> Needs:
    """What executors need for a batch of files."""
    trace = () if policy.trace is None else (policy.trace.path.path.absolute().parent,)
    return Needs(recipe, (folder, *trace), first_and_last([file.path for file in files if file.path is not None]))


def check_supported(policy: Policy) -> None:
    """Refuse what does not run on Spark, with what to do."""
    policy.file_source  # noqa: B018 - refuses message systems
    policy.file_sink  # noqa: B018
    if policy.checkpoint is not None:
        raise PolicyError("[checkpoint]: on Spark a run reads all files as one batch; leave it out")
