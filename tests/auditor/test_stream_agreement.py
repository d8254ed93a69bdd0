"""Publisher and auditor read [stream] alike: what numbers in the time column count, and rows as persons."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.errors import InputError, PolicyError
from shoal.methods.arrow_input import with_gaps
from shoal.pipeline.wiring import make_decoder, make_files
from shoal.policy import parse_policy
from tests.auditor.time_cases import TIME_CASES

COLUMNS = ("t", "row", "a")


def policy_of(person: str = "row", unit: str | None = None, kind: str = "parquet") -> dict[str, Any]:
    return {
        "stream": {"person": person, "time": "t"} | ({} if unit is None else {"time_unit": unit}),
        "source": {"kind": kind, "path": f"in*.{kind}"},
        "anonymize": {"method": "z-anonymity", "attribute": "a", "z": 2, "window": "1h"},
        "sink": {"kind": "csv", "path": "out.csv"},
    }


def published(folder, table: dict[str, Any]) -> tuple[pa.Table, list[int]]:
    """What the publisher reads in all files, and which rows are refused."""
    policy, types, batches, refused = parse_policy(table, folder=folder), None, [], []
    for file in make_files(policy):
        rows = sum(batch.num_rows for batch in batches)
        with make_decoder(policy, file, COLUMNS, types, first_row=rows) as decoder:
            for decoded in decoder.batches():
                refused += [rows + one.row for one in decoded.refused]
                batches.append(with_gaps(decoded.batch, decoded.places))
                rows += decoded.rows
            types = decoder.types
    return pa.Table.from_batches(batches), refused


def audited(folder, table: dict[str, Any]) -> Rows:
    rows = read(sorted(folder.glob("in*")), name="truth", expected=Format.of_source(table["source"]))
    return by_stream(rows, table["stream"])


@pytest.mark.parametrize(("unit", "column", "expected"), TIME_CASES.values(), ids=TIME_CASES)
def test_times(tmp_path, unit: str, column: Any, expected: list[int | None]) -> None:
    pq.write_table(pa.table({"t": column, "a": ["x"] * len(column)}), tmp_path / "in.parquet")
    table, refused = published(tmp_path, policy_of(unit=unit))
    truth = audited(tmp_path, policy_of(unit=unit))
    times, valid = truth.moments("t")
    assert [int(time) if there else None for time, there in zip(times, valid, strict=True)] == expected
    assert table["t"].cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist() == expected
    # What is there and no time is refused on both sides.
    wrong = [row for row, value in enumerate(column.to_pylist()) if value is not None and expected[row] is None]
    assert refused == np.flatnonzero(truth.broken).tolist() == wrong
    assert truth.text("row").to_pylist() == [None if row in wrong else str(row) for row in range(len(column))]


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
def test_rows_are_numbered_over_all_files(tmp_path, kind: str) -> None:
    for name, rows in (("in1", 3), ("in2", 2)):
        lines = [{"t": number, "a": "x"} for number in range(rows)]
        path = tmp_path / f"{name}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(lines), path)
        elif kind == "csv":
            path.write_text("t,a\n" + "".join(f"{line['t']},x\n" for line in lines))
        else:
            path.write_text("".join(f'{{"t": {line["t"]}, "a": "x"}}\n' for line in lines))
    table, _ = published(tmp_path, policy_of(kind=kind))
    assert table["row"].to_pylist() == list(range(5))
    assert table.column_names == list(COLUMNS)
    assert audited(tmp_path, policy_of(kind=kind)).text("row").to_pylist() == list("01234")


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_an_unreadable_record_has_no_person(tmp_path, kind: str) -> None:
    text = {"csv": "t,a\n1,x\n1,2,3\n2,y\n", "jsonl": '{"t": 1, "a": "x"}\n{\n{"t": 2, "a": "y"}\n'}[kind]
    (tmp_path / f"in.{kind}").write_text(text)
    table, refused = published(tmp_path, policy_of(kind=kind))
    assert refused == [1]
    assert table["row"].to_pylist() == [0, None, 2]
    assert audited(tmp_path, policy_of(kind=kind)).text("row").to_pylist() == ["0", None, "2"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_real_column_is_used(tmp_path, kind: str) -> None:
    text = {
        "csv": "t,row,a\n1,ann,x\n2,bob,y\n3,ann,y\n",
        "jsonl": '{"t": 1, "row": "ann", "a": "x"}\n{"t": 2, "row": "bob", "a": "y"}\n{"t": 3, "row": "ann"}\n',
    }
    (tmp_path / f"in.{kind}").write_text(text[kind])
    table, _ = published(tmp_path, policy_of(kind=kind))
    assert table["row"].to_pylist() == ["ann", "bob", "ann"]
    assert audited(tmp_path, policy_of(kind=kind)).text("row").to_pylist() == ["ann", "bob", "ann"]


def test_times_in_json_lines(tmp_path) -> None:
    values = ["1700000000123", "1.5", "null", '"1700000000123"', '"2023-11-14T22:13:20Z"', '"soon"', "1e30"]
    (tmp_path / "in.jsonl").write_text("".join(f'{{"t": {value}, "a": "x"}}\n' for value in values) + '{"a": "y"}\n')
    table, refused = published(tmp_path, policy_of(unit="ms", kind="jsonl"))
    truth = audited(tmp_path, policy_of(unit="ms", kind="jsonl"))
    times, valid = truth.moments("t")
    found = [int(time) if there else None for time, there in zip(times, valid, strict=True)]
    at = 1_700_000_000_123_000_000
    assert found == [at, 1_500_000, None, at, 1_700_000_000_000_000_000, None, None, None]
    assert table["t"].cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist() == found
    assert refused == np.flatnonzero(truth.broken).tolist() == [5, 6]


def test_a_truth_without_the_time_column_is_unchanged(tmp_path) -> None:
    (tmp_path / "in.csv").write_text("a\nx\n")
    assert audited(tmp_path, policy_of(unit="ms", kind="csv")).columns == ["a", "row"]


def test_a_later_file_with_such_a_column_is_refused(tmp_path) -> None:
    (tmp_path / "in1.csv").write_text("t,a\n1,x\n")
    (tmp_path / "in2.csv").write_text("t,a,row\n1,x,ann\n")
    with pytest.raises(InputError, match=r"in2.csv: has a column 'row' but the first file does not"):
        published(tmp_path, policy_of(kind="csv"))


def test_another_name_is_a_column(tmp_path) -> None:
    (tmp_path / "in.csv").write_text("t,a\n1,x\n")
    with pytest.raises(InputError, match="there is no column 'row'"):
        published(tmp_path, policy_of("user", kind="csv"))
    assert "row" not in audited(tmp_path, policy_of("user", kind="csv")).columns


def test_the_auditor_on_an_unknown_unit(tmp_path) -> None:
    with pytest.raises(PolicyError, match=r"\[stream\] time_unit: must be one of s, ms, us, ns"):
        by_stream(Rows((), "truth"), policy_of(unit="h")["stream"])
