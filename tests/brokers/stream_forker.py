"""Runs on Redis, NATS, RabbitMQ and MQTT, with the steps at which they may be killed."""

from __future__ import annotations

import tempfile
from pathlib import Path

from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.sinks.messages import MessageSink
from shoal.sinks.mqtt import MqttSink
from shoal.sinks.nats import NatsWriter
from shoal.sinks.rabbitmq import RabbitWriter
from shoal.sinks.redis import RedisWriter
from shoal.sources import live, redis
from shoal.sources.logged.message_log import MessageLog
from tests.brokers.forker import Job, Steps, run, serve
from tests.brokers.stream_scene import policy_text, values

_STEPS = [
    (RedisWriter, "write"), (NatsWriter, "write"), (RabbitWriter, "write"), (RabbitWriter, "flush"),
    (MessageSink, "commit"), (MqttSink, "commit"), (CheckpointFolder, "write"), (CheckpointFolder, "prune"),
    (live.LiveSource, "poll"), (MessageLog, "append"),
]  # fmt: skip


def prepare(job: Job, steps: Steps) -> None:
    """Small batches allow many checkpoints."""
    redis.RedisReader.__init__.__kwdefaults__["entries"] = job.get("batch", 100)  # type: ignore[index]
    live.PartitionMerge.take.__defaults__ = (job.get("batch", 100),)
    for kind, name in _STEPS:
        steps.around(kind, name, f"{kind.__name__}.{name}")


def warm_up() -> None:
    """Load the kernels, with files."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.jsonl").write_bytes(b"\n".join(value for value in values(60) if value))
        sections = {"source": 'kind = "jsonl"\npath = "in.jsonl"', "sink": 'kind = "jsonl"\npath = "out.jsonl"'}
        Path(folder, "policy.toml").write_text(policy_text(**sections))
        assert run({"folder": folder}) in (0, 1)


if __name__ == "__main__":
    serve(prepare, warm_up)
