"""`shoal run --engine spark`: files in, files out, the same policy, the same summary.

All files are one finite stream. Rows are written to a hidden folder and moved to their place at the end, so a run that
was killed has published nothing and is started again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from shoal.crypto.keys import Secret, key_warning
from shoal.errors import PolicyError
from shoal.methods.base import StreamMethod
from shoal.methods.release import DEAD, RELEASED, SUPPRESSED, UNREADABLE
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.checks.record_checks import RecordChecks
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.summary import outcome_warning
from shoal.pipeline.wiring import (
    make_anonymizer,
    make_encoder,
    make_file_source,
    make_files,
    make_parts,
)
from shoal.policy import Policy
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.cluster.executor_check import require_shared
from shoal.spark.cluster.progress import watched
from shoal.spark.cluster.session import find_spark, readable_errors, start_session
from shoal.spark.dead_letters import dead_letters
from shoal.spark.families import SHARDS, check_settings, decide, head_columns
from shoal.spark.outcome import Decided, Outcome, WriteTrace
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.records.files import FileRows, PartWriter, output_folder, read_files
from shoal.spark.sets.run import check_sampler, run_sets

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
            require_shared(session, folder, recipe)
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
        shows_root = getattr(self.policy.anonymize, "suppressed", "drop") == "root"
        trace = None if self.policy.trace is None else WriteTrace(self.policy.trace.path.path.absolute(), recipe)
        outcome = self._publish(decided, folder, trace, shows_root=shows_root)
        unreadable = self._write_letters(outcome, read, method, secret)
        return self._summary(outcome, read, method, unreadable)

    def _warn(self, *sentences: str | None) -> None:
        for sentence in filter(None, sentences):
            self._warnings.append(sentence)
            self.observer.warn(sentence)

    def _publish(self, decided: Decided, folder: Path, trace: WriteTrace | None, *, shows_root: bool) -> Outcome:
        """Write the rows to a hidden folder, then move them to their place."""
        parts, encoder = make_parts(self.policy), make_encoder(self.policy)
        working = folder.with_name(f".{folder.name}.partial")
        with output_error(folder):
            shutil.rmtree(working, ignore_errors=True)
            writer = PartWriter(working, encoder, decided.published)
            outcome = decided.publish(writer, trace, suppressed=shows_root)
            make_folder(folder)
            parts.resume(None)  # removes the parts of an earlier run, refuses files of others
            for number, path in enumerate(sorted(working.glob(f"part-*{encoder.suffix}"))):
                os.replace(path, folder / f"part-{number:05d}{encoder.suffix}")
            shutil.rmtree(working, ignore_errors=True)  # a second attempt of a task may still write there
        return outcome

    def _write_letters(self, outcome: Outcome, read: FileRows, method: StreamMethod, secret: Secret) -> int:
        """Write the dead letters in the order of the records; return how many could not be decoded."""
        place = self.policy.dead_letters
        letters = DeadLetters(place.path.path, keep_rows=place.keep_rows, secret=secret)
        letters.open(None)

        def where(row: int, line: int | None) -> dict[str, Any]:
            return read.place(row) if line is None else {**read.place(row), "line": line}

        found, unreadable = dead_letters(outcome, read.rows, method, where)
        for letter, record in found:
            letters.write(letter, record)
        letters.commit()
        letters.finish()
        letters.close()
        return unreadable

    def _summary(self, outcome: Outcome, read: FileRows, method: StreamMethod, unreadable: int) -> RunSummary:
        policy, counts = self.policy, outcome.counts
        reasons = {name: count for name, count in counts.items() if name not in (RELEASED, SUPPRESSED, DEAD)}
        if unreadable:
            reasons["null-person"] -= unreadable
            reasons = {name: count for name, count in {**reasons, UNREADABLE: unreadable}.items() if count}
        found = RunSummary(
            rows_in=read.rows.count, released=counts[RELEASED], suppressed=counts[SUPPRESSED], dead=counts[DEAD],
            dead_by_reason=reasons, files=len(read.files), metrics=outcome.metrics,
            delay_unit=policy.anonymize.delay_unit, guarantee=_guarantee(method, numbers_rows=read.numbers_rows),
            released_to=policy.sink.name, dead_letters=policy.dead_letters.where,
            trace=str(policy.trace.path.path) if policy.trace else None, warnings=list(self._warnings),
            live_pairs=outcome.live_pairs, state_bytes=outcome.state_bytes,
            suppressed_left=getattr(policy.anonymize, "suppressed", "drop") == "root",
        )  # fmt: skip
        found.pending = int(outcome.metrics.get("pending", 0)) if method.guarantee.keeps_pending else 0
        found.outcome = outcome_warning(found, method.explain, policy.anonymize.advice)
        if found.outcome:
            found.warnings.append(found.outcome)
        return found


def check_supported(policy: Policy) -> None:
    """Refuse what does not run on Spark, with what to do."""
    policy.file_source  # noqa: B018 - refuses message systems
    policy.file_sink  # noqa: B018
    if policy.checkpoint is not None:
        raise PolicyError("[checkpoint]: on Spark a run reads all files as one batch; leave it out")


def _guarantee(method: StreamMethod, *, numbers_rows: bool) -> str:
    return method.guarantee.statement + ("; each row counted as one person" if numbers_rows else "")
