"""Parquet and Arrow: types, damage, truncation, resuming."""

from __future__ import annotations

import io
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.decode import decoder_for
from shoal.decode.arrow import ArrowDecoder
from shoal.decode.base import Decoder, plain_type
from shoal.decode.parquet import ParquetDecoder, _has_few_values
from shoal.decode.tables import is_widening
from shoal.errors import InputError, TruncatedInput
from tests.decode.test_csv import Memory, aligned, until_error

TABLE = pa.table({"user": [f"u{n}" for n in range(100)], "n": list(range(100)), "x": [0.5] * 100})


def parquet(table: pa.Table = TABLE, rows: int = 30) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=rows)
    return out.getvalue()


def arrow_file(table: pa.Table = TABLE, rows: int = 30) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return out.getvalue()


def arrow_stream(table: pa.Table = TABLE, rows: int = 30) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return out.getvalue()


FORMATS = [
    pytest.param(ParquetDecoder, parquet, id="parquet"),
    pytest.param(ArrowDecoder, arrow_file, id="arrow-file"),
    pytest.param(ArrowDecoder, arrow_stream, id="arrow-stream"),
]
each_format = pytest.mark.parametrize(("decoder", "write"), FORMATS)
Write = Callable[..., bytes]


def rows_of(decoder: Decoder, position: dict[str, int] | None = None) -> list[dict[str, Any]]:
    return [row for part in decoder.batches(position) for row in aligned(part).to_pylist()]


@each_format
def test_needed_columns_in_order(decoder: type[Decoder], write: Write) -> None:
    found = decoder(Memory(write()), columns=["n", "user"])
    assert found.schema == pa.schema([("n", pa.int64()), ("user", pa.string())])
    assert rows_of(found) == TABLE.select(["n", "user"]).to_pylist()
    assert rows_of(found) == TABLE.select(["n", "user"]).to_pylist()  # opened again


@each_format
def test_resume_from_every_position(decoder: type[Decoder], write: Write, monkeypatch: Any) -> None:
    monkeypatch.setattr("shoal.decode.parquet.BATCH_ROWS", 7)
    expected = TABLE.to_pylist()
    seen = 0
    for part in decoder(Memory(write()), columns=TABLE.column_names).batches():
        seen += part.rows
        assert part.lines is None
        assert rows_of(decoder(Memory(write()), columns=TABLE.column_names), part.position) == expected[seen:]
    assert seen == 100


@each_format
def test_no_rows(decoder: type[Decoder], write: Write) -> None:
    assert rows_of(decoder(Memory(write(TABLE.slice(0, 0))), columns=["n"])) == []


@each_format
def test_missing_and_duplicate_columns(decoder: type[Decoder], write: Write) -> None:
    with pytest.raises(InputError, match=r"^visits.csv: there is no column 'who' among its 3 columns") as error:
        list(decoder(Memory(write()), columns=["who"]).batches())
    assert "user" not in str(error.value)
    twice = TABLE.rename_columns(["user", "n", "n"])
    with pytest.raises(InputError, match="several columns are named 'n'"):
        list(decoder(Memory(write(twice)), columns=["n"]).batches())
    assert len(rows_of(decoder(Memory(write(twice)), columns=["user"]))) == 100


@each_format
@pytest.mark.parametrize(
    "kind",
    [
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.large_string()),
    ],
)
def test_all_text_is_plain_text(decoder: type[Decoder], write: Write, kind: pa.DataType) -> None:
    text = pa.array(["x", None, "y", "x"], pa.string())
    column = text.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else text.cast(kind)
    found = decoder(Memory(write(pa.table({"a": column}))), columns=["a"])
    assert found.schema.field("a").type == pa.string()
    assert [row["a"] for row in rows_of(found)] == ["x", None, "y", "x"]


@each_format
def test_declared_types(decoder: type[Decoder], write: Write) -> None:
    types = {"n": pa.int32(), "x": pa.float32(), "user": pa.large_string()}
    found = decoder(Memory(write()), columns=["n", "x", "user"], types=types)
    assert found.schema.types == [pa.int32(), pa.float32(), pa.string()]
    assert rows_of(found)[99] == {"n": 99, "x": 0.5, "user": "u99"}
    with pytest.raises(InputError, match=r"visits.csv: column 'user' has type string where int64 is expected"):
        _ = decoder(Memory(write()), columns=["user"], types={"user": pa.int64()}).schema


@each_format
def test_a_value_that_does_not_fit_costs_its_row(decoder: type[Decoder], write: Write) -> None:
    data = write(pa.table({"n": [1, 2**40, 3], "user": ["secret"] * 3}))
    (part,) = decoder(Memory(data), columns=["n", "user"], types={"n": pa.int32()}).batches()
    assert aligned(part).to_pylist()[1] == {"n": None, "user": None}
    assert [(p.row, p.column, p.reason) for p in part.refused] == [
        (1, "n", "not a value of type int32; correct it, or [source] types")
    ]


@each_format
def test_text_that_is_not_utf8_costs_its_row(decoder: type[Decoder], write: Write) -> None:
    raw = pa.array([b"x", b"\xff\xfe", None], pa.binary())
    (part,) = decoder(Memory(write(pa.table({"a": raw.view(pa.string())}))), columns=["a"]).batches()
    assert aligned(part).column(0).to_pylist() == ["x", None, None]
    assert [(p.row, p.column, p.reason) for p in part.refused] == [
        (1, "a", "not valid UTF-8; convert the file to UTF-8")
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_parquet_texts_that_repeat_are_read_once(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.decode.parquet.BATCH_ROWS", 70)
    raw = pa.array([b"x", None, b"\xff\xfe", b"a longer text", b""] * 200, pa.binary())
    file = io.BytesIO()
    table = pa.table({"a": raw.view(pa.string()).cast(kind), "b.c": ["y"] * 1000, "user": map(str, range(1000))})
    pq.write_table(table, file, row_group_size=300)
    found = ParquetDecoder(Memory(file.getvalue()), columns=["a", "b.c", "user"])
    parts = list(found.batches())
    assert found.schema.types == [pa.string()] * 3
    assert [row["a"] for part in parts for row in aligned(part).to_pylist()] == [
        "x",
        None,
        None,
        "a longer text",
        "",
    ] * 200
    assert sum(len(part.refused) for part in parts) == 200
    assert {one.reason for part in parts for one in part.refused} == {"not valid UTF-8; convert the file to UTF-8"}
    with found:
        assert [pa.types.is_dictionary(kind) for kind in found._parquet().schema_arrow.types] == [True, True, False]


def test_parquet_texts_are_not_read_as_a_dictionary_where_arrow_cannot() -> None:
    for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
        file = io.BytesIO()
        pq.write_table(TABLE, file, use_dictionary=["n"], column_encoding={"user": encoding})
        assert rows_of(ParquetDecoder(Memory(file.getvalue()), columns=["user"])) == TABLE.select(["user"]).to_pylist()
    # other writers begin with a dictionary and give it up when it grows
    given_up = {"has_dictionary_page": True, "num_values": 1000, "total_uncompressed_size": 1000}
    for encodings, expected in ((("RLE", "RLE_DICTIONARY"), True), (("RLE_DICTIONARY", "DELTA_BYTE_ARRAY"), False)):
        chunk = SimpleNamespace(encodings=encodings, **given_up)
        schema = SimpleNamespace(column=lambda _: SimpleNamespace(path="a"))
        group = SimpleNamespace(column=lambda _, chunk=chunk: chunk)
        metadata = SimpleNamespace(num_row_groups=1, num_columns=1, schema=schema, row_group=lambda _, g=group: g)
        assert _has_few_values(metadata, "a") is expected


@each_format
def test_something_else_entirely(decoder: type[Decoder], write: Write) -> None:
    for data in (b"", b"x", b"user,n\nsecret,1\n" * 10):
        with pytest.raises(InputError, match=r"^visits.csv: ") as error:
            _ = decoder(Memory(data), columns=["n"]).schema
        assert "secret" not in str(error.value)
        assert error.value.__cause__ is None


@pytest.mark.parametrize("write", [arrow_file, arrow_stream])
def test_truncated_arrow_gives_complete_batches(write: Write) -> None:
    whole = write()
    previous = -1
    for size in range(8, len(whole), 61):
        rows, error = until_error(ArrowDecoder(Memory(whole[:size]), columns=["n"]))
        # A stream may end after any batch.
        assert isinstance(error, TruncatedInput) or "in its schema" in str(error) or write is arrow_stream
        assert rows == list(range(len(rows)))
        assert len(rows) % 30 == 0 or len(rows) == 100
        assert len(rows) >= previous
        previous = len(rows)
    assert previous >= 90


def test_arrow_file_without_its_footer_is_truncated() -> None:
    whole = arrow_file()
    end_of_stream = whole.rindex(b"\xff\xff\xff\xff\x00\x00\x00\x00")
    rows, error = until_error(ArrowDecoder(Memory(whole[:end_of_stream]), columns=["n"]))
    assert len(rows) == 100
    assert isinstance(error, TruncatedInput)


def test_error_of_the_source_comes_through() -> None:
    whole = arrow_stream()
    memory = Memory(whole[: len(whole) // 2], failure=TruncatedInput("visits.csv: the gzip data breaks off"))
    with pytest.raises(TruncatedInput, match="gzip"):
        list(ArrowDecoder(memory, columns=["n"]).batches())


def test_error_of_the_source_in_the_schema() -> None:
    memory = Memory(arrow_stream()[:8], failure=TruncatedInput("visits.csv: the gzip data breaks off"))
    with pytest.raises(TruncatedInput, match="gzip"):
        _ = ArrowDecoder(memory, columns=["n"]).schema


def test_damage_in_the_middle_of_arrow() -> None:
    data = bytearray(arrow_stream())
    second = data.index(b"\xff\xff\xff\xff", len(data) // 2)
    data[second + 4 : second + 8] = b"\x08\x00\x00\x00"
    rows, error = until_error(ArrowDecoder(Memory(bytes(data)), columns=["n"]))
    assert rows == list(range(len(rows)))
    assert "damaged" in str(error)


def test_encoded_and_extension_columns() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["x", "y"]))
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * 3, pa.binary(16)))
    found = ArrowDecoder(Memory(arrow_stream(pa.table({"a": runs, "b": uuids}))), columns=["a", "b"])
    assert found.schema.types == [pa.string(), pa.binary(16)]
    assert rows_of(found) == [{"a": value, "b": b"0" * 16} for value in "xxy"]


def test_damaged_arrow_offsets_are_noticed() -> None:
    data = bytearray(arrow_stream(pa.table({"a": ["abc", "def"]})))
    at = data.rindex(b"\x00\x00\x00\x00\x03\x00\x00\x00\x06\x00\x00\x00")
    data[at + 4 : at + 8] = b"\xff\xff\xff\x7f"
    with pytest.raises(InputError, match="column 'a' is damaged"):
        list(ArrowDecoder(Memory(bytes(data)), columns=["a"]).batches())


def test_large_arrow_batches_are_cut() -> None:
    table = pa.table({"n": list(range(150_000))})
    parts = list(ArrowDecoder(Memory(arrow_stream(table, rows=150_000)), columns=["n"]).batches())
    assert [part.rows for part in parts] == [65_536, 65_536, 18_928]
    assert parts[0].position == {"batch": 0, "row": 65_536}
    rest = list(ArrowDecoder(Memory(arrow_stream(table, rows=150_000)), columns=["n"]).batches(parts[1].position))
    assert rest[0].batch.column(0).to_pylist() == list(range(131_072, 150_000))


def test_truncated_parquet() -> None:
    with pytest.raises(TruncatedInput, match="breaks off before its footer"):
        _ = ParquetDecoder(Memory(parquet()[:-20]), columns=["n"]).schema


def test_a_damaged_row_group_stops_after_what_comes_before() -> None:
    data = bytearray(parquet())
    start = pq.ParquetFile(pa.BufferReader(bytes(data))).metadata.row_group(2).column(1).dictionary_page_offset
    data[start : start + 40] = b"\xff" * 40
    rows, error = until_error(ParquetDecoder(Memory(bytes(data)), columns=["n"]))
    assert rows == list(range(60))
    assert isinstance(error, TruncatedInput)
    assert str(error).startswith("visits.csv: row group 3 of 4 cannot be read")


def test_wide_rows_make_small_batches(monkeypatch: Any) -> None:
    monkeypatch.setattr("shoal.decode.parquet._BATCH_BYTES", 1000)
    table = pa.table({"a": [f"{n:0500d}" for n in range(20)]})
    out = io.BytesIO()
    pq.write_table(table, out, compression="none", use_dictionary=False)
    parts = list(ParquetDecoder(Memory(out.getvalue()), columns=["a"]).batches())
    assert max(part.rows for part in parts) <= 2


def test_plain_types() -> None:
    assert plain_type(pa.large_list(pa.string_view())) == pa.list_(pa.string())
    assert plain_type(pa.large_binary()) == pa.binary()
    assert plain_type(pa.run_end_encoded(pa.int32(), pa.int8())) == pa.int8()
    assert plain_type(pa.uuid()) == pa.binary(16)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (pa.int8(), pa.int64(), True),
        (pa.int64(), pa.float64(), True),
        (pa.float64(), pa.int64(), False),
        (pa.float32(), pa.float64(), True),
        (pa.null(), pa.string(), True),
        (pa.large_string(), pa.string(), True),
        (pa.int64(), pa.string(), False),
        (pa.string(), pa.timestamp("ns"), False),
        (pa.timestamp("ms"), pa.timestamp("ns"), True),
        (pa.bool_(), pa.int64(), False),
    ],
)
def test_which_types_may_take_which(source: pa.DataType, target: pa.DataType, expected: bool) -> None:
    assert is_widening(source, target) is expected


def test_decoder_for() -> None:
    assert decoder_for("parquet") is ParquetDecoder
    assert decoder_for("arrow") is ArrowDecoder
