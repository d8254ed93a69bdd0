"""Checks a policy and a sample of its data before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from shoal.crypto.keys import KEY_FILE_VARIABLE, key_warning, new_secret, secret_from_environment
from shoal.decode.base import Decoded, Refused
from shoal.errors import InputError, ShoalError
from shoal.methods.base import StreamMethod
from shoal.methods.release import UNREADABLE, refused_by_reason
from shoal.observe.observer import Observer
from shoal.pipeline.checks.near_labels import NearLabels
from shoal.pipeline.doctor.carried_columns import file_remarks, released_remarks, unchanged_remarks
from shoal.pipeline.doctor.diversity import diversity_cost_remarks
from shoal.pipeline.doctor.flexible import flexible_outcome, flexible_remarks
from shoal.pipeline.doctor.live import connection_remarks, lag_remarks
from shoal.pipeline.doctor.live_sample import take_live_sample
from shoal.pipeline.doctor.places import place_remarks
from shoal.pipeline.doctor.remarks import Remark, Sample, files_remark, row_remark, verdict
from shoal.pipeline.doctor.times import time_remarks
from shoal.pipeline.doctor.tuples import COVERED_REASONS, loss_words, tuple_remarks
from shoal.pipeline.doctor.workers import keying_remarks, shared_key_remarks
from shoal.pipeline.learning import learn
from shoal.pipeline.missing_values import missing_value_words
from shoal.pipeline.warmup import must_compile
from shoal.pipeline.wiring import make_anonymizer, make_decoder, make_files
from shoal.policy import Policy
from shoal.policy.flexible import FlexibleSection
from shoal.policy.live.messages import MessageSource
from shoal.policy.method_base import MethodSection
from shoal.policy.sanitize import SanitizeSection
from shoal.policy.tuples import TupleSection
from shoal.schema import ROWS
from shoal.sources.input_file import InputFile

SAMPLE_ROWS: Final = 100_000
_TRIED_DEADLINES: Final = 10
_TRIED_ROWS: Final = 20_000
"""The search for neighbours is slow: a tuple method is tried on this many rows, or deadlines, of the sample."""


def examine(
    policy: Policy, *, rows: int = SAMPLE_ROWS, observer: Observer | None = None, places: bool = True
) -> list[Remark]:
    """Check a policy that was read without error; the observer is notified before kernels are compiled.

    Without `places`, what a run would do with existing output is left to the engine that runs the policy.
    """
    remarks = [Remark("look", "policy", sentence) for sentence in policy.warnings]
    remarks += [*_key_remarks(policy), *shared_key_remarks(policy), *(place_remarks(policy) if places else ())]
    try:
        if not policy.anonymize.IS_STREAM:
            from shoal.pipeline.doctor.sets import set_remarks  # only such policies need it

            return [*remarks, *set_remarks(policy, rows, observer or Observer())]
        anonymizer = make_anonymizer(policy, new_secret())
        if policy.sanitize is not None:
            lacking = [*_naming_remarks(policy, policy.sanitize, anonymizer)]
            if lacking or policy.sanitize.maid:
                return [*remarks, *lacking, *([] if lacking else file_remarks(policy))]
        remarks += connection_remarks(policy)
        if isinstance(policy.source, MessageSource):
            sample = _take_messages(policy, policy.source, anonymizer, rows, remarks)
        else:
            sample = _take_sample(policy, anonymizer, rows, remarks)
    except ShoalError as error:
        return [*remarks, Remark("wrong", "source", str(error))]
    if sample is not None:
        if sample.decoded.rows and any(map(must_compile, _methods_to_try(policy.anonymize))):
            (observer or Observer()).compiling()
        remarks += [*_learning_remarks(policy, anonymizer), *_sample_remarks(policy, anonymizer, sample)]
    return remarks


def _learning_remarks(policy: Policy, anonymizer: StreamMethod) -> Iterator[Remark]:
    try:
        learnt = learn(policy, anonymizer)
    except ShoalError as error:
        yield Remark("wrong", "target", str(error))
        return
    if learnt:
        yield Remark("good", "target", f"z begins with what {learnt} epochs of an earlier stream needed")


def _key_remarks(policy: Policy) -> Iterator[Remark]:
    try:
        secret = secret_from_environment()
    except ShoalError as error:
        yield Remark("wrong", "key", str(error))
        return
    if secret is None and policy.sanitize is not None:
        yield Remark("wrong", "key", f"{KEY_FILE_VARIABLE} is not set; shoal sanitize needs a key to seal names with")
    elif secret is not None:
        warning = key_warning()
        if warning is not None:
            yield Remark("look", "key", warning)
        what = "pseudonyms and sealed files use" if policy.anonymize.PUBLISHES_PSEUDONYMS else "sealed files use"
        yield Remark("good", "key", f"{what} the key that {KEY_FILE_VARIABLE} names")
    elif policy.checkpoint is not None:
        yield Remark(
            "look", "key",
            f"{KEY_FILE_VARIABLE} is not set: a key is created next to the checkpoint, which protects only against "
            "someone who copies the checkpoint alone",
        )  # fmt: skip
    elif policy.anonymize.PUBLISHES_PSEUDONYMS:
        yield Remark(
            "look", "key",
            f"{KEY_FILE_VARIABLE} is not set: pseudonyms use a key that ends with the run; two runs cannot be joined",
        )  # fmt: skip


def _naming_remarks(policy: Policy, process: SanitizeSection, anonymizer: StreamMethod) -> Iterator[Remark]:
    """Files that lack a column the process needs: also those that name a person, which the method does not read."""
    made = (policy.stream.person,) if process.maid else ()
    own = (name for name in anonymizer.columns if name not in made)
    columns = tuple(dict.fromkeys((*own, *process.maid, *process.pii)))
    yield from _other_files(policy, make_files(policy), columns, None)


def _take_sample(policy: Policy, anonymizer: StreamMethod, rows: int, remarks: list[Remark]) -> Sample | None:
    if any(place.is_standard for place in policy.file_source.path):
        remarks.append(Remark("look", "source", "standard input cannot be read before the run; no sample was taken"))
        return None
    files = make_files(policy)
    remarks.append(files_remark(len(files)))
    decoded, is_all = [], False
    with make_decoder(policy, files[0], anonymizer.columns) as decoder:
        anonymizer.bind(decoder.schema)
        if policy.stream.person == ROWS and policy.sanitize is None:
            remarks.append(row_remark(numbers_rows=decoder.numbers_rows))
        try:
            for part in _until(decoder.batches(), rows):
                decoded.append(part)
            is_all = len(files) == 1 and sum(part.rows for part in decoded) < rows
        except InputError as error:
            remarks.append(Remark("wrong", "source", str(error)))
        empty = pa.RecordBatch.from_pylist([], schema=decoder.schema)
        types, counts_rows = decoder.types, decoder.numbers_rows
    remarks += _other_files(policy, files[1:], anonymizer.columns, types)
    return Sample(_joined(empty, decoded), is_all, counts_rows)


def _take_messages(
    policy: Policy, source: MessageSource, anonymizer: StreamMethod, rows: int, remarks: list[Remark]
) -> Sample | None:
    if any(remark.level == "wrong" and remark.topic in ("connection", "source") for remark in remarks):
        return None
    if not source.CAN_BE_SAMPLED:
        remarks.append(Remark("look", "source", "messages can be received only once, so no sample was taken"))
        return None
    found = take_live_sample(policy, anonymizer.columns, rows)
    anonymizer.bind(found.empty.schema)
    if policy.stream.person == ROWS:
        remarks.append(row_remark(numbers_rows=found.numbers_rows))
    sample = Sample(_joined(found.empty, found.parts), found.is_all, found.numbers_rows)
    remarks += [*lag_remarks(policy, sample.batch, found.arrived), *keying_remarks(policy, sample.decoded)]
    return sample


def _joined(empty: pa.RecordBatch, parts: list[Decoded]) -> Decoded:
    refused: list[Refused] = []
    first = 0
    for part in parts:
        refused += (replace(one, row=first + one.row) for one in part.refused)
        first += part.rows
    return Decoded(pa.concat_batches([empty, *(part.batch for part in parts)]), tuple(refused), {})


def _other_files(
    policy: Policy, files: list[InputFile], columns: tuple[str, ...], types: dict[str, pa.DataType] | None
) -> Iterator[Remark]:
    """Problems of further files: only their columns are checked, not their rows."""
    for file in files:
        try:
            with make_decoder(policy, file, columns, types) as decoder:
                decoder.schema  # noqa: B018 - asking is what raises
        except InputError as error:
            yield Remark("wrong", "source", str(error))


def _until(batches: Iterator[Decoded], rows: int) -> Iterator[Decoded]:
    seen = 0
    for decoded in batches:
        yield decoded
        seen += decoded.rows
        if seen >= rows:
            return


def _sample_remarks(policy: Policy, anonymizer: StreamMethod, sample: Sample) -> Iterator[Remark]:
    batch, refused = sample.batch, sample.decoded.refused
    if not sample.decoded.rows:
        words = (
            "there are no messages yet" if isinstance(policy.source, MessageSource) else "the first file has no rows"
        )
        yield Remark("look", "sample", words)
        return
    whole = "all" if sample.is_all else "the first"
    yield Remark("good", "sample", f"{whole} {sample.decoded.rows:,} rows were read")
    if refused:
        where = f"column {refused[0].column!r}: " if refused[0].column else ""
        yield Remark(
            "look", "sample",
            f"{len(refused):,} rows cannot be read and will go to the dead letters; "
            f"the first: {where}{refused[0].reason}",
        )  # fmt: skip
    if policy.stream.time is not None and policy.stream.time in batch.schema.names:
        yield from time_remarks(policy, policy.stream.time, batch)
    yield from unchanged_remarks(policy, batch)
    if isinstance(policy.anonymize, TupleSection):
        yield from tuple_remarks(policy, policy.anonymize, sample)
    if isinstance(policy.anonymize, FlexibleSection):
        yield from flexible_remarks(policy, policy.anonymize, sample)
    yield from _outcome_remarks(policy, anonymizer, sample)


def _outcome_remarks(policy: Policy, anonymizer: StreamMethod, sample: Sample) -> Iterator[Remark]:
    """Try the method on the sample: what would be released, and what would be refused."""
    method = policy.anonymize
    tried = sample.head(_rows_to_try(method))
    releases = anonymizer.push_batch(tried.batch, refused=tried.places), anonymizer.flush()
    counts: dict[str, Any] = anonymizer.counts
    rows = counts["pushed"]
    released = counts["released"] / rows
    refused = counts["dead"] / rows
    level, advice = verdict(policy, sample, counts)
    which = "these rows" if rows == sample.decoded.rows else f"the first {rows:,} of them"
    stays = f"{counts['pending'] / rows:.1%} would wait" if counts["pending"] else (
        f"{counts['suppressed'] / rows:.1%} would be suppressed"
    )  # fmt: skip
    yield Remark(
        level, "outcome",
        f"of {which} {released:.1%} would be released, {stays} and {'; '.join([f'{refused:.2%} refused', *advice])}",
    )  # fmt: skip
    if isinstance(method, TupleSection) and method.is_diverse:
        yield from diversity_cost_remarks(policy, method, tried, counts["suppressed"] / rows)
    yield from released_remarks(policy, tried, releases)
    metrics = anonymizer.metrics
    if isinstance(method, FlexibleSection):
        yield from flexible_outcome(anonymizer, method, tried.batch)
    elif "loss" in metrics and counts["released"]:
        yield Remark("good", "outcome", loss_words(metrics, unit=method.delay_unit))
    for words in missing_value_words(metrics, method, decided=counts["released"] + counts["suppressed"]):
        yield Remark("look", "missing", words)
    # Late rows are counted where the order of times is looked at.
    covered = (UNREADABLE, *(COVERED_REASONS if isinstance(method, TupleSection) else ("late",)))
    reasons = {name: count for name, count in refused_by_reason(counts).items() if name.split(":")[0] not in covered}
    for reason, count in islice(reasons.items(), 8):
        yield Remark("look", "outcome", f"{count:,} rows refused, {anonymizer.explain(reason).words}")
    if not isinstance(method, TupleSection):
        yield from _near_remarks(policy, tried.batch)


def _near_remarks(policy: Policy, batch: pa.RecordBatch) -> Iterator[Remark]:
    """Values that are unknown only because of case or spaces."""
    for name, tree in policy.hierarchies.items():
        near = NearLabels.of(tree)
        if near is not None:
            near.count(batch.column(name))
            words = near.words(of="unknown values")
            if words:
                yield Remark("look", "values", f"column {name!r}: {words}")


def _methods_to_try(method: MethodSection) -> list[str]:
    is_compared = isinstance(method, FlexibleSection) and method.compare
    return [method.METHOD, *(["least-loss"] if is_compared else [])]


def _rows_to_try(method: MethodSection) -> int | None:
    """How many rows of the sample to try; None for all. The search for neighbours is slow."""
    if not isinstance(method, TupleSection):
        return None
    deadline = 0 if method.is_timed else method.deadline
    return max(_TRIED_ROWS, _TRIED_DEADLINES * deadline)
