"""Rows that wait: whatever is added in whatever form leaves by (time, arrival)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.methods.z.reorder_buffer import OneWaiting, ReorderBuffer, Waiting
from tests.reference.effort import tries

SCHEMA = pa.schema([("n", pa.int64())])

adding = st.tuples(st.sampled_from(["batch", "single"]), st.lists(st.integers(0, 12), min_size=1, max_size=8))
taking = st.tuples(st.sampled_from(["take", "pop", "dump"]), st.integers(0, 12))
scripts = st.lists(st.one_of(adding, taking), max_size=14)


def batch_of(seqs, times):
    return Waiting(
        np.array(seqs, dtype=np.int64),
        np.array(times, dtype=np.int64),
        np.array([[seq, -seq] for seq in seqs], dtype=np.int64).reshape(-1, 2),
        pa.RecordBatch.from_pylist([{"n": 100 + seq} for seq in seqs], schema=SCHEMA),
    )


def empty_buffer():
    buffer = ReorderBuffer()
    buffer.schema = SCHEMA
    return buffer


def content(rows):
    assert rows.persons.tolist() == [[seq, -seq] for seq in rows.seqs.tolist()]
    assert rows.batch.column("n").to_pylist() == [100 + seq for seq in rows.seqs.tolist()]
    return list(zip(rows.times.tolist(), rows.seqs.tolist(), strict=True))


class Model:
    def __init__(self):
        self.rows, self.seen = [], 0

    def add(self, times):
        seqs = list(range(self.seen, self.seen + len(times)))
        self.seen += len(times)
        self.rows = sorted([*self.rows, *zip(times, seqs, strict=True)])
        return seqs

    def take(self, limit, most=None):
        ready = [row for row in self.rows if row[0] <= limit][:most]
        self.rows = [row for row in self.rows if row not in ready]
        return ready


@given(scripts)
@example([("single", [5]), ("batch", [5, 3]), ("single", [3]), ("pop", 5), ("pop", 5), ("pop", 5), ("pop", 5)])
@example([("batch", [5, 3]), ("single", [4]), ("take", 4), ("dump", 0), ("pop", 9)])
@example([("batch", list(range(8))), ("take", 6), ("batch", [7, 7]), ("single", [7]), ("take", 7)])
@example([("single", [5]), ("pop", 4), ("pop", 5), ("batch", [5]), ("pop", 4), ("take", 4), ("pop", 5)])  # 1 ns early
@tries(150)
def test_everything_leaves_by_time_and_arrival(script):
    buffer, model = empty_buffer(), Model()
    for what, arg in script:
        if what == "batch":
            buffer.add(batch_of(model.add(arg), arg))
        elif what == "single":
            for time in arg:
                (seq,) = model.add([time])
                buffer.add_one(OneWaiting(time, seq, (seq, -seq), {"n": 100 + seq}))
        elif what == "take":
            assert content(buffer.take_until(arg)) == model.take(arg)
        elif what == "pop":
            one = buffer.pop_one(arg)
            found = [] if one is None else [(one.time, one.seq)]
            assert found == model.take(arg, 1)
            assert one is None or (one.key, one.record) == ((one.seq, -one.seq), {"n": 100 + one.seq})
        else:
            assert content(buffer.dump()) == sorted(model.rows, key=lambda row: row[1])
        assert len(buffer) == len(model.rows)


def test_a_batch_is_cut_down_when_little_of_it_waits():
    buffer = empty_buffer()
    buffer.add(batch_of(range(100), range(100)))
    buffer.take_until(70)
    assert [len(chunk) for chunk in buffer._chunks] == [100]
    buffer.take_until(90)
    assert [len(chunk) for chunk in buffer._chunks] == [9]
    buffer.take_until(100)
    assert buffer._chunks == []
    assert len(buffer) == 0
    buffer.add(batch_of([], []))
    assert buffer._chunks == []
