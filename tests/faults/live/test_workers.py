"""Several workers on one topic: for z the union of what they publish is what one process publishes; k holds in it."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor import audit
from shoal.sources.kafka.shares import Keying, Share
from tests.faults.live.partitions import Record, Topic, Workers, keyed
from tests.faults.live.plants import Plant
from tests.faults.live.test_methods import LEAST_LOSS, Z, visit
from tests.reference.effort import tries
from tests.reference.partitioners import partition_of

PARTITIONS = 5
_numbers = count()


def visits(seed: int = 0, rows: int = 120) -> list[Record]:
    """Times out of order, some of them too late."""
    draw = random.Random(seed)
    return [
        visit(
            100 + number // 3 - draw.choice((0, 0, 1, 2, 9)), f"u{draw.randrange(9)}", f"s{int(draw.paretovariate(1))}"
        )
        for number in range(rows)
    ]


def z(folder: Path, topic: Any, workers: int, **options: Any) -> Workers:
    return Workers(folder / f"run-{next(_numbers)}", topic, Z, workers, **options)


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_union_is_what_one_process_publishes(tmp_path: Path, workers: int, seed: int) -> None:
    topic = keyed(visits(seed), PARTITIONS)
    one, shared = z(tmp_path, topic, 1), z(tmp_path, topic, workers)
    one.finish()
    shared.finish()
    assert len(one.rows) > 20
    assert len(one.letters) > 2, "some are late"
    assert shared.by_site() == one.by_site(), "same rows, same pseudonyms, in the same order for every value"
    assert Counter(map(repr, shared.letters_without_rows)) == Counter(map(repr, one.letters_without_rows))


KINDS = ["before", "after", "aborted", "doubtful"]
FAULTS = st.lists(st.dictionaries(st.integers(0, 60), st.sampled_from(KINDS), max_size=2), max_size=3)


def test_kills_of_one_worker_change_nothing() -> None:
    topic = keyed(visits(), PARTITIONS)
    with tempfile.TemporaryDirectory() as folder:
        undisturbed = z(Path(folder), topic, 3)
        undisturbed.finish()

        @tries(24)
        @given(schedule=FAULTS, killed=st.integers(0, 2))
        def check(schedule: list[Any], killed: int) -> None:
            shared = z(Path(folder), topic, 3)
            for faults in schedule:
                assert shared.run(killed, faults).ended in ("killed", "done")
            shared.finish()
            assert shared.by_site() == undisturbed.by_site()
            assert Counter(map(repr, shared.letters)) == Counter(map(repr, undisturbed.letters))

        check()


def test_a_worker_whose_transaction_is_aborted_reads_again(tmp_path: Path) -> None:
    topic = keyed(visits(), PARTITIONS)
    undisturbed, shared = z(tmp_path, topic, 2), z(tmp_path, topic, 2)
    undisturbed.finish()
    process = shared.run(0, {60: "aborted", 61: "aborted", 62: "aborted", 63: "aborted", 64: "aborted"})
    assert process.ended == "done"
    assert process.steps.count("init") > 1
    shared.finish()
    assert shared.by_site() == undisturbed.by_site()


def misplaced() -> tuple[Any, list[Record]]:
    """A topic in which some records are in a partition of another key, and the records that are in their own."""
    topic: Topic = [[] for _ in range(PARTITIONS)]
    good = []
    for number, one in enumerate(visits()):
        own = partition_of(str(one["site"]).encode(), PARTITIONS)
        topic[(own + (number % 10 == 0)) % PARTITIONS].append(one)
        good += [one] * (number % 10 > 0)
    return topic, good


def test_a_value_in_a_foreign_partition_is_refused(tmp_path: Path) -> None:
    topic, good = misplaced()
    one, shared = z(tmp_path, keyed(good, PARTITIONS), 1), z(tmp_path, topic, 2)
    one.finish()
    shared.finish()
    assert shared.by_site() == one.by_site()
    refused = [letter for letter in shared.letters if letter["reason"].startswith("wrong-partition")]
    assert len(refused) == 12
    assert all({"topic", "partition", "offset"} <= letter.keys() for letter in refused)


PLANTS = {
    "two workers own a partition": Plant(
        Share, "owns", "partition % self.workers == self.worker", "partition % self.workers in (0, self.worker)"
    ),
    "nobody owns the last partition": Plant(
        Share, "owns", "partition % self.workers == self.worker", "self.worker == partition < 4"
    ),
    "foreign values are counted": Plant(Keying, "misplaced_rows", "chosen != partition", "chosen < 0"),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_defect_is_found(tmp_path: Path, plant: str) -> None:
    topic, good = misplaced()
    one = z(tmp_path, keyed(good, PARTITIONS), 1)
    shared = z(tmp_path, topic, 4, plants=(PLANTS[plant],))
    one.finish()
    shared.finish()
    assert shared.by_site() != one.by_site()


def test_workers_with_one_transactional_id_shut_each_other_out(tmp_path: Path) -> None:
    """So the id of a worker must be its own."""
    shared = z(tmp_path, keyed(visits(), PARTITIONS), 2)
    assert shared._scenes[0].name == "rows-worker-0-of-2"
    for scene in shared._scenes:
        scene.name = "rows"
    assert shared.run(0).ended == "done"
    assert "of a run that has published" in (ended := shared.run(1).ended) or "no complete one" in ended


def test_another_number_of_partitions_is_refused(tmp_path: Path) -> None:
    """Values would be at other workers than their people."""
    shared = z(tmp_path, keyed(visits(), PARTITIONS), 2)
    assert shared.run(0, {40: "before"}).ended == "killed"
    seen = len(shared.rows)
    shared.topic = keyed(visits(), PARTITIONS + 1)
    assert "another number of partitions" in shared.run(0).ended
    assert len(shared.rows) == seen


@pytest.mark.parametrize("method", ["z", "least-loss"])
def test_the_auditor_accepts_the_union(tmp_path: Path, method: str) -> None:
    records = [one | {"site": "ab"[number % 3 == 0]} for number, one in enumerate(visits(rows=90))]
    if method == "z":
        records = visits(rows=90)
    anonymize = Z if method == "z" else LEAST_LOSS
    shared = Workers(tmp_path / "shared", keyed(records, PARTITIONS), anonymize, 2)
    shared.finish()
    assert len(shared.rows) > 20
    rows, truth = pa.Table.from_pylist(shared.rows), pa.Table.from_pylist(records)
    policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": anonymize}
    report = audit(rows, truth=truth, policy=policy)
    assert report.ok, report
