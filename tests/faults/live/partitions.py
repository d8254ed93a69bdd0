"""A keyed topic in memory, and workers that share it: each has partitions, a transaction and checkpoints of its own."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.decode.messages import Messages
from shoal.pipeline.live.wiring import source_parts
from shoal.policy import Policy, parse_policy
from shoal.policy.live.workers import for_worker
from shoal.sources.base import Polled
from shoal.sources.kafka.shares import Keying, Share, require_shareable
from shoal.sources.live import LiveSource, Pace
from shoal.sources.reader import Fetched, Id, Needs
from tests.faults.live.process import Process
from tests.faults.live.scene import Scene
from tests.faults.live.system import System
from tests.faults.live.test_methods import VISITS
from tests.reference.partitioners import partition_of

Record = dict[str, Any]
Topic = list[list[Record]]
"""Records by partition."""


def keyed(records: Sequence[Record], partitions: int, by: str = "site") -> Topic:
    """A topic as a producer writes it that keys by a column."""
    topic: Topic = [[] for _ in range(partitions)]
    for record in records:
        topic[partition_of(str(record[by]).encode(), partitions)].append(record)
    return topic


class PartitionReader:
    """Reads the partitions of a share up to their ends."""

    name, topics = "memory", ("visits",)

    def __init__(self, topic: Topic, share: Share | None) -> None:
        self._topic, self._share = topic, share
        if share is not None:
            require_shareable(self.name, share, {"visits": len(topic)})
        self._numbers = [number for number in range(len(topic)) if share is None or share.owns(number)]

    def connect(self) -> Sequence[str]:
        return [f"visits/{number} of {len(self._topic)}" for number in self._numbers]

    def partition(self, log: int) -> tuple[int, int]:
        return self._numbers[log], len(self._topic)

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        self._next = [0 if place is None else int(place) + 1 for place in after]
        return [at - 1 for at in self._next]

    def fetch(self, logs: Collection[int], seconds: float) -> Iterator[Fetched]:
        for log in logs:
            first = self._next[log]
            values = [json.dumps(one).encode() for one in self._topic[self._numbers[log]][first : first + 2]]
            self._next[log] += len(values)
            if values:
                yield Fetched(log, Messages(values), np.arange(first, first + len(values)))

    def is_read(self, log: int) -> bool:
        return self._next[log] == len(self._topic[self._numbers[log]])

    has_ended = is_read

    def keep(self, after: Sequence[Id]) -> None:
        pass

    def leave(self, after: Mapping[str, Id]) -> None:
        pass

    def lag(self) -> int | None:
        return None

    def place(self, log: int, at: Id) -> dict[str, Any]:
        return {"topic": "visits", "partition": self._numbers[log], "offset": at}

    def close(self) -> None:
        pass


class SteppedSource(LiveSource):
    """Takes a step with every poll."""

    process: Process

    def poll(self) -> Polled:
        self.process.step("fetch", lambda: None)
        return super().poll()


@dataclass
class Workers:
    """The processes that share a topic, or the only one that reads it."""

    folder: Path
    topic: Topic
    anonymize: Mapping[str, Any]
    workers: int
    keyed_by: str = "site"
    plants: tuple[Callable[[], AbstractContextManager[Any]], ...] = ()
    system: System = field(default_factory=lambda: System(partitions=1))

    def __post_init__(self) -> None:
        shared = {"workers": self.workers, "keyed_by": self.keyed_by} if self.workers > 1 else {}
        types = {"ts": "int64", "user": "string", "site": "string"}
        source = {"kind": "kafka", "brokers": "none", "topics": ["visits"], "until": "end", "types": types, **shared}
        table = {
            "stream": {"person": "user", "time": "ts"},
            "source": source,
            "anonymize": self.anonymize,
            "sink": {"kind": "kafka", "topic": "rows"},
            "checkpoint": {"path": "state", "every": 3},
        }
        self.policy = parse_policy(table, folder=self.folder)
        self._scenes = [self._scene(worker) for worker in range(self.workers)]

    def _scene(self, worker: int) -> Scene:
        own: Policy = for_worker(self.policy, worker if self.workers > 1 else None)
        name = getattr(own.sink, "transactional_id", None) or "rows"

        def source(process: Process) -> LiveSource:
            share = Share(self.workers, worker) if self.workers > 1 else None
            reader = PartitionReader(self.topic, share)
            keying = Keying(self.keyed_by)
            kind = type("Source", (SteppedSource,), {"process": process})
            made: LiveSource = kind(
                reader,
                source_parts(own).open_decoder,
                Pace(0, 30, 60),
                lambda log, decoded: keying.misplaced_rows(decoded, *reader.partition(log)) if share else {},
            )
            return made

        return Scene(
            self.folder / f"world-{worker}", own, (), VISITS, "transactions", plants=self.plants, make_source=source,
            name=name,
        )  # fmt: skip

    def run(self, worker: int = 0, faults: Any = None) -> Process:
        """Let one worker run until it ends or is killed."""
        one = self._scenes[worker]
        one._system = self.system
        return one.run(faults)

    def finish(self) -> None:
        """Let all of them run to the end."""
        for worker in range(self.workers):
            ended = self.run(worker).ended
            assert ended == "done", ended

    @property
    def rows(self) -> list[Record]:
        """What readers see."""
        return [json.loads(row) for row in self.system.visible.get(("rows", 0), [])]

    @property
    def letters(self) -> list[Record]:
        """The dead letters."""
        return [json.loads(json.loads(row)["letter"]) for row in self.system.visible.get(("letters", 0), [])]

    @property
    def letters_without_rows(self) -> list[Record]:
        """The dead letters; late ones name the number of the row, which each worker counts by itself."""
        return [{key: value for key, value in letter.items() if key != "row"} for letter in self.letters]

    def by_site(self) -> dict[str, list[Record]]:
        """What readers see of each site, in order."""
        found = defaultdict(list)
        for row in self.rows:
            found[row["site"]].append(row)
        return dict(found)
