"""Topics of Kafka as a sink needs them: how many partitions they have, whether brokers answer, a new topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from shoal.clients.kafka import (
    REQUEST_SECONDS,
    UNKNOWN_TOPIC,
    Failure,
    Refusal,
    Settings,
    as_error,
    attempt,
    is_passing,
    make_client,
    reason,
)
from shoal.clients.trouble import Unreachable
from shoal.errors import OutputError

from confluent_kafka import KafkaException, Producer  # isort: skip
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # isort: skip

PROBE_SECONDS: Final = 4.0


def for_connections(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings about connections, for any client: those for one kind only would be refused, or warned about."""
    shared = ("bootstrap.", "security.", "ssl.", "sasl.", "socket.", "broker.", "client.", "reconnect.", "metadata.")
    return {key: value for key, value in settings.items() if key.startswith((*shared, "enable.ssl", "enable.sasl"))}


def count_partitions(brokers: str, topic: str, settings: Settings) -> int:
    """How many partitions a topic has; OutputError if there is no such topic, Unreachable if brokers do not answer."""

    def failure(why: str) -> OutputError:
        return OutputError(f"Kafka at {brokers}: {why}")

    producer, explain = make_producer({**settings, "bootstrap.servers": brokers}, failure)
    try:
        count = topic_partitions(producer, topic, failure, explain, seconds=5)
    finally:
        producer.close()
    if not count:
        raise no_topic(topic, brokers)
    return count


def probe(brokers: str, settings: Settings) -> Unreachable | None:
    """Why brokers do not answer, within seconds; None if they do, or if something else is wrong with them."""

    def failure(why: str) -> OutputError:
        return OutputError(f"Kafka at {brokers}: {why}")

    settings = {**for_connections(settings), "bootstrap.servers": brokers}
    producer, explain = make_producer(settings, failure)
    try:
        attempt(lambda: producer.list_topics(timeout=PROBE_SECONDS), failure, explain)
    except Unreachable as trouble:
        return trouble
    except OutputError:
        return None  # the check that follows reports it
    finally:
        producer.close()
    return None


def make_topic(brokers: str, topic: str, partitions: int, settings: Settings) -> None:
    """Create a topic, with the replication that brokers choose, unless it is there."""
    failure = partial(_cannot_make, topic, brokers)
    client = make_client(AdminClient, {**for_connections(settings), "bootstrap.servers": brokers}, failure)
    try:
        client.create_topics([NewTopic(topic, partitions, -1)])[topic].result(2 * REQUEST_SECONDS)
    except KafkaException as error:
        if as_error(error).name() != "TOPIC_ALREADY_EXISTS":
            raise failure(reason(error)) from None
    except TimeoutError:
        raise Unreachable("brokers do not answer") from None


def _cannot_make(topic: str, brokers: str, why: str) -> OutputError:
    return OutputError(f"Kafka topic {topic}: cannot be created at {brokers} ({why}); create it by hand")


def make_producer(settings: dict[str, Any], failure: Failure) -> tuple[Producer, Callable[[], None]]:
    """A producer, and what raises `failure` if brokers have refused it."""
    refusal = Refusal()
    producer = make_client(Producer, {**settings, "error_cb": refusal.note}, failure)
    return producer, lambda: refusal.require_none(failure, producer.poll)


def topic_partitions(
    producer: Producer,
    topic: str,
    failure: Failure,
    explain: Callable[[], None] | None = None,
    *,
    seconds: float = REQUEST_SECONDS,
) -> int:
    """How many partitions a topic has; 0 if there is no such topic, or it is being created."""
    found = attempt(lambda: producer.list_topics(topic, timeout=seconds), failure, explain).topics[topic]
    if found.error is None or is_passing(found.error) or found.error.name() == UNKNOWN_TOPIC:
        return len(found.partitions)
    raise failure(reason(found.error))


def no_topic(topic: str, brokers: str) -> OutputError:
    """The error of a topic that is not there."""
    return OutputError(f"Kafka topic {topic}: there is no such topic at {brokers}; create it first")
