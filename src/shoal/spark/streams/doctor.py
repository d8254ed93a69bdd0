"""What a run of a stream would do with its state and its output, for the doctor: begin, continue, or refuse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from shoal.crypto.keys import Secret
from shoal.errors import ShoalError
from shoal.pipeline.doctor.places import NO_TRACE
from shoal.pipeline.doctor.remarks import Remark
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink
from shoal.sinks.atomic_file import check_target
from shoal.sinks.durable import check_folder
from shoal.spark.recipe import Recipe
from shoal.spark.streams.file_journal import require_journal
from shoal.spark.streams.growing_files import require_planned
from shoal.spark.streams.micro_batches import require_same
from shoal.spark.streams.plans import Plans
from shoal.spark.streams.release_folder import LETTERS, TRACE, ReleaseFolder, Staging, require_length
from shoal.spark.streams.state import Commit, StateFolder, next_batch

_TOPICS: Final = {TRACE: "trace", LETTERS: "dead letters"}


def stream_remarks(policy: Policy, recipe: Recipe, secret: Secret, shards: int) -> Iterator[Remark]:
    """Remarks on the state of a stream, and on what it has published so far. Nothing is written."""
    assert policy.checkpoint is not None
    if policy.trace is None:
        yield NO_TRACE
    folder = policy.checkpoint.path.path.absolute()
    try:
        check_folder(folder)
        last = StateFolder(folder).last()
        require_same(folder, recipe, shards, last)
        require_journal(folder, last.more if last else {})
    except ShoalError as error:
        yield Remark("wrong", "checkpoint", str(error))
        return
    yield _state_remark(policy.checkpoint.path.text, last)
    if last is not None and last.more.get("ended"):
        return  # a run would not touch the output
    yield from _plan_remarks(policy, folder, last)
    staging = Staging(policy, folder, secret)
    if not isinstance(policy.sink, MessageSink):
        output = ReleaseFolder.of(policy, secret)
        staging = output.staging
        yield from _folder_remarks(output, last)
    for name, path in staging.files.items():
        yield from _file_remarks(_TOPICS[name], path, staging.kept(name, last))


def _state_remark(name: str, last: Commit | None) -> Remark:
    if last is None:
        return Remark("good", "checkpoint", f"{name}: no micro-batch is decided yet; the run begins the stream")
    if last.more.get("ended"):
        words = f"this stream was finished before, with micro-batch {last.batch}; a run changes nothing"
        advice = "to start over, name a new folder and another place to write to"
        return Remark("look", "checkpoint", f"{name}: {words}; {advice}")
    words = f"the run continues after micro-batch {last.batch}, which ended with record {last.end:,}"
    return Remark("good", "checkpoint", f"{name}: {words}")


def _plan_remarks(policy: Policy, folder: Path, last: Commit | None) -> Iterator[Remark]:
    """Of a micro-batch that was planned and not decided: whether its files exist."""
    try:
        require_planned(policy, Plans(folder).read(next_batch(last)) or {}, last)
    except ShoalError as error:
        yield Remark("wrong", "source", str(error))


def _folder_remarks(output: ReleaseFolder, last: Commit | None) -> Iterator[Remark]:
    try:
        check_folder(output.out)
        output.refuse_foreign(last)
    except ShoalError as error:
        yield Remark("wrong", "sink", str(error))


def _file_remarks(topic: str, path: Path, kept: int | None) -> Iterator[Remark]:
    """Of a file that every micro-batch appends to: whether what the stream has written is there."""
    try:
        check_target(path)
        check_folder(path.parent)
        length = path.stat().st_size if path.exists() else 0
        require_length(path, length, kept or 0)
    except ShoalError as error:
        yield Remark("wrong", topic, str(error))
        return
    if kept is None and length:
        yield Remark("look", topic, f"{path}: exists and will be replaced")
