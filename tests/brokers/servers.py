"""Temporary brokers: Redis, mosquitto, NATS and RabbitMQ, each in its own folder on a free loopback port.

`Server.missing()` says in one sentence why a broker cannot be started here; tests skip with it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from contextlib import suppress
from glob import glob
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import ClassVar, Self

START_SECONDS = 300
_PORTS = 15_000, 32_000
_PAUSE = Event()  # never set: waits between two attempts to connect


class Server(ABC):
    """A broker with its data in a temporary folder: started on entry, stopped and deleted on exit."""

    name: ClassVar[str]
    program: ClassVar[str]

    @classmethod
    def find(cls) -> str | None:
        """The path of the program; None if it is not installed."""
        return shutil.which(
            cls.program, path=os.environ["PATH"] + os.pathsep + "/usr/sbin" + os.pathsep + "/usr/local/sbin"
        )

    @classmethod
    def missing(cls) -> str | None:
        """The reason why the broker cannot be started; None if it can."""
        return None if cls.find() else f"{cls.name} is not tested: the program {cls.program} is not on this machine"

    def __enter__(self) -> Self:
        self.folder = Path(tempfile.mkdtemp(prefix=f"shoal-{self.program}-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.prepare()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self) -> None:
        """Write configuration files, once."""
        return

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs the broker in the foreground."""

    def environment(self) -> dict[str, str]:
        """Variables that the broker needs."""
        return {}

    def is_ready(self) -> bool:
        """Whether the broker accepts connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def start(self) -> None:
        """Start, or start again with the data of before, and wait until it accepts connections."""
        with open(self.folder / "log.txt", "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                cwd=self.folder,
                env={**os.environ, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(START_SECONDS * 20):
            if self.is_ready():
                return
            if self.process.poll() is not None:
                break
            _PAUSE.wait(0.05)
        raise RuntimeError(f"{self.name} did not start:\n{(self.folder / 'log.txt').read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop in an orderly way."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Stop at once."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        os.killpg(process.pid, how)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Redis(Server):
    """Redis that writes every command to disk before it answers."""

    name, program = "Redis", "redis-server"

    def command(self) -> list[str]:
        options = {
            "port": self.port, "bind": "127.0.0.1", "dir": self.folder, "appendonly": "yes", "appendfsync": "always",
            "save": "", "daemonize": "no",
        }  # fmt: skip
        return [str(self.find()), *(word for key, value in options.items() for word in (f"--{key}", str(value)))]

    def is_ready(self) -> bool:
        if not super().is_ready():
            return False
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as one:
            one.sendall(b"PING\r\n")
            return one.recv(64).startswith(b"+PONG")  # an error while it loads its data


class Mosquitto(Server):
    """mosquitto that keeps sessions; it saves them when it stops, and once a second."""

    name, program = "MQTT", "mosquitto"

    def prepare(self) -> None:
        lines = [
            f"listener {self.port} 127.0.0.1", "allow_anonymous true", "persistence true",
            f"persistence_location {self.folder}/", "autosave_interval 1", "max_queued_messages 0",
            "max_inflight_messages 1000",
        ]  # fmt: skip
        if os.geteuid() == 0:
            lines.append("user root")
        (self.folder / "mosquitto.conf").write_text("\n".join(lines) + "\n")

    def command(self) -> list[str]:
        return [str(self.find()), "-c", str(self.folder / "mosquitto.conf")]


class Nats(Server):
    """A NATS server with JetStream on disk."""

    name, program = "NATS", "nats-server"

    @classmethod
    def find(cls) -> str | None:
        packaged = Path(sys.executable).with_name(cls.program)
        return str(packaged) if packaged.exists() else super().find()

    def command(self) -> list[str]:
        return [str(self.find()), "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder / "js")]


class RabbitMq(Server):
    """RabbitMQ with streams only; `port` is that of the stream protocol."""

    name, program = "RabbitMQ", "rabbitmq-server"

    @classmethod
    def find(cls) -> str | None:
        """The server itself: Debian's wrapper in the search path changes the user and the folders."""
        found = sorted(glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"), reverse=True)
        return next(iter(found), None) or super().find()

    def prepare(self) -> None:
        self.ports = {name: free_port() for name in ("amqp", "dist", "epmd")}
        (self.folder / "rabbitmq.conf").write_text(
            f"{self.configuration()}log.console = true\nlog.console.level = warning\nlog.file = false\n"
            "total_memory_available_override_value = 2GB\ndisk_free_limit.absolute = 50MB\n"
        )
        (self.folder / "enabled_plugins").write_text("[rabbitmq_stream].\n")
        (self.folder / ".erlang.cookie").write_text("shoal-tests")
        (self.folder / ".erlang.cookie").chmod(0o600)

    def configuration(self) -> str:
        """Where clients connect."""
        return (
            f"listeners.tcp.default = 127.0.0.1:{self.ports['amqp']}\n"
            f"stream.listeners.tcp.default = 127.0.0.1:{self.port}\n"
            f"stream.advertised_host = 127.0.0.1\nstream.advertised_port = {self.port}\n"
        )

    def command(self) -> list[str]:
        return [str(self.find())]

    def environment(self) -> dict[str, str]:
        here = self.folder
        return {
            "HOME": str(here),
            "RABBITMQ_NODENAME": f"shoal{self.port}@localhost",
            "RABBITMQ_CONF_ENV_FILE": str(here / "none"),
            "RABBITMQ_CONFIG_FILE": str(here / "rabbitmq.conf"),
            "RABBITMQ_MNESIA_BASE": str(here / "data"),
            "RABBITMQ_LOG_BASE": str(here / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(here / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(here / "pid"),
            "RABBITMQ_DIST_PORT": str(self.ports["dist"]),
            "ERL_EPMD_PORT": str(self.ports["epmd"]),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
        }

    def stop(self) -> None:
        super().stop()
        subprocess.run(
            ["epmd", "-port", str(self.ports["epmd"]), "-kill"],
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def free_port() -> int:
    """A port of the loopback address that is not in use now.

    It is none that the system gives to outgoing connections: one of them could take it while its server is restarted,
    even the connection of a client that tries to reach that server.
    """
    while True:
        port = random.SystemRandom().randrange(*_PORTS)
        with socket.socket() as one, suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", port))
            return port
