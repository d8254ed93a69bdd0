"""Odd tables: whatever the dialect, the types and the damage, the audit never counts more than a plain count does."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import audit_table
from shoal.errors import InputError
from tests.reference.effort import tries

CELL = st.sampled_from([
    "a", "b", "", " ", "a ", "1", "1.0", "01", "-0", "NaN", "null", "NA", '"', 'a"b', ",", ";", "a\nb", "a\r\nb", "\t",
    "*", "\ufeffa", "ä", "a\u0308", "\u2028", "\x0c", "\x00", "#", "'", "\\", "true", "TRUE", "[1, 2]",
])  # fmt: skip


def smallest(rows) -> int:
    return min(Counter(rows).values())


def audited(path, **asked) -> int | None:
    """What the audit counts; None if it refuses the file."""
    try:
        return audit_table(path, quasi=["p", "q"], k=1, **asked).metrics["smallest_k"]
    except InputError:
        return None


@tries(200)
@given(
    st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n", "\r"]), st.booleans(), st.integers(1, 3),
)  # fmt: skip
def test_dialects_of_csv(tmp_path_factory, rows, quoting, end, has_mark, times):
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=quoting, lineterminator=end)
    writer.writerows([("p", "q"), *rows * times])
    path = tmp_path_factory.getbasetemp() / "odd.csv"
    path.write_bytes(b"\xef\xbb\xbf" * has_mark + text.getvalue().encode())
    expected = smallest(rows * times)
    if end == "\r" and any("\n" in cell for row in rows for cell in row):  # the writer does not quote such a cell
        assert audited(path) in {expected, None}
    else:
        assert audited(path) == expected


@tries(300)
@given(st.data())
def test_damaged_csv(tmp_path_factory, data):
    rows = data.draw(st.lists(st.tuples(CELL, CELL), min_size=2, max_size=6))
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([("p", "q"), *rows])
    content = bytearray(text.getvalue().encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(4, len(content)))
        content[at : at + data.draw(st.integers(0, 1))] = data.draw(
            st.sampled_from([b'"', b"\n", b",", b"\r", b"\xff", b""])
        )
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    path.write_bytes(content)
    found = audited(path)
    if found is None:
        return
    text = content.decode(errors="surrogateescape")  # a quote may divide a character
    lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=False) if line]
    assert lines[0] == ["p", "q"]
    assert found <= smallest(tuple(line) for line in lines[1:])


@tries(100)
@given(
    st.lists(st.tuples(st.sampled_from([0, 0.0, -0.0, 1, 1.0, True, "1", "", None, "absent", 1e300]), CELL), min_size=1)
)
def test_json(tmp_path_factory, rows):
    records = [{"p": p, "q": q} if p != "absent" else {"q": q} for p, q in rows]
    path = tmp_path_factory.getbasetemp() / "odd.jsonl"
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    expected = smallest(json.dumps(record) for record in records)
    assert audited(path) in {expected} | ({None} if all("p" not in record for record in records) else set())


COLUMNS = {
    "float": ([0.0, -0.0, float("nan"), None, 1.5], pa.float64()),
    "half": ([0.5, 1.5, None], pa.float16()),
    "nanoseconds": ([1, 2, None, 10**18], pa.timestamp("ns")),
    "zoned": ([1, 2, None, 10**15], pa.timestamp("us", "Europe/Berlin")),
    "span": ([1, 2, 10**12], pa.duration("ns")),
    "clock": ([1, 2, 10**12], pa.time64("ns")),
    "decimal": ([Decimal("1.00"), Decimal("1.01"), None], pa.decimal128(5, 2)),
    "large": (["a", "", None, "a "], pa.large_string()),
    "view": (["a", "", None, "a "], pa.string_view()),
    "binary": ([b"a", b"\xff", None], pa.binary()),
    "dictionary": (["a", "", None, "a "], pa.dictionary(pa.int8(), pa.string())),
    "list": ([[1, 2], [2, 1], [], None], pa.list_(pa.int64())),
    "struct": ([{"a": 1}, {"a": None}, None], pa.struct([("a", pa.int64())])),
    "truth": ([True, False, None], pa.bool_()),
    "nothing": ([None], pa.null()),
}  # fmt: skip


@tries(150)
@given(st.sampled_from(list(COLUMNS)), st.data())
def test_types_of_arrow(tmp_path_factory, name, data):
    values, kind = COLUMNS[name]
    places = data.draw(
        st.lists(st.tuples(st.integers(0, len(values) - 1), st.sampled_from("xy")), min_size=1, max_size=12)
    )
    column = pa.array([values[at] for at, _ in places], kind)
    table = pa.table({"p": column, "q": [text for _, text in places]})
    expected = smallest(places)
    assert audited(table) == expected
    assert audited([table.slice(0, 3), table.slice(3)]) == expected
    path = tmp_path_factory.getbasetemp() / "odd.parquet"
    if name not in {"half", "view"}:
        pq.write_table(
            table, path, row_group_size=data.draw(st.integers(1, 4)), use_dictionary=data.draw(st.booleans())
        )
        assert audited(path) == expected
    path = tmp_path_factory.getbasetemp() / "odd.arrows"
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)
    assert audited(path) == expected


# ---- what was counted wrongly once


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("ns", "Europe/Berlin"), pa.time64("ns"), pa.duration("ns")]
)
def test_nanoseconds_are_told_apart_without_pandas(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    for values, least in (([1, 2], 1), ([1, 1], 2), ([1000, 1001], 1), ([1000, 1000], 2)):
        table = pa.table({"p": pa.array(values, kind), "q": ["x", "x"]})
        assert audited(table) == least
    parts = [pa.table({"p": pa.array([value], kind), "q": ["x"]}) for value in (1000, 1001)]
    assert audited(parts) == 1
    assert audited([pa.table({"p": pa.array([1], kind), "q": ["x"]}), pa.table({"p": ["1"], "q": ["x"]})]) == 1


def test_an_open_quote_does_not_swallow_rows(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('p,q,ill\n1,x,a\n1,x,a\n1,x,"b\n7,unique,c\n8,unique,d\n')
    with pytest.raises(InputError, match="quote is not closed"):
        audit_table(path, quasi=["p", "q"], k=3)
    path.write_text('p,q,ill\n1,x,a\n1,x,a\n1,x,"b\n7,unique,c"\n')
    assert audit_table(path, quasi=["p", "q"], k=3).ok


@pytest.mark.parametrize(
    "names", [[7, 7.0], ["7", " 7"], ["7", "7.0"], [7, "7"], ["é", "e\u0301"], [Decimal(7), 7]], ids=str
)
def test_a_person_written_in_two_ways_is_one_person(names):
    parts = [pa.table({"q": ["x"], "p": ["y"], "who": [name]}) for name in names]
    report = audit_table(parts, quasi=["p", "q"], person="who", k=2)
    assert (report.metrics["smallest_k"], report.metrics["released_people"], report.ok) == (1, 1, False)


@pytest.mark.parametrize("nobody", [float("nan"), None, "", "  "], ids=repr)
def test_nobody_is_no_person(nobody):
    parts = [pa.table({"q": ["x"], "p": ["y"], "who": [name]}) for name in ["ada", nobody]]
    assert audit_table(parts, quasi=["p", "q"], person="who", k=2).metrics["smallest_k"] == 1


@pytest.mark.parametrize(
    "values", [["flu", "flu "], ["1", "1.0"], [1, 1.0], [None, "flu"], ["flu", float("nan")], [True, "TRUE"]], ids=str
)
def test_one_sensitive_value_written_in_two_ways_is_one_value(values):
    parts = [pa.table({"q": ["x"], "p": ["y"], "ill": [value]}) for value in values]
    report = audit_table(parts, quasi=["p", "q"], sensitive="ill", l=2, alpha=0.5)
    assert report.metrics["l"] == {"ill": 1}
    assert report.metrics["entropy_l"]["ill"] == pytest.approx(1)
    assert {found.code for found in report.violations} == {"below-l", "above-alpha"}


@pytest.mark.parametrize("values", [[None, float("nan")], ["", None], [" ", ""]], ids=str)
def test_a_class_without_a_sensitive_value_reveals_none(values):
    parts = [pa.table({"q": ["x"], "p": ["y"], "ill": [value]}) for value in values]
    report = audit_table(parts, quasi=["p", "q"], sensitive="ill", l=2, entropy_l=2, recursive_l=(1, 2), alpha=0.5)
    assert report.ok
    assert "l" not in report.metrics


def test_missing_values_of_a_table_protect_nobody():
    rows = pa.table({"p": ["y"] * 8, "q": ["u"] * 5 + ["v"] * 3, "ill": ["HIV", *[None] * 4, "HIV", "flu", None]})
    report = audit_table(rows, quasi=["p", "q"], sensitive="ill", l=2, t=0.4)
    assert (report.metrics["l"], report.metrics["t"]) == ({"ill": 1}, {"ill": pytest.approx(1 / 3)})
    assert {found.code: found.count for found in report.violations} == {"below-l": 5}
    assert audit_table(rows, quasi=["p", "q"], sensitive="ill", t=0.3).metrics["t"]["ill"] > 0.3
    broken = audit_table(rows, quasi=["p", "q"], sensitive="ill", t=0.3, recursive_l=(2, 2), alpha=0.9).violations
    assert {found.code: found.count for found in broken} == {"above-t": 5, "below-recursive-l": 5, "above-alpha": 5}


def test_closeness_tells_spellings_apart():
    rows = pa.table({"p": ["y"] * 4, "q": ["u", "u", "v", "v"], "ill": ["1", "1", "01", "x"]})
    report = audit_table(rows, quasi=["p", "q"], sensitive="ill")
    assert report.metrics["t"]["ill"] == 0.5
    assert report.metrics["beta"]["ill"] == 1


def test_what_follows_an_arrow_stream_is_not_ignored(tmp_path):
    path = tmp_path / "t.arrows"
    with path.open("wb") as file:
        for value in ("a", "b"):
            table = pa.table({"p": [value] * 3, "q": ["x"] * 3})
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
    with pytest.raises(InputError, match="follows the end of the Arrow stream"):
        audit_table(path, quasi=["p", "q"], k=3)
