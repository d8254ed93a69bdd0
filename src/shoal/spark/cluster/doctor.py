"""Checks what a run on Spark needs, before anything is read: key, folders, versions, executors."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from shoal.crypto.keys import Secret
from shoal.errors import InputError, ShoalError
from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.wiring import make_anonymizer, make_files
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.spark.cluster.executor_check import Needs, check_executors, first_and_last
from shoal.spark.cluster.session import find_spark, readable_errors, start_session
from shoal.spark.families import SHARDS, check_settings
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.records.part_writer import output_folder
from shoal.spark.run import batch_needs, check_supported
from shoal.spark.sets.run import check_sampler, set_recipe
from shoal.spark.streams.doctor import stream_remarks
from shoal.spark.streams.run import check_stream_policy


def spark_remarks(
    policy: Policy, *, master: str | None = None, shards: int = SHARDS, settings: Mapping[str, str] | None = None
) -> Iterator[Remark]:
    """Remarks on key, policy, versions and executors; the first thing that is wrong ends them."""
    has_sets = not policy.anonymize.IS_STREAM
    try:
        if has_sets:
            check_sampler(policy.anonymize)
        find_spark()
        secret = shared_secret()
        yield Remark("good", "spark key", "the driver has a key; executors must have the same")
        needs = _needs(policy, secret)
        found_places = [*stream_remarks(policy, needs.recipe, secret, shards)] if is_stream(policy) else []
        yield from found_places
        if any(remark.level == "wrong" for remark in found_places):
            return
        session = start_session(master, settings)
        with readable_errors():
            java = session.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]  # noqa: SLF001
            yield Remark("good", "spark", f"Spark {session.version}, Java {java}, Python {platform.python_version()}")
            found = check_executors(session, needs)
    except ShoalError as error:
        yield Remark("wrong", "spark", str(error))
        return
    for problem in found.problems:
        yield Remark("wrong", "executors", problem.sentence)
    if not found.problems:
        tasks = f"{found.tasks} task{'s' * (found.tasks != 1)} at a time"
        hosts = f"{found.hosts} machine{'s' * (found.hosts != 1)}"
        seen = " and ".join(map(str, dict.fromkeys(needs.folders))) or "the input"
        yield Remark("good", "executors", f"{tasks} on {hosts}: all have the key and see {seen}")


def is_stream(policy: Policy) -> bool:
    """Whether Spark runs the policy in micro-batches, and so continues what an earlier run has published."""
    return policy.checkpoint is not None or isinstance(policy.source, MessageSource)


def _needs(policy: Policy, secret: Secret) -> Needs:
    """Refuse what does not run on Spark; what executors need for the rest."""
    (check_stream_policy if is_stream(policy) else check_supported)(policy)
    if not policy.anonymize.IS_STREAM:  # the driver writes the release
        return Needs(set_recipe(policy.anonymize.METHOD), inputs=_inputs(policy))
    recipe = Recipe.of(make_anonymizer(policy, secret))
    check_settings(recipe)
    if not is_stream(policy):
        return batch_needs(policy, recipe, output_folder(policy), make_files(policy))
    assert policy.checkpoint is not None
    folders = [policy.checkpoint.path.path.absolute()]
    if not isinstance(policy.sink, MessageSink):
        folders.append(output_folder(policy))
    return Needs(recipe, tuple(folders), _inputs(policy))


def _inputs(policy: Policy) -> tuple[Path, ...]:
    """Files of the source; none of topics, and none of a folder that files are still to come to."""
    if isinstance(policy.source, MessageSource):
        return ()
    try:
        return first_and_last([file.path for file in make_files(policy) if file.path is not None])
    except InputError:
        if not is_stream(policy):
            raise
        return ()
