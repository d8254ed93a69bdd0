"""Which offsets a micro-batch reads, without a broker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shoal import ZAnonymity
from shoal.errors import InputError
from shoal.policy import load_policy
from shoal.spark.streams import kafka_source
from shoal.spark.streams.state import Commit

POLICY = """
[stream]
person = "user"
time = "ts"
[source]
kind = "kafka"
brokers = "127.0.0.1:1"
topics = ["a", "b"]
start = "{start}"
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


def topics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Any, *, start: str, until_end: bool) -> Any:
    """The source of a policy whose topics have these limits."""
    (tmp_path / "policy.toml").write_text(POLICY.format(start=start))
    reader = SimpleNamespace(limits=lambda names: dict(limits), name="Kafka")
    monkeypatch.setattr(kafka_source, "open_reader", lambda policy: reader)
    method = ZAnonymity(z=3, window="60s", person="user", time="ts", attribute="site")
    return kafka_source.TopicOffsets(load_policy(tmp_path / "policy.toml"), method, (), until_end=until_end)


def after(plan: dict[str, Any]) -> Commit:
    """The commit of a planned micro-batch."""
    return Commit(0, "a", 0, {}, {"offsets": [[topic, number, end] for topic, number, _, end in plan["ranges"]]})


def test_offsets_continue_and_partitions_that_come_later_are_read_from_their_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {("a", 0): (2, 5), ("b", 0): (0, 0)}
    source = topics(tmp_path, monkeypatch, limits, start="earliest", until_end=False)
    plan = source.plan(None)
    assert plan == {"ranges": [("a", 0, 2, 5), ("b", 0, 0, 0)]}
    assert source.plan(after(plan)) is None
    limits |= {("a", 0): (4, 9), ("b", 1): (1, 3)}
    assert source.plan(after(plan)) == {"ranges": [("a", 0, 5, 9), ("b", 0, 0, 0), ("b", 1, 1, 3)]}


def test_a_run_until_the_end_reads_up_to_the_ends_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {("a", 0): (0, 5)}
    source = topics(tmp_path, monkeypatch, limits, start="earliest", until_end=True)
    plan = source.plan(None)
    limits[("a", 0)] = (0, 7)
    assert source.plan(None) == plan
    assert source.plan(after(plan)) is None


def test_a_stream_of_new_messages_starts_at_the_ends_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {("a", 0): (0, 5)}
    source = topics(tmp_path, monkeypatch, limits, start="latest", until_end=False)
    assert source.plan(None) is None
    limits[("a", 0)] = (0, 7)
    assert source.plan(None) == {"ranges": [("a", 0, 5, 7)]}


@pytest.mark.parametrize(("limits", "words"), [((6, 9), "messages 5 to 5 were deleted"), ((0, 3), "created again")])
def test_messages_that_are_gone_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int], words: str
) -> None:
    source = topics(tmp_path, monkeypatch, {("a", 0): limits}, start="earliest", until_end=False)
    with pytest.raises(InputError, match=words):
        source.plan(after({"ranges": [("a", 0, 0, 5)]}))
