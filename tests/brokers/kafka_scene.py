"""Streams on Kafka with everything in them that can be lost, the policies that publish them, and what comes out."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from tests.brokers.forker import ENDED, KEY, Forker
from tests.brokers.kafka_server import Kafka, Pair

POLICY, STATE = "policy.toml", "state"
OUT_PARTITIONS = 3
_SCHOOLS = ("primary", "secondary", "bachelor", "master")
_BAD = (None, b"{broken", b"[1]", b'{"ts": "never"}', b"", b'{"ts":1}{"ts":2}', b"\xff\xfe")
METHODS = {
    "z": """
method = "z-anonymity"
attribute = "site"
z = 3
window = "60s"
lateness = "4s"
""",
    "least-loss": """
method = "least-loss"
k = 3
deadline = "20s"
reuse = "60s"
[anonymize.quasi.age]
kind = "numeric"
low = 17
high = 90
[anonymize.quasi.school]
kind = "categorical"
hierarchy = {kind = "nested", tree = {any = {lower = ["primary", "secondary"], upper = ["bachelor", "master"]}}}
""",
    "flexible": """
method = "flexible-k"
k = 3
window = 60
[anonymize.quasi.school]
kind = "categorical"
hierarchy = {kind = "nested", tree = {any = {lower = ["primary", "secondary"], upper = ["bachelor", "master"]}}}
[anonymize.quasi.age]
kind = "numeric"
low = 17
high = 90
grid = 5
""",
}
_names = count()


def messages(method: str, partitions: int, *, rows: int = 900, is_skewed: bool = False) -> list[list[dict[str, Any]]]:
    """Messages by partition: times out of order, some late or far ahead, some that cannot be used.

    Skewed: each partition has a time of its own.
    """
    draw = random.Random(f"{method} {partitions}")
    found: list[list[dict[str, Any]]] = [[] for _ in range(partitions)]
    for number in range(rows):
        now = 1_000 + number // 4
        ts = now - draw.choice((0, 0, 0, 1, 2, 40 if number % 50 == 0 else 0))
        record = {"ts": ts, "user": f"u{draw.randrange(40)}", "note": f"n{number % 2}"}
        if method == "z":
            record["site"] = f"s{int(draw.paretovariate(1))}"
        else:
            record |= {"age": draw.randrange(18, 80), "school": draw.choice(_SCHOOLS)}
        if number % 61 == 7:
            record["user"] = None
        if number % 67 == 9:
            record["ts"] = 1_000_000 * (1_000 - number)  # no second clock agrees with it
        value = draw.choice(_BAD) if number % 37 == 5 else json.dumps(record).encode()
        partition = number * partitions // rows if is_skewed else draw.randrange(partitions)
        found[partition].append({"value": value, "timestamp": 1_000 * now})
    return found


def policy_text(method: str, **sections: str) -> str:
    """A policy in TOML."""
    listed = {"stream": 'person = "user"\ntime = "ts"\ncarry = ["note"]', "anonymize": METHODS[method], **sections}
    return "\n".join(f"[{name}]\n{text}" for name, text in listed.items())


@dataclass
class Scene:
    """One output: a policy, its topics and its checkpoint folder."""

    kafka: Kafka
    forker: Forker
    folder: Path
    method: str
    source: str
    every: int = 100
    out: str = field(default_factory=lambda: f"out-{next(_names)}")

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.kafka.make_topic(self.out, OUT_PARTITIONS)
        self.kafka.make_topic(self.letters, 1)
        (self.folder / "key.txt").write_text(KEY)
        (self.folder / "key.txt").chmod(0o600)
        (self.folder / POLICY).write_text(self._policy())

    @property
    def letters(self) -> str:
        return f"{self.out}-dead-letters"

    def _policy(self) -> str:
        source = f'kind = "kafka"\nbrokers = "{self.kafka.address}"\ntopics = ["{self.source}"]\nuntil = "end"'
        source += '\n[source.types]\nts = "int64"\nuser = "string"\nnote = "string"'
        source += '\nsite = "string"' if self.method == "z" else '\nage = "int64"\nschool = "string"'
        return policy_text(
            self.method,
            source=source,
            sink=f'kind = "kafka"\ntopic = "{self.out}"',
            checkpoint=f'path = "{STATE}"\nevery = {self.every}',
        )

    def run(self, log: str = "stderr.txt", *, fetch: int = 40, **job: Any) -> dict[str, Any]:
        """Run until it ends, is killed or stops; answers its exit code. Small fetches allow many checkpoints."""
        env = {"SHOAL_KEY_FILE": str(self.folder / "key.txt")}
        return self.forker.ask(log=log, folder=str(self.folder), words=["run", POLICY], env=env, fetch=fetch, **job)

    def finish(self) -> None:
        """Run to the end."""
        answer = self.run()
        assert answer in ENDED, self.errors

    @property
    def errors(self) -> str:
        return (self.folder / "stderr.txt").read_text()

    @property
    def steps(self) -> dict[str, int]:
        """The steps of a run that ended by itself, and how often it took each."""
        return Counter(json.loads((self.folder / "steps.json").read_text()))

    def result(self) -> dict[str, list[list[Pair]]]:
        """What readers see, by partition."""
        return {name: self.kafka.content(topic) for name, topic in (("rows", self.out), ("letters", self.letters))}


@dataclass
class Stage:
    """An input topic, what an undisturbed run publishes of it, and new scenes for disturbed ones."""

    kafka: Kafka
    forker: Forker
    folder: Path
    method: str
    partitions: int = 4
    rows: int = 900
    every: int = 100
    is_skewed: bool = False
    commits: int = 5
    """The run has more; how many depends on how much of 16 partitions comes at once."""

    def __post_init__(self) -> None:
        self.source = f"in-{next(_names)}"
        self.kafka.make_topic(self.source, self.partitions)
        self.kafka.produce(
            self.source, messages(self.method, self.partitions, rows=self.rows, is_skewed=self.is_skewed)
        )
        whole = self.scene()
        whole.finish()
        self.steps = whole.steps
        self.expected = whole.result()
        assert self.steps["after commit_transaction"] > self.commits
        assert sum(map(len, self.expected["rows"])) > self.rows / 4
        assert sum(map(len, self.expected["letters"])) > self.rows / 30

    def middle(self, step: str) -> tuple[str, int]:
        """The step of this name in the middle of the run."""
        return step, (self.steps[step] + 1) // 2

    def scene(self, source: str | None = None) -> Scene:
        """A run that has not begun."""
        folder = self.folder / f"run-{next(_names)}"
        return Scene(self.kafka, self.forker, folder, self.method, source or self.source, self.every)
