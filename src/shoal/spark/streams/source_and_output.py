"""Where a stream of a policy reads and publishes: folders of files or topics of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from shoal.crypto.keys import Secret
from shoal.methods.base import StreamMethod
from shoal.policy import Policy
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.spark.families import head_columns
from shoal.spark.recipe import Recipe
from shoal.spark.streams.bounds import most_records
from shoal.spark.streams.growing_files import GrowingFiles
from shoal.spark.streams.micro_batches import Output, Taken
from shoal.spark.streams.release_folder import ReleaseFolder
from shoal.spark.streams.state import Commit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Source(Protocol):
    """Where a stream reads."""

    @property
    def is_held(self) -> bool:
        """After a plan of None: whether there are records that only have to wait for some time."""

    def plan(self, session: SparkSession, before: Commit | None) -> dict[str, Any] | None:
        """What the next micro-batch reads, as values that fit in JSON; None if nothing can be read now.

        `is_cut`: more could be read at once, and is not because a micro-batch is bounded.
        """

    def take(self, session: SparkSession, plan: Mapping[str, Any], before: Commit | None) -> Taken:
        """The planned records."""

    def keep(self, commit: Commit) -> None:
        """Everything up to this commit is published."""

    def close(self) -> None:
        """Close connections."""


class RunOutput(Output, Protocol):
    """Where a stream of a policy publishes."""

    def start(self, last: Commit | None) -> None:
        """Begin, or go on after a commit."""

    def close(self) -> None:
        """Close connections."""


def make_source(policy: Policy, method: StreamMethod, recipe: Recipe, *, until_end: bool, finishes: bool) -> Source:
    """Where the policy reads; of topics, `until_end`: up to their ends as they are now, `finishes`: and no further."""
    assert policy.checkpoint is not None
    head, most = head_columns(recipe, method.columns), most_records(policy.checkpoint.every)
    if isinstance(policy.source, MessageSource):
        from shoal.spark.streams.kafka_source import TopicOffsets

        return TopicOffsets(policy, method, head, until_end=until_end, finishes=finishes, most=most)
    return GrowingFiles(policy, method, head, most=most)


def make_output(policy: Policy, folder: Path, secret: Secret) -> RunOutput:
    """Where the policy publishes."""
    if isinstance(policy.sink, MessageSink):
        from shoal.spark.streams.kafka_output import TopicOutput

        return TopicOutput(policy, folder, secret)
    return ReleaseFolder.of(policy, secret)
