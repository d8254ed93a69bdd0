"""Values that stand under a null stay at home, in whatever format rows leave."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.methods.carried_columns import picked, with_null_children
from shoal.schema import Numeric, Schema

SECRET, NUMBER = "hidden under a null", 0x1234_5678_9ABC_DEF0
ROWS = 12
IS_NULL = [number % 2 == 1 for number in range(ROWS)]


def texts() -> pa.Array:
    return pa.array([SECRET if null else f"shown {number}" for number, null in enumerate(IS_NULL)])


def numbers() -> pa.Array:
    return pa.array([NUMBER if null else number for number, null in enumerate(IS_NULL)], pa.int64())


def struct(*, is_masked: bool = True, nullable: bool = True) -> pa.StructArray:
    """Structs of a text and a number; every other one is null and hides what is in it."""
    fields = [pa.field("text", pa.string(), nullable=nullable), pa.field("number", pa.int64(), nullable=nullable)]
    return pa.StructArray.from_arrays(
        [texts(), numbers()], fields=fields, mask=pa.array(IS_NULL) if is_masked else None
    )


def one_each() -> pa.Array:
    return pa.array(range(ROWS + 1), pa.int32())


def under_nulls(plain: pa.Array) -> pa.Array:
    """The same values, every other one under a null."""
    is_shown = pa.array([not null for null in IS_NULL]).buffers()[1]
    return pa.Array.from_buffers(plain.type, ROWS, [is_shown, *plain.buffers()[1:]])


COLUMNS = {
    "text": under_nulls(texts()),
    "number": under_nulls(numbers()),
    "struct": struct(),
    "children that are never null": struct(nullable=False),
    "struct in a struct": pa.StructArray.from_arrays([struct()], names=["inner"]),
    "struct in a null struct": pa.StructArray.from_arrays(
        [struct(is_masked=False)], names=["inner"], mask=pa.array(IS_NULL)
    ),
    "structs in a list": pa.ListArray.from_arrays(one_each(), struct()),
    "structs in a large list": pa.LargeListArray.from_arrays(one_each().cast(pa.int64()), struct()),
    "structs in a short list": pa.FixedSizeListArray.from_arrays(struct(), 1),
    "list in a null struct": pa.StructArray.from_arrays(
        [pa.ListArray.from_arrays(one_each(), struct(is_masked=False))], names=["inner"], mask=pa.array(IS_NULL)
    ),
}
every_column = pytest.mark.parametrize("column", COLUMNS.values(), ids=list(COLUMNS))


def hides(rows: pa.RecordBatch) -> bool:
    """Whether a file of the rows holds what no reader is shown."""
    assert SECRET not in str(rows.to_pylist())
    arrow, parquet = io.BytesIO(), io.BytesIO()
    with pa.ipc.new_stream(arrow, rows.schema) as writer:
        writer.write_batch(rows)
    pq.write_table(pa.Table.from_batches([rows]), parquet, compression="none", use_dictionary=False)
    files = arrow.getvalue() + parquet.getvalue()
    return SECRET.encode() in files or NUMBER.to_bytes(8, "little") in files


def test_the_columns_hide_something():
    for name, column in COLUMNS.items():
        arrow = io.BytesIO()
        batch = pa.RecordBatch.from_arrays([column], names=["x"])
        with pa.ipc.new_stream(arrow, batch.schema) as writer:
            writer.write_batch(batch)
        assert SECRET.encode() in arrow.getvalue() or NUMBER.to_bytes(8, "little") in arrow.getvalue(), name


@every_column
@pytest.mark.parametrize("cut", [0, 3])
def test_picking_rows(column, cut):
    column = column.slice(cut)
    rows = [5, 0, 3, 4]
    values = column.to_pylist()
    assert with_null_children(column).to_pylist() == values
    assert with_null_children(column).type == column.type
    assert picked(column, pa.array(rows)).to_pylist() == [values[row] for row in rows]


def people(column: pa.Array) -> pa.Table:
    moments = pa.array(range(ROWS)).cast(pa.timestamp("s"))
    names = [f"p{number}" for number in range(ROWS)]
    return pa.table({"id": names, "ts": moments, "age": range(ROWS), "site": ["a"] * ROWS, "extra": column})


@every_column
@pytest.mark.parametrize("size", [ROWS, 5])
def test_tuples_do_not_carry_it_along(column, size):
    schema = Schema(person="id", quasi=[Numeric("age", low=0, high=100)], carry=["extra"])
    method = shoal.Fads(schema, k=2, deadline=4, reuse=2)
    parts = [method.push_batch(batch) for batch in people(column).to_batches(max_chunksize=size)]
    rows = pa.concat_batches([part.rows for part in (*parts, method.flush())])
    assert sorted(map(str, rows["extra"].to_pylist())) == sorted(map(str, column.to_pylist()))
    assert not hides(rows)


@every_column
@pytest.mark.parametrize("lateness", ["0s", "3s"])
def test_events_do_not_carry_it_along(column, lateness):
    method = shoal.ZAnonymity(
        attribute="site", z=1, window="1h", person="id", time="ts", carry=["extra"], lateness=lateness
    )
    rows = pa.concat_batches([method.push_batch(people(column)).rows, method.flush().rows])
    assert rows["extra"].to_pylist() == column.to_pylist()
    assert not hides(rows)
