"""Streams with everything in them that can be lost, the policies that publish them, and runs that are killed."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from tests.brokers.forker import ENDED, KEY, Forker
from tests.brokers.servers import Server

_BAD = (b"{broken", b"[1]", b'{"ts": "never"}', b'{"ts":1}{"ts":2}', b"\xff\xfe")
_names = count()


def values(rows: int = 900) -> list[bytes]:
    """Values of messages: times out of order, some late or far ahead, some that cannot be used."""
    draw = random.Random(rows)
    found: list[bytes] = []
    for number in range(rows):
        ts = 1_000 + number // 4 - draw.choice((0, 0, 0, 1, 2, 40 if number % 50 == 0 else 0))
        record: dict[str, Any] = {"ts": ts, "user": f"u{draw.randrange(40)}", "note": f"n{number % 2}", "id": number}
        record["site"] = f"s{int(draw.paretovariate(1))}"
        if number % 61 == 7:
            record["user"] = None
        if number % 67 == 9:
            record |= {"ts": 900_000_000 + number, "user": "u with a wrong clock"}
        found.append(draw.choice(_BAD) if number % 37 == 5 else json.dumps(record).encode())
    return found


def policy_text(**sections: str) -> str:
    """A policy in TOML."""
    listed = {
        "stream": 'person = "user"\ntime = "ts"\ntime_unit = "s"\ncarry = ["note"]',
        "anonymize": 'method = "z-anonymity"\nattribute = "site"\nz = 3\nwindow = "60s"\nlateness = "4s"',
        **sections,
    }
    return "\n".join(f"[{name}]\n{text}" for name, text in listed.items())


class System(Protocol):
    """A broker that is running, as a test uses it."""

    server: Server

    def source(self, stream: str) -> str:
        """[source] of a policy that reads a stream."""

    def sink(self, stream: str) -> str:
        """[sink] of a policy that writes a stream."""

    def produce(self, stream: str, messages: list[bytes]) -> None:
        """Append messages to a stream, which is created if missing."""

    def content(self, stream: str) -> list[tuple[Any, bytes]]:
        """Everything in a stream: ids and values."""


@dataclass
class Scene:
    """One output: a policy, its streams and its checkpoint folder."""

    system: System
    forker: Forker
    folder: Path
    source: str
    every: str = "100"
    out: str = field(default_factory=lambda: f"out-{next(_names)}")

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / "key.txt").write_text(KEY)
        (self.folder / "key.txt").chmod(0o600)
        text = policy_text(
            source=self.system.source(self.source),
            sink=self.system.sink(self.out),
            checkpoint=f'path = "state"\nevery = {self.every}',
        )
        (self.folder / "policy.toml").write_text(text)

    def run(self, **job: Any) -> dict[str, Any]:
        """Run until it ends or is killed; answers its exit code."""
        key = {"SHOAL_KEY_FILE": str(self.folder / "key.txt")}
        return self.forker.ask(folder=str(self.folder), env=key, **job)

    def finish(self) -> None:
        """Run to the end."""
        answer = self.run()
        assert answer in ENDED, self.errors

    @property
    def errors(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    @property
    def steps(self) -> list[str]:
        """The steps of a run that ended by itself."""
        found: list[str] = json.loads((self.folder / "steps.json").read_text())
        return found

    def result(self) -> dict[str, list[tuple[Any, bytes]]]:
        """What is in the streams of rows and dead letters."""
        return {name: self.system.content(name.format(self.out)) for name in ("{}", "{}-dead-letters")}


@dataclass
class Stage:
    """An input stream, what an undisturbed run publishes of it, and new scenes for disturbed ones."""

    system: System
    forker: Forker
    folder: Path
    rows: int = 900

    def __post_init__(self) -> None:
        self.source = f"in-{next(_names)}"
        self.system.produce(self.source, values(self.rows))
        whole = self.scene()
        whole.finish()
        self.steps = whole.steps
        self.expected = whole.result()
        assert len(self.expected["{}"]) > self.rows / 4
        assert len(self.expected["{}-dead-letters"]) > self.rows / 30

    def scene(self) -> Scene:
        """A run that has not begun."""
        return Scene(self.system, self.forker, self.folder / f"run-{next(_names)}", self.source)
