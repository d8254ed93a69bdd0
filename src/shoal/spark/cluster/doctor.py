"""Checks what a run on Spark needs, before anything is read: key, folders, versions, executors."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from shoal.crypto.keys import Secret
from shoal.errors import ShoalError
from shoal.pipeline.doctor.remarks import Remark
from shoal.pipeline.wiring import make_anonymizer
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.spark.cluster.executor_check import look_at_executors
from shoal.spark.cluster.session import find_spark, readable_errors, start_session
from shoal.spark.families import check_settings
from shoal.spark.recipe import Recipe, shared_secret
from shoal.spark.records.files import output_folder
from shoal.spark.run import check_supported
from shoal.spark.sets.run import check_sampler, set_recipe
from shoal.spark.streams.doctor import stream_remarks
from shoal.spark.streams.run import check_stream_policy


def spark_remarks(
    policy: Policy, *, master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Remark]:
    """Remarks on key, policy, versions and executors; the first thing that is wrong ends them."""
    has_sets = not policy.anonymize.IS_STREAM
    try:
        if has_sets:
            check_sampler(policy.anonymize)
        find_spark()
        secret = shared_secret()
        yield Remark("good", "spark key", "the driver has a key; executors must have the same")
        recipe, folder = _checked(policy, secret)
        found_places = [*stream_remarks(policy, recipe, secret)] if is_stream(policy) else []
        yield from found_places
        if any(remark.level == "wrong" for remark in found_places):
            return
        session = start_session(master, settings)
        with readable_errors():
            java = session.sparkContext._jvm.System.getProperty("java.version")  # type: ignore[union-attr]  # noqa: SLF001
            yield Remark("good", "spark", f"Spark {session.version}, Java {java}, Python {platform.python_version()}")
            found = look_at_executors(session, folder, recipe)
    except ShoalError as error:
        yield Remark("wrong", "spark", str(error))
        return
    problems = [problem for problem in found.problems if not (has_sets and "not shared" in problem)]
    for problem in problems:
        yield Remark("wrong", "executors", problem)
    if not problems:
        tasks = f"{found.tasks} task{'s' * (found.tasks != 1)} at a time"
        hosts = f"{found.hosts} machine{'s' * (found.hosts != 1)}"
        seen = "" if has_sets else f" and see {folder}"
        yield Remark("good", "executors", f"{tasks} on {hosts}: all have the key{seen}")


def is_stream(policy: Policy) -> bool:
    """Whether Spark runs the policy in micro-batches, and so continues what an earlier run has published."""
    return policy.checkpoint is not None or isinstance(policy.source, MessageSource)


def _checked(policy: Policy, secret: Secret) -> tuple[Recipe, Path]:
    """Refuse what does not run on Spark; the method, and a folder that executors must see."""
    (check_stream_policy if is_stream(policy) else check_supported)(policy)
    if not policy.anonymize.IS_STREAM:  # the driver writes the release: only the input must be shared
        return set_recipe(policy.anonymize.METHOD), policy.file_sink.path.path.absolute()
    recipe = Recipe.of(make_anonymizer(policy, secret))
    check_settings(recipe)
    if policy.checkpoint is not None and isinstance(policy.sink, MessageSink):
        return recipe, policy.checkpoint.path.path.absolute()
    return recipe, output_folder(policy)
