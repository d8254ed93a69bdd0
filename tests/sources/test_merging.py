"""Merging partitions: the order is that of the logs, however they are fetched, and wherever a run stops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.decode.base import Decoded, Refused
from shoal.sources.merging import NO_TIME, Chunk, Merged, PartitionMerge
from tests.reference.effort import tries

IDLE = 30.0
SCHEMA = pa.schema([("name", pa.string())])


@dataclass(frozen=True)
class Record:
    """A record of a log: its time, and whether it can be decoded."""

    time: int | None
    is_refused: bool = False


Logs = list[list[Record]]
RECORDS = st.builds(Record, st.none() | st.integers(-5, 20), st.booleans())
LOGS = st.lists(st.lists(RECORDS, max_size=12), min_size=1, max_size=4)


def chunk(log: list[Record], start: int, stop: int, partition: int) -> Chunk:
    """Records of a log as a source decodes them; a refused one has no time."""
    part = log[start:stop]
    names = [f"{partition}/{start + at}" for at, one in enumerate(part) if not one.is_refused]
    refused = tuple(Refused(at, None, f"{partition}/{start + at}") for at, one in enumerate(part) if one.is_refused)
    times = [NO_TIME if one.time is None or one.is_refused else one.time for one in part]
    batch = pa.RecordBatch.from_arrays([pa.array(names, pa.string())], schema=SCHEMA)
    return Chunk(Decoded(batch, refused, {}), np.array(times, dtype=np.int64), np.arange(start, stop))


def names(merged: Merged) -> list[str]:
    """The records in order, from the batch and the refusals, which must agree with partitions and ids."""
    decoded = merged.decoded
    found: list[Any] = [None] * decoded.rows
    for row, name in zip(decoded.kept.tolist(), decoded.batch.column("name").to_pylist(), strict=True):
        found[row] = name
    for one in decoded.refused:
        found[one.row] = one.reason
    assert found == [f"{p}/{i}" for p, i in zip(merged.partitions.tolist(), merged.ids.tolist(), strict=True)]
    return found


def sorted_logs(logs: Logs) -> list[str]:
    """The naive merge: sort everything by running maximum, partition and place."""
    keys = []
    for partition, log in enumerate(logs):
        newest = float("-inf")
        for place, one in enumerate(log):
            if one.time is not None and not one.is_refused:
                newest = max(newest, one.time)
            keys.append((newest, partition, place))
    return [f"{partition}/{place}" for _, partition, place in sorted(keys)]


class Reader:
    """Feeds logs to a merge, and starts again where what was handed out ends."""

    def __init__(self, logs: Logs) -> None:
        self.logs, self.out = logs, list[str]()
        self.next = [0] * len(logs)
        self.restart({})

    def restart(self, position: dict[str, Any]) -> None:
        self.merge = PartitionMerge(len(self.logs), idle_seconds=IDLE, position=position)
        self.read = list(self.next)
        for partition in range(len(self.logs)):
            self._end_if_read(partition)

    def fetch(self, partition: int, count: int) -> None:
        start = self.read[partition]
        stop = self.read[partition] = min(start + count, len(self.logs[partition]))
        self.merge.add(partition, chunk(self.logs[partition], start, stop, partition))
        self._end_if_read(partition)

    def _end_if_read(self, partition: int) -> None:
        if self.read[partition] == len(self.logs[partition]):
            self.merge.end(partition)

    def take(self, limit: int) -> bool:
        merged = self.merge.take(limit)
        if merged is None:
            return False
        assert 0 < merged.decoded.rows <= limit
        self.out += names(merged)
        for partition, place in zip(merged.partitions.tolist(), merged.ids.tolist(), strict=True):
            assert self.next[partition] == place
            self.next[partition] = place + 1
        return True

    def read_all(self, fetch: int, limit: int) -> list[str]:
        while any(self.read[p] < len(log) for p, log in enumerate(self.logs)):
            for partition in range(len(self.logs)):
                self.fetch(partition, fetch)
            while self.take(limit):
                pass
        while self.take(limit):
            pass
        return self.out


@tries(100)
@given(LOGS, st.data())
def test_the_order_is_that_of_the_logs(logs: Logs, data: st.DataObject) -> None:
    """Any sequence of fetches of any size, hand-outs of any size and restarts gives the naive order."""
    reader = Reader(logs)
    for _ in range(data.draw(st.integers(0, 30))):
        step = data.draw(st.sampled_from(["fetch", "fetch", "take", "restart"]))
        if step == "fetch":
            reader.fetch(data.draw(st.integers(0, len(logs) - 1)), data.draw(st.integers(0, 5)))
        elif step == "take":
            reader.take(data.draw(st.integers(1, 6)))
        else:
            reader.restart(reader.merge.position)
    assert reader.read_all(fetch=3, limit=4) == sorted_logs(logs)


def long_logs(partitions: int) -> Logs:
    rng = np.random.default_rng(partitions)
    logs = []
    for _ in range(partitions):
        times = np.sort(rng.integers(0, 50_000, 40_000 // partitions)) + rng.integers(-30, 1, 40_000 // partitions)
        bad = rng.random(len(times)) < 0.01
        logs.append([Record(int(time), bool(is_bad)) for time, is_bad in zip(times, bad, strict=True)])
    return logs


@pytest.mark.parametrize("partitions", [1, 4, 16])
def test_the_order_does_not_depend_on_the_fetch_size(partitions: int) -> None:
    logs = long_logs(partitions)
    expected = sorted_logs(logs)
    assert Reader(logs).read_all(fetch=20_000, limit=65_536) == expected
    short = [log[:300] for log in logs]
    for fetch in (1, 7):
        assert Reader(short).read_all(fetch=fetch, limit=65_536) == sorted_logs(short)


def test_nothing_is_handed_out_before_every_partition_was_read() -> None:
    reader = Reader([[Record(1), Record(2)], [Record(1), Record(9)]])
    reader.fetch(0, 1)
    assert not reader.take(10)
    reader.fetch(1, 1)
    assert reader.take(10)
    assert reader.out == ["0/0"], "partition 0 may still have a record of time 1, which sorts before 1/0"


def test_a_time_read_before_a_restart_counts_only_when_it_is_read_again() -> None:
    reader = Reader([[Record(1), Record(2), Record(9)], [Record(1), Record(5), Record(9)]])
    reader.fetch(0, 1)
    reader.fetch(1, 2)  # its newest time is 5 now, but only what was handed out counts later
    assert reader.take(10)
    reader.restart(reader.merge.position)
    reader.fetch(0, 2)
    assert not reader.take(10)
    assert reader.read_all(fetch=1, limit=10) == sorted_logs(reader.logs)


def test_what_waits_is_counted_in_rows_and_bytes() -> None:
    merge = PartitionMerge(2, idle_seconds=IDLE)
    parts = [chunk([Record(time) for time in range(10)], start, start + 5, 0) for start in (0, 5)]
    for part in parts:
        merge.add(0, part)
    sizes = [part.decoded.batch.nbytes for part in parts]
    assert (merge.pending(0), merge.pending_bytes(0), merge.pending_bytes(1)) == (10, sum(sizes), 0)
    merge.end(1)
    merge.take(7)
    assert (merge.pending(0), merge.pending_bytes(0)) == (3, sizes[1])
    merge.take(7)
    assert (merge.pending(0), merge.pending_bytes(0)) == (0, 0)


# ---- idle partitions


def silent_merge() -> PartitionMerge:
    """Partition 0 has records, partition 1 is at its end since second 0."""
    merge = PartitionMerge(2, idle_seconds=IDLE)
    merge.add(0, chunk([Record(100), Record(200)], 0, 2, 0))
    merge.reach_end(1, 0.0)
    return merge


def test_a_silent_partition_is_waited_for_until_it_times_out() -> None:
    merge = silent_merge()
    merge.declare_idle(IDLE - 1)
    assert merge.take() is None
    assert not merge.has_decided
    merge.declare_idle(IDLE)
    assert merge.has_decided
    assert merge.position["idle"] == [1]
    merged = merge.take()
    assert merged is not None
    assert names(merged) == ["0/0", "0/1"]


def test_a_silent_partition_that_holds_nothing_back_stays_as_it_is() -> None:
    merge = PartitionMerge(2, idle_seconds=IDLE)
    merge.reach_end(0, 0.0)
    merge.reach_end(1, 0.0)
    merge.declare_idle(10 * IDLE)
    assert not merge.has_decided


def test_a_partition_that_was_not_read_to_its_end_never_times_out() -> None:
    merge = PartitionMerge(2, idle_seconds=IDLE)
    merge.add(0, chunk([Record(100)], 0, 1, 0))
    merge.declare_idle(10 * IDLE)
    assert not merge.has_decided


def test_time_without_the_system_is_no_silence() -> None:
    merge = silent_merge()
    merge.restart_silence(IDLE - 1)
    merge.declare_idle(IDLE)
    assert not merge.has_decided


def test_an_idle_partition_comes_back() -> None:
    """It is waited for again from its first record on, and both decisions survive a restart."""
    merge = silent_merge()
    merge.declare_idle(IDLE)
    merge.take()
    merge = PartitionMerge(2, idle_seconds=IDLE, position=merge.position)
    merge.add(0, chunk([Record(100), Record(200), Record(300)], 2, 3, 0))
    assert merge.take() is not None
    merge.has_decided = False
    merge.add(1, chunk([Record(250)], 0, 1, 1))
    assert merge.has_decided
    assert merge.position == {"newest": [300, None], "idle": []}
    again = PartitionMerge(2, idle_seconds=IDLE, position=merge.position)
    again.add(0, chunk([Record(0)] * 3 + [Record(400)], 3, 4, 0))
    assert again.take() is None


@tries(50)
@given(LOGS.filter(lambda logs: len(logs) > 1), st.data())
def test_after_a_decision_the_order_is_that_of_the_rest(logs: Logs, data: st.DataObject) -> None:
    """Whatever was idle before: from a recorded position on, the order depends on the logs and that position only."""

    counts = [data.draw(st.integers(0, len(log))) for log in logs]
    newest = [data.draw(st.none() | st.integers(-5, 20)) for _ in logs]

    def read(fetch: int, limit: int) -> list[str]:
        reader = Reader(logs)
        reader.next = list(counts)
        reader.restart({"newest": newest, "idle": []})
        return reader.read_all(fetch, limit)

    assert read(data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))) == read(20, 100)
