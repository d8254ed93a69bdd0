"""Both stores return what was stored, in transactions, and never show a value in an error."""

from __future__ import annotations

import datetime
import decimal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import PolicyError, RunError, StoreError
from shoal.sanitize.stores.base import Layout, Store
from shoal.sanitize.stores.columns import blocks_column, column_blocks, from_plain, hex_column, kinds_of, to_plain
from shoal.sanitize.stores.postgres import PostgresStore
from shoal.sanitize.stores.sqlite import SqliteStore

LAYOUT = Layout(
    "shoal_test_rows",
    (
        ("id", "integer"),
        ("name", "bytes"),
        ("text", "text"),
        ("whole", "integer"),
        ("real", "real"),
        ("flag", "boolean"),
    ),
    ("id", "name"),
)
ODD = [
    "",
    None,
    "a,b",
    'say "x"',
    "two\nlines",
    "cr\r\nlf",
    "\\x00 \\N \\.",
    "'; DROP TABLE x; --",
    "ünï ☃ 😀",
    " ",
    "NULL",
    "?%s",
]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    if request.param == "sqlite":
        made: Store = SqliteStore("test", tmp_path / "some.db", private=True)
    else:
        url, _ = request.getfixturevalue("postgres")
        made = PostgresStore("test", url, shown="TEST", schema="rows")
        made.execute("DROP SCHEMA rows CASCADE")
        made.execute("CREATE SCHEMA rows")
    with made.transaction():
        made.create([LAYOUT])
    yield made
    made.close()


def rows() -> pa.Table:
    count = len(ODD)
    return pa.table(
        {
            "id": pa.array([1] * count),
            "name": blocks_column(np.arange(16 * count, dtype=np.uint8).reshape(-1, 16)),
            "text": pa.array(ODD, pa.string()),
            "whole": pa.array([2**63 - 1, -(2**63), 0, None, *range(count - 4)], pa.int64()),
            "real": pa.array([1e308, -0.0, 5e-324, None, 0.1 + 0.2, float("inf"), *np.arange(count - 6) / 7]),
            "flag": pa.array([True, False, None] * (count // 3)),
        }
    )


def test_odd_values_come_back(store):
    with store.transaction():
        store.insert(LAYOUT, rows())
    found = store.read(LAYOUT, LAYOUT.names, "id = ?", (1,)).sort_by("name")
    assert found.to_pylist() == rows().to_pylist()
    assert store.read(LAYOUT, ("text",), "id = ?", (2,)).num_rows == 0
    assert store.read(LAYOUT, ("text",), "id = ?", (2,)).schema.field("text").type == pa.string()


def test_joined_bytes(store):
    with store.transaction():
        store.insert(LAYOUT, rows())
    found = store.read_joined(LAYOUT, ("name",), "id = ?", (1,))
    pieces = [found[at : at + 16] for at in range(0, len(found), 16)]
    assert sorted(pieces) == sorted(rows()["name"].to_pylist())
    assert store.read_joined(LAYOUT, ("name",), "id = ?", (2,)) == b""


def test_chosen_rows(store):
    with store.transaction():
        store.insert(LAYOUT, rows())
    chosen = [rows()["name"][2].as_py(), rows()["name"][5].as_py(), b"nobody"]
    found = store.read_some(LAYOUT, ("text", "id"), 1, chosen)
    assert sorted(found["text"].to_pylist()) == sorted([ODD[2], ODD[5]])
    assert found.schema.names == ["text", "id"]
    assert store.read_some(LAYOUT, ("text",), 2, chosen).num_rows == 0
    assert store.read_some(LAYOUT, ("text",), 1, []).num_rows == 0


def fill(store, failure=None):
    """Rows and a note in one transaction, which may fail at its end."""
    with store.transaction():
        store.put("note", b"x")
        store.insert(LAYOUT, rows())
        if failure:
            raise failure


def test_all_or_nothing(store):
    with pytest.raises(KeyError):
        fill(store, KeyError())
    assert store.count(LAYOUT) == 0
    assert store.get("note") is None
    with store.transaction():
        store.insert(LAYOUT, rows())
    with pytest.raises(StoreError) as caught:
        fill(store)  # the same keys
    assert "two" not in str(caught.value)
    assert "DROP" not in str(caught.value)
    assert store.count(LAYOUT) == len(ODD)
    assert store.get("note") is None


def test_notes_rows_by_key_and_deleting(store):
    layout = Layout("shoal_test_pairs", (("key", "bytes"), ("value", "bytes")), ("key",))
    with store.transaction():
        store.create([layout])
        store.upsert(layout, [(bytes([at]), b"first") for at in range(200)])
        store.upsert(layout, [(b"\x07", b"\x00second\xff")])
        store.put("note", b"\x00\xff")
        store.put("note", b"again")
    assert store.get("note") == b"again"
    assert store.count(layout) == 200
    found = {bytes(key): bytes(value) for key, value in store.lookup(layout, [b"\x07", b"\x08", b"none"])}
    assert found == {b"\x07": b"\x00second\xff", b"\x08": b"first"}
    assert len(list(store.lookup(layout, [bytes([at % 256, at // 256]) for at in range(1200)]))) == 0
    store.delete(layout, "value = ?", (b"first",))
    store.compact(layout)
    assert store.count(layout) == 1
    assert not store.holds([b"firstfirst"])


def test_versions(store):
    assert store.check_version()
    store.put("version", b"7")
    with pytest.raises(StoreError, match=r"has format version 7; this shoal reads version 2\. Nothing was changed"):
        store.check_version()


def test_a_role_that_may_not_create_schemas_uses_those_made_for_it(postgres):
    url, _ = postgres
    admin = PostgresStore("admin", url, shown="ADMIN", schema="admin")
    for sql in (
        "CREATE ROLE writer LOGIN",
        *(f"CREATE SCHEMA {name} AUTHORIZATION writer" for name in ("o", "o_sealed")),
    ):
        admin.execute(sql)
    admin.close()
    own = url.replace("user=shoal", "user=writer")
    store = PostgresStore("external", own, shown="URL", schema="o", sealed="o_sealed")
    with store.transaction():
        store.create([LAYOUT, replace(LAYOUT, name="shoal_shown", public=True)])
    tables = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('o', 'o_sealed') ORDER BY 1, 2"
    assert store.execute(tables) == [
        ("o", "shoal_shown"), ("o_sealed", "shoal_external_about"), ("o_sealed", "shoal_test_rows"),
    ]  # fmt: skip
    store.close()
    with pytest.raises(StoreError, match=r"^URL \(PostgreSQL, schema p\): the database reports InsufficientPrivilege"):
        PostgresStore("external", own, shown="URL", schema="p", sealed="p_sealed")


def test_deleted_rows_are_overwritten(tmp_path):
    store = SqliteStore("test", tmp_path / "some.db", private=True)
    layout = Layout("shoal_test_pairs", (("key", "bytes"), ("value", "bytes")), ("key",))
    piece = b"to be forgotten" * 50
    with store.transaction():
        store.create([layout])
        store.upsert(layout, [(b"a", piece), (b"b", b"kept")])
    assert store.holds([piece[:60]])
    with store.transaction():
        store.delete(layout, "key = ?", (b"a",))
    store.compact(layout)
    assert not store.holds([piece[:30]])
    store.close()


def test_names_that_no_table_takes():
    store = SqliteStore("test", Path(":memory:"), private=False)
    store.close()
    Path(":memory:").unlink()
    for names in (("a", "A"), ("a?",), ("x" * 61,), ("",)):
        layout = Layout("t", tuple((name, "text") for name in names))
        with pytest.raises(PolicyError):
            store._definition(layout)


def test_without_psycopg_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RunError) as caught:
        PostgresStore("test", "postgresql://user:secret@host/db", shown="TEST_URL")
    assert str(caught.value) == (
        "TEST_URL (PostgreSQL, schema public): PostgreSQL needs the package psycopg: pip install psycopg "
        "(or pip install '.[postgres]' in a clone of shoal)"
    )


# ---- columns


def test_columns_of_all_kinds_come_back(store):
    moment = datetime.datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=datetime.UTC)
    table = pa.table({
        "time": pa.array([moment, None], pa.timestamp("us", "Europe/Berlin")),
        "local": pa.array([moment.replace(tzinfo=None), None], pa.timestamp("ms")),
        "minute": pa.array([moment.time(), None], pa.time64("us")),
        "price": pa.array([decimal.Decimal("-12.50"), None], pa.decimal128(38, 10)),
        "large": pa.array([2**64 - 1, None], pa.uint64()),
        "day": pa.array([moment.date(), None]),
        "small": pa.array([1, None], pa.int16()), "x": pa.array([1.5, None], pa.float32()),
        "flag": pa.array([True, None]), "text": pa.array(["a", None]),
        "range": pa.array([{"lo": 1.0, "hi": 2.0}, None], pa.struct([("lo", pa.float64()), ("hi", pa.float64())])),
        "hours": pa.array([{"lo": moment, "hi": moment}, None],
                          pa.struct([("lo", pa.timestamp("us", "UTC")), ("hi", pa.timestamp("us", "UTC"))])),
    })  # fmt: skip
    plain = to_plain(table)
    assert dict(kinds_of(table.schema)) == {
        "time": "moment", "local": "local moment", "minute": "time", "price": "decimal", "large": "decimal",
        "day": "date", "small": "integer", "x": "real", "flag": "boolean", "text": "text",
        "range_lo": "real", "range_hi": "real", "hours_lo": "moment", "hours_hi": "moment",
    }  # fmt: skip
    assert tuple(plain.schema.names) == tuple(name for name, _ in kinds_of(table.schema))
    assert from_plain(plain, table.schema).equals(table)
    layout = Layout("shoal_test_kinds", kinds_of(table.schema))
    with store.transaction():
        store.create([layout])
        store.insert(layout, plain)
    found = from_plain(store.read(layout, layout.names), table.schema)
    assert found.sort_by([("small", "ascending")]).equals(table)


def test_nan_becomes_null():
    assert to_plain(pa.table({"x": [float("nan"), 1.0]}))["x"].to_pylist() == [None, 1.0]


def test_blocks():
    blocks = np.arange(48, dtype=np.uint8).reshape(3, 16)
    assert np.array_equal(column_blocks(pa.chunked_array([blocks_column(blocks)])), blocks)
    assert hex_column(blocks).to_pylist() == [row.tobytes().hex() for row in blocks]
    assert column_blocks(pa.chunked_array([blocks_column(blocks[:0])])).shape == (0, 16)
