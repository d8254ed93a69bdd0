"""`shoal repartition` without a broker: what is refused, and which messages are written where."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from shoal.decode.json_records import Columns
from shoal.decode.messages import Envelope, MessageDecoder, Messages, json_parser
from shoal.errors import InputError, PolicyError
from shoal.pipeline.live.pass_through import PassThrough
from shoal.pipeline.live.repartition import Request, repartition
from shoal.pipeline.live.wiring import WHOLE
from shoal.policy import parse_policy
from tests.policy.test_live import TUPLES, live_table
from tests.policy.test_policy import changed
from tests.reference.partitioners import partition_of

pytest.importorskip("confluent_kafka")

MS = 1_000_000


@pytest.mark.parametrize(
    ("changes", "request_", "sentence"),
    [
        ((), Request(by="site"), "--to: name the topic to write"),
        ((), Request(by="site", to="visits"), "--to: visits or its dead letters would be read again"),
        ((), Request(to="published"), "--to: published is where the policy publishes, and these are raw messages"),
        ((), Request(to="published-dead-letters"), "--to: published-dead-letters is where the policy publishes"),
        ((("source/topics", ["a-dead-letters"]),), Request(to="a"), "would be read again"),
        ((("anonymize", TUPLES),), Request(to="by-site"), "--by: name the column"),
        (
            (("source", {"kind": "redis", "streams": ["visits"]}), ("sink/brokers", "b:1")),
            Request(to="by-site"),
            "shoal repartition reads and writes topics of Kafka",
        ),
        (
            (("checkpoint", None), ("source/until", "end"), ("sink", {"kind": "csv", "path": "out.csv"})),
            Request(to="by-site"),
            "[checkpoint]: is missing",
        ),
    ],
)
def test_refused_before_anything_is_read(changes: Any, request_: Request, sentence: str, tmp_path: Path) -> None:
    table = live_table()
    for path, value in changes:
        table = changed(table, path, value)
    with pytest.raises(PolicyError) as caught:
        repartition(parse_policy(table, folder=tmp_path), request_)
    assert sentence in str(caught.value)


class Topics:
    """Takes the place of transactions; keeps what is sent."""

    def __init__(self, held: int = 0) -> None:
        self.transactions = self
        self.sent: list[tuple[Any, ...]] = []
        self._held = held

    def add(self, topic: str) -> Any:
        from shoal.sinks.numbered import MessageNumbers

        return MessageNumbers(topic)

    def start(self) -> None:
        pass

    def insist(self, call: Any) -> None:
        call()

    def held(self, topic: str) -> int:
        return self._held

    def partitions(self, topic: str) -> int:
        return 5

    def send(self, topic: str, messages: Any) -> None:
        self.sent += messages


VALUES = [json.dumps({"site": site, "n": n}).encode() for n, site in enumerate(["news", "mail", None, "news", None])]
MESSAGES = Messages(
    VALUES,
    [b"k", "text", None, b"\xff", b""],
    [7 * MS, 8 * MS, -1, 9 * MS, 0],
    [[("h", b"1"), ("h", None)], None, [], [("x", "y")], None],
)
KEPT = [(b"k", 7, [("h", b"1"), ("h", None)]), (b"text", 8, None), (None, 0, None), (b"\xff", 9, [("x", b"y")]),
        (b"", 0, None)]  # fmt: skip


def decoded() -> Any:
    decoder = MessageDecoder(
        json_parser(), Columns("memory", ("site", WHOLE), {"site": pa.string()}), envelope=Envelope(raw=WHOLE)
    )
    assert (decoder.needs_keys, decoder.needs_headers, decoder.needs_times) == (True, True, True)
    return decoder.decode(MESSAGES)


def written(*, keeps_keys: bool, held: int = 0) -> list[tuple[Any, ...]]:
    from shoal.sinks.kafka.keyed import KeyedTopicSink

    topics: Any = Topics(held)
    sink = KeyedTopicSink(topics, "by-site", column="site", raw=WHOLE, keeps_keys=keeps_keys)
    batch = decoded().batch
    sink.recover(batch.schema, {"messages": 0})
    for part in (batch.slice(0, 2), batch.slice(2)):
        sink.write(part)
    found: list[tuple[Any, ...]] = topics.sent
    return found


@pytest.mark.parametrize("keeps_keys", [True, False])
def test_messages_as_they_came_in_the_partitions_of_their_values(keeps_keys: bool) -> None:
    numbers = count()
    for message, value, (key, time, headers) in zip(written(keeps_keys=keeps_keys), VALUES, KEPT, strict=True):
        site, number = json.loads(value)["site"], next(numbers)
        partition = number % 5 if site is None else partition_of(site.encode(), 5)
        wanted = key if keeps_keys else site and site.encode()
        assert message == (value, wanted, partition, None, None, time, headers)


def test_messages_that_the_topic_holds_are_skipped() -> None:
    assert written(keeps_keys=True, held=3) == written(keeps_keys=True)[3:]


def test_every_message_is_passed_on_or_refused() -> None:
    method = PassThrough("site", None)
    batch = decoded().batch
    with pytest.raises(InputError, match="there is no column 'site'"):
        method.bind(batch.select([WHOLE]).schema)
    method.bind(batch.schema)
    release = method.push_batch(batch, refused=[1, 4])
    assert release.rows == batch
    assert release.trace.column("row").to_pylist() == [1, 4]
    other = PassThrough("site", None)
    other.restore(method.snapshot())
    assert other.counts == {"pushed": 7, "released": 5, "suppressed": 0, "dead": 2, "unreadable": 2}
    assert other.pending == 0
