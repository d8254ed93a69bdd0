"""Messages: JSON equals JSON lines, Avro equals what fastavro writes, keys are texts of a column."""

from __future__ import annotations

import datetime
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.avro.registry import SchemaRegistry
from shoal.avro.types import record_schema
from shoal.encode.jsonl import JsonlEncoder
from shoal.encode.messages import AvroMessages, JsonMessages
from shoal.errors import RunError
from tests.avro.registry_server import serving
from tests.encode.test_formats import INTERVAL, ROWS, SCHEMA, batch
from tests.reference.effort import tries

KINDS = {
    "text": (pa.string(), st.text(max_size=4)),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "number": (pa.float64(), st.floats(allow_nan=False)),
    "flag": (pa.bool_(), st.booleans()),
    "raw": (pa.binary(), st.binary(max_size=4)),
    "age": (INTERVAL, st.fixed_dictionaries(dict.fromkeys(["lo", "hi"], st.none() | st.floats(-9, 9)))),
    "tags": (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=2), max_size=3)),
    "day": (pa.date32(), st.dates()),
    "label": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "bb"])),
}
ANY_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in KINDS.items()])
any_rows = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in KINDS.items()}), max_size=8
)


def read(message: bytes, schema: Any, skip: int) -> Any:
    stream = io.BytesIO(message[skip:])
    found = fastavro.schemaless_reader(stream, schema, None)
    assert not stream.read()
    return found


@given(any_rows, st.integers(0, 3))
@tries(60)
def test_json_equals_a_line(rows: list[dict[str, Any]], start: int) -> None:
    whole = batch(rows, ANY_SCHEMA)
    part = whole.slice(start)
    out = io.BytesIO()
    JsonlEncoder().open(out, part.schema, fresh=True).write(part)
    messages = JsonMessages()
    messages.open(part.schema)
    assert b"".join(value + b"\n" for value in messages.values(part)) == out.getvalue()
    assert messages.keys(part) is None


@given(any_rows, st.integers(0, 3))
@tries(60)
def test_avro_is_what_fastavro_writes_and_reads(rows: list[dict[str, Any]], start: int) -> None:
    part = batch(rows, ANY_SCHEMA).slice(start)
    encoder = AvroMessages("visits")
    encoder.open(part.schema)
    schema = fastavro.parse_schema(record_schema(part.schema, "visits"))
    found = encoder.values(part)
    for row, value in zip(rows[start:], found, strict=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        assert value[10:] == out.getvalue()
        assert read(value, schema, 10) == row


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_times_keep_their_precision(unit: str, zone: str | None) -> None:
    rows = pa.record_batch({"t": pa.array([1_700_000_000, None, -5], pa.int64()).cast(pa.timestamp(unit, zone))})
    encoder = AvroMessages("visits")
    encoder.open(rows.schema)
    schema = fastavro.parse_schema(record_schema(rows.schema, "visits"))
    found = [read(value, schema, 10)["t"] for value in encoder.values(rows)]
    if unit == "ns":  # fastavro returns those as numbers
        assert found == [1_700_000_000, None, -5]
        return
    scale = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC if zone else None)
    assert found == [start + datetime.timedelta(seconds=1_700_000_000 / scale), None,
                     start - datetime.timedelta(seconds=5 / scale)]  # fmt: skip


def test_keys_are_texts_of_a_column() -> None:
    rows = batch()
    assert JsonMessages(key="n").keys(rows) == [b"1", None, b"-3", str(2**62).encode(), b"0"]
    assert JsonMessages(key="user").keys(rows) == [
        None if row["user"] is None else row["user"].encode() for row in ROWS
    ]
    assert (JsonMessages(key="age").keys(rows) or [])[:2] == [b"[20, 29.5]", None]
    assert JsonMessages(key="n").keys(rows.slice(0, 0)) == []


def test_no_rows_are_no_messages() -> None:
    for encoder in (JsonMessages(), AvroMessages("visits")):
        encoder.open(SCHEMA)
        assert encoder.values(batch().slice(0, 0)) == []


def test_a_registry_gets_the_schema_and_messages_its_number() -> None:
    with serving() as server:
        server.add("string")
        encoder = AvroMessages("visits", registry=SchemaRegistry(server.url))
        encoder.open(SCHEMA)
        (first, *_) = encoder.values(batch())
        assert server.subjects == {"visits-value": [2]}
        assert first[:5] == b"\x00\x00\x00\x00\x02"
        schema = fastavro.parse_schema(json.loads(server.schemas[1]["schema"]))
        assert read(first, schema, 5) == ROWS[0]


def test_without_a_registry_the_schema_is_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "visits.avsc"
    encoder = AvroMessages("visits", schema=path)
    encoder.open(SCHEMA)
    schema = fastavro.schema.load_schema(path)
    assert [read(value, schema, 10) for value in encoder.values(batch())] == ROWS
    assert [one.name for one in path.parent.iterdir()] == ["visits.avsc"]
    link = tmp_path / "link.avsc"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunError, match="link"):
        AvroMessages("visits", schema=link).open(SCHEMA)
    assert not (tmp_path / "elsewhere").exists()
    blocked = AvroMessages("visits", schema=path / "below" / "a file")
    with pytest.raises(RunError, match="cannot be written"):
        blocked.open(SCHEMA)


def test_names_that_avro_does_not_allow() -> None:
    schema = record_schema(pa.schema([("page view", pa.int64()), ("2nd", pa.int64())]), "my-topic")
    assert schema["name"] == "my_topic"
    assert [(one["name"], one["doc"]) for one in schema["fields"]] == [("page_view", "page view"), ("_2nd", "2nd")]
    fastavro.parse_schema(schema)
    with pytest.raises(RunError, match="the same name in Avro"):
        record_schema(pa.schema([("a b", pa.int64()), ("a-b", pa.int64())]), "x")
    with pytest.raises(RunError, match="cannot be written in Avro"):
        record_schema(pa.schema([("a", pa.duration("s"))]), "x")
