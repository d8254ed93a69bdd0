"""Records through the HTTP source until they are released, and what the live page costs: python -m benchmarks.serve"""

from __future__ import annotations

import http.client
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread

import orjson
import pyarrow as pa

from benchmarks.measure import Cost, Report, least, measured, parse, parser, rate_columns, short
from benchmarks.z_stream import make_stream
from shoal import Pipeline
from shoal.encode.jsonl import json_objects
from shoal.observe.counts import RunSummary
from shoal.observe.observer import Observer
from shoal.pipeline.stopping import Stop
from shoal.serve.host import RunHost

TRIES = 3
REQUESTS = (100, 1_000, 10_000)
_POLICY = """
[stream]
person = "user"
time = "ts"
time_unit = "s"
[source]
kind = "http"
types = {{ ts = "int64", user = "string", site = "string" }}
queue = 10_000_000
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 10
window = {window}
[sink]
kind = "jsonl"
path = "published/"
[checkpoint]
path = "state"
every = "10s"
"""


def bodies(batch: pa.RecordBatch, rows: int) -> list[bytes]:
    """The records as bodies of requests."""
    lines = json_objects(batch, end="}\n").to_pylist()
    return ["".join(lines[start : start + rows]).encode() for start in range(0, len(lines), rows)]


class Sending:
    """One run over HTTP: everything is sent, and then it is waited until all is decided."""

    def __init__(self, policy: str, *, with_page: bool) -> None:
        self._policy, self._with_page = policy, with_page

    def __call__(self, requests: Sequence[bytes], rows: int) -> int:
        """Send; give the rows that were published."""
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            (folder / "policy.toml").write_text(self._policy)
            host = RunHost(Pipeline.from_policy(folder / "policy.toml"), port=0, with_page=self._with_page)
            observer, stop = _Counting(rows), Stop()
            observer.stop = stop
            found: list[int] = []
            run = Thread(target=lambda: found.append(host.run(observer, stop=stop).released))
            run.start()
            connection = stack.enter_context(closing(http.client.HTTPConnection("127.0.0.1", host.port)))
            headers = {"Authorization": f"Bearer {host.token}"}
            if self._with_page:
                watching = Thread(target=_watch, args=(host.port, headers))
                watching.start()
                stack.callback(watching.join)
            for body in requests:
                while not _accepted(connection, body, headers):
                    pass  # the run is starting
            run.join()
            return found[0]


class _Counting(Observer):
    """Stops a run when this many rows have arrived."""

    stop: Stop

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def progress(self, summary: RunSummary) -> None:
        if summary.rows_in >= self._rows:
            self.stop.ask()

    def warn(self, sentence: str) -> None:
        """Times of the synthetic stream begin in 1970, which is fine here."""


def _accepted(connection: http.client.HTTPConnection, body: bytes, headers: dict[str, str]) -> bool:
    connection.request("POST", "/events", body, headers)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status in (429, 503):
        return False
    assert answer.status == 200, content
    return bool(orjson.loads(content)["accepted"])


def _watch(port: int, headers: dict[str, str]) -> None:
    """An open page: reads the stream of snapshots to its end."""
    with closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
        connection.request("GET", "/api/stream", headers=headers)
        connection.getresponse().read()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    given = parse(parser(__doc__), arguments)
    rows = 2_000 if given.tiny else 50_000
    report = Report(__file__, given)
    stream = make_stream(rows)
    policy = _POLICY.format(window=stream.window)
    plain, shown = Sending(policy, with_page=False), Sending(policy, with_page=True)
    plain(bodies(stream.batch.slice(0, 500), 500), 500)  # compile, or load what is compiled
    costs = [(count, _cost(plain, bodies(stream.batch, count), rows, tries=1)) for count in REQUESTS]
    report.table(
        "rates",
        ["rows in a request", *rate_columns("rows")],
        [[f"{count:,}", *cost.rates(rows)] for count, cost in costs],
    )
    requests = bodies(stream.batch, 1_000)
    best: dict[str, Cost] = {}
    for _ in range(1 if given.tiny else TRIES):
        for name, sending in (("shoal run", plain), ("shoal serve, one page open", shown)):
            cost = _cost(sending, requests, rows, tries=1)
            best[name] = least(best[name], cost) if name in best else cost
    base = best["shoal run"].processor
    report.table(
        "page",
        ["1,000 rows in a request", *rate_columns("rows"), "processor time, shoal run = 1"],
        [[name, *cost.rates(rows), short(cost.processor / base)] for name, cost in best.items()],
    )
    report.write()


def _cost(sending: Callable[[Sequence[bytes], int], int], requests: Sequence[bytes], rows: int, *, tries: int) -> Cost:
    cost, published = measured(lambda: sending(requests, rows), tries=tries)
    assert published
    return cost


if __name__ == "__main__":
    main()
