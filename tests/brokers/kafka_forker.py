"""Runs `shoal run` on Kafka in forked children, each of which may be killed or stopped at a step of its protocol.

Started as a process, it reads one job per line (JSON) and answers with one line each. This process never connects to a
broker itself: threads of the client would not survive a fork.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.cli.app import main
from shoal.pipeline.checkpoints import CheckpointFolder
from shoal.sinks import kafka_transactions
from shoal.sources import live
from shoal.sources.kafka import KafkaReader
from shoal.sources.live import LiveSource
from tests.brokers.kafka_scene import METHODS, messages, policy_text
from tests.faults.disk import Disk

Point = tuple[str, int]
"""A step: its name, and which of the steps of that name, from 1."""


class Steps:
    """Counts the steps of a run; kills or stops the process at one of them."""

    def __init__(self, kill_at: Point | None, stop_at: Point | None) -> None:
        self.counts: Counter[str] = Counter()
        self._signals = {tuple(kill_at or ()): signal.SIGKILL, tuple(stop_at or ()): signal.SIGSTOP}

    def step(self, name: str) -> None:
        self.counts[name] += 1
        found = self._signals.get((name, self.counts[name]))
        if found is not None:
            os.kill(os.getpid(), found)

    def around(self, kind: Any, name: str) -> None:
        """Make the beginning and the end of a method steps."""
        inner: Callable[..., Any] = getattr(kind, name)

        def outer(*args: Any, **options: Any) -> Any:
            self.step(f"before {name}")
            result = inner(*args, **options)
            self.step(f"after {name}")
            return result

        setattr(kind, name, outer)

    def install(self) -> None:
        class Producer(kafka_transactions.Producer):  # type: ignore[misc, name-defined]
            """The client, with steps."""

        for name in ("init_transactions", "begin_transaction", "send_offsets_to_transaction", "commit_transaction"):
            self.around(Producer, name)
        kafka_transactions.Producer = Producer  # type: ignore[attr-defined]
        self.around(kafka_transactions.KafkaTransactions, "send")
        self.around(kafka_transactions.KafkaTransactions, "flush")
        self.around(CheckpointFolder, "write")
        self.around(CheckpointFolder, "prune")
        self.around(LiveSource, "poll")


def run(folder: str, words: list[str], env: dict[str, str], log: str = "stderr.txt") -> int:
    """The command line with its output in files."""
    os.chdir(folder)
    os.environ.update(env)
    sys.argv = ["shoal", *words]
    with (
        open("stdout.txt", "w") as out,
        open(log, "w") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        os.dup2(err.fileno(), 2)  # a signal's sentence is written past sys.stderr
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    raise AssertionError("main ends by exiting")


def start(job: dict[str, Any]) -> dict[str, Any]:
    """Fork and run; answers when the child has ended or stopped."""
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, job.get("seconds", 0))  # an alarm nobody handles ends a process at once
        KafkaReader.__init__.__kwdefaults__["fetch"] = job["fetch"]  # type: ignore[index]
        live._PENDING_ROWS = job.get("pending", live._PENDING_ROWS)
        steps = Steps(job.get("kill_at"), job.get("stop_at"))
        steps.install()
        if "disk_full_at" in job:
            Disk(Path(job["folder"]), at=job["disk_full_at"], how="full").install()
        code = run(job["folder"], job["words"], job["env"], job["log"])
        Path(job["folder"], "steps.json").write_text(json.dumps(steps.counts))
        os._exit(code)
    return wait(child)


def wait(child: int) -> dict[str, Any]:
    """How a child ended: its exit code, negative when killed; `stopped` with its number if it waits."""
    _, status = os.waitpid(child, os.WUNTRACED)
    return {"stopped": child} if os.WIFSTOPPED(status) else {"code": os.waitstatus_to_exitcode(status)}


def answer(job: dict[str, Any]) -> dict[str, Any]:
    if "wake" in job:
        os.kill(job["wake"], signal.SIGCONT)
        return {} if job["is_left_alone"] else wait(job["wake"])
    return wait(job["wait"]) if "wait" in job else start(job)


def warm_up() -> None:
    """Load the kernels of all methods, from files."""
    for method in METHODS:
        with tempfile.TemporaryDirectory() as folder:
            lines = [one["value"] for one in messages(method, 1, rows=60)[0] if one["value"]]
            Path(folder, "in.jsonl").write_bytes(b"\n".join(lines))
            sections = {"source": 'kind = "jsonl"\npath = "in.jsonl"', "sink": 'kind = "jsonl"\npath = "out.jsonl"'}
            Path(folder, "policy.toml").write_text(policy_text(method, **sections))
            assert run(folder, ["run", "policy.toml"], {}) in (0, 1)


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
