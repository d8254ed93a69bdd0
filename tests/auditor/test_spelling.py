"""Equal rows that are written differently can be distinguished; the auditor convicts them."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor import audit
from shoal.auditor.counting import shared_codes
from shoal.auditor.layout import odd_csv_rows, odd_json_rows
from shoal.auditor.reading.rows import Rows
from shoal.auditor.spelling import odd_spellings, spellings_of
from shoal.encode.csv import CsvEncoder
from shoal.encode.jsonl import JsonlEncoder
from tests.reference.effort import tries

QUASI = {
    "x": {"kind": "numeric", "low": 0, "high": 10, "grid": 0.5},
    "when": {"kind": "numeric", "low": "2024-01-01", "high": "2024-01-02", "grid": "1h"},
    "place": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": {"*": {"north": ["7", "8"]}}}},
}
POLICY = {
    "stream": {"person": "id", "carry": ["note"]},
    "anonymize": {"method": "fads", "k": 3, "deadline": 10, "reuse": 0, "sensitive": ["ill"], "quasi": QUASI},
}
MOMENT = pa.timestamp("us", tz="UTC")
SHAPE = pa.schema([
    ("x", pa.struct([("lo", pa.float64()), ("hi", pa.float64())])),
    ("when", pa.struct([("lo", MOMENT), ("hi", MOMENT)])),
    ("place", pa.string()), ("ill", pa.string()), ("note", pa.int64()),
])  # fmt: skip
HOURS = {"lo": datetime(2024, 1, 1, 1, tzinfo=UTC), "hi": datetime(2024, 1, 1, 3, tzinfo=UTC)}
ROWS = pa.Table.from_pylist(
    [{"x": {"lo": 1.0, "hi": 2.5}, "when": HOURS, "place": "north", "ill": ill, "note": 5} for ill in ("a", "b", "c")],
    schema=SHAPE,
)
TRUTH = pa.table({
    "id": ["p", "q", "r"], "x": [1.0, 2.0, 2.5], "when": [HOURS["lo"], HOURS["lo"], HOURS["hi"]],
    "place": ["7", "8", "7"], "ill": ["a", "b", "c"], "note": [5, 5, 5],
})  # fmt: skip


def written(encoder):
    out = io.BytesIO()
    writer = encoder.open(out, SHAPE, fresh=True)
    for batch in ROWS.to_batches():
        writer.write(batch)
    writer.close()
    return out.getvalue().decode()


CSV, JSONL = written(CsvEncoder()), written(JsonlEncoder())
SPELLINGS = {"spelling", "layout"}


def codes(text, suffix, tmp_path, truth=TRUTH, policy=POLICY):
    path = tmp_path / f"release.{suffix}"
    path.write_bytes(text.encode())
    return {found.code for found in audit(path, truth, policy=policy).violations}


def in_last_row(text, old, new):
    head, last = text.removesuffix("\n").rsplit("\n", 1)
    assert old in last
    return f"{head}\n{last.replace(old, new, 1)}\n"


def test_what_the_publisher_writes_is_written_alike(tmp_path):
    assert codes(CSV, "csv", tmp_path) == codes(JSONL, "jsonl", tmp_path) == set()


CSV_CHANGES = [
    ("[1, 2.5]", "[1.0, 2.5]"), ("[1, 2.5]", "[1, 2.50]"), ("[1, 2.5]", "[+1, 2.5]"), ("[1, 2.5]", "[1e0, 2.5]"),
    ("[1, 2.5]", "[01, 2.5]"), ("[1, 2.5]", "[1,2.5]"), ("[1, 2.5]", " [1, 2.5]"), ("[1, 2.5]", "[1, 2.5 ]"),
    ("03:00:00Z", "03:00:00+00:00"), ("03:00:00Z", "03:00:00.000Z"), ("T01:00:00Z", " 01:00:00Z"),
    ("T01:00:00Z", "T01:00Z"), ('"north"', "north"), (",5", ',"5"'), (",5", ",5.0"), (",5", ",05"), ('"c"', '"c "'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), CSV_CHANGES)
def test_another_spelling_in_csv(old, new, tmp_path):
    expected = {"not-in-truth"} if new == '"c "' else SPELLINGS  # another text is another value
    assert codes(in_last_row(CSV, old, new), "csv", tmp_path) & expected


JSON_CHANGES = [
    ("[1.0,2.5]", "[1,2.5]"), ("[1.0,2.5]", "[1.00,2.5]"), ("[1.0,2.5]", "[1e0,2.5]"), ("[1.0,2.5]", "[1.0, 2.5]"),
    ("[1.0,2.5]", '"[1.0, 2.5]"'), ("[1.0,2.5]", '{"lo":1.0,"hi":2.5}'), ("03:00:00Z", "03:00:00+00:00"),
    ('"north"', '"nort\\u0068"'), ('"note":5', '"note":5.0'), ('"note":5', '"note":"5"'), ('"note":5', '"note": 5'),
    ('"note":5', '"note":5e0'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), JSON_CHANGES)
def test_another_spelling_in_json_lines(old, new, tmp_path):
    assert codes(in_last_row(JSONL, old, new), "jsonl", tmp_path) & SPELLINGS


def test_the_order_of_names(tmp_path):
    head, last = JSONL.removesuffix("\n").rsplit("\n", 1)
    turned = dict(reversed(json.loads(last).items()))
    text = f"{head}\n{json.dumps(turned, separators=(',', ':'))}\n"
    assert codes(text, "jsonl", tmp_path) == {"layout"}


@pytest.mark.parametrize(("text", "suffix"), [(CSV, "csv"), (JSONL, "jsonl")])
def test_line_ends(text, suffix, tmp_path):
    head, last = text.removesuffix("\n").rsplit("\n", 1)
    assert codes(f"{head}\r\n{last}\n", suffix, tmp_path) == {"layout"}
    assert codes(f"{head}\n\n{last}\n", suffix, tmp_path) == {"layout"}
    assert codes(text.replace("\n", "\r\n"), suffix, tmp_path) == set()
    assert codes(text.removesuffix("\n"), suffix, tmp_path) == set()


def test_a_file_that_another_tool_wrote_alike(tmp_path):
    rows = [json.loads(line) for line in JSONL.splitlines()]
    assert codes("".join(json.dumps(row) + "\n" for row in rows), "jsonl", tmp_path) == set()
    header, *lines = CSV.splitlines()
    bare = [header.replace('"', ""), *(line.replace('"north"', "north").replace('"c"', "c") for line in lines)]
    bare = [line.replace('"a"', "a").replace('"b"', "b") for line in bare]
    assert codes("\n".join(bare) + "\n", "csv", tmp_path) == set()


def test_a_missing_value_is_written_in_one_way(tmp_path):
    header, *lines = CSV.splitlines()
    nulls = [line.replace('"north"', "") for line in lines]
    assert "layout" not in codes("\n".join([header, *nulls]) + "\n", "csv", tmp_path)
    nulls[1] = lines[1].replace('"north"', '""')
    assert "layout" in codes("\n".join([header, *nulls]) + "\n", "csv", tmp_path)


def test_the_truth_may_use_any_spelling(tmp_path):
    truth = TRUTH.set_column(5, "note", pa.array(["5", "5.0", "05"]))
    header, *lines = CSV.splitlines()
    lines = [line.removesuffix("5") + f'"{note}"' for line, note in zip(lines, ("5", "5.0", "05"), strict=True)]
    assert codes("\n".join([header, *lines]) + "\n", "csv", tmp_path, truth) == set()
    lines[0] = lines[0].replace('"5"', '"5.00"')
    assert codes("\n".join([header, *lines]) + "\n", "csv", tmp_path, truth) == {"spelling"}


def with_ends(lo, hi):
    """The rows with other ends of x or, where they are moments, of when."""
    name = "x" if pa.types.is_floating(lo.type) else "when"
    return ROWS.set_column(ROWS.schema.get_field_index(name), name, pa.StructArray.from_arrays([lo, hi], ["lo", "hi"]))


def test_minus_zero_and_zero():
    release = with_ends(pa.array([0.0, 0.0, -0.0]), pa.array([2.5] * 3))
    assert {found.code for found in audit(release, TRUTH, policy=POLICY).violations} == {"spelling"}


def test_moments_differ_by_nanoseconds():
    lo = pa.array([1_704_070_800_000_000_000 + n for n in (1, 2, 3)], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    hi = pa.array([1_704_078_000_000_000_000] * 3, pa.int64()).cast(pa.timestamp("ns", "UTC"))
    found = {found.code: found.count for found in audit(with_ends(lo, hi), TRUTH, policy=POLICY).violations}
    assert (found["too-fine"], found["below-k"]) == (3, 3)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("", ""), set()),
        (("00:00:02Z", "00:00:02+00:00"), {"spelling"}),
        ((":8}", ":8.0}"), {"spelling"}),
        ((":8}", ':"8"}'), {"spelling"}),
        ((":8}", ": 8}"), {"layout"}),
    ],
)
def test_z(change, expected, tmp_path):
    policy = {
        "stream": {"person": "user", "time": "ts"},
        "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 1, "window": "1h"},
    }
    times = ["2024-01-01T00:00:01Z", "2024-01-01T00:00:02Z", "2024-01-01T00:00:02Z"]
    truth = pa.table({"ts": times, "user": list("abc"), "site": [8, 8, 8]})
    lines = [
        f'{{"ts":"{ts}","user":"{n * 0x9E3779B97F4A7C15F39CC0605CEDC835**n % 2**128:032x}","site":8}}'
        for n, ts in enumerate(times, 11)
    ]
    text = in_last_row("\n".join(lines) + "\n", *change)
    assert codes(text, "jsonl", tmp_path, truth, policy) == expected


# ---- the parts


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), max_size=30))
@tries(100)
def test_odd_spellings_are_all_but_the_most_common(pairs):
    code, spelling = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
    odd = odd_spellings(code, spelling)
    for value in range(4):
        own = [how for which, how in pairs if which == value and how >= 0]
        most = max((own.count(how) for how in own), default=0)
        marked = [how for (which, how), is_odd in zip(pairs, odd, strict=True) if which == value and is_odd]
        assert len(own) - len(marked) == most
        assert len(set(own) - set(marked)) <= 1
    assert not odd[(code < 0) | (spelling < 0)].any()


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["5", "5", "5.0", None]).dictionary_encode(),
        pa.array([[5], [5], [5, 0], None]),
        pa.array([b"\xff", b"\xff", b"\xfe", None]),
        [5, 5, 5.0, None],
        pa.array([{"lo": 0.0}, {"lo": 0.0}, {"lo": -0.0}, None]),
    ],
)
def test_spellings_in_columns_of_any_type(column):
    rows = Rows((({"x": column}, np.zeros(4, np.bool_)),), "release")
    _, (spelling,) = shared_codes(spellings_of(rows, "x"))
    assert odd_spellings(np.array([0, 0, 0, -1]), spelling).tolist() == [False, False, True, False]


CELLS = st.text(alphabet='ab ,"\n\r\u00e9', max_size=4)


@given(st.lists(st.tuples(CELLS, CELLS, st.none() | CELLS), min_size=1, max_size=8))
@tries(100)
def test_honest_csv_is_written_alike_in_pieces_of_any_size(rows):
    table = pa.table({name: pa.array([row[at] for row in rows], pa.string()) for at, name in enumerate("abc")})
    out = io.BytesIO()
    writer = CsvEncoder().open(out, table.schema, fresh=True)
    writer.write(table.to_batches()[0])
    writer.close()
    for size in (1, 7, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("shoal.auditor.layout._AT_ONCE", size)
            assert odd_csv_rows(out.getvalue(), ",", header=None, unchanged=frozenset("abc")) == 0


@given(st.lists(st.tuples(st.floats(), CELLS, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=8))
@tries(100)
def test_honest_json_is_written_alike(rows):
    kinds = zip("abc", (pa.float64(), pa.string(), pa.int64()), strict=True)
    table = pa.table({name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(kinds)})
    out = io.BytesIO()
    writer = JsonlEncoder().open(out, table.schema, fresh=True)
    writer.write(table.to_batches()[0])
    writer.close()
    assert odd_json_rows(out.getvalue()) == 0


@pytest.mark.parametrize(
    ("lines", "odd"),
    [
        (['{"a":1e+15}', '{"a":1000000000000000.0}'], 1),
        (['{"a":1e-7}', '{"a":1e-07}'], 1),
        (['{"a":-0}', '{"a":0}'], 1),
        (['{"a":[{"b":1}]}', '{"a":[{"b": 1}]}'], 1),
        (['{ "a":1}', '{"a":1}'], 1),
        (["nothing", '{"a":1}', "[1]"], 1),
        (['{"a":"\\u00e9"}', '{"a":"\u00e9"}'], 1),
        ([], 0),
    ],
)
def test_json_lines(lines, odd):
    assert odd_json_rows("".join(line + "\n" for line in lines).encode()) == odd


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("a,b\n1,2\n3,4", 0),
        ('a,b\n1,"2"\n3,4', 1),
        ('a,b\n1,"2,5"\n3,4', 0),
        ('a,b\n1,"2"x\n3,"4"', 1),
        ('a,b\n1,x"2"\n3,4', 1),
        ('a,b\n"",2\n,4', 1),
        ("1,2\n3,4", 0),
        ("", 0),
        ("a\n\n1\n", 0),
    ],
)
def test_csv(text, odd):
    header = ["a", "b"] if text.startswith("1") else None
    assert odd_csv_rows(text.encode(), ",", header=header, unchanged=frozenset()) == odd
