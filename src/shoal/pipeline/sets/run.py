"""A run on sets: everything is read, then decided at once, then written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import ExitStack
from typing import Any, Final

import orjson
import pyarrow as pa

from shoal.crypto.keys import key_warning, secret_from_environment
from shoal.crypto.private_files import sync_folder
from shoal.hierarchies import Hierarchy
from shoal.methods.base import BatchMethod, statement_for_rows
from shoal.methods.registry import METHODS
from shoal.methods.release import Refusal
from shoal.methods.sets.local_result import LocalKmResult
from shoal.observe.counts import SetSummary
from shoal.observe.observer import Observer
from shoal.pipeline.dead_letters import DeadLetters
from shoal.pipeline.outcome import HALF, add_outcome
from shoal.pipeline.sets.people import LocalPeople, People, SetFacts, Shown
from shoal.pipeline.sets.rare_items import drop_statement, only_published
from shoal.pipeline.sets.release import DEFAULT_SEPARATOR, TRACE, check_separator, release_schema
from shoal.pipeline.warmup import WorkClock, must_compile, timed_compiling
from shoal.pipeline.wiring import make_file_sink, make_files, make_trace_file
from shoal.policy import Policy
from shoal.policy.crosschecks import next_to
from shoal.policy.fields import Location
from shoal.policy.sets import BLOCKS, CERTIFICATE, SetSection
from shoal.sinks.atomic_file import AtomicFile, check_target
from shoal.sinks.durable import output_error

_MANY_REFUSED: Final = 0.05
_REMEDIES: Final = {
    "null-person": "a row has no person; fill the column",
    "null-item": "a row has no item; check the name of the column and [source] separator",
    "unknown-item": "the generalization lacks an item; add it there",
}
"""What to try first, by the reason of most refusals."""


def published_error(error: float) -> float:
    """The error as it may be published: all its digits would reveal how often rare items occur.

    >>> published_error(0.123456), published_error(1234.5), published_error(0.0)
    (0.12, 1200.0, 0.0)
    """
    return float(f"{error:.2g}")


def free_root(names: Collection[str]) -> str:
    """A root label that no item has.

    >>> free_root(["a"]), free_root(["a", "*"])
    ('*', '**')
    """
    taken, root = set(names), "*"
    while root in taken:
        root += "*"
    return root


class SetRun:
    """One run from start to end; a run that fails or is killed has published nothing, and starts over."""

    def __init__(self, policy: Policy, observer: Observer, people: People | None = None) -> None:
        assert isinstance(policy.anonymize, SetSection)
        self.policy, self.method, self.observer = policy, policy.anonymize, observer
        self.people = people or LocalPeople(policy)
        joined = policy.file_sink.kind == "csv"
        self.separator = (policy.file_sink.separator or DEFAULT_SEPARATOR) if joined else None
        self.schema = release_schema(self.method.column, joined=joined)
        self.summary = SetSummary(
            released_to=str(policy.file_sink.path.path),
            dead_letters=policy.dead_letters.where,
            trace=str(policy.trace.path.path) if policy.trace else None,
            warnings=list(policy.warnings),
            certificate_file=str(next_to(policy.file_sink.path, CERTIFICATE).path),
            blocks_file=str(next_to(policy.file_sink.path, BLOCKS).path),
        )

    def execute(self) -> SetSummary:
        with timed_compiling() as compiling, ExitStack() as stack:
            self.clock = WorkClock(compiling)
            self._open(stack)
            warning = key_warning()
            if warning:
                self.summary.warnings.append(warning)
                self.observer.warn(warning)
            facts = self._read()
            if facts.records:
                facts = self._drop_rare(facts)
                self._publish(facts, self._decide(facts))
                stack.pop_all()  # everything is finished: nothing to undo
            else:  # no release is published, an earlier one stays
                self.letters.finish()
        add_outcome(self.summary, self.policy, _explain)
        self._note_time()
        return self.summary

    def _open(self, stack: ExitStack) -> None:
        """Open the outputs first, so that a read-only folder is reported before an hour of work."""
        policy, key = self.policy, secret_from_environment()
        self.undo = stack
        self.files = make_files(policy)
        for ending in self.method.next_to_sink():
            check_target(next_to(policy.file_sink.path, ending).path)
        self.rows = make_file_sink(policy)
        self.trace = make_trace_file(policy.trace.path.path, key) if policy.trace is not None else None
        for outlet, schema in ((self.rows, self.schema), (self.trace, TRACE)):
            if outlet is not None:
                stack.callback(outlet.discard)
                outlet.open(schema)
        letters = policy.dead_letters
        self.letters = DeadLetters(letters.path.path, keep_rows=letters.keep_rows, secret=key, in_place=False)
        stack.callback(self.letters.discard)
        self.letters.open(None)

    # ---- reading

    def _read(self) -> SetFacts:
        facts = self.people.read(self.files, self.letters.write, self._note_reading)
        self._note_reading(facts)
        self.letters.commit()
        summary = self.summary
        self.counts_rows = facts.counts_rows
        summary.files, summary.records = len(self.files), facts.people
        summary.empty_records, summary.items = facts.people - facts.records, len(facts.labels)
        self._warn_of_refused()
        if facts.near is not None:
            summary.warnings.append(facts.near)
            self.observer.warn(facts.near)
        return facts

    def _drop_rare(self, facts: SetFacts) -> SetFacts:
        least, summary = self.method.drop_rare, self.summary
        if least is None:
            return facts
        facts, dropped = self.people.drop_rare(least)
        summary.empty_records += dropped.people
        summary.items_dropped, summary.entries_dropped = dropped.items, dropped.entries
        summary.entries_dropped_share = dropped.share
        return facts

    def _warn_of_refused(self) -> None:
        summary = self.summary
        if _MANY_REFUSED * summary.rows_in < summary.dead <= HALF * summary.rows_in:  # more is the outcome of the run
            why = ", ".join(f"{count:,} {reason}" for reason, count in summary.dead_by_reason.items())
            warning = (
                f"{summary.dead:,} refused of {summary.rows_in:,} rows ({why}): their items are not "
                "published; are [source] separator, the columns and the generalization the right ones?"
            )
            summary.warnings.append(warning)
            self.observer.warn(warning)

    def _note_reading(self, facts: SetFacts) -> None:
        summary = self.summary
        summary.rows_in = facts.rows
        summary.dead, summary.dead_by_reason = facts.refused.total(), dict(facts.refused)
        self._note_time()
        summary.rows_per_second = facts.rows / summary.seconds if summary.seconds else 0.0
        self.observer.progress(summary)

    def _note_time(self) -> None:
        self.summary.seconds = self.clock.seconds
        self.summary.compiling_seconds = self.clock.compiling_seconds

    # ---- deciding

    def _decide(self, facts: SetFacts) -> Any:
        parameters, items = self.policy.parameters(), facts.labels
        if "generalize" not in parameters:
            assert self.method.generalize.balanced is not None
            parameters["generalize"] = Hierarchy.balanced(items, self.method.generalize.balanced, free_root(items))
        self._check_labels(items)
        self._check_labels(getattr(parameters["generalize"], "labels", ()))
        # Single items are counted without the kernels that take long to compile.
        if min(self.method.m, facts.longest) > 1 and must_compile(self.method.METHOD):
            self.observer.compiling()
        method: BatchMethod = METHODS[self.method.METHOD].load()(**parameters)
        self.settings = method.settings
        return self.people.decide(method, self.observer.deciding)

    def _check_labels(self, labels: Any) -> None:
        if self.separator is not None:
            check_separator(labels, self.separator)

    # ---- publishing

    def _publish(self, facts: SetFacts, result: Any) -> None:
        certificate, blocks = result.certificate, result.blocks  # raises where nothing is certified
        if self.method.drop_rare is not None:
            blocks = only_published(blocks, facts.labels)
        self._check_labels(blocks)
        shown = self.people.show(blocks, self.method.seed)
        for batch in shown.batches(self.schema, self.separator):
            self.rows.write(batch)
        self._note_result(shown, result, blocks)
        next_to_it = {
            CERTIFICATE: self._certificate(certificate, shown),
            BLOCKS: {name: list(blocks[name]) for name in shown.labels},
        }
        self._finish(shown.trace(), next_to_it)

    def _note_result(self, shown: Shown, result: Any, blocks: Mapping[str, Collection[str]]) -> None:
        summary = self.summary
        summary.released = len(shown)
        summary.blocks_before = sum(map(len, blocks.values()))
        summary.items_generalized = sum(len(own) for own in blocks.values() if len(own) > 1)
        if isinstance(result, LocalKmResult):  # an item may be under several labels
            summary.blocks_before = len({item for own in blocks.values() for item in own})
            summary.items_generalized, summary.recoding = result.items_generalized, "local"
        summary.blocks_after, summary.blocks_used = len(blocks), shown.used
        summary.error = published_error(result.error)
        summary.error_kind = self.method.error or ("distance" if self.method.generalize.places else "ncp")
        summary.certificate = result.certificate.to_dict()["sizes"]
        self.promised = result.certificate.statement + drop_statement(self.method.drop_rare)
        summary.statement = statement_for_rows(self.promised) if self.counts_rows else self.promised
        summary.guarantee = summary.statement.replace("\n", " ")

    def _certificate(self, certificate: Any, shown: Shown) -> dict[str, Any]:
        """What may be published with the release: not the fingerprint of the data, which would confirm a guess."""
        content = {name: value for name, value in certificate.to_dict().items() if name != "fingerprint"}
        content["seed"] = self.method.seed  # what is counted needs none, but rows are shuffled by it
        summary = self.summary
        content = {
            "method": self.method.METHOD, "statement": self.promised, **content, "released": summary.released,
            "error": summary.error, "error_kind": summary.error_kind, "blocks_before": summary.blocks_before,
            "blocks": summary.blocks_after, "blocks_used": summary.blocks_used,
            "generalize": self.method.generalize.way, "settings": self.settings.to_dict() | {"seed": self.method.seed},
        }  # fmt: skip
        if self.method.drop_rare is not None:
            content |= {"drop_rare": self.method.drop_rare, "items_dropped": summary.items_dropped,
                        "entries_dropped_share": published_error(summary.entries_dropped_share)}  # fmt: skip
        return {**content, "binding": shown.bound_to(content)}

    def _finish(self, trace: pa.RecordBatch, next_to_it: Mapping[str, Any]) -> None:
        """Rename everything, the release last: it never exists next to the certificate of another one."""
        if self.trace is not None:
            self.trace.write(trace)
            self.trace.commit(0)
        self.rows.commit(0)
        sinks = [
            self._written(next_to(self.policy.file_sink.path, name), content) for name, content in next_to_it.items()
        ]
        _remove(self.policy.file_sink.path)
        for sink in sinks:
            sink.finish()
        for outlet in (self.trace, self.letters, self.rows):
            if outlet is not None:
                outlet.finish()

    def _written(self, place: Location, content: Mapping[str, Any]) -> AtomicFile:
        """JSON on the disk, not yet under its name."""
        sink = AtomicFile(place.path)
        self.undo.callback(sink.discard)
        sink.resume(None).write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        sink.commit()
        return sink


def _explain(reason: str) -> Refusal:
    return Refusal(None, _REMEDIES[reason])


def _remove(place: Location) -> None:
    """Remove an earlier release before its certificate is replaced."""
    with output_error(place.path):
        place.path.unlink(missing_ok=True)
        sync_folder(place.path.parent)
