"""Runs on Kafka, with the steps of their protocol at which they may be killed or stopped."""

from __future__ import annotations

import tempfile
from pathlib import Path

from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.sinks.kafka import topics
from shoal.sinks.kafka.transactions import KafkaTransactions
from shoal.sources import live
from shoal.sources.kafka.kafka import KafkaReader
from tests.brokers.forker import Job, Steps, run, serve
from tests.brokers.kafka_scene import METHODS, messages, policy_text
from tests.faults.disk import Disk

_CALLS = ("init_transactions", "begin_transaction", "send_offsets_to_transaction", "commit_transaction")


def prepare(job: Job, steps: Steps) -> None:
    """Small fetches and batches allow many checkpoints; the disk may be full at a step."""
    KafkaReader.__init__.__kwdefaults__["fetch"] = job["fetch"]  # type: ignore[index]
    live.PartitionMerge.take.__defaults__ = (job["fetch"],)
    live._PENDING_ROWS = job.get("pending", live._PENDING_ROWS)

    class Producer(topics.Producer):  # type: ignore[misc, name-defined]
        """The client, with steps."""

    topics.Producer = Producer  # type: ignore[attr-defined]
    others = [(KafkaTransactions, "send"), (KafkaTransactions, "flush")]
    others += [(CheckpointFolder, "write"), (CheckpointFolder, "prune"), (live.LiveSource, "poll")]
    for kind, name in (*((Producer, call) for call in _CALLS), *others):
        steps.around(kind, name, name)
    if "disk_full_at" in job:
        Disk(Path(job["folder"]), at=job["disk_full_at"], how="full").install()


def warm_up() -> None:
    """Load the kernels of all methods, from files."""
    for method in METHODS:
        with tempfile.TemporaryDirectory() as folder:
            lines = [one["value"] for one in messages(method, 1, rows=60)[0] if one["value"]]
            Path(folder, "in.jsonl").write_bytes(b"\n".join(lines))
            sections = {"source": 'kind = "jsonl"\npath = "in.jsonl"', "sink": 'kind = "jsonl"\npath = "out.jsonl"'}
            Path(folder, "policy.toml").write_text(policy_text(method, **sections))
            assert run({"folder": folder}) in (0, 1)


if __name__ == "__main__":
    serve(prepare, warm_up)
