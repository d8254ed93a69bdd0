from __future__ import annotations

import gzip
from types import SimpleNamespace

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import csv, feather, parquet

from shoal.auditor.reading.batches import read_batches
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.errors import InputError, PolicyError, TruncatedInput

TABLE = pa.table({"ts": [1, 2, 3], "user": ["u", None, "w"]})
NOWHERE = Format()


def write_stream(table, path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def write_lines(table, path):
    path.write_text(table.to_pandas().to_json(orient="records", lines=True))


WRITERS = {
    "rows.parquet": parquet.write_table,
    "rows.csv": csv.write_csv,
    "rows.arrow": lambda table, path: feather.write_feather(table, path, compression="uncompressed"),
    "rows.arrows": write_stream,
    "rows.jsonl": write_lines,
    "rows": write_lines,
}


def content(rows):
    return rows.moments("ts")[0].tolist(), rows.text("user").to_pylist()


EXPECTED = ([10**9, 2 * 10**9, 3 * 10**9], ["u", None, "w"])


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_every_format_plain_and_packed(tmp_path, name, packed):
    path = tmp_path / name
    WRITERS[name](TABLE, path)
    if packed:
        plain, path = path.read_bytes(), tmp_path / f"{name}{packed}"
        path.write_bytes(gzip.compress(plain) if packed == ".gz" else pa.compress(plain, "zstd", asbytes=True))
    assert content(read(path, name="truth", expected=NOWHERE)) == EXPECTED
    assert content(read(str(path), name="truth", expected=NOWHERE)) == EXPECTED


def test_parquet_that_stores_differences(tmp_path):
    path = tmp_path / "rows.parquet"
    encodings = {"ts": "DELTA_BINARY_PACKED", "user": "DELTA_LENGTH_BYTE_ARRAY"}
    parquet.write_table(TABLE, path, use_dictionary=False, column_encoding=encodings)
    assert content(read(path, name="truth", expected=NOWHERE)) == EXPECTED
    assert content(read(path, name="release", expected=Format(names_once=True))) == EXPECTED
    (batch,) = read_batches(path, ("user",), name="truth", expected=NOWHERE)
    assert batch["user"].to_pylist() == EXPECTED[1]


@pytest.mark.parametrize("what", [TABLE, TABLE.to_batches()[0], TABLE.to_pandas(), pl.from_arrow(TABLE), [TABLE]])
def test_everything_in_memory(what):
    assert content(read(what, name="truth", expected=NOWHERE)) == EXPECTED


def test_the_index_of_a_filtered_frame_is_not_a_column():
    frame = pd.DataFrame({"ts": [1, 2]}).query("ts > 1")
    assert read(frame, name="release", expected=NOWHERE).columns == ["ts"]


def test_an_object_with_rows_and_trace():
    outcome = SimpleNamespace(rows=TABLE, trace=pa.table({"row": [0]}))
    assert content(read(outcome, name="release", expected=NOWHERE)) == EXPECTED
    assert read([outcome, outcome], name="trace", expected=NOWHERE, part="trace").numbers("row").tolist() == [
        0,
        0,
    ]


def test_parts_of_a_folder_come_in_name_order_and_run_on(tmp_path):
    parquet.write_table(TABLE.slice(2), tmp_path / "part-2.parquet")
    csv.write_csv(TABLE.slice(0, 2), tmp_path / "part-1.csv")
    for other in ("_done", ".hidden", "x.dead.jsonl", "y.tmp"):
        (tmp_path / other).write_text("not a part")
    (tmp_path / "folder").mkdir()
    assert content(read(tmp_path, name="release", expected=NOWHERE)) == EXPECTED
    assert content(read(str(tmp_path / "part-*"), name="release", expected=NOWHERE)) == EXPECTED


def test_a_column_that_a_part_lacks_is_null():
    rows = read([TABLE, TABLE.select(["ts"])], name="release", expected=NOWHERE)
    assert rows.text("user").to_pylist() == ["u", None, "w", None, None, None]
    assert len(rows) == 6


def test_the_format_that_a_policy_describes(tmp_path):
    path = tmp_path / "rows"
    path.write_text("1|u\n2|\n3|w\n")
    described = Format.of({"kind": "csv", "delimiter": "|", "header": ["ts", "user"]})
    assert content(read(path, name="truth", expected=described)) == EXPECTED
    (tmp_path / "rows.tsv").write_text("ts\tuser\n1\tu\n2\t\n3\tw\n")
    assert content(read(tmp_path / "rows.tsv", name="truth", expected=NOWHERE)) == EXPECTED


def test_a_delimiter_is_one_character():
    with pytest.raises(PolicyError, match="delimiter"):
        Format.of({"delimiter": "||"})


@pytest.mark.parametrize("what", [None, 3, [3], SimpleNamespace(rows=3)])
def test_what_cannot_be_read_is_an_input_error(what):
    with pytest.raises(InputError, match="truth: give a path"):
        read(what, name="truth", expected=NOWHERE)


def test_files_that_are_not_there_or_torn(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read(tmp_path / "nowhere", name="truth", expected=NOWHERE)
    parquet.write_table(TABLE, tmp_path / "torn.parquet")
    whole = (tmp_path / "torn.parquet").read_bytes()
    (tmp_path / "torn.parquet").write_bytes(whole[:-20])
    with pytest.raises(InputError, match="torn or damaged"):
        read(tmp_path / "torn.parquet", name="truth", expected=NOWHERE)
    (tmp_path / "torn.csv.gz").write_bytes(gzip.compress(b"ts,user\n" * 1000)[:-10])
    with pytest.raises(TruncatedInput, match="torn"):
        read(tmp_path / "torn.csv.gz", name="truth", expected=NOWHERE)
    (tmp_path / "sealed").write_bytes(b"\x00\x01\x02")
    with pytest.raises(InputError, match="neither"):
        read(tmp_path / "sealed", name="truth", expected=NOWHERE)


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_text("ts\n1\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(InputError, match="cannot be read"):
        read(path, name="truth", expected=NOWHERE)


def test_a_doubled_column_is_an_error():
    doubled = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["ts", "ts"])
    with pytest.raises(InputError, match="same name"):
        read(doubled, name="truth", expected=NOWHERE)


@pytest.mark.parametrize("text", ["a,b\n?,x?\n NA ,NA\n", 'a,b\n"?",x?\n NA ,"NA"\n\n"\n'], ids=["tidy", "untidy"])
def test_words_for_a_missing_value(tmp_path, text):
    path = tmp_path / "truth.csv"
    path.write_text(text)
    rows = read(path, name="truth", expected=Format.of({"kind": "csv", "nulls": ["?", "NA"]}))
    assert rows.text("a").to_pylist()[:2] == [None, None]
    assert rows.text("b").to_pylist()[:2] == ["x?", None]
    as_written = read(path, name="truth", expected=Format.of({"kind": "csv"}))
    assert as_written.text("a").to_pylist()[:2] == ["?", " NA "]
