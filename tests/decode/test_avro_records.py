"""Messages in Avro, written by fastavro: with a registry, with a schema file, and what is refused."""

from __future__ import annotations

import datetime
import io
import json
import struct
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.avro.registry import RegistryUnreachable, SchemaRegistry
from shoal.decode.avro_records import AvroParser
from shoal.decode.json_records import Columns
from shoal.decode.messages import TOMBSTONE, TOO_LONG, MessageDecoder, Messages, avro_parser
from shoal.errors import InputError, RunError
from tests.avro.registry_server import serving
from tests.decode.test_messages import reasons, rows
from tests.reference.effort import tries

VISIT = {
    "type": "record",
    "name": "visit",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "x", "type": "double"},
        {"name": "flag", "type": ["boolean", "null"]},
    ],
}
NAMES = ("user", "n", "x", "flag")


def written(record: Any, schema: Any = VISIT, before: bytes = b"") -> bytes:
    out = io.BytesIO()
    out.write(before)
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


def numbered(number: int, record: Any, schema: Any = VISIT) -> bytes:
    return written(record, schema, b"\x00" + struct.pack(">I", number))


def decoder(parser: AvroParser, columns: tuple[str, ...] = NAMES, **options: Any) -> MessageDecoder:
    return MessageDecoder(parser, Columns("topic visits", columns, **options))


def file_parser(folder: Path, schema: Any = VISIT, longest: int = 1000) -> AvroParser:
    path = folder / "visit.avsc"
    path.write_text(json.dumps(schema))
    return avro_parser(longest, schema=path)


def registry_parser(url: str) -> AvroParser:
    return avro_parser(1000, registry=SchemaRegistry(url, wait=lambda _: None))


records = st.fixed_dictionaries(
    {
        "user": st.text(max_size=5),
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "x": st.floats(allow_nan=False),
        "flag": st.none() | st.booleans(),
    }
)
odd = st.sampled_from(
    [None, b"", b"{}", b"\x00", b"\x04a", written({**dict.fromkeys(NAMES), "user": "u", "x": 1.0})[:-1]]
)


@pytest.fixture(scope="module")
def schema_file(tmp_path_factory: pytest.TempPathFactory) -> AvroParser:
    return file_parser(tmp_path_factory.mktemp("avro"))


@given(st.lists(st.tuples(st.booleans(), records, odd), max_size=20))
@tries(60)
def test_odd_messages_never_shift_a_row(schema_file: AvroParser, drawn: list[tuple[bool, Any, Any]]) -> None:
    made = decoder(schema_file)
    assert made.is_ready  # the schema says the types, so an empty topic is enough
    payloads = [strange if is_odd else written(record) for is_odd, record, strange in drawn]
    found = rows(made.decode(Messages(payloads)))
    assert found == [None if is_odd else record for is_odd, record, _ in drawn]


def test_types_of_the_schema(schema_file: AvroParser) -> None:
    assert decoder(schema_file).types == {"user": "string", "n": "int64", "x": "double", "flag": "bool"}
    declared = decoder(schema_file, ("n", "user"), declared={"n": pa.float64()}, assumed={"user": pa.string()})
    assert declared.types == {"n": "double", "user": "string"}
    with pytest.raises(InputError, match="the schema has no field 'vist'"):
        decoder(schema_file, ("user", "vist"))


def test_single_object_encoding_is_recognized(tmp_path: Path) -> None:
    made = decoder(file_parser(tmp_path), ("user",))
    tools = fastavro.schema
    print_ = tools.fingerprint(tools.to_parsing_canonical_form(VISIT), "CRC-64-AVRO")
    record = {"user": "ann", "n": 1, "x": 1.0, "flag": None}
    payloads = [written(record, before=b"\xc3\x01" + bytes.fromhex(print_)), written(record)]
    assert rows(made.decode(Messages(payloads))) == [{"user": "ann"}] * 2


def test_values_of_logical_types(tmp_path: Path) -> None:
    moment = datetime.datetime(2026, 5, 4, 3, 2, 1, 5000, tzinfo=datetime.UTC)
    kinds = {
        "millis": {"type": "long", "logicalType": "timestamp-millis"},
        "micros": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
        "nanos": {"type": "long", "logicalType": "timestamp-nanos"},
        "day": {"type": "int", "logicalType": "date"},
        "id": {"type": "string", "logicalType": "uuid"},
        "price": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        "clock": {"type": "int", "logicalType": "time-millis"},
        "tags": {"type": "array", "items": "string"},
        "colour": {"type": "enum", "name": "colour", "symbols": ["red", "blue"]},
    }
    schema = {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}
    record = {
        "millis": moment, "micros": moment, "nanos": 1_000_000_007, "day": datetime.date(2026, 5, 4),
        "id": uuid.UUID(int=5), "price": Decimal("12.50"), "clock": datetime.time(1, 2, 3), "tags": ["a", "b"],
        "colour": "blue",
    }  # fmt: skip
    made = decoder(file_parser(tmp_path, schema), tuple(kinds))
    decoded = made.decode(Messages([written(record, schema), None, written({**record, "micros": None}, schema)]))
    assert decoded.places == [1]
    found = decoded.batch.drop_columns(["nanos"]).to_pylist()[0]
    assert found == {
        **{name: value for name, value in record.items() if name != "nanos"},
        "id": str(uuid.UUID(int=5)), "price": 12.5, "clock": "01:02:03",
    }  # fmt: skip
    assert decoded.batch.column("nanos").cast(pa.int64()).to_pylist() == [1_000_000_007] * 2
    assert decoded.batch.schema == made.schema
    assert made.types["millis"] == made.types["micros"] == "timestamp[us, tz=UTC]"
    again = MessageDecoder(file_parser(tmp_path, schema), Columns("x", tuple(kinds)), types=made.types)
    assert again.schema == made.schema


def test_times_may_get_finer_within_a_topic_but_are_never_cut() -> None:
    def visit(kind: str) -> Any:
        return {"type": "record", "name": "r", "fields": [{"name": "t", "type": {"type": "long", "logicalType": kind}}]}

    with serving() as server:
        coarse, fine, finest = (visit(f"timestamp-{unit}") for unit in ("millis", "micros", "nanos"))
        numbers = [server.add(schema) for schema in (coarse, fine, finest)]
        moment = datetime.datetime(2026, 5, 4, 3, 2, 1, 5, tzinfo=datetime.UTC)
        payloads = [
            numbered(numbers[0], {"t": moment.replace(microsecond=0)}, coarse),
            numbered(numbers[1], {"t": moment}, fine),
            numbered(numbers[2], {"t": 1_000_000_007}, finest),
        ]
        made = decoder(registry_parser(server.url), ("t",))
        made.learn(payloads)
        assert rows(made.decode(Messages(payloads))) == [{"t": moment.replace(microsecond=0)}, {"t": moment}, None]


def test_times_in_a_column_of_texts_are_iso(tmp_path: Path) -> None:
    kinds = {"a": "timestamp-micros", "b": "timestamp-nanos"}
    fields = [{"name": name, "type": {"type": "long", "logicalType": kind}} for name, kind in kinds.items()]
    schema = {"type": "record", "name": "r", "fields": fields}
    made = decoder(file_parser(tmp_path, schema), ("a", "b"), declared=dict.fromkeys("ab", pa.string()))
    moment = datetime.datetime(2026, 5, 4, 3, 2, 1, 5000, tzinfo=datetime.UTC)
    found = rows(made.decode(Messages([written({"a": moment, "b": 7}, schema)])))
    assert found == [{"a": "2026-05-04T03:02:01.005000+00:00", "b": "1970-01-01 00:00:00.000000007Z"}]


def test_bytes_and_nested_values_are_refused(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "inner", "fields": [{"name": "a", "type": "int"}]}
    fields = [{"name": "raw", "type": "bytes"}, {"name": "deep", "type": inner}, {"name": "s", "type": "string"}]
    schema = {"type": "record", "name": "r", "fields": fields}
    payload = written({"raw": b"secret", "deep": {"a": 1}, "s": "x"}, schema)
    declared = {"raw": pa.string(), "deep": pa.string()}
    as_text = decoder(file_parser(tmp_path, schema), ("s",))
    assert rows(as_text.decode(Messages([payload]))) == [{"s": "x"}]
    for column, reason in (("raw", "bytes where"), ("deep", "an object or a list")):
        made = decoder(file_parser(tmp_path, schema), (column,), declared={column: declared[column]})
        decoded = made.decode(Messages([payload]))
        assert reason in reasons(decoded)[0]
        assert "secret" not in str(decoded.refused)


def test_a_message_of_another_schema_or_too_long_is_refused(tmp_path: Path) -> None:
    made = decoder(file_parser(tmp_path), ("user",))
    record = {"user": "ann", "n": None, "x": 1.0, "flag": True}
    payloads = [written(record) + b"\x00", written({**record, "user": "u" * 2000}), written(record), None]
    found = reasons(made.decode(Messages(payloads)))
    assert "not valid Avro" in found[0]
    assert found[1] == TOO_LONG
    assert found[3] == TOMBSTONE
    assert 2 not in found


def test_schemas_of_a_registry_may_change_within_a_topic() -> None:
    wider = {**VISIT, "fields": [*VISIT["fields"], {"name": "town", "type": "string"}]}
    with serving() as server:
        first, second = server.add(VISIT), server.add(wider)
        made = decoder(registry_parser(server.url), ("user", "n"))
        assert not made.is_ready
        record = {"user": "ann", "n": 2, "x": 1.0, "flag": True}
        payloads = [numbered(second, {**record, "town": "Bern"}, wider), numbered(first, record), numbered(9, record)]
        payloads += [written(record), b"\x00\x00", None]
        assert made.learn([*payloads[::-1]])
        assert made.types == {"user": "string", "n": "int64"}
        decoded = made.decode(Messages(payloads))
        assert rows(decoded)[:2] == [{"user": "ann", "n": 2}] * 2
        found = reasons(decoded)
        assert "not in the registry" in found[2]
        assert "wire format" in found[3]
        assert "wire format" in found[4]
        assert found[5] == TOMBSTONE
        assert len(server.requests) == 3


def test_a_schema_that_cannot_be_used_concerns_its_messages_only() -> None:
    with serving() as server:
        good, text, referring = server.add(VISIT), server.add("string"), server.add(VISIT, references=[{"name": "x"}])
        made = decoder(registry_parser(server.url), ("user",), declared={"user": pa.string()})
        record = {"user": "ann", "n": 2, "x": 1.0, "flag": True}
        decoded = made.decode(Messages([numbered(number, record) for number in (text, good, referring)]))
        assert rows(decoded) == [None, {"user": "ann"}, None]
        assert "its schema is not that of a record" in reasons(decoded)[0]
        assert "its schema refers to other schemas" in reasons(decoded)[2]


def self_nested(kind: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "tree",
        "fields": [{"name": "user", "type": "string"}, {"name": "x", "type": kind}],
    }


def chained(records: int) -> dict[str, Any]:
    """A schema whose every record holds the one before, though none is written inside another."""
    kinds: list[Any] = [{"type": "record", "name": "r0", "fields": [{"name": "x", "type": "int"}]}]
    for number in range(1, records):
        inner = [{"name": "x", "type": f"r{number - 1}"}]
        kinds.append({"type": "record", "name": f"r{number}", "fields": inner})
    return {
        "type": "record",
        "name": "all",
        "fields": [{"name": f"f{n}", "type": kind} for n, kind in enumerate(kinds)],
    }


EMPTY = {"type": "record", "name": "empty", "fields": [{"name": "x", "type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        (self_nested(["null", "tree"]), "refers to itself"),
        (self_nested({"type": "map", "values": {"type": "array", "items": "tree"}}), "refers to itself"),
        (self_nested({"type": "array", "items": "null"}), "items that take no bytes"),
        (self_nested({"type": "array", "items": EMPTY}), "items that take no bytes"),
        (chained(200), "is nested deeper than 100"),
        (self_nested({**EMPTY, "fields": [{"name": f"x{n}", "type": "null"} for n in range(101)]}), "more than 100"),
    ],
)
def test_a_schema_by_which_a_short_message_could_unfold_without_end_is_refused(schema: Any, sentence: str) -> None:
    with serving() as server:
        bad, good = server.add(schema), server.add(VISIT)
        made = decoder(registry_parser(server.url), ("user",), declared={"user": pa.string()})
        record = {"user": "ann", "n": 2, "x": 1.0, "flag": True}
        decoded = made.decode(Messages([numbered(bad, record), numbered(good, record)]))
        assert rows(decoded) == [None, {"user": "ann"}]
        assert sentence in reasons(decoded)[0]


def test_a_schema_may_use_a_type_several_times(tmp_path: Path) -> None:
    place = {"type": "record", "name": "place", "fields": [{"name": "town", "type": ["null", "string"]}]}
    fields = [{"name": "user", "type": "string"}, {"name": "home", "type": place}, {"name": "work", "type": "place"}]
    schema = {"type": "record", "name": "r", "namespace": "a.b", "fields": fields}
    record = {"user": "ann", "home": {"town": "Bern"}, "work": {"town": None}}
    made = decoder(file_parser(tmp_path, schema), ("user",))
    assert rows(made.decode(Messages([written(record, schema)]))) == [{"user": "ann"}]


def test_a_number_that_is_none_is_not_taken_for_a_text(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "user", "type": "double"}]}
    made = decoder(file_parser(tmp_path, schema), ("user",), declared={"user": pa.string()})
    numbers = [1.5, float("nan"), float("-inf")]
    decoded = made.decode(Messages([written({"user": number}, schema) for number in numbers]))
    assert rows(decoded) == [{"user": "1.5"}, None, None]
    assert "not a number" in reasons(decoded)[1]


def test_while_the_registry_is_away_nothing_is_refused() -> None:
    with serving() as server:
        number = server.add(VISIT)
        made = decoder(registry_parser(server.url), ("user",), declared={"user": pa.string()})
        payload = numbered(number, {"user": "ann", "n": 2, "x": 1.0, "flag": True})
        server.failures = 3
        with pytest.raises(RegistryUnreachable):
            made.decode(Messages([payload]))
        assert rows(made.decode(Messages([payload]))) == [{"user": "ann"}]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("{", "is not JSON"), ('{"type": "unheard"}', "is not valid Avro"), ('"string"', "is not that of a record")],
)
def test_schema_files_that_are_none(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "visit.avsc"
    path.write_text(content)
    with pytest.raises(RunError, match=sentence):
        avro_parser(1000, schema=path)
    with pytest.raises(InputError, match="cannot be read"):
        avro_parser(1000, schema=tmp_path / "none")
    with pytest.raises(InputError, match="needs a schema"):
        avro_parser(1000)
