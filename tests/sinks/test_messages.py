"""A sink of numbered messages: each exactly once, in any pieces, through crashes and lost answers."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable
from shoal.encode.messages import JsonMessages
from shoal.errors import CheckpointError, OutputError
from shoal.sinks.messages import MessageSink

SCHEMA = pa.schema([("n", pa.int64())])


class Memory:
    """A log that fails when told to: before an append (False) or after it, without an answer (True)."""

    name = "memory"

    def __init__(self, log: list[bytes], faults: Sequence[bool | None] = ()) -> None:
        self.log, self._faults = log, iter(faults)

    def open(self, start: int | str | None) -> tuple[int | str, int]:
        return 0, len(self.log)

    def write(self, number: int, values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> None:
        fault = next(self._faults, None)
        if fault is False:
            raise Unreachable("refused")
        self.log.extend(values[max(0, len(self.log) - number) :])
        if fault:
            raise Unreachable("no answer")

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def sink(writer: Memory, give_up: float = 60.0) -> MessageSink:
    made = MessageSink(writer, JsonMessages(), give_up_seconds=give_up)
    made._patience = Patience(give_up, sleep=lambda _: None)
    return made


def rows(start: int, end: int) -> pa.RecordBatch:
    return pa.record_batch([list(range(start, end))], schema=SCHEMA)


@given(
    sizes=st.lists(st.integers(0, 4), max_size=6),
    more=st.lists(st.integers(0, 4), max_size=4),
    faults=st.lists(st.sampled_from([None, False, True]), max_size=4),
)
def test_each_message_once(sizes: list[int], more: list[int], faults: list[bool | None]) -> None:
    """Written to a commit and beyond it, killed, and written again from the commit in one piece."""
    log: list[bytes] = []
    first = sink(Memory(log, faults))
    first.open(SCHEMA)
    written = 0
    for size in sizes:
        first.write(rows(written, written + size))
        written += size
    receipt = first.commit(0)
    for size in more:
        first.write(rows(written, written + size))
        written += size
    second = sink(Memory(log, faults))
    second.recover(SCHEMA, receipt)
    second.write(rows(sum(sizes), written + 2))
    assert second.commit(1) == {"messages": written + 2, "start": 0}
    assert log == [b'{"n":%d}' % number for number in range(written + 2)]


def test_long_writes_are_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    writer = Memory([])
    monkeypatch.setattr(writer, "write", lambda number, values, keys: calls.append(len(values)))
    one = sink(writer)
    one.open(SCHEMA)
    one.write(rows(0, 2_500))
    assert calls == [1_000, 1_000, 500]


def test_patience_ends_with_a_sentence() -> None:
    one = sink(Memory([], [False] * 9), give_up=0.0)
    one.open(SCHEMA)
    with pytest.raises(
        OutputError,
        match=r"memory: unreachable for longer than give_up \(refused\); check that it runs and its address; "
        "the next run continues",
    ):
        one.write(rows(0, 1))


def test_messages_of_somebody_else_are_refused_at_the_start() -> None:
    with pytest.raises(CheckpointError, match="holds 1 messages of a run whose checkpoints are not here"):
        sink(Memory([b"{}"])).open(SCHEMA)


def test_removed_messages_are_noticed() -> None:
    with pytest.raises(CheckpointError, match="holds 1 messages, the checkpoint knows 2"):
        sink(Memory([b"{}"])).recover(SCHEMA, {"messages": 2, "start": 0})
    with pytest.raises(CheckpointError, match="were removed"):
        sink(Memory([])).verify({"messages": 2, "start": 0})
