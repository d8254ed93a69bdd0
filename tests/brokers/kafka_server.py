"""A temporary Apache Kafka: one process in KRaft mode on loopback, from Maven Central."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.brokers.servers import Server, free_port

VERSION = "4.1.0"
_POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>none</groupId><artifactId>broker</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""
_LONG_SECONDS = 300
_CLUSTER = "c2hvYWwtdGVzdC1rYWZrYQ"
Pair = tuple[bytes | None, bytes | None]
SESSION_SECONDS = 4
"""How long it may be silent before it is left out of the list of brokers."""
_JAVA = ("-Xms64m", "-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Kafka(Server):
    """A broker and controller in one small Java process."""

    name, program = "Kafka", "java"

    @classmethod
    def missing(cls) -> str | None:
        for program in ("java", "mvn"):
            if shutil.which(program) is None:
                return f"Kafka is not tested: the program {program} is not on this machine"
        try:
            _libraries()
        except subprocess.CalledProcessError:
            return "Kafka is not tested: Maven could not download it"
        return None

    @property
    def address(self) -> str:
        """What clients call bootstrap.servers."""
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        controller = free_port()
        listeners, advertised = (
            ",".join(f"{protocol}://{address}" for protocol, address in places.items())
            for places in (self.listeners(), self.advertised())
        )
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": advertised,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.folder / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
            "group.initial.rebalance.delay.ms": 0,
            "broker.session.timeout.ms": SESSION_SECONDS * 1000,
            "broker.heartbeat.interval.ms": 500,
            "controller.quorum.election.timeout.ms": 500,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "background.threads": 2,
            "log.cleaner.enable": "false",
            "log.retention.ms": -1,  # messages of tests are from long ago
            **self.more_settings(),
        }
        (self.folder / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        words = ("format", "-t", _CLUSTER, "-c", "server.properties", *self.format_words())
        format_data = self._java("kafka.tools.StorageTool", *words)
        subprocess.run(format_data, cwd=self.folder, check=True, capture_output=True)

    def listeners(self) -> dict[str, str]:
        """Where clients connect, by protocol."""
        return {"PLAINTEXT": self.address}

    def advertised(self) -> dict[str, str]:
        """What clients are told to connect to."""
        return self.listeners()

    def more_settings(self) -> dict[str, Any]:
        """Settings of a broker that has more to do."""
        return {}

    def format_words(self) -> list[str]:
        """What else its storage is to begin with."""
        return []

    def command(self) -> list[str]:
        return self._java("kafka.Kafka", "server.properties")

    def _java(self, *args: str) -> list[str]:
        return [str(self.find()), *_JAVA, "-cp", f"{_libraries()}/*", *args]

    def is_ready(self) -> bool:
        return super().is_ready() and _answers(self.address)

    def freeze(self) -> None:
        """Let it answer nothing, as if the network were cut."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it answer again."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGCONT)

    # ---- what tests do with a broker

    def make_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        """Create a topic."""
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(_LONG_SECONDS)

    def add_partitions(self, name: str, partitions: int) -> None:
        """Let a topic have this many partitions."""
        admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        admin.create_partitions([NewPartitions(name, partitions)])[name].result(_LONG_SECONDS)

    def produce(self, topic: str, partitions: list[list[Any]]) -> None:
        """Write values, or dictionaries with the arguments of a message, to each partition."""
        # Without idempotence a message that is sent again may come behind later ones.
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 5, "enable.idempotence": True})
        for partition, values in enumerate(partitions):
            for value in values:
                message = value if isinstance(value, dict) else {"value": value}
                producer.produce(topic, partition=partition, **message)
                producer.poll(0)
        assert producer.flush(_LONG_SECONDS) == 0

    def content(self, topic: str, *, isolation: str = "read_committed") -> list[list[Pair]]:
        """Key and value of every message that a consumer sees, by partition."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address, "group.id": "tests", "isolation.level": isolation,
                "enable.partition.eof": True, "enable.auto.commit": False, "auto.offset.reset": "earliest",
            }
        )  # fmt: skip
        count = len(consumer.list_topics(topic, timeout=_LONG_SECONDS).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, number, 0) for number in range(count)])
        found: list[list[Pair]] = [[] for _ in range(count)]
        left = set(range(count))
        while left:
            for message in consumer.consume(10_000, timeout=0.5):
                if _is_end(message):
                    left.discard(message.partition())
                else:
                    found[message.partition()].append((message.key(), message.value()))
        consumer.close()
        return found


def _is_end(message: Message) -> bool:
    error = message.error()
    if error is None:
        return False
    assert error.code() == KafkaError._PARTITION_EOF, error
    return True


def _answers(address: str) -> bool:
    """Whether the broker is registered and has elected itself."""
    try:
        found = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=2)
    except Exception:
        return False
    return bool(found.brokers)


def _libraries() -> Path:
    """The folder of Kafka's libraries, downloaded once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoal-tests"
    folder = cache / f"kafka-{VERSION}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            Path(temporary, "pom.xml").write_text(_POM)
            options = ("-DincludeScope=runtime", "-DoutputDirectory=libs")
            command = ["mvn", "-B", "-q", "dependency:copy-dependencies", *options]
            subprocess.run(command, cwd=temporary, check=True, capture_output=True)
            try:
                Path(temporary, "libs").rename(folder)
            except OSError:  # another worker was faster
                if not folder.exists():
                    raise
    return folder
