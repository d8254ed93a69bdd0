"""A live run at full speed for minutes or hours: do memory and lag stay flat? python -m benchmarks.soak --minutes 60

A producer in another process keeps a NATS, Redis or Kafka stream filled, a run anonymizes it (z-anonymity) into another
stream, and its memory, lag and checkpoints are sampled. At full speed the producer is never more than 100,000
messages ahead, so the lag shows that alone; with --rate it sends this many a second, whatever the run does.
"""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import numpy as np
from tests.brokers.servers import Nats, Redis, Server, free_port

from benchmarks.live_load import LOADS
from benchmarks.measure import Cost, Report, parse, parser, rate_columns, short
from benchmarks.sources import ROOT

AHEAD = 100_000
TURN_SECONDS = 0.25
SAMPLES, LEAST_SAMPLES = 240, 10
Z = 20
_TICK = os.sysconf("SC_CLK_TCK")
_METRIC = re.compile(r"^(shoal_\w+?)(?:_total)? ([-+.\de]+)$", re.MULTILINE)
_POLICY = """
[stream]
person = "user"
time = "time"
time_unit = "ms"
[source]
{source}
types = {{user = "string", time = "int64", site = "string"}}
[anonymize]
method = "z-anonymity"
attribute = "site"
z = {z}
window = "{window}s"
[sink]
{sink}
[checkpoint]
path = "state"
every = "{every}s"
"""


@dataclass(frozen=True)
class Sample:
    """The state of a run at one moment."""

    seconds: float
    """Since the first sample."""
    rows: int
    """Messages that were read."""
    memory: float
    """Resident, in MB."""
    checkpoint: float
    """Size of the state in the last checkpoint, in MB."""
    behind: int
    """Messages that were sent and not read."""
    delay: float
    """Seconds from the time of the last message to now."""


class Producer:
    """The other end of `benchmarks.live_load`."""

    def __init__(self, system: str, address: str) -> None:
        command = [sys.executable, "-m", "benchmarks.live_load", system, address]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.sent = self.allowed = 0
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.sent = int(line)

    def allow(self, count: int) -> None:
        """Let it have sent this many messages in all; does nothing while it is busy with what it may send."""
        if self.sent == self.allowed < count:
            self.allowed = count
            print(count, file=self._process.stdin, flush=True)

    def close(self) -> None:
        """Let it send what it may, and end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._thread.join()
        self._process.stdout.close()


class Run:
    """`shoal run` in a process of its own, watched from outside."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        command = [
            sys.executable,
            "-m",
            "shoal.cli",
            "run",
            "policy.toml",
            "--json",
            "-q",
            "--metrics",
            str(self._port),
        ]
        environment = {**os.environ, "SHOAL_KEY_FILE": str(folder / "key")}
        self._process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)

    def metrics(self) -> dict[str, float]:
        """What the run reports; empty before it listens."""
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
        except OSError:
            if self._process.poll() is not None:
                raise RuntimeError("the run has ended; its last words are above") from None
            return {}
        return {name: float(value) for name, value in _METRIC.findall(text)}

    def megabytes(self) -> float:
        """Resident memory now."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    def processor_seconds(self) -> dict[str, float]:
        """By thread."""
        found = {}
        for task in Path(f"/proc/{self._process.pid}/task").glob("*/stat"):
            fields = task.read_text().rpartition(")")[2].split()
            found[task.parent.name] = (int(fields[11]) + int(fields[12])) / _TICK
        return found

    def stop(self) -> dict[str, int]:
        """SIGTERM; the summary."""
        self._process.send_signal(signal.SIGTERM)
        out, _ = self._process.communicate()
        summary: dict[str, int] = json.loads(out)
        return summary

    def close(self) -> None:
        """Kill it, if it has not ended."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def soak(folder: Path, system: str, address: str, seconds: float, rate: float | None) -> tuple[list[Sample], Cost, str]:
    """Samples, what the sampled part cost, and what was read of what was sent."""
    load = LOADS[system](address)
    load.prepare()
    load.close()
    times = {"window": max(1, int(seconds / 10)), "every": max(1, min(10, int(seconds / 30)))}
    (folder / "policy.toml").write_text(_POLICY.format(source=load.source, sink=load.sink, z=Z, **times))
    (folder / "key").write_text("a key of more than sixteen bytes")
    (folder / "key").chmod(0o600)
    with closing(Producer(system, address)) as producer, closing(Run(folder)) as run:
        while "shoal_event_time_lag_seconds" not in run.metrics():  # it starts, and compiles on its first run
            producer.allow(1)
            time.sleep(TURN_SECONDS)
        samples, cost = sampled(producer, run, seconds, rate)
        producer.close()
        while run.metrics()["shoal_records_in"] < producer.sent:
            time.sleep(TURN_SECONDS)
        summary = run.stop()
    return samples, cost, f"{summary['rows_in']:,} messages were read of {producer.sent:,} that were sent"


def sampled(producer: Producer, run: Run, seconds: float, rate: float | None) -> tuple[list[Sample], Cost]:
    """Keep the producer sending and the run watched."""
    before, begun = run.processor_seconds(), time.monotonic()
    samples: list[Sample] = []
    while (now := time.monotonic() - begun) < seconds or len(samples) < LEAST_SAMPLES:
        known = run.metrics()
        read = int(known["shoal_records_in"])
        producer.allow(read + AHEAD if rate is None else int(rate * now))
        if now >= len(samples) * seconds / SAMPLES:
            state, delay = known["shoal_checkpoint_bytes"] / 1e6, known["shoal_event_time_lag_seconds"]
            samples.append(Sample(now, read, run.megabytes(), state, max(0, producer.sent - read), delay))
        time.sleep(TURN_SECONDS)
    spent = [after - before.get(thread, 0.0) for thread, after in run.processor_seconds().items()]
    return samples, Cost(now, sum(spent), sum(part > 0.05 * sum(spent) for part in spent))


def trend(times: np.ndarray, values: np.ndarray) -> tuple[float, bool]:
    """The slope per hour of the best line, and whether it is flat.

    Flat: over all the time the line changes by less than a twentieth of the mean, or than the values differ from it.
    """
    slope, start = np.polyfit(times, values, 1)
    change = abs(slope) * (times[-1] - times[0])
    spread = float(np.std(values - (slope * times + start)))
    return 3600 * float(slope), bool(change <= max(0.05 * abs(values.mean()), spread))


def trend_rows(samples: list[Sample]) -> list[list[str]]:
    """A row for each thing that was sampled, without the first fifth of the time."""
    found = np.array([astuple(one) for one in samples if one.seconds >= samples[-1].seconds / 5], dtype=float)
    times, rows, *others = found.T
    speeds = np.diff(rows) / np.diff(times)
    listed = [
        ("resident memory, MB", times, others[0]),
        ("state in a checkpoint, MB", times, others[1]),
        ("messages sent and not read", times, others[2]),
        ("seconds behind", times, others[3]),
        ("messages read a second", times[1:], speeds),
    ]
    table = []
    for name, at, values in listed:
        slope, is_flat = trend(at, values)
        cells = [short(number) for number in (values.mean(), values.min(), values.max())]
        sign = "−" if slope < 0 else "+"
        table.append([name, *cells, f"{sign}{short(abs(slope))}", "yes" if is_flat else "no"])
    return table


def server_of(system: str) -> type[Server]:
    """The broker; Kafka's needs a client that may not be installed."""
    if system == "kafka":
        from tests.brokers.kafka_server import Kafka

        return Kafka
    return {"nats": Nats, "redis": Redis}[system]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run, sample, report."""
    options = parser(__doc__)
    options.add_argument("--system", choices=[*LOADS], default="nats", help="what carries the messages (default: nats)")
    options.add_argument("--minutes", type=float, default=1.0, help="how long (default: 1)")
    options.add_argument("--rate", type=float, help="messages sent a second (default: as many as are read)")
    given = parse(options, arguments)
    report = Report(__file__, given)
    broker = server_of(given.system)
    missing = broker.missing()
    if missing is not None:
        report.text("flat", missing)
        report.write()
        return
    seconds = 3.0 if given.tiny else 60 * given.minutes
    with tempfile.TemporaryDirectory() as folder, broker() as server:
        samples, cost, counts = soak(Path(folder), given.system, f"127.0.0.1:{server.port}", seconds, given.rate)
    count = samples[-1].rows - samples[0].rows
    report.table("speed", ["system", "minutes", *rate_columns("messages")], [
        [server.name, f"{cost.wall / 60:.1f}", *cost.rates(count)]
    ])  # fmt: skip
    report.table("flat", ["", "mean", "least", "greatest", "change per hour", "flat"], trend_rows(samples))
    report.text("counts", counts)
    report.figures["samples"] = [astuple(one) for one in samples]
    report.write()


if __name__ == "__main__":
    main()
