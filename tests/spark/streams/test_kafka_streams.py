"""Topics of Kafka in and out on Spark: the messages of a run on one machine, each once, through crashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.observe.observer import Observer
from shoal.pipeline import Pipeline
from shoal.pipeline.stopping import Stop
from shoal.policy import load_policy
from shoal.spark.streams.run import SparkStream
from tests.spark.streams.crashes import STEPS, TOPICS, Crash, Crashes

pytest.importorskip("confluent_kafka")
from tests.brokers.kafka_scene import messages, policy_text
from tests.brokers.kafka_server import Kafka

PARTITIONS = 3


@pytest.fixture(scope="module")
def kafka() -> Iterator[Kafka]:
    missing = Kafka.missing()
    if missing:
        pytest.skip(missing)
    with Kafka() as running:
        yield running


def policy(kafka: Kafka, folder: Path, name: str, sink: str, method: str = "z") -> Path:
    """A policy that reads the topic `in`."""
    source = f'kind = "kafka"\nbrokers = "{kafka.address}"\ntopics = ["in"]\nuntil = "end"\nkey_column = "user"'
    source += '\nheaders = {note = "note"}'
    sections = {"source": source, "sink": sink, "checkpoint": f'path = "{name}-state"'}
    path = folder / f"{name}.toml"
    path.write_text(policy_text(method, **sections))
    return path


def streamed(path: Path, **options: Any) -> Any:
    return SparkStream(load_policy(path), Observer(), master="local[2]", shards=3, **options).execute()


def test_topics_are_published_once_and_as_on_one_machine(
    session: Any, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic, partitions in (("in", PARTITIONS), ("here", 2), ("there", 2)):
        kafka.make_topic(topic, partitions)
    for topic in ("here", "there"):
        kafka.make_topic(f"{topic}-dead-letters", 1)
    for log in (found := messages("z", PARTITIONS, rows=600)):
        for number, message in enumerate(log):
            message |= {"key": f"u{number % 29}".encode(), "headers": [("note", f"n{number % 2}".encode())]}
    kafka.produce("in", found)
    here, there = (policy(kafka, tmp_path, name, f'kind = "kafka"\ntopic = "{name}"') for name in ("here", "there"))
    crashes = Crashes(monkeypatch, TOPICS)
    for step in TOPICS:
        crashes.arm(step)
        with pytest.raises(Crash):
            streamed(there)
    summary, expected = streamed(there), Pipeline(load_policy(here)).run()
    assert kafka.content("there") == kafka.content("here")
    assert kafka.content("there-dead-letters") == kafka.content("here-dead-letters")
    assert (summary.rows_in, summary.released, summary.dead) == (600, expected.released, expected.dead)
    assert summary.released > 100
    assert summary.dead_by_reason == {name: count for name, count in expected.dead_by_reason.items() if count}
    assert streamed(there).finished_before


@pytest.mark.parametrize("option", ["", 'combine = "k"\nk = 3\nrotation = "20s"\n'], ids=["z", "combine"])
def test_messages_that_keep_coming_are_published_as_files_in_micro_batches(
    session: Any, kafka: Kafka, tmp_path: Path, option: str
) -> None:
    """Every micro-batch has one partition's next messages, so the order is that of the log."""
    topic = f"more-{len(option)}"
    kafka.make_topic(topic, 1)

    def more(name: str) -> Path:
        path = policy(kafka, tmp_path, name, f'kind = "jsonl"\npath = "{name}/"')
        path.write_text(path.read_text().replace('["in"]', f'["{topic}"]').replace("\nz = ", f"\n{option}z = "))
        return path

    path = more("files")
    path.write_text(path.read_text().replace('until = "end"\n', ""))
    (log,) = messages("z", 1, rows=400)
    log = [{**one, "key": f"u{number % 29}".encode(), "headers": {"note": b"n"}} for number, one in enumerate(log)]
    for start in range(0, 400, 200):
        kafka.produce(topic, [log[start : start + 200]])
        assert streamed(path, once=True).stopped
    streamed(path, once=True)  # nothing new
    path.write_text(path.read_text().replace('kind = "kafka"\n', 'kind = "kafka"\nuntil = "end"\n'))
    there = streamed(path)
    here = Pipeline(load_policy(more("whole"))).run()
    rows = {name: _lines(tmp_path / name) for name in ("files", "whole")}
    assert rows["files"] == rows["whole"]
    assert (there.released, there.dead) == (here.released, here.dead)
    assert there.released > 100
    assert (tmp_path / "files.dead.jsonl").read_text() == (tmp_path / "whole.dead.jsonl").read_text()


class StopsToWait(Observer):
    """Asks a run to stop as soon as it waits."""

    def __init__(self) -> None:
        self.stop = Stop()

    def turn(self) -> None:
        self.stop.ask()


def test_a_partition_that_lags_by_more_than_lateness_has_no_more_late_records_than_on_one_machine(
    session: Any, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions are at different times whenever a run ends, and micro-batches are bounded."""
    kafka.make_topic("lag", PARTITIONS)

    def lagging(name: str, until: str) -> Path:
        path = policy(kafka, tmp_path, name, f'kind = "jsonl"\npath = "{name}/"')
        text = (
            path.read_text().replace('["in"]', '["lag"]').replace('until = "end"\n', until + 'idle_partition = "1h"\n')
        )
        path.write_text(f"{text}\nevery = 120")
        return path

    logs = messages("z", PARTITIONS, rows=600)
    for number, message in enumerate(message for log in logs for message in log):
        message |= {"key": f"u{number % 29}".encode(), "headers": {"note": b"n"}}
    path, rows, starts = lagging("there", ""), [0], [0] * PARTITIONS
    for shares in ((1.0, 0.7, 0.4), (1.0, 1.0, 1.0)):
        ends = [int(len(log) * share) for log, share in zip(logs, shares, strict=True)]
        kafka.produce("lag", [log[start:end] for log, start, end in zip(logs, starts, ends, strict=True)])
        starts = ends
        observer = StopsToWait()
        stream = SparkStream(load_policy(path), observer, master="local[2]", shards=3, stop=observer.stop)
        rows.append(stream.execute().rows_in)
    assert rows[1] > 120, "after a micro-batch that was cut short the next one begins at once"
    assert rows == sorted(set(rows))
    assert rows[-1] < 600, "some wait for partitions that are not idle yet"
    crashes = Crashes(monkeypatch, {"planned": STEPS["planned"]})
    crashes.arm("planned")
    with pytest.raises(Crash):
        streamed(lagging("there", 'until = "end"\n'))
    there = streamed(lagging("there", 'until = "end"\n'))
    here = Pipeline(load_policy(lagging("here", 'until = "end"\n'))).run()
    assert _lines(tmp_path / "there") == _lines(tmp_path / "here")
    assert (tmp_path / "there.dead.jsonl").read_text() == (tmp_path / "here.dead.jsonl").read_text()
    assert (there.rows_in, there.released, there.dead) == (600, here.released, here.dead)
    assert there.released > 100


def test_topics_of_flexible_k_are_published_once(
    session: Any, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is published is what an undisturbed stream publishes; dead letters are those of one machine."""
    kafka.make_topic("people", PARTITIONS)
    kafka.produce("people", messages("flexible", PARTITIONS, rows=600))
    paths = {}
    for name in ("alone", "calm", "stopped"):
        kafka.make_topic(name, 2)
        kafka.make_topic(f"{name}-dead-letters", 1)
        path = policy(kafka, tmp_path, name, f'kind = "kafka"\ntopic = "{name}"', "flexible")
        text = path.read_text().replace('["in"]', '["people"]').replace('\nkey_column = "user"', "")
        path.write_text(text.replace('\nheaders = {note = "note"}', ""))
        paths[name] = path
    expected = streamed(paths["calm"])
    crashes = Crashes(monkeypatch, TOPICS)
    for step in TOPICS:
        crashes.arm(step)
        with pytest.raises(Crash):
            streamed(paths["stopped"])
    found, alone = streamed(paths["stopped"]), Pipeline(load_policy(paths["alone"])).run()
    assert kafka.content("stopped") == kafka.content("calm")
    assert kafka.content("stopped-dead-letters") == kafka.content("alone-dead-letters")
    assert found.guarantee == expected.guarantee == alone.guarantee
    assert (found.rows_in, found.released, found.dead) == (600, expected.released, alone.dead)
    assert found.released > 400
    assert found.pending == 600 - found.released - found.dead


def _lines(folder: Path) -> list[str]:
    return [line for part in sorted(folder.glob("part-*")) for line in part.read_text().splitlines()]
