"""Processes that run the command line, forked from one that has imported it already, which saves a second of each.

What depends on a fresh interpreter (its flags, its hash seed, its memory, what it imports) needs a process of its own.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Any

_ROOT = Path(__file__).parents[1]
_COMMAND = "from shoal.cli.__main__ import start; start()"
_IMPORTED = (
    "pyarrow.csv", "pyarrow.parquet", "shoal.cli.__main__", "shoal.cli.run", "shoal.pipeline.run",
    "shoal.pipeline.sets.run", "shoal.methods.z.z_anonymity", "shoal.decode.csv", "shoal.encode.csv",
)  # fmt: skip


class Forked:
    """A running process, with the interface of subprocess.Popen as far as tests use it."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_err, theirs_err = os.pipe()
        self.stdin: IO[bytes] = os.fdopen(ours_in, "wb")
        self.stdout: IO[bytes] = os.fdopen(ours_out, "rb")
        self.stderr: IO[bytes] = os.fdopen(ours_err, "rb")
        self.returncode: int | None = None
        theirs = [theirs_in, theirs_out, theirs_err]
        self.pid: int = _ask(job, theirs)
        for end in theirs:
            os.close(end)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self.kill()
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()
        self.wait()

    def kill(self) -> None:
        """End it at once, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for its end; the exit code, negative if it was killed."""
        if self.returncode is None:
            self.returncode = _ask({"wait": self.pid})
        return self.returncode

    def communicate(self, given: bytes = b"") -> tuple[bytes, bytes]:
        """Standard output and standard error, both short, up to its end."""
        self.stdin.write(given)
        self.stdin.close()
        written = self.stdout.read(), self.stderr.read()
        self.wait()
        return written


def start(
    *words: str | Path, script: str = _COMMAND, cwd: Path | None = None, env: Mapping[str, str] = os.environ
) -> Forked:
    """Start `shoal words`, or a script with these arguments."""
    job = {"script": script, "argv": ["shoal", *map(str, words)], "cwd": str(cwd or Path.cwd()), "env": dict(env)}
    return Forked(job)


@cache
def _server() -> socket.socket:
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.forked", str(theirs.fileno())]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(command, cwd=_ROOT, env=env, pass_fds=[theirs.fileno()])
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _ask(job: Mapping[str, Any], ends: list[int] | None = None) -> int:
    server = _server()
    socket.send_fds(server, [json.dumps(job).encode() + b"\n"], ends or [])
    return int(server.makefile().readline())


def serve(connection: socket.socket) -> None:
    """Start and wait for processes until nobody asks any more; return in each new process, after its script."""
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    while True:
        asked, ends = b"", []
        while not asked.endswith(b"\n"):
            more, passed, _, _ = socket.recv_fds(connection, 1 << 16, 3)
            if not more:
                return
            asked, ends = asked + more, [*ends, *passed]
        job = json.loads(asked)
        if "wait" in job:
            answer = os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1])
        elif (answer := os.fork()) == 0:
            connection.close()
            become(job, ends)
            return
        for end in ends:
            os.close(end)
        connection.sendall(b"%d\n" % answer)


def become(job: Mapping[str, Any], ends: list[int]) -> None:
    """Be the process that was asked for."""
    for number, end in enumerate(ends):
        os.dup2(end, number)
        os.close(end)
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.argv = job["argv"]
    exec(job["script"], {"__name__": "__main__"})


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
