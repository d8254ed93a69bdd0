"""Runs `shoal run` on Redis, NATS, RabbitMQ or MQTT in forked children, each of which may be killed at a step.

Started as a process, it reads one job per line (JSON) and answers with one line each. This process never connects to a
broker itself: threads of a client would not survive a fork.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.cli.app import main
from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.sinks.messages import MessageSink
from shoal.sinks.mqtt import MqttSink
from shoal.sinks.nats import NatsWriter
from shoal.sinks.rabbitmq import RabbitWriter
from shoal.sinks.redis import RedisWriter
from shoal.sources import live, redis
from shoal.sources.message_log import MessageLog
from tests.brokers.stream_scene import policy_text, values

_STEPS = [
    (RedisWriter, "write"), (NatsWriter, "write"), (RabbitWriter, "write"), (RabbitWriter, "flush"),
    (MessageSink, "commit"), (MqttSink, "commit"), (CheckpointFolder, "write"), (CheckpointFolder, "prune"),
    (live.LiveSource, "poll"), (MessageLog, "append"),
]  # fmt: skip


class Steps:
    """Counts the steps of a run; kills or stops the process at one of them, given by number or by name."""

    def __init__(self, kill_at: int | str | None, stop_at: int | None) -> None:
        self.names: list[str] = []
        self._kill_at, self._stop_at = kill_at, stop_at

    def step(self, name: str) -> None:
        self.names.append(name)
        if self._kill_at in (len(self.names), name):
            os.kill(os.getpid(), signal.SIGKILL)
        if len(self.names) == self._stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)

    def around(self, kind: Any, name: str) -> None:
        """Make the beginning and the end of a method steps."""
        inner: Callable[..., Any] = getattr(kind, name)

        def outer(*args: Any, **options: Any) -> Any:
            self.step(f"before {kind.__name__}.{name}")
            result = inner(*args, **options)
            self.step(f"after {kind.__name__}.{name}")
            return result

        setattr(kind, name, outer)


def run(job: dict[str, Any]) -> int:
    """The command line with its output in files."""
    os.chdir(job["folder"])
    os.environ.update(job.get("env", {}))
    sys.argv = ["shoal", *job.get("words", ["run", "policy.toml", "--json"])]
    with (
        open("stdout.txt", "w") as out,
        open("stderr.txt", "a") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    raise AssertionError("main ends by exiting")


def in_child(job: dict[str, Any]) -> dict[str, Any]:
    """Fork and run; answers when the child has ended or stopped, or at once if it is left alone."""
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, job.get("seconds", 0))  # an alarm without a handler ends a process at once
        redis.RedisReader.__init__.__kwdefaults__["entries"] = job.get("batch", 100)  # type: ignore[index]
        live.PartitionMerge.take.__defaults__ = (job.get("batch", 100),)
        steps = Steps(job.get("kill_at"), job.get("stop_at"))
        for kind, name in _STEPS:
            steps.around(kind, name)
        code = run(job)
        Path(job["folder"], "steps.json").write_text(json.dumps(steps.names))
        os._exit(code)
    if job.get("is_left_alone"):
        return {"child": child}
    return wait(child)


def wait(child: int) -> dict[str, Any]:
    """How a child ended: its exit code, negative when killed; `stopped` with its number if it waits."""
    _, status = os.waitpid(child, os.WUNTRACED)
    return {"stopped": child} if os.WIFSTOPPED(status) else {"code": os.waitstatus_to_exitcode(status)}


def answer(job: dict[str, Any]) -> dict[str, Any]:
    if "wake" in job:
        os.kill(job["wake"], signal.SIGCONT)
        return wait(job["wake"])
    return wait(job["wait"]) if "wait" in job else in_child(job)


def warm_up() -> None:
    """Load the kernels, with files."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.jsonl").write_bytes(b"\n".join(value for value in values(60) if value))
        sections = {"source": 'kind = "jsonl"\npath = "in.jsonl"', "sink": 'kind = "jsonl"\npath = "out.jsonl"'}
        Path(folder, "policy.toml").write_text(policy_text(**sections))
        assert run({"folder": folder}) in (0, 1)


def serve() -> None:
    """Answer jobs until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    home = os.getcwd()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    warm_up()
    os.chdir(home)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        answers.write(json.dumps(answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
