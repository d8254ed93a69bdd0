"""Runs the command line over and over in forked children, so that the kernels are loaded once.

Started as a process, it reads one job per line (JSON) and answers with one line each. A job names a folder,
the arguments, an environment, and the step at which the disk under that folder fails.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from shoal.cli import app as command_line
from shoal.decode.csv import CsvDecoder
from shoal.decode.jsonl import JsonlDecoder
from shoal.decode.tables import pieces
from tests.faults.disk import Disk
from tests.faults.scene import POLICY as POLICY_NAME
from tests.faults.scene import SINKS
from tests.faults.tuple_scene import METHODS, TupleScene

_POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "csv"
path = "in.csv"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 1
window = "10s"
lateness = "{lateness}"
[sink]
kind = "{kind}"
path = "out.{kind}"
[trace]
path = "trace.parquet"
"""


def make_batches_small(block_bytes: int) -> None:
    """Let batches, and so checkpoints, end in the middle of small files."""
    for decoder in (CsvDecoder, JsonlDecoder):
        decoder.__init__.__kwdefaults__["block_bytes"] = block_bytes  # type: ignore[index]
    pieces.__defaults__ = (3,)


def warm_up_for_events() -> None:
    """Load everything a child needs that runs z-anonymity."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, lateness in (("csv", "0s"), ("parquet", "5s"), ("arrow", "0s"), ("jsonl", "0s")):
            Path(folder, "in.csv").write_text("ts,user,site\n1,a,x\n2,b,x\n,,\n")
            Path(folder, "p.toml").write_text(_POLICY.format(kind=kind, lateness=lateness))
            run({"folder": folder, "args": ["run", "p.toml", "--checkpoint", f"state-{kind}"]}, None)


def warm_up_for_tuples() -> None:
    """Load everything a child needs that runs a tuple method."""
    for method, sink in itertools.product(METHODS, SINKS[::4]):
        with tempfile.TemporaryDirectory() as folder:
            scene = TupleScene.of(None, Path(folder), sink, method)  # type: ignore[arg-type]
            run({"folder": folder, "args": ["run", POLICY_NAME], "env": scene.env}, None)


@cache
def parsed(*args: str) -> Callable[..., object]:
    """What the command line calls for these arguments; they are the same in most jobs, and parsed once."""
    command, bound, _ = command_line.app.parse_args(args)
    return lambda *_, **__: command(*bound.args, **bound.kwargs)


def run(job: dict[str, Any], disk: Disk | None) -> int:
    """The command line with its output in files."""
    os.chdir(job["folder"])
    os.environ.update(job.get("env", {}))
    with (
        open("stdout.txt", "w") as out,
        open("stderr.txt", "w") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(command_line, "app", parsed(*job["args"])),
    ):
        if disk is not None:
            disk.install()
        try:
            command_line.main()
        except SystemExit as end:
            return int(end.code or 0)
    raise AssertionError("main ends by exiting")


def in_child(job: dict[str, Any]) -> dict[str, Any]:
    """Fork, run, and report how it ended: the exit code, negative when killed, and the steps where it was not."""
    parsed(*job["args"])
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, job.get("seconds", 0))  # an alarm without a handler ends a process at once
        make_batches_small(job.get("block_bytes", 64))
        disk = Disk(Path(job["folder"]), at=job.get("at"), how=job.get("how", "before"))
        code = run(job, disk)
        os.write(write_end, json.dumps(disk.steps).encode())
        os._exit(code)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        steps = pipe.read()
    _, status = os.waitpid(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "steps": json.loads(steps or b"[]")}


def serve() -> None:
    """Answer jobs until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    make_batches_small(64)
    home = os.getcwd()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    (warm_up_for_tuples if sys.argv[1:] == ["tuples"] else warm_up_for_events)()
    os.chdir(home)
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection writes to memory that a child else shares with this process
    for line in sys.stdin:
        answers.write(json.dumps(in_child(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
