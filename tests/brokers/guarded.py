"""Brokers that ask for a login over TLS, and what a policy says to reach them."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import nats
import redis
from paho.mqtt import client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from rstream import Producer

from tests.brokers.certificates import Certificates
from tests.brokers.kafka_server import Kafka
from tests.brokers.servers import Mosquitto, Nats, RabbitMq, Redis, Server, free_port
from tests.brokers.systems import rabbit_content

USER, SECRET = "shoal", "correct-horse-battery"


class Guarded(Server):
    """A broker with one user and a certificate of its own."""

    kind: ClassVar[str]
    """Of the policy's [source] and [sink]."""
    settings: ClassVar[dict[str, str]]
    """[client] of a policy; {ca} stands for the authority's file, {mechanism} for Kafka's way to log in."""
    secret: ClassVar[str] = "password"
    """What the client calls the secret."""

    @property
    def certificates(self) -> Certificates:
        folder = self.folder / "tls"
        if not folder.exists():
            return Certificates.make(folder)
        return Certificates(*(folder / name for name in ("ca.pem", "server.pem", "server.key", "chain.pem")))

    @property
    def context(self) -> ssl.SSLContext:
        """TLS for the clients of tests."""
        return ssl.create_default_context(cafile=str(self.certificates.ca))

    @abstractmethod
    def source(self, name: str) -> str:
        """[source] without how to log in."""

    @abstractmethod
    def sink(self, name: str) -> str:
        """[sink] without how to log in."""

    @abstractmethod
    def produce(self, name: str, values: list[bytes]) -> None:
        """Write messages where a run reads them."""

    @abstractmethod
    def content(self, name: str) -> list[bytes]:
        """Read all messages."""

    def login(self, section: str, reference: str, ca: Path) -> str:
        """The tables [client] and [secrets] of a section."""
        mechanism = "SCRAM-SHA-512" if section == "source" else "PLAIN"
        client = {name: value.format(ca=ca, mechanism=mechanism) for name, value in self.settings.items()}
        lines = [f'"{name}" = {"true" if value == "true" else json.dumps(value)}' for name, value in client.items()]
        return f"[{section}.client]\n" + "\n".join(lines) + f'\n[{section}.secrets]\n"{self.secret}" = "{reference}"'


class GuardedKafka(Guarded, Kafka):
    """Kafka over TLS: sources log in by SCRAM, sinks by PLAIN. Tests themselves use another port, without both."""

    kind: ClassVar[str] = "kafka"
    settings: ClassVar[dict[str, str]] = {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "{mechanism}", "sasl.username": USER,
        "ssl.ca.location": "{ca}",
    }  # fmt: skip
    secret: ClassVar[str] = "sasl.password"

    def prepare(self) -> None:
        self.guarded_port = free_port()
        super().prepare()

    @property
    def guarded_address(self) -> str:
        return f"127.0.0.1:{self.guarded_port}"

    def listeners(self) -> dict[str, str]:
        return {**super().listeners(), "SASL_SSL": self.guarded_address}

    def more_settings(self) -> dict[str, Any]:
        module = "org.apache.kafka.common.security"
        kinds = {
            "scram-sha-512": f"{module}.scram.ScramLoginModule required;",
            "plain": f'{module}.plain.PlainLoginModule required user_{USER}="{SECRET}";',
        }
        logins = {f"listener.name.sasl_ssl.{kind}.sasl.jaas.config": text for kind, text in kinds.items()}
        return {
            **logins,
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.certificates.chain,
        }

    def format_words(self) -> list[str]:
        return ["--add-scram", f"SCRAM-SHA-512=[name={USER},password={SECRET}]"]

    def source(self, name: str) -> str:
        return f'kind = "kafka"\nbrokers = "{self.guarded_address}"\ntopics = ["{name}"]\nuntil = "end"'

    def sink(self, name: str) -> str:
        for topic in (name, f"{name}-dead-letters"):
            self.make_topic(topic)
        return f'kind = "kafka"\nbrokers = "{self.guarded_address}"\ntopic = "{name}"'

    def produce(self, name: str, values: list[bytes]) -> None:  # type: ignore[override]
        self.make_topic(name)
        Kafka.produce(self, name, [values])

    def content(self, name: str) -> list[bytes]:  # type: ignore[override]
        return [value for part in Kafka.content(self, name) for _, value in part if value is not None]


class GuardedRedis(Guarded, Redis):
    """Redis with a user of its access control list; the default user is off."""

    kind: ClassVar[str] = "redis"
    settings: ClassVar[dict[str, str]] = {"username": USER, "ssl_ca_certs": "{ca}"}

    def prepare(self) -> None:
        tls = self.certificates
        options = {
            "port": 0, "tls-port": self.port, "tls-cert-file": tls.server, "tls-key-file": tls.key,
            "tls-ca-cert-file": tls.ca, "tls-auth-clients": "no", "bind": "127.0.0.1", "dir": self.folder,
            "appendonly": "yes", "appendfsync": "always", "save": '""', "daemonize": "no",
        }  # fmt: skip
        lines = [f"{key} {value}" for key, value in options.items()]
        lines += [f"user {USER} on >{SECRET} ~* &* +@all", "user default off"]
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        return [str(self.find()), str(self.folder / "redis.conf")]

    def is_ready(self) -> bool:
        return Server.is_ready(self) and self._answers()

    def _answers(self) -> bool:
        try:
            with self._client() as client:
                return bool(client.ping())
        except redis.exceptions.RedisError:
            return False

    def _client(self) -> redis.Redis:
        return redis.Redis(
            host="127.0.0.1", port=self.port, username=USER, password=SECRET, ssl=True,
            ssl_ca_certs=str(self.certificates.ca),
        )  # fmt: skip

    def source(self, name: str) -> str:
        return f'kind = "redis"\nurl = "rediss://127.0.0.1:{self.port}/0"\nstreams = ["{name}"]\nuntil = "end"'

    def sink(self, name: str) -> str:
        return f'kind = "redis"\nurl = "rediss://127.0.0.1:{self.port}/0"\nstream = "{name}"'

    def produce(self, name: str, values: list[bytes]) -> None:
        with self._client() as client:
            for value in values:
                client.xadd(name, {"value": value})

    def content(self, name: str) -> list[bytes]:
        with self._client() as client:
            found: Any = client.xrange(name)
            return [fields[b"value"] for _, fields in found]


class GuardedNats(Guarded, Nats):
    """NATS with a user and a password."""

    kind: ClassVar[str] = "nats"
    settings: ClassVar[dict[str, str]] = {"user": USER, "cafile": "{ca}"}
    own_login: ClassVar[dict[str, str]] = {"user": USER, "password": SECRET}

    def prepare(self) -> None:
        tls, login = self.certificates, "".join(f'{name}: "{value}"\n' for name, value in self.own_login.items())
        (self.folder / "nats.conf").write_text(
            f'listen: 127.0.0.1:{self.port}\njetstream {{ store_dir: "{self.folder / "js"}" }}\n'
            f'tls {{ cert_file: "{tls.server}", key_file: "{tls.key}" }}\nauthorization {{ {login} }}\n'
        )

    def command(self) -> list[str]:
        return [str(self.find()), "-c", str(self.folder / "nats.conf")]

    def source(self, name: str) -> str:
        return f'kind = "nats"\nurl = "nats://127.0.0.1:{self.port}"\nstream = "{name}"\nuntil = "end"'

    def sink(self, name: str) -> str:
        return f'kind = "nats"\nurl = "nats://127.0.0.1:{self.port}"\nstream = "{name}"'

    def _call(self, work: Callable[[Any], Any]) -> Any:
        async def connected() -> Any:
            client = await nats.connect(f"nats://127.0.0.1:{self.port}", tls=self.context, **self.own_login)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def produce(self, name: str, values: list[bytes]) -> None:
        async def work(js: Any) -> None:
            await js.add_stream(name=name, subjects=[name])
            for value in values:
                await js.publish(name, value)

        self._call(work)

    def content(self, name: str) -> list[bytes]:
        async def work(js: Any) -> list[bytes]:
            count = (await js.stream_info(name)).state.messages
            return [(await js.get_msg(name, number)).data for number in range(1, count + 1)]

        found: list[bytes] = self._call(work)
        return found


class GuardedNatsToken(GuardedNats):
    """NATS with a token."""

    settings: ClassVar[dict[str, str]] = {"cafile": "{ca}"}
    secret: ClassVar[str] = "token"
    own_login: ClassVar[dict[str, str]] = {"token": SECRET}


class GuardedRabbitMq(Guarded, RabbitMq):
    """RabbitMQ with a user and a password, its streams by TLS only."""

    kind: ClassVar[str] = "rabbitmq"
    settings: ClassVar[dict[str, str]] = {"username": USER, "cafile": "{ca}"}

    def configuration(self) -> str:
        tls = self.certificates
        return (
            f"listeners.tcp.default = 127.0.0.1:{self.ports['amqp']}\nstream.listeners.tcp = none\n"
            f"stream.listeners.ssl.default = 127.0.0.1:{self.port}\n"
            f"stream.advertised_host = localhost\nstream.advertised_tls_host = localhost\n"
            f"stream.advertised_tls_port = {self.port}\n"
            f"ssl_options.cacertfile = {tls.ca}\nssl_options.certfile = {tls.server}\nssl_options.keyfile = {tls.key}\n"
            f"ssl_options.verify = verify_none\nssl_options.fail_if_no_peer_cert = false\n"
            f"default_user = {USER}\ndefault_pass = {SECRET}\n"
        )

    @property
    def _login(self) -> dict[str, Any]:
        login = {"username": USER, "password": SECRET, "ssl_context": self.context}
        return {"host": "localhost", "port": self.port, **login}

    def source(self, name: str) -> str:
        return f'kind = "rabbitmq"\nbrokers = "localhost:{self.port}"\nstreams = ["{name}"]\nuntil = "end"'

    def sink(self, name: str) -> str:
        return f'kind = "rabbitmq"\nbrokers = "localhost:{self.port}"\nstream = "{name}"'

    def produce(self, name: str, values: list[bytes]) -> None:
        async def work() -> None:
            async with Producer(**self._login) as producer:
                await producer.create_stream(name, exists_ok=True)
                for value in values:
                    await producer.send_wait(name, value)

        asyncio.run(work())

    def content(self, name: str) -> list[bytes]:
        return [value for _, value in asyncio.run(rabbit_content(self._login, name))]


class GuardedMosquitto(Guarded, Mosquitto):
    """mosquitto with a file of passwords."""

    kind: ClassVar[str] = "mqtt"
    settings: ClassVar[dict[str, str]] = {"username": USER, "cafile": "{ca}"}

    def prepare(self) -> None:
        tls, passwords = self.certificates, self.folder / "passwords"
        subprocess.run(["mosquitto_passwd", "-b", "-c", str(passwords), USER, SECRET], check=True)
        lines = [
            f"listener {self.port} 127.0.0.1", f"cafile {tls.ca}", f"certfile {tls.server}", f"keyfile {tls.key}",
            "allow_anonymous false", f"password_file {passwords}", "max_queued_messages 0",
        ]  # fmt: skip
        if os.geteuid() == 0:
            lines.append("user root")
        (self.folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")

    def source(self, name: str) -> str:
        return f'kind = "mqtt"\nbroker = "localhost:{self.port}"\ntopics = ["{name}/+"]\nclient_id = "{name}"'

    def sink(self, name: str) -> str:
        return f'kind = "mqtt"\nbroker = "localhost:{self.port}"\ntopic = "{name}"'

    def client(self, name: str) -> mqtt.Client:
        """A client of the test, connected."""
        made = mqtt.Client(CallbackAPIVersion.VERSION2, name)
        made.username_pw_set(USER, SECRET)
        made.tls_set_context(self.context)
        made.connect("localhost", self.port)
        return made

    def produce(self, name: str, values: list[bytes]) -> None:
        """Retained: a session that begins later gets them too."""
        client = self.client("producer")
        sent = [client.publish(f"{name}/{at}", value, qos=1, retain=True) for at, value in enumerate(values)]
        while not all(one.is_published() for one in sent):
            client.loop(0.1)
        client.disconnect()

    def subscribe(self, name: str) -> None:
        """Let the broker keep what is published from now on."""
        self._reader = self.client("reader")
        self._found: list[bytes] = []
        answered: list[int] = []
        self._reader.on_message = lambda client, data, message: self._found.append(message.payload)
        self._reader.on_subscribe = lambda client, data, mid, codes, properties: answered.append(mid)
        self._reader.on_connect = lambda client, *_: client.subscribe(name, qos=1)
        while not answered:
            self._reader.loop(0.1)

    def content(self, name: str) -> list[bytes]:
        """What has been published since `subscribe`, up to a message of our own."""
        sent = self._reader.publish(name, b"end", qos=1)
        while b"end" not in self._found or not sent.is_published():
            self._reader.loop(0.1)
        self._reader.disconnect()
        return self._found[: self._found.index(b"end")]
