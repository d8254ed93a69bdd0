"""The live page under load, and what readers that never read cost: python -m benchmarks.serve_load"""

from __future__ import annotations

import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Thread

import orjson

from benchmarks.measure import Cost, Meter, Report, parse, parser, rate_columns, short
from benchmarks.serve import _POLICY, bodies
from benchmarks.z_stream import make_stream
from shoal import Pipeline
from shoal.observe.observer import Observer
from shoal.pipeline.stopping import Stop
from shoal.serve.host import RunHost

RATE = 10_000
IN_A_REQUEST = 1_000
READERS = 100
PAGES = 2
_PATIENCE = 120.0


class Quiet(Observer):
    """Times of the synthetic stream begin in 1970, which is fine here."""

    def warn(self, sentence: str) -> None:
        pass


@contextmanager
def hosted(policy: str) -> Iterator[RunHost]:
    """A run with its page, in threads of this process."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policy.toml").write_text(policy)
        host, stop = RunHost(Pipeline.from_policy(Path(folder) / "policy.toml"), port=0), Stop()
        run = Thread(target=lambda: host.run(Quiet(), stop=stop))
        run.start()
        try:
            yield host
        finally:
            stop.ask()
            run.join()


def headers_of(host: RunHost) -> dict[str, str]:
    """What every request needs."""
    return {"Authorization": f"Bearer {host.token}"}


class Page:
    """An open page: what it was told, and when."""

    def __init__(self, host: RunHost) -> None:
        self.seen: list[tuple[float, int]] = []
        self._port, self._headers = host.port, headers_of(host)
        self.thread = Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port)) as connection:
            connection.request("GET", "/api/stream", headers=self._headers)
            answer, is_state = connection.getresponse(), False
            for line in answer:
                if line.startswith(b"event: "):
                    is_state = line == b"event: state\n"
                elif is_state and line.startswith(b"data: "):
                    self.seen.append((time.monotonic(), orjson.loads(line[6:])["totals"]["in"]))

    def wait_for(self, rows: int) -> float:
        """When it had shown this many rows."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            found = next((at for at, count in list(self.seen) if count >= rows), None)
            if found is not None:
                return found
            time.sleep(0.02)
        raise TimeoutError("the page never showed all rows")

    def longest_pause(self) -> float:
        """Seconds between two snapshots, at most."""
        times = [at for at, _ in self.seen]
        return max((after - before for before, after in pairwise(times)), default=0.0)


def post(host: RunHost, requests: Sequence[bytes], *, rate: float | None) -> tuple[int, float, float]:
    """Post at a rate (rows a second): how often the server refused, how late a request was begun, when all was sent."""
    refused, late, begun = 0, 0.0, time.monotonic()
    with closing(http.client.HTTPConnection("127.0.0.1", host.port)) as connection:
        for number, body in enumerate(requests):
            due = begun + (number * IN_A_REQUEST / rate if rate else 0)
            time.sleep(max(0.0, due - time.monotonic()))
            late = max(late, time.monotonic() - due) if rate else 0.0
            while not _accepted(connection, host, body):
                refused += 1
    return refused, late, time.monotonic()


def _accepted(connection: http.client.HTTPConnection, host: RunHost, body: bytes) -> bool:
    connection.request("POST", "/events", body, headers_of(host))
    answer = connection.getresponse()
    answer.read()
    return answer.status == 200


def paced(policy: str, requests: Sequence[bytes], rows: int) -> list[str]:
    """Post at the rate with pages open; one row of the table."""
    with hosted(policy) as host:
        pages = [Page(host) for _ in range(PAGES)]
        post(host, requests[:1], rate=None)  # the run is ready from here on
        begun = time.monotonic()
        refused, late, sent = post(host, requests[1:], rate=RATE)
        behind = max(page.wait_for(rows) for page in pages) - sent
        pause = max(page.longest_pause() for page in pages)
        reached = (rows - IN_A_REQUEST) / (sent - begun)
    return [f"{RATE:,}", short(reached), str(refused), short(late), short(max(behind, 0.0)), short(pause)]


_IDLE = """
import socket, sys
port, token, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ask = f"GET /released HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nAuthorization: Bearer {token}\\r\\n\\r\\n".encode()
readers = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
for one in readers:
    one.sendall(ask)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def idle_readers(host: RunHost, count: int) -> Iterator[None]:
    """Another process that asks for released rows and never reads them."""
    command = [sys.executable, "-c", _IDLE, str(host.port), str(host.token), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        yield
        process.stdin.close()


def with_readers(policy: str, requests: Sequence[bytes], rows: int, readers: int) -> Cost:
    """What it takes to post and decide all rows while this many connections do not read."""
    with hosted(policy) as host, ExitStack() as stack:
        page = Page(host)
        post(host, requests[:1], rate=None)
        stack.enter_context(idle_readers(host, readers))
        with Meter() as meter:
            post(host, requests[1:], rate=None)
            page.wait_for(rows)
    return meter.cost


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    given = parse(parser(__doc__), arguments)
    rows = 4_000 if given.tiny else 15 * RATE
    report = Report(__file__, given)
    stream = make_stream(rows)
    policy = _POLICY.format(window=stream.window)
    requests = bodies(stream.batch, IN_A_REQUEST)
    with hosted(policy) as host:  # compile, or load what is compiled
        post(host, requests[:1], rate=None)
    report.table(
        "pace",
        [
            "rows a second", "reached", "requests refused", "a request began late by (s)",
            "both pages show all rows after (s)", "longest pause between snapshots (s)",
        ],
        [paced(policy, requests, rows)],
    )  # fmt: skip
    costs = {count: with_readers(policy, requests, rows, count) for count in (0, READERS)}
    report.table(
        "readers",
        ["readers of /released that never read", *rate_columns("rows"), "processor time, none = 1"],
        [[str(count), *cost.rates(rows), short(cost.processor / costs[0].processor)] for count, cost in costs.items()],
    )
    report.write()


if __name__ == "__main__":
    main()
