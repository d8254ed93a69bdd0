"""Kafka to Kafka, JSON in and out, exactly once, next to a loop that only copies: python -m benchmarks.live_kafka

It starts a broker as `make test-brokers` does, which needs Java and Maven. The broker's own time is not counted.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.brokers.kafka_server import Kafka

from benchmarks.measure import Cost, Report, apart, least, measured, parse, parser, rate_columns
from benchmarks.z_stream import make_stream
from shoal.observe.observer import Observer
from shoal.pipeline.pipeline import Pipeline
from shoal.policy import parse_policy

TRIES = 3
PARTITIONS = (1, 4)
COPIED = 100_000
"""Rows in one transaction of the loop that copies."""


@contextmanager
def broker(*, tiny: bool) -> Iterator[str]:
    """The address of a broker; for tiny sizes the client's own imitation of one."""
    if tiny:
        owner = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
        (found,) = owner.list_topics(timeout=10).brokers.values()
        yield f"{found.host}:{found.port}"
        owner.close()
        return
    missing = Kafka.missing()
    if missing:
        raise SystemExit(missing)
    with Kafka() as running:
        yield running.address


def make_topics(address: str, topic: str, partitions: int) -> None:
    """The topic that is read, and those that are written."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    names = [topic, *(f"{topic}-{way}{ending}" for way in WAYS for ending in ("", "-dead-letters"))]
    for done in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        done.result(30)


def fill(address: str, topic: str, partitions: int, rows: int) -> None:
    """Write visits to a topic, in turns to its partitions."""
    producer = Producer({"bootstrap.servers": address, "linger.ms": 50, "log_level": 0})
    for number, row in enumerate(make_stream(rows).batch.to_pylist()):
        while True:
            try:
                producer.produce(topic, orjson.dumps(row), partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
    producer.close()


def run_shoal(address: str, topic: str, number: int) -> dict[str, Any]:
    """`shoal run` with z-anonymity, from an empty checkpoint folder."""
    with tempfile.TemporaryDirectory() as folder:
        policy = parse_policy(
            {
                "stream": {"person": "user", "time": "ts"},
                "source": {"kind": "kafka", "brokers": address, "topics": [topic], "until": "end"},
                "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 10, "window": "100000s"},
                "sink": {"kind": "kafka", "topic": f"{topic}-shoal", "transactional_id": f"{topic}-shoal-{number}"},
                "checkpoint": {"path": "state", "every": "1s"},
            },
            folder=folder,
        )
        cost, summary = measured(lambda: Pipeline(policy).run(Observer()))
    return {"cost": cost.__dict__, "rows": summary.rows_in, "written": summary.released}


def run_copy(address: str, topic: str, number: int) -> dict[str, Any]:
    """The least that anyone would write: consume, parse, print, produce in transactions; nothing is anonymized."""
    cost, rows = measured(lambda: _copy(address, topic, f"copy-{topic}-{number}"))
    return {"cost": cost.__dict__, "rows": rows, "written": rows}


def _copy(address: str, topic: str, name: str) -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": name, "enable.partition.eof": True, "log_level": 0})
    left = set(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
    consumer.assign([TopicPartition(topic, number, 0) for number in left])
    producer = Producer(
        {"bootstrap.servers": address, "transactional.id": name, "delivery.report.only.error": True,
         "linger.ms": 20, "compression.type": "lz4", "log_level": 0}
    )  # fmt: skip
    producer.init_transactions(30)
    producer.begin_transaction()
    rows = committed = 0
    while left:
        for message in consumer.consume(20_000, timeout=0.1):
            if message.error() is not None:
                left.discard(message.partition())
                continue
            value = orjson.dumps(orjson.loads(message.value()))
            while True:
                try:
                    producer.produce(f"{topic}-copy", value)
                    break
                except BufferError:
                    producer.poll(0.05)
            rows += 1
        producer.poll(0)
        if rows - committed >= COPIED:
            producer.commit_transaction(60)
            producer.begin_transaction()
            committed = rows
    producer.commit_transaction(60)
    consumer.close()
    return rows


WAYS = {"shoal": run_shoal, "copy": run_copy}


def main(arguments: Sequence[str] | None = None) -> None:
    given = parse(parser(__doc__), arguments)
    rows, tries = (200, 1) if given.tiny else (1_000_000, TRIES)
    os.environ.pop("SHOAL_KEY_FILE", None)
    report = Report(__file__, given)
    table = []
    with broker(tiny=given.tiny) as address:
        for partitions in PARTITIONS:
            topic = f"visits-{partitions}"
            if not given.tiny:  # the imitation makes topics itself
                make_topics(address, topic, partitions)
            fill(address, topic, partitions, rows)
            costs: dict[str, Cost] = {}
            written: dict[str, int] = {}
            for number in range(tries):  # in turns: other load on the machine then hits both
                for way, run in WAYS.items():
                    found = apart(run, here=given.tiny, address=address, topic=topic, number=number)
                    if found["rows"] != rows:
                        raise SystemExit(f"{way}: {found['rows']:,} of {rows:,} rows came back")
                    cost, written[way] = Cost(**found["cost"]), found["written"]
                    costs[way] = least(costs[way], cost) if way in costs else cost
            names = {"shoal": "shoal run, z-anonymity", "copy": "copy with orjson, nothing anonymized"}
            table += [
                [f"{partitions}", names[way], f"{written[way] / rows:.0%}", *cost.rates(rows)]
                for way, cost in costs.items()
            ]
    report.table("rates", ["partitions", "way", "written", *rate_columns("rows read")], table)
    report.write()


if __name__ == "__main__":
    main()
