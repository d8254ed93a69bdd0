"""Two workers share a topic of Kafka: killed and started again, they publish what one process publishes."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.brokers.forker import KILLED, Forker
from tests.brokers.kafka_scene import POLICY, STATE, Scene, messages
from tests.brokers.kafka_server import Kafka, Pair
from tests.reference.partitioners import partition_of

PARTITIONS = 4
_numbers = count()


class WorkerScene(Scene):
    """A policy for several workers, with a group of its own: those of one topic would see each other's offsets."""

    workers = 2

    def _policy(self) -> str:
        shared = f'workers = {self.workers}\nkeyed_by = "site"' if self.workers > 1 else ""
        return super()._policy().replace('until = "end"', f'until = "end"\ngroup = "{self.out}"\n{shared}')

    def run_worker(self, worker: int, command: str = "run", **job: Any) -> int:
        """Run one worker until it ends or is killed; its exit code."""
        which = ["--worker", str(worker)] if self.workers > 1 and command == "run" else []
        env = {"SHOAL_KEY_FILE": str(self.folder / "key.txt")}
        job = {"fetch": 40, "log": "stderr.txt", **job}
        answer = self.forker.ask(folder=str(self.folder), words=[command, POLICY, *which], env=env, **job)
        return int(answer["code"])

    def finish(self) -> None:
        for worker in range(self.workers):
            assert self.run_worker(worker) == 0, self.errors

    def change(self, old: str, new: str) -> None:
        """Replace text in the policy."""
        policy = self.folder / POLICY
        assert old in policy.read_text()
        policy.write_text(policy.read_text().replace(old, new))

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(value or b"") for part in self.result()["rows"] for _, value in part]


class SingleScene(WorkerScene):
    """The same for one process."""

    workers = 1


def sane_messages(partitions: int) -> list[list[dict[str, Any]]]:
    """Messages without those of a clock that is far ahead: which others it makes late depends on who reads it."""
    found = messages("z", partitions)
    return [[one for one in part if b"000000," not in (one["value"] or b"")] for part in found]


def produce(kafka: Kafka, topic: str, found: list[dict[str, Any]]) -> None:
    """Write messages keyed by their site, as a client does that chooses partitions as Java's do."""
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 5, "partitioner": "murmur2"})
    for number, message in enumerate(found):
        site = _site(message["value"])
        place = {"key": site.encode()} if site is not None else {"partition": number % PARTITIONS}
        producer.produce(topic, **message, **place)
        producer.poll(0)
    assert producer.flush(300) == 0


def _site(value: bytes | None) -> str | None:
    try:
        return str(json.loads(value or b"")["site"])
    except (ValueError, LookupError, TypeError):
        return None


@pytest.fixture(scope="module")
def topic(kafka: Kafka) -> str:
    name = f"keyed-{next(_numbers)}"
    kafka.make_topic(name, PARTITIONS)
    produce(kafka, name, sane_messages(1)[0])
    return name


@pytest.fixture
def scenes(kafka: Kafka, kafka_forker: Forker, tmp_path: Path) -> Any:
    def make(source: str, kind: type[WorkerScene] = WorkerScene) -> WorkerScene:
        return kind(kafka, kafka_forker, tmp_path / f"run-{next(_numbers)}", "z", source, out=f"w-{next(_numbers)}")

    return make


def by_site(found: dict[str, list[list[Pair]]]) -> dict[str, Counter[bytes]]:
    rows: dict[str, Counter[bytes]] = defaultdict(Counter)
    for part in found["rows"]:
        for _, value in part:
            assert value is not None
            rows[json.loads(value)["site"]][value] += 1
    return rows


def test_killed_workers_publish_what_one_process_publishes(scenes: Any, topic: str) -> None:
    whole, one = scenes(topic), scenes(topic, SingleScene)
    one.finish()
    whole.finish()
    assert len(whole.rows) > 200
    assert by_site(whole.result()) == by_site(one.result())
    for step in ("after commit_transaction", "after write"):
        killed = scenes(topic)
        point = step, 3  # a run takes each of these steps four times at least
        for worker in range(2):  # one after the other, so that the order of both in a partition is always the same
            assert killed.run_worker(worker, kill_at=point) == KILLED
            assert killed.run_worker(worker) == 0, killed.errors
        assert killed.result() == whole.result(), f"killed at {point}"


def test_the_number_of_workers_changes_behind_an_end(scenes: Any, kafka: Kafka) -> None:
    """Every record is published exactly once by the old workers or by the new ones."""
    name = f"keyed-{next(_numbers)}"
    kafka.make_topic(name, PARTITIONS)
    records = [{"ts": 1_000 + at, "user": f"u{at}", "site": f"s{at % 9}", "note": f"n{at}"} for at in range(300)]
    values = [{"value": json.dumps(one).encode()} for one in records]
    produce(kafka, name, values[:150])
    scene = scenes(name)
    scene.change("z = 3", "z = 1")
    scene.change('until = "end"', "")
    scene.change(f"every = {scene.every}", 'every = "1s"')
    scene.change("workers = 2", "workers = 2\n")
    assert scene.run_worker(0, kill_at=["before poll", 4]) == KILLED
    scene.change("workers = 2\n", 'workers = 2\nuntil = "end"')
    scene.finish()
    produce(kafka, name, values[150:])
    scene.workers = 3
    scene.change("workers = 2", "workers = 3")
    scene.change(f'path = "{STATE}"', 'path = "other"')
    assert scene.run_worker(0) == 1
    assert "partitions of worker 0 of 3 were read before" in scene.errors
    assert 'until = "end"' in scene.errors
    scene.change("workers = 3", 'workers = 3\nstart = "group"')
    assert scene.run_worker(0, kill_at=["after write", 1]) == KILLED, "nothing counts yet"
    scene.finish()
    assert sorted(row["note"] for row in scene.rows) == sorted(str(one["note"]) for one in records)


def test_the_doctor_looks_at_partitions(scenes: Any, kafka: Kafka, topic: str) -> None:
    scene = scenes(topic)
    assert scene.run_worker(0, "doctor") == 0, scene.errors
    report = (scene.folder / "stdout.txt").read_text()
    assert "every message of the sample is in the partition of its 'site', so 2 workers can share the topic" in report
    name = f"by-user-{next(_numbers)}"
    kafka.make_topic(name, PARTITIONS)
    kafka.produce(name, sane_messages(PARTITIONS))
    scene = scenes(name)
    assert scene.run_worker(0, "doctor") == 1
    assert "are in another partition than that of their 'site'" in (scene.folder / "stdout.txt").read_text()
    scene.change("workers = 2", "workers = 5")
    assert scene.run_worker(0, "doctor") == 1
    assert f"topic {name} has 4 partitions for 5 workers" in (scene.folder / "stdout.txt").read_text()


class CopyScene(WorkerScene):
    """Writes a topic keyed by the site."""

    workers = 1
    words = ("--by", "site", "--partitions", str(PARTITIONS), "--until-end")

    @property
    def copy(self) -> str:
        return f"{self.out}-by-site"

    def copy_topic(self, **job: Any) -> int:
        """Run until it ends or is killed; its exit code."""
        env = {"SHOAL_KEY_FILE": str(self.folder / "key.txt")}
        words = ["repartition", POLICY, "--to", self.copy, *self.words]
        job = {"fetch": 40, "log": "stderr.txt", **job}
        return int(self.forker.ask(folder=str(self.folder), words=words, env=env, **job)["code"])

    def copied(self) -> list[list[list[Pair]]]:
        return [self.kafka.content(self.copy), self.kafka.content(f"{self.copy}-dead-letters")]


def test_a_keyed_topic_is_written_exactly_once(scenes: Any, kafka: Kafka) -> None:
    name = f"raw-{next(_numbers)}"
    kafka.make_topic(name, 3)
    given = sane_messages(3)
    kafka.produce(name, [[{**one, "key": b"old", "headers": [("h", b"1")]} for one in part] for part in given])
    whole = scenes(name, CopyScene)
    whole.change(f"every = {whole.every}", 'every = "1ms"')
    assert whole.copy_topic() == 0, whole.errors
    rows, letters = whole.copied()
    values = [one["value"] for part in given for one in part]
    readable = [value for value in values if _site(value) is not None]
    assert Counter(value for part in rows for _, value in part) == Counter(readable)
    assert sum(map(len, letters)) == len(values) - len(readable) > 5
    for partition, part in enumerate(rows):
        for key, value in part:
            assert key == str(_site(value)).encode()
            assert partition_of(key, PARTITIONS) == partition
    for step in ("after commit_transaction", "after write"):
        killed = scenes(name, CopyScene)
        killed.change(f"every = {whole.every}", 'every = "1ms"')
        assert killed.copy_topic(kill_at=[step, 3]) == KILLED  # a run takes each of these steps four times at least
        assert killed.copy_topic() == 0, killed.errors
        assert killed.copied() == [rows, letters], f"killed {step}"
    shared = scenes(whole.copy)
    shared.finish()
    assert len(shared.rows) > 100
    assert not any(b"wrong-partition" in (value or b"") for part in shared.result()["letters"] for _, value in part)
