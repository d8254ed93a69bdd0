"""Which offsets a micro-batch reads, without a broker and without Spark."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.errors import CheckpointError, InputError
from shoal.spark.streams import kafka_source

pytest.importorskip("confluent_kafka")
from shoal.clients.patience import Patience
from shoal.sources.kafka.ranges import OffsetReader
from tests.spark.streams.kafka_logs import Logs, OneMachine, Topics, after

A, B, C = ("a", 0), ("a", 1), ("b", 0)


def ends(plan: Any) -> dict[tuple[str, int], int]:
    """Where a planned micro-batch ends."""
    return {(topic, number): end for topic, number, _, end in plan["ranges"]}


def topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, logs: Logs, **options: Any) -> Topics:
    return Topics(tmp_path, monkeypatch, logs, **options)


# ---- where a stream continues


def test_offsets_continue_and_partitions_that_come_later_are_read_from_their_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Logs(A)
    logs.add(A, 1, 2, 3)
    found = topics(tmp_path, monkeypatch, logs)
    assert found.step()["ranges"] == [(*A, 0, 3)]  # type: ignore[index]
    assert found.step() is None
    logs.add(A, 4, 5)
    logs.add(C, 4, 3)
    assert found.step()["ranges"] == [(*A, 3, 4), (*C, 0, 2)]  # type: ignore[index]


def test_a_partition_that_is_not_listed_for_a_moment_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Logs(A, C)
    logs.add(A, 1, 2, 3)
    logs.add(C, 1, 2, 3)
    found, limits = topics(tmp_path, monkeypatch, logs), logs.limits
    found.step()
    logs.add(A, 4, 5)
    monkeypatch.setattr(logs, "limits", lambda topics: {A: limits(topics)[A]})
    found.step()
    monkeypatch.setattr(logs, "limits", limits)
    logs.add(C, 4, 5)
    logs.add(A, 6)
    while found.step() is not None:
        pass
    assert len(set(found.read)) == len(found.read) > 7


def test_a_topic_that_has_no_partitions_for_a_moment_is_asked_for_again() -> None:
    from confluent_kafka import KafkaError

    class Found:
        def __init__(self, error: Any, partitions: dict[int, None]) -> None:
            self.error, self.partitions = error, partitions

    class Consumer:
        answers = (
            Found(KafkaError(KafkaError.LEADER_NOT_AVAILABLE), {}),
            Found(None, {}),
            Found(None, {1: None, 0: None}),
        )
        asked = 0

        def list_topics(self, topic: str, timeout: float) -> Any:
            self.asked += 1
            return SimpleNamespace(topics={topic: self.answers[self.asked - 1]})

    reader = OffsetReader.__new__(OffsetReader)
    reader._consumer, reader._patience = Consumer(), Patience(60, sleep=lambda seconds: None)
    reader.had_trouble, reader.name = False, "kafka"
    assert reader._numbers("a") == [0, 1]
    assert reader.had_trouble


def test_a_run_until_the_end_reads_up_to_the_ends_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs(A, B)
    logs.add(A, 1, 9)
    found = topics(tmp_path, monkeypatch, logs)
    found.restart(until_end=True, finishes=True)
    assert ends(found.plan()) == {A: 2, B: 0}
    logs.add(A, 10)
    logs.add(B, 10)
    assert ends(found.step()) == {A: 2, B: 0}, "the empty partition has ended, and holds nothing back"
    assert found.step() is None
    assert not found.source.is_held


def test_a_stream_of_new_messages_starts_at_the_ends_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs(A)
    logs.add(A, 1, 2)
    found = topics(tmp_path, monkeypatch, logs, start="latest")
    assert found.step() is None
    logs.add(A, 3)
    assert found.step()["ranges"] == [(*A, 2, 3)]  # type: ignore[index]


@pytest.mark.parametrize(("limits", "words"), [((6, 9), "messages 5 to 5 were deleted"), ((0, 3), "created again")])
def test_messages_that_are_gone_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], words: str
) -> None:
    logs = Logs(A)
    monkeypatch.setattr(logs, "limits", lambda names: {A: limits})
    found = topics(tmp_path, monkeypatch, logs)
    found.last = after({"ranges": [(*A, 0, 5)]})
    with pytest.raises(InputError, match=words):
        found.plan()


def test_a_plan_of_an_older_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = topics(tmp_path, monkeypatch, Logs(A))
    with pytest.raises(CheckpointError, match=r"older version.*delete the newest plan"):
        found.source.take(None, {"ranges": [(*A, 0, 5)]}, None)


# ---- the frontier


def test_a_micro_batch_ends_where_a_partition_would_get_ahead_of_one_that_lags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Logs(A, B, C)
    logs.add(A, 10, 20, 90, 15)
    logs.add(B, 10, 30)
    logs.add(C, 10, 30, 40)
    found = topics(tmp_path, monkeypatch, logs)
    plan = found.step()
    assert ends(plan) == {A: 2, B: 2, C: 1}, "30 in the last partition is behind 30 in the one that is waited for"
    assert not plan["is_cut"]  # type: ignore[index]
    assert found.step() is None
    assert found.source.is_held
    logs.add(B, 60)
    assert ends(found.step()) == {A: 2, B: 2, C: 3}, "now the last one is waited for"


def test_a_partition_without_messages_holds_the_others_back_until_it_is_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Logs(A, B)
    logs.add(A, None, 10, 20)
    found = topics(tmp_path, monkeypatch, logs)
    assert ends(found.step()) == {A: 1, B: 0}, "a message without a time before all others waits for nothing"
    logs.now = 29.0
    assert found.step() is None
    logs.now = 30.0
    plan = found.step()
    assert ends(plan) == {A: 3, B: 0}
    assert plan["idle"] == [B]  # type: ignore[index]
    found.restart()
    logs.add(A, 30)
    assert ends(found.step()) == {A: 4, B: 0}, "it stays idle in the next run"
    logs.add(A, 40)
    logs.add(B, 35)
    plan = found.step()
    assert ends(plan) == {A: 4, B: 1}
    assert plan["idle"] == []  # type: ignore[index]


def test_silence_while_brokers_are_unreachable_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs(A, B)
    logs.add(A, 10)
    logs.add(B, 5)
    found = topics(tmp_path, monkeypatch, logs)
    found.step()
    logs.now, logs.had_trouble = 40.0, True
    assert found.step() is None
    logs.now = 69.0
    assert found.step() is None
    logs.now = 70.0
    assert ends(found.step()) == {A: 1, B: 1}


def test_messages_that_wait_are_not_read_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "_LEAST_AHEAD", 10)
    logs = Logs(A, B)
    logs.add(A, *range(100, 300))
    logs.add(B, 50)
    found = topics(tmp_path, monkeypatch, logs)
    found.step()
    logs.read_messages = 0
    assert found.step() is None
    assert logs.read_messages == 0
    for ts in range(51, 71):
        logs.add(B, ts)
        found.step()
    assert logs.read_messages < 600, "of the one that is ahead at first half, and then ever less"


# ---- the bound


def test_a_micro_batch_is_bounded_and_partitions_share_it_by_what_they_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = Logs(A, B, C)
    logs.add(A, *range(3000))
    logs.add(B, *range(0, 3000, 10))
    logs.add(C, 2999)
    found = topics(tmp_path, monkeypatch, logs)
    found.restart(most=330)
    rows, plans = 0, 0
    while (plan := found.step()) is not None and plan["is_cut"]:
        assert 0 < plan["rows"] <= 330
        rows, plans = rows + plan["rows"], plans + 1
    assert rows > 2500
    assert plans < 20, "shares in proportion let all partitions advance together"


def test_offsets_without_messages_are_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs(A)
    logs.add(A, 1)
    for _ in range(5):
        logs.add_marker(A)
    logs.add(A, 2)
    found = topics(tmp_path, monkeypatch, logs)
    found.restart(most=2)
    plans = [found.step() for _ in range(4)]
    assert [plan and (ends(plan)[A], plan["rows"]) for plan in plans] == [(2, 1), (4, 0), (6, 0), (7, 1)]
    assert found.step() is None


# ---- the order of one machine

TIMES = st.one_of(st.none(), st.integers(0, 60), st.integers(0, 60))
STEPS = st.lists(st.tuples(st.sampled_from([A, B, C]), st.lists(TIMES, max_size=8), st.integers(1, 6)), max_size=14)


@given(STEPS, st.lists(st.booleans(), min_size=14, max_size=14))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_micro_batches_are_in_the_order_of_one_machine_however_logs_grow(steps: Any, restarts: list[bool]) -> None:
    """Without idle partitions: times that go back, messages without a time, bounds, and processes that end."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        logs = Logs(A, B, C)
        found = topics(Path(folder), patch, logs)
        for (place, times, most), restarted in zip(steps, restarts, strict=False):
            logs.add(place, *times)
            if restarted:
                found.restart(most=most)
            found.step()
        found.finish(most=4)
        here = OneMachine(found)
        here.finish()
        assert found.read == here.read
        assert len(found.read) == sum(len(times) for _, times, _ in steps)


@given(st.lists(st.tuples(st.sampled_from([A, B, C]), st.lists(TIMES, max_size=5), st.integers(0, 25)), max_size=14))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_partitions_become_idle_and_come_back_as_on_one_machine(steps: Any) -> None:
    """Looks at the same moments: both have then handed out the same messages, in the same order."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        logs = Logs(A, B, C)
        found = topics(Path(folder), patch, logs)
        here = OneMachine(found)
        for place, times, seconds in steps:
            logs.now += seconds
            logs.add(place, *times)
            found.step()
            here.look()
            assert found.read == here.read
