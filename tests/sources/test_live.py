"""A live source on a system in memory: order, positions, trouble, refused messages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.clients.patience import Patience
from shoal.clients.trouble import Unreachable
from shoal.decode.base import Decoded
from shoal.decode.json_records import Columns
from shoal.decode.messages import MessageDecoder, Messages, json_parser
from shoal.errors import InputError
from shoal.sources.base import End, Idle, Polled
from shoal.sources.live import LiveSource, Pace
from shoal.sources.reader import Fetched, Id, Needs
from tests.reference.effort import tries

COLUMNS = ("ts", "user")


class Memory:
    """Logs of messages; `batch` are fetched at once, `troubles` are raised one after the other."""

    name = "memory"

    def __init__(
        self,
        logs: Sequence[Sequence[bytes]],
        *,
        batch: int = 3,
        until_end: bool = True,
        troubles: int = 0,
        refused: Collection[int] = (),
    ) -> None:
        self._logs, self._batch, self._until_end = logs, batch, until_end
        self._troubles, self._refused = troubles, refused
        self.topics = tuple(f"log {at}" for at in range(len(logs)))
        self.kept: Sequence[Id] = ()

    def connect(self) -> Sequence[str]:
        return self.topics

    def open(self, after: Sequence[Id | None], needs: Needs) -> Sequence[Id]:
        self._next = [0 if place is None else int(place) + 1 for place in after]
        return [at - 1 for at in self._next]

    def fetch(self, logs: Collection[int], seconds: float) -> Iterator[Fetched]:
        if self._troubles:
            self._troubles -= 1
            raise Unreachable("gone")
        for log in logs:
            first = self._next[log]
            values = list(self._logs[log][first : first + self._batch])
            self._next[log] += len(values)
            refused = {at: "refused" for at in range(len(values)) if first + at in self._refused}
            if values:
                yield Fetched(log, Messages(values), np.arange(first, first + len(values)), refused)

    def is_read(self, log: int) -> bool:
        return self._next[log] == len(self._logs[log])

    def has_ended(self, log: int) -> bool:
        return self._until_end and self.is_read(log)

    def keep(self, after: Sequence[Id]) -> None:
        self.kept = after

    def leave(self, after: Mapping[str, Id]) -> None:
        self.left = dict(after)

    def lag(self) -> int | None:
        return None

    def place(self, log: int, at: Id) -> dict[str, Any]:
        return {"log": log, "at": at}

    def close(self) -> None:
        pass


def decoder(columns: tuple[str, ...], types: Any) -> MessageDecoder:
    return MessageDecoder(json_parser(), Columns("memory", columns), time="ts", unit="s", types=types)


@contextmanager
def opened(reader: Memory, position: Any = None, give_up: float = 60.0) -> Iterator[LiveSource]:
    with closing(LiveSource(reader, decoder, Pace(0.0, 30.0, give_up))) as source:
        source._patience = Patience(give_up, sleep=lambda _: None)
        source.open(COLUMNS, position)
        yield source


def message(ts: int, user: str) -> bytes:
    return b'{"ts": %d, "user": "%s"}' % (ts, user.encode())


def users(polled: Polled) -> list[str]:
    return polled.batch.column("user").to_pylist() if isinstance(polled, Decoded) else []


def read(source: LiveSource) -> list[str]:
    assert source.schema.names == list(COLUMNS)
    found: list[str] = []
    while not isinstance(polled := source.poll(), End):
        found += users(polled)
    return found


@tries(100)
@given(
    times=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=3),
    batches=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    cut=st.integers(0, 18),
)
def test_the_order_does_not_depend_on_pieces_or_restarts(
    times: list[list[int]], batches: tuple[int, int], cut: int
) -> None:
    logs = [[message(ts, f"{log}.{at}") for at, ts in enumerate(part)] for log, part in enumerate(times)]
    keys = [
        (max(part[: at + 1]), log, at) for log, part in enumerate(times) for at in range(len(part))
    ]  # fmt: skip
    expected = [f"{log}.{at}" for _, log, at in sorted(keys)]
    with opened(Memory(logs, batch=batches[0])) as source:
        assert source.schema.names == list(COLUMNS)
        before: list[str] = []
        while len(before) < cut and not isinstance(polled := source.poll(), End):
            before += users(polled)
        position = source.position
        assert [source.place(row) for row in range(len(before))] == [
            {"log": int(name[0]), "at": int(name[2:])} for name in before
        ]
    with opened(Memory(logs, batch=batches[1]), position) as source:
        assert before + read(source) == expected


def test_a_message_that_the_reader_refuses_shifts_no_other() -> None:
    log = [message(1, "a"), b"{broken", message(1, "b"), message(1, "c"), message(1, "d")]
    with opened(Memory([log], batch=9, refused=(1, 3))) as source:
        assert source.schema.names == list(COLUMNS)
        polled = source.poll()
        assert isinstance(polled, Decoded)
        assert users(polled) == ["a", "b", "d"]
        assert [(one.row, one.reason) for one in polled.refused] == [(1, "refused"), (3, "refused")]


def test_trouble_passes() -> None:
    with opened(Memory([[message(1, "a")]], troubles=3)) as source:
        assert read(source) == ["a"]


def test_no_time_passes_in_trouble() -> None:
    reader = Memory([[message(1, "a")]], until_end=False)
    with opened(reader) as source:
        assert source.schema.names == list(COLUMNS)
        assert users(source.poll()) == ["a"]
        idle = source.poll()
        assert isinstance(idle, Idle)
        assert idle.now is not None
        reader._troubles = 1
        source._time_passed = 0.0
        assert source.poll() == Idle(None)


def test_patience_ends_with_a_sentence() -> None:
    with (
        opened(
            Memory([[]], troubles=9, until_end=False), {"types": {"ts": "int64", "user": "string"}}, give_up=0.0
        ) as source,
        pytest.raises(
            InputError,
            match=r"memory: unreachable for longer than give_up \(gone\); check that it runs and its address; "
            "the next run continues",
        ),
    ):
        source.poll()


def test_durable_positions_are_passed_on() -> None:
    reader = Memory([[message(1, "a"), message(1, "b")]])
    with opened(reader) as source:
        read(source)
        source.keep(source.position)
        source.leave(source.position)
    assert list(reader.kept) == [1]
    assert reader.left == {"log 0": 1}


def test_positions_of_a_checkpoint_are_found_by_name() -> None:
    """JSON sorts names, so "log 10" comes before "log 2"."""
    reader = Memory([[message(1, f"{log}")] * (log + 1) for log in range(11)])
    with opened(reader) as source:
        read(source)
        position = source.position
        source.keep({**position, "logs": dict(sorted(position["logs"].items()))})
    assert list(reader.kept) == list(range(11))
