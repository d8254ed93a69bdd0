"""Workers that share a keyed topic of Kafka, and writing such a topic: python -m benchmarks.live_workers

It starts a broker as `make test-brokers` does, which needs Java and Maven. The broker's own time is not counted.
Workers run at the same time: processor seconds are their sum, wall clock is that of the slowest.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.live_kafka import broker
from benchmarks.measure import Cost, Report, apart, least, measured, parse, parser, rate_columns
from benchmarks.z_stream import make_stream
from shoal.observe.observer import Observer
from shoal.pipeline.live.repartition import Request, repartition
from shoal.pipeline.pipeline import Pipeline
from shoal.policy import Policy, parse_policy
from shoal.policy.live.workers import for_worker

TRIES = 2
PARTITIONS = 8
WORKERS = (1, 2)
TOPIC = "visits"


def make_policy(address: str, folder: str, name: str, workers: int) -> Policy:
    """z-anonymity on the keyed topic, under names of its own."""
    source: dict[str, Any] = {"kind": "kafka", "brokers": address, "topics": [TOPIC], "until": "end", "group": name}
    source |= {"workers": workers, "keyed_by": "site"} if workers > 1 else {}
    source["types"] = {"ts": "int64", "user": "string", "site": "string"}
    table = {
        "stream": {"person": "user", "time": "ts"},
        "source": source,
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 10, "window": "100000s"},
        "sink": {"kind": "kafka", "topic": f"{TOPIC}-rows", "transactional_id": name},
        "checkpoint": {"path": "state", "every": "1s"},
    }
    return parse_policy(table, folder=folder)


def run_worker(address: str, number: int, workers: int, worker: int) -> dict[str, Any]:
    """One worker, or the only process, from an empty checkpoint folder."""
    with tempfile.TemporaryDirectory() as folder:
        policy = make_policy(address, folder, f"{number}-of-{workers}", workers)
        own = for_worker(policy, worker if workers > 1 else None)
        cost, summary = measured(lambda: Pipeline(own).run(Observer()))
    return {"cost": cost.__dict__, "rows": summary.rows_in, "written": summary.released}


def run_copy(address: str, number: int) -> dict[str, Any]:
    """`shoal repartition` of the same topic."""
    with tempfile.TemporaryDirectory() as folder:
        policy = make_policy(address, folder, f"copy-{number}", 1)
        request = Request(by="site", to=f"{TOPIC}-copy-{number}")
        cost, summary = measured(lambda: repartition(policy, request))
    return {"cost": cost.__dict__, "rows": summary.rows_in, "written": summary.released}


def fill(address: str, rows: int) -> None:
    """Write visits to a topic, keyed by their site."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "log_level": 0, "partitioner": "murmur2"})
    for row in make_stream(rows).batch.to_pylist():
        while True:
            try:
                producer.produce(TOPIC, orjson.dumps(row), row["site"])
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    producer.close()


def make_topics(address: str) -> None:
    """The topic that is read, and those that are written."""
    names = [TOPIC, *(f"{TOPIC}-{name}" for name in ("rows", *(f"copy-{number}" for number in range(TRIES))))]
    topics = [NewTopic(f"{name}{ending}", PARTITIONS, 1) for name in names for ending in ("", "-dead-letters")]
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for done in admin.create_topics(topics).values():
        done.result(30)


def together(parts: list[dict[str, Any]]) -> tuple[Cost, int, int]:
    """What workers took and did together."""
    costs = [Cost(**part["cost"]) for part in parts]
    cost = Cost(max(one.wall for one in costs), sum(one.processor for one in costs), sum(one.threads for one in costs))
    return cost, sum(part["rows"] for part in parts), sum(part["written"] for part in parts)


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse(parser(__doc__), arguments)
    rows, tries = (200, 1) if given.tiny else (600_000, TRIES)
    report = Report(__file__, given)
    costs: dict[str, Cost] = {}
    written: dict[str, int] = {}
    before = os.environ.get("SHOAL_KEY_FILE")
    with tempfile.TemporaryDirectory() as folder, broker(tiny=given.tiny) as address:
        key = Path(folder) / "key"
        key.write_text("0" * 64)
        key.chmod(0o600)
        os.environ["SHOAL_KEY_FILE"] = str(key)
        if not given.tiny:  # the imitation makes topics itself
            make_topics(address)
        fill(address, rows)
        for number in range(tries):  # in turns: other load on the machine then hits all
            for workers in WORKERS:
                options = {"address": address, "number": number, "workers": workers}
                with ThreadPoolExecutor(1 if given.tiny else workers) as pool:
                    jobs = [
                        pool.submit(apart, run_worker, here=given.tiny, worker=worker, **options)
                        for worker in range(workers)
                    ]
                    parts = [job.result() for job in jobs]
                _note(f"{workers} process{'es' * (workers > 1)}", together(parts), rows, costs, written)
            copied = apart(run_copy, here=given.tiny, address=address, number=number)
            _note("shoal repartition", together([copied]), rows, costs, written)
    os.environ.pop("SHOAL_KEY_FILE")
    os.environ |= {"SHOAL_KEY_FILE": before} if before is not None else {}
    table = [[way, f"{written[way] / rows:.0%}", *cost.rates(rows)] for way, cost in costs.items()]
    report.table("rates", ["way", "written", *rate_columns("rows read")], table)
    report.write()


def _note(way: str, found: tuple[Cost, int, int], rows: int, costs: dict[str, Cost], written: dict[str, int]) -> None:
    cost, read, written[way] = found
    if read != rows:
        raise SystemExit(f"{way}: {read:,} of {rows:,} rows came back")
    costs[way] = least(costs[way], cost) if way in costs else cost


if __name__ == "__main__":
    main()
