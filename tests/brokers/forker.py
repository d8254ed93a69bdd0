"""Runs `shoal` in forked children, each of which may be killed or stopped at a step; kernels are loaded once.

`serve` is one end, in a process of its own: it reads one job per line (JSON) and answers with one line each. It never
connects to a broker itself: threads of a client would not survive a fork. `Forker` is the other end.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.cli.app import main

KEY = "a key of more than sixteen bytes"
KILLED, ALARMED = -9, -14
END_CODES = (0, 3)
"""Codes of runs that ended by themselves; of those with 3, more than half of the records were refused, as planned."""
ENDED = tuple({"code": code} for code in END_CODES)
MOST_SECONDS = 600
"""A run that takes longer hangs: it ends, and its test fails."""
Job = dict[str, Any]


class Forker:
    """Hands jobs to a process that serves them."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.kills = 0

    def ask(self, **job: Any) -> dict[str, Any]:
        """Hand over a job; its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        self.kills += found.get("code") in (KILLED, ALARMED)
        return found


class Steps:
    """Counts the steps of a run; kills or stops the process at one of them.

    A step is given by its number from 1, by its name (the first of it), or by its name and which of them, from 1.
    """

    def __init__(self, job: Job) -> None:
        self.names: list[str] = []
        self._counts: Counter[str] = Counter()
        self._signals = {_point(job.get("kill_at")): signal.SIGKILL, _point(job.get("stop_at")): signal.SIGSTOP}

    def step(self, name: str) -> None:
        self.names.append(name)
        self._counts[name] += 1
        for point in (len(self.names), (name, self._counts[name])):
            if point in self._signals:
                os.kill(os.getpid(), self._signals[point])

    def around(self, kind: Any, name: str, title: str) -> None:
        """Make the beginning and the end of a method steps."""
        inner: Callable[..., Any] = getattr(kind, name)

        def outer(*args: Any, **options: Any) -> Any:
            self.step(f"before {title}")
            result = inner(*args, **options)
            self.step(f"after {title}")
            return result

        setattr(kind, name, outer)


def _point(given: Any) -> int | tuple[str, int] | None:
    if isinstance(given, str):
        return given, 1
    return (given[0], given[1]) if isinstance(given, list) else given


def run(job: Job) -> int:
    """The command line with its output in files."""
    os.chdir(job["folder"])
    os.environ.update(job.get("env", {}))
    sys.argv = ["shoal", *job.get("words", ["run", "policy.toml", "--json"])]
    with (
        open("stdout.txt", "w") as out,
        open(job.get("log", "stderr.txt"), "a") as err,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        os.dup2(err.fileno(), 2)  # a signal's sentence is written past sys.stderr
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0)
    raise AssertionError("main ends by exiting")


def _start(job: Job, prepare: Callable[[Job, Steps], None]) -> dict[str, Any]:
    """Fork and run; answers when the child has ended or stopped, or at once if it is left alone."""
    child = os.fork()
    if child == 0:
        # An alarm without a handler ends a process at once.
        signal.setitimer(signal.ITIMER_REAL, job.get("seconds", MOST_SECONDS))
        steps = Steps(job)
        prepare(job, steps)
        code = run(job)
        Path(job["folder"], "steps.json").write_text(json.dumps(steps.names))
        os._exit(code)
    return {"child": child} if job.get("is_left_alone") else _wait(child)


def _wait(child: int) -> dict[str, Any]:
    """How a child ended: its exit code, negative when killed; `stopped` with its number if it waits."""
    _, status = os.waitpid(child, os.WUNTRACED)
    return {"stopped": child} if os.WIFSTOPPED(status) else {"code": os.waitstatus_to_exitcode(status)}


def _answer(job: Job, prepare: Callable[[Job, Steps], None]) -> dict[str, Any]:
    if "wake" in job:
        os.kill(job["wake"], signal.SIGCONT)
        return {} if job.get("is_left_alone") else _wait(job["wake"])
    return _wait(job["wait"]) if "wait" in job else _start(job, prepare)


def serve(prepare: Callable[[Job, Steps], None], warm_up: Callable[[], None]) -> None:
    """Answer jobs until the input ends. `prepare` makes steps of what a child does; `warm_up` loads the kernels."""
    answers, errors = os.fdopen(os.dup(1), "w"), os.dup(2)
    home = os.getcwd()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    warm_up()
    os.dup2(errors, 2)
    os.chdir(home)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        answers.write(json.dumps(_answer(json.loads(line), prepare)) + "\n")
        answers.flush()
