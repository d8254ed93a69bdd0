"""Messages that a system holds already are skipped, by their number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import CheckpointError
from shoal.sinks.numbered import MessageNumbers

COUNTS = st.lists(st.integers(0, 5), max_size=8)


@given(before=COUNTS, lost=COUNTS, again=COUNTS)
def test_nothing_is_written_twice_and_nothing_is_left_out(before: list[int], lost: list[int], again: list[int]) -> None:
    """Written up to a receipt, then more, killed, and written again in pieces of other sizes."""
    system: list[int] = []

    def write(numbers: MessageNumbers, count: int) -> None:
        messages = range(numbers.written, numbers.written + count)
        system.extend(messages[numbers.take(count) :])

    numbers = MessageNumbers("stream")
    numbers.start(held=0)
    for count in before:
        write(numbers, count)
    receipt = numbers.receipt
    for count in lost:
        write(numbers, count)
    numbers = MessageNumbers("stream")
    numbers.recover(receipt, held=len(system))
    for count in again:
        write(numbers, count)
    assert system == list(range(sum(before) + max(sum(lost), sum(again))))


def test_messages_of_an_unknown_run_are_not_skipped() -> None:
    with pytest.raises(
        CheckpointError, match=r"stream visits: holds 3 messages of a run whose checkpoints are not here"
    ):
        MessageNumbers("stream visits").start(held=3)


def test_lost_messages_are_reported() -> None:
    with pytest.raises(CheckpointError, match=r"stream visits: holds 3 messages, the checkpoint knows 4"):
        MessageNumbers("stream visits").recover({"messages": 4}, held=3)
