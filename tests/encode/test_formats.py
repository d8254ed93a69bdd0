"""Every format and compression: round trips, pieces one after another, pieces joined, values as text."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from shoal.encode import encoder_for
from shoal.encode.arrow import ArrowEncoder, ArrowStreamEncoder
from shoal.encode.base import Encoder
from shoal.encode.csv import CsvEncoder
from shoal.encode.jsonl import JsonlEncoder
from shoal.encode.parquet import ParquetEncoder
from shoal.errors import OutputError, PolicyError
from tests.reference.effort import tries

INTERVAL = pa.struct([("lo", pa.float64()), ("hi", pa.float64())])
SCHEMA = pa.schema([("user", pa.string()), ("age", INTERVAL), ("n", pa.int64())])
ROWS = [
    {"user": "ann", "age": {"lo": 20.0, "hi": 29.5}, "n": 1},
    {"user": 'q"u,o\nte\r', "age": None, "n": None},
    {"user": None, "age": {"lo": 0.0, "hi": 1.0}, "n": -3},
    {"user": "", "age": {"lo": -1.5, "hi": 1e20}, "n": 2**62},
    {"user": "жЖ🐟\\", "age": {"lo": 1.0, "hi": 1.0}, "n": 0},
]


def batch(rows: list[dict[str, Any]] = ROWS, schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=schema)


def unzstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()


def read_arrow(data: bytes) -> list[dict[str, Any]]:
    opened = pa.ipc.open_file(data) if data.startswith(b"ARROW1") else pa.ipc.open_stream(data)
    return list(opened.read_all().to_pylist())


def read_jsonl(data: bytes) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in data.decode().split("\n")[:-1]]
    for row in rows:
        row["age"] = row["age"] and dict(zip(("lo", "hi"), row["age"], strict=True))
    return rows


def read_csv(data: bytes) -> list[dict[str, Any]]:
    header, *lines = csv.reader(io.StringIO(data.decode(), newline=""))
    assert header == SCHEMA.names
    return [
        {
            "user": user or None,
            "age": dict(zip(("lo", "hi"), map(float, age[1:-1].split(", ")), strict=True)) if age else None,
            "n": int(n) if n else None,
        }
        for user, age, n in lines
    ]


def read_parquet(data: bytes) -> list[dict[str, Any]]:
    return list(pq.read_table(io.BytesIO(data)).to_pylist())


def same(data: bytes) -> bytes:
    return data


Read = Callable[[bytes], list[dict[str, Any]]]
TEXT = [
    pytest.param(
        made(compression=kind),
        lambda data, unpack=unpack, read=read: read(unpack(data)),
        id=f"{made.__name__}-{kind}",
    )
    for made, read in ((CsvEncoder, read_csv), (JsonlEncoder, read_jsonl))
    for kind, unpack in (("none", same), ("gzip", gzip.decompress), ("zstd", unzstd))
]
APPENDABLE = [*TEXT, pytest.param(ArrowStreamEncoder(), read_arrow, id="stream")]
JOINED = [
    pytest.param(ArrowEncoder(), read_arrow, id="file"),
    *(
        pytest.param(ParquetEncoder(compression=kind), read_parquet, id=f"parquet-{kind}")
        for kind in ("zstd", "snappy", "lz4", "gzip", "none")
    ),
    pytest.param(ParquetEncoder(varied=["user", "age", "n"]), read_parquet, id="parquet-varied"),
]


def encode(encoder: Encoder, *batches: pa.RecordBatch, fresh: bool = True) -> bytes:
    out = io.BytesIO()
    writer = encoder.open(out, SCHEMA, fresh=fresh)
    for one in batches:
        writer.write(one)
    writer.close()
    assert not out.closed
    return out.getvalue()


def expected(read_back: list[dict[str, Any]], rows: list[dict[str, Any]] = ROWS) -> bool:
    """CSV readers cannot distinguish an empty text from a missing one."""
    return read_back in (rows, [row | {"user": row["user"] or None} for row in rows])


@pytest.mark.parametrize(("encoder", "read"), APPENDABLE + JOINED)
def test_round_trip(encoder: Encoder, read: Read) -> None:
    assert expected(read(encode(encoder, batch())))
    assert read(encode(encoder)) == []
    assert expected(read(encode(encoder, batch()[:0], batch()[:2], batch()[2:])))


@pytest.mark.parametrize(("encoder", "read"), APPENDABLE + JOINED)
def test_same_input_same_bytes(encoder: Encoder, read: Read) -> None:
    assert encode(encoder, batch()) == encode(encoder, batch())


@pytest.mark.parametrize(("encoder", "read"), APPENDABLE)
def test_pieces_one_after_another_are_one_file(encoder: Encoder, read: Read) -> None:
    assert encoder.appendable
    pieces = [
        encode(encoder),
        *(encode(encoder, batch(), fresh=False) for _ in range(2)),
        encode(encoder, fresh=False),
    ]
    assert expected(read(b"".join(pieces)), ROWS * 2)
    with pytest.raises(NotImplementedError):
        encoder.join([], io.BytesIO(), SCHEMA)


@pytest.mark.parametrize(("encoder", "read"), JOINED)
def test_pieces_joined(encoder: Encoder, read: Read) -> None:
    assert not encoder.appendable
    out = io.BytesIO()
    encoder.join([io.BytesIO(encode(encoder, part)) for part in (batch(), batch()[:0], batch())], out, SCHEMA)
    assert read(out.getvalue()) == ROWS * 2
    assert not out.closed


@pytest.mark.parametrize(("encoder", "read"), APPENDABLE + JOINED)
def test_error_of_the_sink_comes_through(encoder: Encoder, read: Read) -> None:
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any, /) -> int:
            raise OutputError("out: no space is left")

    def write() -> None:
        writer = encoder.open(Full(), SCHEMA, fresh=True)  # type: ignore[arg-type]
        writer.write(batch())
        writer.close()

    with pytest.raises(OutputError, match="no space"):
        write()


def test_suffixes() -> None:
    assert [CsvEncoder(compression=kind).suffix for kind in ("none", "gzip", "zstd")] == [
        ".csv",
        ".csv.gz",
        ".csv.zst",
    ]
    assert JsonlEncoder(compression="gzip").suffix == ".jsonl.gz"
    assert (ParquetEncoder().suffix, ArrowEncoder().suffix, ArrowStreamEncoder().suffix) == (
        ".parquet",
        ".arrow",
        ".arrows",
    )


def test_encoder_for() -> None:
    kinds = {
        "csv": CsvEncoder,
        "jsonl": JsonlEncoder,
        "parquet": ParquetEncoder,
        "arrow": ArrowEncoder,
        "arrow-stream": ArrowStreamEncoder,
    }
    assert {kind: encoder_for(kind) for kind in kinds} == kinds
    with pytest.raises(PolicyError, match="format: 'xml' is unknown"):
        encoder_for("xml")


def test_bad_options() -> None:
    for wrong in (
        lambda: CsvEncoder(compression="rar"),  # type: ignore[arg-type]
        lambda: CsvEncoder(delimiter='"'),
        lambda: JsonlEncoder(compression="snappy"),  # type: ignore[arg-type]
        lambda: ParquetEncoder(compression="rar"),
    ):
        with pytest.raises(PolicyError):
            wrong()


def test_gzip_has_no_time_in_it() -> None:
    assert encode(CsvEncoder(compression="gzip"))[4:8] == b"\0\0\0\0"


def test_csv_text() -> None:
    text = encode(CsvEncoder(), batch()).decode()
    assert text.startswith('"user","age","n"\n"ann","[20, 29.5]",1\n"q""u,o\nte\r",,\n,"[0, 1]",-3\n"",')
    assert encode(CsvEncoder(delimiter=";"), batch()[:1]).decode().endswith('\n"ann";"[20, 29.5]";1\n')


def lines_of(column: pa.Array, encoder: Encoder) -> list[str]:
    out = io.BytesIO()
    rows = pa.record_batch({"a": column})
    writer = encoder.open(out, rows.schema, fresh=False)
    writer.write(rows)
    writer.close()
    return out.getvalue().decode().splitlines()


NS = 1_000_000_000
WHEN = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("column", "in_csv", "in_json"),
    [
        (
            pa.array([0, 1_500_000_000, 86_400 * NS + 10, None], pa.timestamp("ns")),
            ['"1970-01-01T00:00:00"', '"1970-01-01T00:00:01.5"', '"1970-01-02T00:00:00.00000001"', ""],
            ['"1970-01-01T00:00:00"', '"1970-01-01T00:00:01.5"', '"1970-01-02T00:00:00.00000001"', "null"],
        ),
        (
            pa.array([600, 0], pa.timestamp("s")),
            ['"1970-01-01T00:10:00"', '"1970-01-01T00:00:00"'],
            ['"1970-01-01T00:10:00"', '"1970-01-01T00:00:00"'],
        ),
        (
            pa.array([1500], pa.timestamp("ms", "Europe/Rome")),
            ['"1970-01-01T00:00:01.5Z"'],
            ['"1970-01-01T00:00:01.5Z"'],
        ),
        (
            pa.array([1.0, 0.1, float("nan"), float("inf"), None]),
            ["1", "0.1", "", "inf", ""],
            ["1.0", "0.1", "null", "null", "null"],
        ),
        (pa.array([-2.0, 1e20, 1e-7]), ["-2", "1e+20", "1e-7"], ["-2.0", "1e+20", "1e-7"]),
        (pa.array([True, None, False]), ["true", "", "false"], ["true", "null", "false"]),
        (pa.array(["x", "", None]).dictionary_encode(), ['"x"', '""', ""], ['"x"', '""', "null"]),
        (pa.array(["x"], pa.large_string()), ['"x"'], ['"x"']),
        (pa.array(["x"], pa.string_view()), ['"x"'], ['"x"']),
        (pa.array([b"\xff\x00", None]), ['"ff00"', ""], ['"ff00"', "null"]),
        (pa.array([None, None]), ["", ""], ["null", "null"]),
        (pa.array([WHEN]), ['"2024-02-29"'], ['"2024-02-29"']),
        (pa.array([Decimal("1.50")]), ['"1.50"'], ["1.50"]),
        (
            pa.array([["a", 'b"'], [], None, [None]]),
            ['"[""a"",""b\\""""]"', '"[]"', "", '"[null]"'],
            ['["a","b\\""]', "[]", "null", "[null]"],
        ),
        (pa.array([{"k": 1}, None]), ['"{""k"":1}"', ""], ['{"k":1}', "null"]),
        (
            pa.array([{"lo": 1, "hi": 5}, {"lo": None, "hi": 2}]),
            ['"[1, 5]"', '"[, 2]"'],
            ["[1,5]", "[null,2]"],
        ),
    ],
)
def test_values_as_text(column: pa.Array, in_csv: list[str], in_json: list[str]) -> None:
    assert lines_of(column, CsvEncoder()) == in_csv
    assert lines_of(column, JsonlEncoder()) == [f'{{"a":{value}}}' for value in in_json]
    # Slices know where they start.
    assert lines_of(column[1:], JsonlEncoder()) == [f'{{"a":{value}}}' for value in in_json[1:]]
    assert lines_of(column[1:], CsvEncoder()) == in_csv[1:]


def test_encoded_and_extension_columns() -> None:
    assert lines_of(pa.RunEndEncodedArray.from_arrays([2], pa.array(["x"])), JsonlEncoder()) == ['{"a":"x"}'] * 2
    uuids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\x0f" * 16], pa.binary(16)))
    assert lines_of(uuids, CsvEncoder()) == ['"' + "0f" * 16 + '"']


def test_large_text_makes_several_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.encode.compression._FRAME_BYTES", 100)
    data = encode(JsonlEncoder(compression="zstd"), *[batch()] * 9)
    assert data.count(b"\x28\xb5\x2f\xfd") > 3
    assert read_jsonl(unzstd(data)) == ROWS * 9


def test_json_keys_are_escaped() -> None:
    out = io.BytesIO()
    rows = pa.record_batch({'a"b': [1], "c": ["x"]})
    JsonlEncoder().open(out, rows.schema, fresh=True).write(rows)
    assert out.getvalue() == b'{"a\\"b":1,"c":"x"}\n'


def test_parquet_makes_one_group_of_small_batches() -> None:
    found = pq.ParquetFile(io.BytesIO(encode(ParquetEncoder(), *[batch()] * 50))).metadata
    assert found.num_row_groups == 1
    assert found.num_rows == 250


def test_parquet_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.encode.parquet._GROUP_BYTES", 1000)
    found = pq.ParquetFile(io.BytesIO(encode(ParquetEncoder(), *[batch()] * 50))).metadata
    assert found.num_row_groups > 5


def test_parquet_encodes_columns_by_what_they_hold() -> None:
    data = encode(ParquetEncoder(varied=["user", "age", "n", "elsewhere"]), batch())
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(4)}
    assert not any(column.has_dictionary_page for column in columns.values())
    assert "DELTA_LENGTH_BYTE_ARRAY" in columns["user"].encodings
    assert "DELTA_BINARY_PACKED" in columns["n"].encodings
    assert "PLAIN" in columns["age.lo"].encodings
    assert [name for name, column in columns.items() if column.is_stats_set] == ["age.lo", "age.hi", "n"]
    assert polars.read_parquet(io.BytesIO(data)).to_dicts() == ROWS


def test_names_with_dots_are_written_without_a_dictionary_too() -> None:
    rows = pa.record_batch({"id.orig_h": ["a", "b"], "id": ["c", "c"], "id.at": [{"x": 1}, {"x": 2}]})
    out = io.BytesIO()
    writer = ParquetEncoder(varied=["id.orig_h", "id.at"]).open(out, rows.schema, fresh=True)
    writer.write(rows)
    writer.close()
    file = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert file.read().to_pylist() == rows.to_pylist()
    group = file.metadata.row_group(0)
    found = {group.column(at).path_in_schema: group.column(at).has_dictionary_page for at in range(group.num_columns)}
    assert found == {"id.orig_h": False, "id": True, "id.at.x": False}


def test_parquet_columns_have_a_dictionary_if_their_values_may_repeat() -> None:
    group = pq.ParquetFile(io.BytesIO(encode(ParquetEncoder(varied=["n"]), batch()))).metadata.row_group(0)
    assert [group.column(at).has_dictionary_page for at in range(4)] == [True, True, True, False]


def test_dictionary_columns_in_arrow_go_plain() -> None:
    rows = pa.record_batch({"a": pa.array(["x", "y", "x"]).dictionary_encode()})
    for encoder in (ArrowEncoder(), ArrowStreamEncoder()):
        out = io.BytesIO()
        writer = encoder.open(out, rows.schema, fresh=True)
        writer.write(rows)
        writer.close()
        assert read_arrow(out.getvalue()) == [{"a": "x"}, {"a": "y"}, {"a": "x"}]


@tries(100)
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "user": st.none() | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5),
                "age": st.none()
                | st.fixed_dictionaries({k: st.floats(allow_nan=False, allow_infinity=False) for k in ("lo", "hi")}),
                "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            }
        ),
        max_size=5,
    )
)
def test_text_round_trip_of_anything(rows: list[dict[str, Any]]) -> None:
    assert read_jsonl(encode(JsonlEncoder(), batch(rows))) == rows
    assert expected(read_csv(encode(CsvEncoder(), batch(rows))), rows)
