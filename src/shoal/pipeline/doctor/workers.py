"""The doctor's remarks about several workers: do they have one key, and is the topic keyed as the policy says."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.crypto.keys import secret_from_environment
from shoal.decode.base import Decoded
from shoal.pipeline.doctor.remarks import Level, Remark
from shoal.pipeline.live.workers import NO_KEY
from shoal.pipeline.outcome import HALF
from shoal.policy import Policy
from shoal.policy.live.workers import workers_of
from shoal.sources.kafka.shares import Keying


def shared_key_remarks(policy: Policy) -> Iterator[Remark]:
    """Whether there is a key that all workers can have."""
    if workers_of(policy) > 1 and secret_from_environment() is None:
        yield Remark("wrong", "workers", NO_KEY)


def keying_remarks(policy: Policy, sample: Decoded) -> Iterator[Remark]:
    """Whether messages are in the partitions of their keys."""
    workers, column = workers_of(policy), getattr(policy.source, "keyed_by", None)
    if workers == 1 or column is None or not sample.rows:
        return
    misplaced = Keying(column).misplaced
    share = sum(one.reason == misplaced for one in sample.refused) / sample.rows
    if not share:
        yield Remark(
            "good", "workers",
            f"every message of the sample is in the partition of its {column!r}, so {workers} workers can share the "
            "topic",
        )  # fmt: skip
        return
    level: Level = "wrong" if share > HALF else "look"
    yield Remark(
        level, "workers",
        f"{share:.1%} of the messages are in another partition than that of their {column!r}; workers refuse them. "
        "Check partitioner, or write a topic that is keyed by it with shoal repartition",
    )  # fmt: skip
