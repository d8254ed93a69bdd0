"""Writing behind keeps the order, commits only what is written, waits when it holds much, and reports errors."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from shoal.errors import OutputError
from shoal.sinks.base import PlainSink, Receipt
from shoal.sinks.behind import WriteBehind

SCHEMA = pa.schema([("n", pa.int64())])


class Remembering(PlainSink):
    """Remembers what it was asked for; writing waits for `gate` and fails from `fails_at` on."""

    def __init__(self, *, fails_at: int | None = None) -> None:
        self.numbers: list[int] = []
        self.calls: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self._fails_at = fails_at

    def open(self, schema: pa.Schema) -> None:
        self.calls.append("open")

    def recover(self, schema: pa.Schema, receipt: Receipt) -> None:
        self.calls.append(f"recover {receipt['rows']}")

    def write(self, rows: pa.RecordBatch) -> None:
        self.gate.wait()
        self.numbers += rows.column("n").to_pylist()
        if self._fails_at is not None and self.numbers[-1] >= self._fails_at:
            raise OutputError("the disk is full")

    def commit(self, epoch: int) -> Receipt:
        return {"rows": len(self.numbers)}

    def finish(self) -> Receipt:
        return {"rows": len(self.numbers)}

    def verify(self, receipt: Receipt) -> None:
        self.calls.append("verify")

    def clean(self) -> None:
        self.calls.append("clean")

    def close(self) -> None:
        self.calls.append("close")


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": list(numbers)}, schema=SCHEMA)


def test_rows_are_written_in_order_before_a_commit() -> None:
    inner = Remembering()
    sink = WriteBehind(inner)
    sink.open(SCHEMA)
    for number in range(100):
        sink.write(rows(number))
        sink.write(rows())
        if number % 7 == 0:
            assert sink.commit(0) == {"rows": number + 1}
    assert sink.finish() == {"rows": 100}
    assert inner.numbers == list(range(100))
    sink.close()
    assert inner.calls == ["open", "close"]


def test_write_waits_while_too_much_is_held() -> None:
    inner = Remembering()
    inner.gate.clear()
    sink = WriteBehind(inner, held_bytes=16)
    sink.open(SCHEMA)
    sink.write(rows(0))
    sink.write(rows(1))
    third = threading.Thread(target=sink.write, args=(rows(2),))
    third.start()
    third.join(0.05)
    assert third.is_alive()
    assert inner.numbers == []
    inner.gate.set()
    third.join()
    assert sink.commit(0) == {"rows": 3}
    sink.close()


def test_an_error_reaches_the_next_call() -> None:
    inner = Remembering(fails_at=3)
    sink = WriteBehind(inner)
    sink.recover(SCHEMA, {"rows": 0})
    for number in range(4):
        sink.write(rows(number))
    with pytest.raises(OutputError, match="full"):
        sink.commit(0)
    with pytest.raises(OutputError, match="full"):
        sink.write(rows(4))
    assert inner.numbers == [0, 1, 2, 3]
    sink.close()
    assert inner.calls == ["recover 0", "close"]


def test_closing_drops_what_waits() -> None:
    inner = Remembering()
    inner.gate.clear()
    sink = WriteBehind(inner)
    sink.open(SCHEMA)
    for number in range(5):
        sink.write(rows(number))
    closing = threading.Thread(target=sink.close)
    closing.start()
    inner.gate.set()
    closing.join()
    assert inner.numbers in ([], [0])
    assert inner.calls == ["open", "close"]
