"""Runs from stream to stream on real brokers, next to loops that only copy: python -m benchmarks.live_systems"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import nats
import orjson
import redis
from nats.js import api
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from rstream import Consumer, ConsumerOffsetSpecification, OffsetType, Producer
from tests.brokers.servers import Mosquitto, Nats, RabbitMq, Redis, Server

from benchmarks.measure import Cost, Report, least, measured, parse, parser, rate_columns
from benchmarks.z_stream import make_stream
from shoal import Pipeline, ZAnonymity
from shoal.clients.addresses import Address
from shoal.clients.mqtt import MqttConnection
from shoal.crypto.keys import new_secret
from shoal.decode.base import Decoded
from shoal.decode.json_records import Columns
from shoal.decode.messages import MessageDecoder, json_parser
from shoal.encode.messages import JsonMessages
from shoal.errors import InputError, OutputError
from shoal.sinks.mqtt import MqttSink
from shoal.sources.live import LiveSource, Pace
from shoal.sources.logged.message_log import MessageLog
from shoal.sources.mqtt import MqttReader

TRIES = 3
Z = 10
BATCH = 5_000
_POLICY = """
[stream]
person = "user"
time = "ts"
[source]
{source}
until = "end"
types = {{ts = "int64", user = "string", site = "string"}}
[anonymize]
method = "z-anonymity"
attribute = "site"
z = {z}
window = {window}
[sink]
{sink}
[checkpoint]
path = "state-{name}"
every = 50000
"""
_names = count()


class System:
    """One broker with one input stream."""

    server: ClassVar[type[Server]]
    messages: ClassVar[int]

    def __init__(self, running: Server, values: list[bytes], window: int, folder: Path) -> None:
        self.port, self.values, self.window, self.folder = running.port, values, window, folder

    def produce(self) -> None:
        """Fill the input."""
        raise NotImplementedError

    def tables(self, out: str) -> dict[str, str]:
        """[source] and [sink] of a policy."""
        raise NotImplementedError

    def copy(self) -> None:
        """Read every message and write it somewhere else, in batches, acknowledged: what one would write by hand."""
        raise NotImplementedError

    def anonymize(self) -> None:
        """`shoal run` on a policy, with a checkpoint every 50,000 rows."""
        name = f"out-{next(_names)}"
        policy = self.folder / f"{name}.toml"
        policy.write_text(_POLICY.format(**self.tables(name), z=Z, window=self.window, name=name))
        assert Pipeline.from_policy(policy).run().rows_in == len(self.values)


class RedisSystem(System):
    """redis-py with hiredis."""

    server, messages = Redis, 200_000

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.client = redis.Redis(port=self.port, protocol=2)

    def tables(self, out: str) -> dict[str, str]:
        url = f'url = "redis://127.0.0.1:{self.port}/0"'
        return {"source": f'kind = "redis"\n{url}\nstreams = ["in"]', "sink": f'kind = "redis"\nstream = "{out}"'}

    def _append(self, stream: str, values: Sequence[bytes]) -> None:
        pipe = self.client.pipeline(transaction=False)
        for value in values:
            pipe.xadd(stream, {"value": value})
        pipe.execute()

    def produce(self) -> None:
        for start in range(0, len(self.values), BATCH):
            self._append("in", self.values[start : start + BATCH])

    def copy(self) -> None:
        last, out = b"0", f"copy-{next(_names)}"
        while reply := self.client.xread({"in": last}, count=BATCH):
            entries: Any = reply[0][1]
            self._append(out, [fields[b"value"] for _, fields in entries])
            last = entries[-1][0]


class NatsSystem(System):
    """nats-py."""

    server, messages = Nats, 100_000

    def tables(self, out: str) -> dict[str, str]:
        url = f'url = "nats://127.0.0.1:{self.port}"'
        return {"source": f'kind = "nats"\n{url}\nstream = "in"', "sink": f'kind = "nats"\nstream = "{out}"'}

    async def _connect(self) -> Any:
        return await nats.connect(f"nats://127.0.0.1:{self.port}")

    def produce(self) -> None:
        async def work() -> None:
            client = await self._connect()
            await client.jetstream().add_stream(name="in", subjects=["in"])
            await self._append(client, "in", self.values)
            await client.close()

        asyncio.run(work())

    async def _append(self, client: Any, subject: str, values: Sequence[bytes]) -> None:
        stream = client.jetstream()
        for start in range(0, len(values), 500):
            await asyncio.gather(*[await stream.publish_async(subject, value) for value in values[start : start + 500]])

    def copy(self) -> None:
        async def work() -> None:
            client = await self._connect()
            stream, out = client.jetstream(), f"copy-{next(_names)}"
            await stream.add_stream(name=out, subjects=[out])
            config = api.ConsumerConfig(ack_policy=api.AckPolicy.NONE, inactive_threshold=300)
            source, left = await stream.pull_subscribe("in", stream="in", config=config), len(self.values)
            while left:
                messages = await source.fetch(min(1_000, left), timeout=10)
                await self._append(client, out, [message.data for message in messages])
                left -= len(messages)
            await client.close()

        asyncio.run(work())


class RabbitSystem(System):
    """rstream."""

    server, messages = RabbitMq, 200_000

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.login = {"host": "127.0.0.1", "port": self.port, "username": "guest", "password": "guest"}

    def tables(self, out: str) -> dict[str, str]:
        address = f'brokers = "127.0.0.1:{self.port}"'
        source = f'kind = "rabbitmq"\n{address}\nstreams = ["in"]'
        return {"source": source, "sink": f'kind = "rabbitmq"\nstream = "{out}"'}

    async def _append(self, producer: Producer, stream: str, values: list[bytes]) -> None:
        confirmed, done = set(), asyncio.Event()

        def confirm(status: Any) -> None:
            confirmed.add(status.message_id)
            if len(confirmed) == len(values):
                done.set()

        await producer.send_batch(stream, values, on_publish_confirm=confirm)
        await done.wait()

    def produce(self) -> None:
        async def work() -> None:
            async with Producer(**self.login) as producer:
                await producer.create_stream("in")
                for start in range(0, len(self.values), BATCH):
                    await self._append(producer, "in", self.values[start : start + BATCH])

        asyncio.run(work())

    def copy(self) -> None:
        async def work() -> None:
            arrived: asyncio.Queue[bytes] = asyncio.Queue()
            out = f"copy-{next(_names)}"
            first = ConsumerOffsetSpecification(OffsetType.FIRST, None)
            async with Producer(**self.login) as producer, Consumer(**self.login) as consumer:
                await producer.create_stream(out)
                await consumer.subscribe("in", lambda value, _: arrived.put_nowait(value), offset_specification=first)
                for start in range(0, len(self.values), BATCH):
                    size = min(BATCH, len(self.values) - start)
                    await self._append(producer, out, [await arrived.get() for _ in range(size)])

        asyncio.run(work())


class MqttSystem(System):
    """paho, quality of service 1; the run without checkpoints, because a topic has no end."""

    server, messages = Mosquitto, 10_000

    def _client(self, name: str, **options: Any) -> mqtt.Client:
        client = mqtt.Client(CallbackAPIVersion.VERSION2, name, clean_session=False, **options)
        client.max_inflight_messages_set(100)
        client.max_queued_messages_set(0)
        client.connect("127.0.0.1", self.port)
        return client

    def _fill(self, name: str) -> None:
        """Messages that wait in a session."""
        answered: list[int] = []
        session = self._client(name)
        session.on_subscribe = lambda *given: answered.append(1)
        session.subscribe(f"in/{name}", qos=1)
        while not answered:
            session.loop(0.1)
        session.disconnect()
        device = self._client(f"{name}-device")
        device.loop_start()
        sent = [device.publish(f"in/{name}", value, qos=1) for value in self.values]
        sent[-1].wait_for_publish(60)
        device.disconnect()
        device.loop_stop()

    def produce(self) -> None:
        """Each measurement needs messages of its own: `prepare` makes them."""

    def prepare(self) -> str:
        """A session with messages."""
        name = f"session-{next(_names)}"
        self._fill(name)
        self.session = name
        return name

    def copy(self) -> None:
        done: list[int] = []
        out = self._client(f"{self.session}-out")
        out.on_publish = lambda *given: done.append(1)
        client = self._client(self.session, manual_ack=True)

        def forward(_: Any, __: Any, message: mqtt.MQTTMessage) -> None:
            out.publish("copy", message.payload, qos=1)
            client.ack(message.mid, message.qos)

        client.on_message = forward
        while len(done) < len(self.values):
            client.loop(0.001)
            out.loop(0.001)

    def anonymize(self) -> None:
        def decoder(columns: tuple[str, ...], types: Any) -> MessageDecoder:
            return MessageDecoder(json_parser(), Columns("in", columns), types=types)

        folder, name = self.folder / self.session, self.session
        place = Address("127.0.0.1", self.port)
        reader = MqttReader(
            MqttConnection(place, name, {}, InputError),
            [f"in/{name}"],
            lambda: MessageLog(folder, new_secret()),
            name="MQTT",
        )
        source = LiveSource(reader, decoder, Pace(5, 30, 60))
        method = ZAnonymity(person="user", time="ts", attribute="site", z=Z, window=self.window)
        source.open(method.columns, None)
        method.bind(source.schema)
        connection = MqttConnection(place, f"{name}-out", {}, OutputError, is_modern=True)
        sink = MqttSink(connection, "out", JsonMessages(), name="MQTT", give_up_seconds=60)
        sink.open(method.output_schema)
        left = len(self.values)
        while left:
            if isinstance(polled := source.poll(), Decoded):
                sink.write(method.push_batch(polled.batch, refused=polled.places).rows)
                left -= polled.rows
        sink.commit(0)
        source.close()
        sink.close()


SYSTEMS: dict[str, type[System]] = {
    "Redis": RedisSystem, "NATS JetStream": NatsSystem, "RabbitMQ": RabbitSystem, "MQTT": MqttSystem,
}  # fmt: skip


def compare(kind: type[System], rows: int, tries: int, folder: Path) -> dict[str, Cost]:
    """The least cost of a run and of a copy, which take turns."""
    stream = make_stream() if rows > 10_000 else make_stream(20_000, 500, 50)
    values = [orjson.dumps(row) for row in stream.batch.slice(0, rows).to_pylist()]
    best: dict[str, Cost] = {}
    with kind.server() as running:
        system = kind(running, values, stream.window, folder)
        system.produce()
        ways: dict[str, Callable[[], None]] = {"shoal run": system.anonymize, "copy by hand": system.copy}
        for _ in range(tries):
            for name, way in ways.items():
                if isinstance(system, MqttSystem):
                    system.prepare()
                cost = measured(way)[0]
                best[name] = least(cost, best.get(name, cost))
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; keep the figures as JSON."""
    made = parser(__doc__)
    made.add_argument("--only", nargs="*", default=list(SYSTEMS), choices=list(SYSTEMS), help="which systems")
    given = parse(made, arguments)
    report = Report(__file__, given)
    found: list[list[str]] = []
    for name in given.only[:1] if given.tiny else given.only:
        kind = SYSTEMS[name]
        if kind.server.missing():
            print(kind.server.missing())
            continue
        rows = 200 if given.tiny else kind.messages
        with tempfile.TemporaryDirectory() as folder:
            best = compare(kind, rows, 1 if given.tiny else TRIES, Path(folder))
        report.figures |= {f"{name}, {way}": vars(cost) | {"messages": rows} for way, cost in best.items()}
        found += [[name, way, *cost.rates(rows)] for way, cost in best.items()]
    if found:
        report.table("ways", ["system", "", *rate_columns("messages")], found)
    else:
        report.text("ways", "no broker is installed on this machine")
    report.write()


if __name__ == "__main__":
    main()
