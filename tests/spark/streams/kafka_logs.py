"""Partitions of Kafka in memory, and what Spark does with them, in one process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message

from shoal import ZAnonymity
from shoal.decode.base import Decoded
from shoal.pipeline.live.wiring import message_decoder
from shoal.policy import load_policy
from shoal.sources.kafka.partitions import decodable
from shoal.sources.live import ordering_times
from shoal.sources.merging import NO_TIME, Chunk, PartitionMerge
from shoal.sources.reader import Needs
from shoal.spark.records.columns import LINE, TIME
from shoal.spark.streams import kafka_messages, kafka_source
from shoal.spark.streams.frontier import EVERYTHING, Frontier
from shoal.spark.streams.kafka_messages import Cut, Found, ReadOffsets, place_of
from shoal.spark.streams.state import Commit

POLICY = """
[stream]
person = "user"
time = "ts"
time_unit = "s"
[source]
kind = "kafka"
brokers = "127.0.0.1:1"
topics = ["a", "b"]
start = "{start}"
idle_partition = "30s"
[source.types]
ts = "int64"
user = "string"
site = "string"
[anonymize]
method = "z-anonymity"
attribute = "site"
z = 3
window = "60s"
[sink]
kind = "jsonl"
path = "out/"
[checkpoint]
path = "state"
"""
Place = tuple[str, int]
_BEHIND = 4_000_000_000_000
"""Milliseconds of messages, so that no event is ahead of them."""


class Logs:
    """Partitions that grow. A message is given by its event time in seconds; None: it cannot be decoded."""

    def __init__(self, *places: Place) -> None:
        self.found: dict[Place, list[Message | None]] = {place: [] for place in places}
        self.now = 0.0
        self.had_trouble, self.name = False, "Kafka"
        self.read_messages = 0

    def add(self, place: Place, *times: int | None) -> None:
        """Append messages."""
        log = self.found.setdefault(place, [])
        for ts in times:
            value = None if ts is None else json.dumps({"ts": ts, "user": "u", "site": "s"}).encode()
            log.append(
                Message(topic=place[0], partition=place[1], offset=len(log), value=value, timestamp=(1, _BEHIND))
            )

    def add_marker(self, place: Place) -> None:
        """Append what takes an offset and is no message, as the end of a transaction does."""
        self.found[place].append(None)

    # ---- what a reader does

    def limits(self, topics: Sequence[str]) -> dict[Place, tuple[int, int]]:
        return {place: (0, len(log)) for place, log in sorted(self.found.items())}

    def read(self, topic: str, number: int, start: int, end: int) -> Iterator[list[Message]]:
        found = [one for one in self.found[topic, number][start:end] if one is not None]
        self.read_messages += len(found)
        for at in range(0, len(found), 7):
            yield found[at : at + 7]

    def close(self) -> None:
        pass


class SurveyHere:
    """A survey without Spark."""

    def __init__(self, session: Any, work: ReadOffsets) -> None:
        given = [pa.record_batch({"id": [at]}) for at in range(len(work.ranges))]
        self._rows = [
            (time, place >> 44, place & (2**44 - 1))
            for batch in work(given)
            for time, place in zip(batch.column(TIME).to_pylist(), batch.column(LINE).to_pylist(), strict=True)
        ]

    def found(self) -> dict[int, Found]:
        logs = {log for _, log, _ in self._rows}
        times = {log: [time for time, one, _ in self._rows if one == log] for log in logs}
        return {log: Found(len(found), max(found)) for log, found in times.items()}

    def cuts(self, frontier: Frontier) -> dict[int, Cut]:
        found = {}
        for log in {log for _, log, _ in self._rows}:
            rows = [(time, offset) for time, one, offset in self._rows if one == log]
            before = [row for row in rows if frontier.passes(row[0], log)]
            behind = [row for row in rows if not frontier.passes(row[0], log)]
            end, newest = (before[-1][1] + 1, before[-1][0]) if before else (0, NO_TIME)
            found[log] = Cut(len(before), end, newest, behind[0][0] if behind else NO_TIME)
        return found

    def before(self, frontier: Frontier) -> list[tuple[str, int, int]]:
        """Messages before the frontier, in the order of the stream."""
        rows = sorted(row for row in self._rows if frontier.passes(*row[:2]))
        return [place_of(("a", "b"), log << 44 | offset) for _, log, offset in rows]

    def forget(self) -> None:
        pass


class Topics:
    """The stream of a policy that reads logs, micro-batch by micro-batch; it is killed as often as asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, logs: Logs, *, start: str = "earliest") -> None:
        (folder / "policy.toml").write_text(POLICY.format(start=start))
        self.policy, self.logs = load_policy(folder / "policy.toml"), logs
        for module in (kafka_source, kafka_messages):
            monkeypatch.setattr(module, "open_reader", lambda policy: logs)
        monkeypatch.setattr(kafka_source, "Survey", SurveyHere)
        monkeypatch.setattr(kafka_source, "time", SimpleNamespace(monotonic=lambda: logs.now))
        self.method = ZAnonymity(z=3, window="60s", person="user", time="ts", attribute="site")
        self.last: Commit | None = None
        self.read: list[tuple[str, int, int]] = []
        """Everything that was taken, in order."""
        self.restart()

    def restart(self, **options: Any) -> None:
        """Go on with another process."""
        given = {"until_end": False, "finishes": False, "most": 1_000, **options}
        self.source: Any = kafka_source.TopicOffsets(self.policy, self.method, (), **given)

    def plan(self) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self.source.plan(None, self.last)
        return found

    def step(self) -> dict[str, Any] | None:
        """Plan, take and commit a micro-batch; what it takes is what it would take again after a crash."""
        plan = self.plan()
        if plan is not None:
            taken = self.source._surveyed[1]
            again = self._again(json.loads(json.dumps(plan)))
            assert taken == again
            assert len(taken) == plan["rows"]
            self.read += taken
            self.last = after(plan, self.last)
        return plan

    def finish(self, **options: Any) -> None:
        """Read up to the end."""
        self.restart(until_end=True, finishes=True, **options)
        while self.step() is not None:
            pass

    def _again(self, plan: Mapping[str, Any]) -> list[tuple[str, int, int]]:
        decoder = message_decoder(self.policy, self.method.columns, plan["types"])
        newest = {(topic, number): time for topic, number, time in (self.last.more["newest"] if self.last else ())}
        ranges = tuple(map(tuple, plan["ranges"]))
        return SurveyHere(None, self.source._reading(ranges, decoder, newest)).before(EVERYTHING)


def after(plan: Mapping[str, Any], before: Commit | None = None) -> Commit:
    """The commit of a planned micro-batch."""
    found = {"newest": [], "idle": [], "types": None, **plan}
    more = {**kafka_source.places_after(found, before), "types": found["types"]}
    return Commit(0, "a", 0, {}, json.loads(json.dumps(more)))


class OneMachine:
    """The same logs as one machine merges them."""

    def __init__(self, topics: Topics) -> None:
        self._topics, self._places = topics, sorted(topics.logs.found)
        self._decoder = message_decoder(topics.policy, topics.method.columns, None)
        self._merging = PartitionMerge(len(self._places), idle_seconds=30.0)
        self._read = [0] * len(self._places)
        self.read: list[tuple[str, int, int]] = []

    def look(self) -> None:
        """Read what is new and hand out what can be."""
        logs = self._topics.logs
        for number, place in enumerate(self._places):
            found = [one for one in logs.found[place][self._read[number] :] if one is not None]
            self._read[number] = len(logs.found[place])
            if found:
                messages = decodable(found, Needs(keys=False, headers=False, times=True))
                decoded: Decoded = self._decoder.decode(messages)
                ids = pa.array([one.offset() for one in found]).to_numpy()
                self._merging.add(number, Chunk(decoded, ordering_times(self._decoder, decoded, messages), ids))
            self._merging.reach_end(number, logs.now)
        self._merging.declare_idle(logs.now)
        self._hand_out()

    def finish(self) -> None:
        """Hand out everything."""
        self.look()
        for number in range(len(self._places)):
            self._merging.end(number)
        self._hand_out()

    def _hand_out(self) -> None:
        while (merged := self._merging.take()) is not None:
            places = [self._places[number] for number in merged.partitions.tolist()]
            self.read += [(*place, offset) for place, offset in zip(places, merged.ids.tolist(), strict=True)]
