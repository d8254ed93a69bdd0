"""The tables of every system that records come from or go to: one class each, and `kind` selects it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Name, Names
from shoal.policy.live.messages import MessageSink, MessageSource
from shoal.policy.live.secrets import Address
from shoal.policy.tables import FILE_KINDS, ONLY_READ, FileSink, FileSource, SinkSection, SourceSection

_SAME: Final = "; by default that of the source, if it is of the same kind"
_REPEATS: Final = "MQTT delivers every message at least once: after a crash or a lost connection some come twice"
_DECIDED: Final = "is set so that every record is published exactly once; leave it out"
_KAFKA: Final = {
    "bootstrap.servers": "is the key brokers; write it there",
    "metadata.broker.list": "is the key brokers; write it there",
    "group.id": "is the key group of [source]; write it there",
    "transactional.id": "is the key transactional_id of [sink]; write it there",
    "auto.offset.reset": "is the key start of [source]; write it there",
    **dict.fromkeys(
        ("enable.auto.commit", "enable.auto.offset.store", "isolation.level", "enable.partition.eof",
         "enable.idempotence", "acks", "request.required.acks"),
        _DECIDED,
    ),
}  # fmt: skip

_MQTT: Final = {
    "client_id": "is the key client_id; write it there",
    "clean_session": "is set so that no message is lost; leave it out",
}


_TRANSACTION_MS: Final = 600_000


class KafkaSource(MessageSource):
    """Topics of Kafka."""

    ADDRESS: ClassVar[str] = "brokers"
    LOG: ClassVar[str] = "topics"
    RESERVED: ClassVar[Mapping[str, str]] = _KAFKA
    CAN_BE_SHARED: ClassVar[bool] = True
    brokers: Address = Field(description='name the brokers, such as "localhost:9092", separated by commas')
    topics: Names = Field(description='list the topics, such as ["visits"]')
    group: Name = Field("shoal", description="The consumer group under which tools show how far the run is.")
    start: Literal["earliest", "latest", "group"] = Field(  # type: ignore[assignment]
        "earliest",
        description="Where the first run starts: with the oldest message there is, with new ones, or where a run of "
        'the `group` has ended by `until = "end"`.',
    )
    keyed_by: Name | None = Field(
        None, description="With several `workers`: the column whose text is the key of the messages."
    )
    partitioner: Literal["murmur2", "crc32"] = Field(
        "murmur2",
        description="With several `workers`: how producers choose the partition of a key; Java's clients and `shoal "
        "repartition` by `murmur2`, librdkafka's by `crc32` unless configured otherwise.",
    )

    def plain_fields(self) -> dict[str, Any]:
        # Keys of several workers do not count without them, so that older checkpoints stay valid.
        fields = super().plain_fields()
        shared = ("keyed_by", "partitioner")
        return {name: value for name, value in fields.items() if self.workers > 1 or name not in shared}


class KafkaSink(MessageSink):
    """A topic of Kafka, written in transactions."""

    ADDRESS: ClassVar[str] = "brokers"
    LOG: ClassVar[str] = "topic"
    RESERVED: ClassVar[Mapping[str, str]] = _KAFKA
    brokers: Address | None = Field(None, description=f"Brokers, separated by commas{_SAME}.")
    topic: Name = Field(description="name the topic")
    transactional_id: Name | None = Field(
        None,
        description="Names this run to Kafka, which shuts out an older process of that name; by default the topic.",
    )

    @property
    def transaction_ms(self) -> int | float:
        """How long Kafka keeps a transaction open; longer than brokers may be unreachable without a new start."""
        given = self.client.get("transaction.timeout.ms", _TRANSACTION_MS)
        return given if isinstance(given, int | float) else _TRANSACTION_MS


class RedisSource(MessageSource):
    """Streams of Redis."""

    ADDRESS: ClassVar[str] = "url"
    LOG: ClassVar[str] = "streams"
    url: Address = Field("redis://localhost:6379/0", description="Where Redis is.")
    streams: Names = Field(description='list the streams, such as ["visits"]')
    field: Name = Field("value", description="The field of an entry that holds the message.")


class RedisSink(MessageSink):
    """A stream of Redis."""

    ADDRESS: ClassVar[str] = "url"
    LOG: ClassVar[str] = "stream"
    url: Address | None = Field(None, description=f"Where Redis is{_SAME}.")
    stream: Name = Field(description="name the stream")
    max_length: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Remove old entries beyond about this many; by default all are kept."
    )


class NatsSource(MessageSource):
    """A stream of NATS JetStream."""

    ADDRESS: ClassVar[str] = "url"
    LOG: ClassVar[str] = "stream"
    url: Address = Field("nats://localhost:4222", description="Servers, separated by commas.")
    stream: Name = Field(description="name the stream")
    subject: Name | None = Field(None, description="Only messages of this subject, which may have wildcards.")


class NatsSink(MessageSink):
    """A subject of a stream of NATS JetStream."""

    ADDRESS: ClassVar[str] = "url"
    LOG: ClassVar[str] = "stream"
    url: Address | None = Field(None, description=f"Servers, separated by commas{_SAME}.")
    stream: Name = Field(description="name the stream")
    subject: Name | None = Field(None, description="The subject of the messages; by default the stream's name.")


class RabbitSource(MessageSource):
    """Streams of RabbitMQ."""

    ADDRESS: ClassVar[str] = "brokers"
    LOG: ClassVar[str] = "streams"
    brokers: Address = Field("localhost:5552", description="Host and port of the stream plugin.")
    streams: Names = Field(description='list the streams, such as ["visits"]')


class RabbitSink(MessageSink):
    """A stream of RabbitMQ."""

    ADDRESS: ClassVar[str] = "brokers"
    LOG: ClassVar[str] = "stream"
    brokers: Address | None = Field(None, description=f"Host and port of the stream plugin{_SAME}.")
    stream: Name = Field(description="name the stream")
    publisher: Name = Field("shoal", description="The name under which the server numbers messages of this run.")


class MqttSource(MessageSource):
    """Topics of an MQTT broker."""

    ADDRESS: ClassVar[str] = "broker"
    LOG: ClassVar[str] = "topics"
    RESERVED: ClassVar[Mapping[str, str]] = _MQTT
    CAN_BE_SAMPLED: ClassVar[bool] = False
    broker: Address = Field("localhost:1883", description="Host and port.")
    topics: Names = Field(description='list the topics, such as ["sensors/+/visits"]')
    client_id: Name = Field("shoal", description="Names the session in which the broker keeps messages for this run.")
    id: Name | None = Field(
        None, description="The key of a message that identifies it: a message with the same value again is refused."
    )
    id_window: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        100_000, description="How many recent messages are compared."
    )

    def warnings(self) -> list[str]:
        return [f"kind: {_REPEATS}"]

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().cross_check(given)
        for key in ("until", "start"):
            if key in given:
                yield (key,), "a topic of MQTT has neither a beginning nor an end; leave it out"
        if given.get("id") is not None and given.get("format", "json") != "json":
            yield ("id",), 'is read from JSON only; set format = "json", or leave it out'


class MqttSink(MessageSink):
    """A topic of an MQTT broker."""

    ADDRESS: ClassVar[str] = "broker"
    LOG: ClassVar[str] = "topic"
    RESERVED: ClassVar[Mapping[str, str]] = _MQTT
    broker: Address | None = Field(None, description=f"Host and port{_SAME}.")
    topic: Name = Field(description="name the topic")
    client_id: Name = Field("shoal-sink", description="Names the session.")

    def warnings(self) -> list[str]:
        return [f"kind: {_REPEATS}"]


class HttpSource(MessageSource):
    """Records that are sent to this process over HTTP, one JSON object per line."""

    ADDRESS: ClassVar[str] = "listen"
    CAN_BE_SAMPLED: ClassVar[bool] = False
    listen: Address = Field("127.0.0.1:8765", description="Host and port where `POST /events` is answered.")
    queue: Annotated[int, Field(ge=1, le=100_000_000)] = Field(
        100_000, description="Records that may wait to be read; beyond them, requests are answered with 429."
    )
    id: Name | None = Field(
        None, description="The key of a record that identifies it: a record with the same value again is refused."
    )
    id_window: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        100_000, description="How many recent records are compared."
    )

    @property
    def logs(self) -> tuple[str, ...]:
        return ("/events",)

    def plain_fields(self) -> dict[str, Any]:
        # Where it listens and how many records wait may change while a run is stopped.
        return {name: value for name, value in super().plain_fields().items() if name not in ("listen", "queue")}

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().cross_check(given)
        for key in ("until", "start"):
            if key in given:
                yield (key,), "what is sent over HTTP has neither a beginning nor an end; leave it out"
        for key in ("key_column", "headers", "client"):
            if key in given:
                yield (key,), "a record sent over HTTP is one JSON object and nothing else; leave it out"
        if given.get("format", "json") != "json":
            yield ("format",), 'records sent over HTTP are JSON; set format = "json", or leave it out'
        secrets = given.get("secrets")
        for name in secrets if isinstance(secrets, Mapping) else ():
            if name != "token":
                yield ("secrets", name), 'there is only the secret "token", which requests must have; leave it out'


SOURCES: Final[dict[str, type[SourceSection]]] = {
    **dict.fromkeys((*FILE_KINDS, *ONLY_READ), FileSource),
    "kafka": KafkaSource,
    "redis": RedisSource,
    "nats": NatsSource,
    "rabbitmq": RabbitSource,
    "mqtt": MqttSource,
    "http": HttpSource,
}
SINKS: Final[dict[str, type[SinkSection]]] = {
    **dict.fromkeys(FILE_KINDS, FileSink),
    "kafka": KafkaSink,
    "redis": RedisSink,
    "nats": NatsSink,
    "rabbitmq": RabbitSink,
    "mqtt": MqttSink,
}
"""The table for each `kind`: a format of files, or a system of messages."""
