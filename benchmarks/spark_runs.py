"""Runs or audits of policies one after another in one process, on Spark or not, and the processor seconds of each.

The first run compiles, imports and starts Spark and its workers; the next one shows what its rows cost. To subtract
the seconds of two processes from each other instead would leave little but the noise of two start-ups.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

MASTER = "local[2]"
_SESSION, _USER = 3, 11
"""Places in /proc/<pid>/stat after the name: session, user time, system time."""


class Spent(NamedTuple):
    """Processor seconds."""

    java: float
    python: float

    def since(self, before: Spent) -> Spent:
        """What was spent after an earlier reading."""
        return Spent(self.java - before.java, self.python - before.python)

    @property
    def total(self) -> float:
        """Of all processes."""
        return self.java + self.python


class Ran(NamedTuple):
    """A run: what it cost, and how many rows it released; of an audit, the number of findings."""

    spent: Spent
    released: int


def measured_runs(
    policies: Sequence[Path], env: dict[str, str], *, on_spark: bool, work: Literal["run", "audit"] = "run"
) -> list[Ran]:
    """Run policies in a new process, one after another, or audit what they released; the first includes the start."""
    command = [sys.executable, "-m", "benchmarks.spark_runs", work, MASTER if on_spark else "", *map(str, policies)]
    root = str(Path(__file__).parents[1])
    env = {**env, "PYTHONPATH": os.pathsep.join([root, *filter(None, [env.get("PYTHONPATH")])])}
    found = subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True, start_new_session=True)
    lines = [json.loads(line) for line in found.stdout.splitlines() if line.startswith(b"[")]
    return [Ran(Spent(*spent), released) for spent, released in lines]


def seconds_of(session: int) -> dict[tuple[int, bool], float]:
    """Processor seconds so far of every process of a session, and whether it is a JVM."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        fields = rest.split()
        if int(fields[_SESSION]) == session:
            seconds = sum(map(int, fields[_USER : _USER + 2])) / os.sysconf("SC_CLK_TCK")
            found[int(path.parent.name), name.endswith("(java")] = seconds
    return found


def spent_so_far() -> Spent:
    """Processor seconds of the processes of this session; Spark keeps its workers, so none is missing."""
    seconds = seconds_of(os.getsid(0))
    java = sum(spent for (_, is_java), spent in seconds.items() if is_java)
    return Spent(java, sum(seconds.values()) - java)


def _execute(policy_path: str, master: str) -> int:
    from shoal.observe.observer import Observer
    from shoal.pipeline import Pipeline
    from shoal.policy import load_policy
    from shoal.spark.run import SparkRun
    from shoal.spark.streams.run import SparkStream

    policy = load_policy(Path(policy_path))
    if not master:
        return int(Pipeline(policy).run().released)
    if policy.checkpoint is None:
        return int(SparkRun(policy, Observer(), master=master).execute().released)
    return int(SparkStream(policy, Observer(), master=master, once=True).execute().released)


def _audit(policy_path: str, master: str) -> int:
    """Audit what a policy released: its source is the truth, and it has a trace."""
    from shoal.auditor import audit
    from shoal.cli.evidence.audit import read_private_trace
    from shoal.policy import load_policy
    from shoal.spark.evidence import audit_on_spark, sealed_trace

    path = Path(policy_path)
    policy = load_policy(path)
    assert policy.trace is not None
    release, truth, trace = policy.file_sink.path.path, path.parent / "in", policy.trace.path.path
    if master:
        report = audit_on_spark(release, truth, sealed_trace(trace), path, max_memory=None, master=master)
    else:
        report = audit(release, truth=truth, trace=read_private_trace(trace), policy=path)
    return len(report.findings)


def print_runs(work: str, master: str, *policies: str) -> None:
    """Run or audit policies, and print the processor seconds and the released rows or findings of each."""
    before = Spent(0, 0)
    for policy in policies:
        found = (_audit if work == "audit" else _execute)(policy, master)
        now = spent_so_far()
        print(json.dumps([now.since(before), found]), flush=True)
        before = now


if __name__ == "__main__":
    print_runs(*sys.argv[1:])
