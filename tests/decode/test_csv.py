"""CSV: the kernel against its naive twin, the decoder against Python's csv module, all that breaks."""

from __future__ import annotations

import csv
import datetime
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from shoal.decode import decoder_for
from shoal.decode.base import Decoded, Decoder
from shoal.decode.columns import misfit_reason
from shoal.decode.csv import CsvDecoder
from shoal.decode.spellings import Recoded
from shoal.errors import InputError, PolicyError, TruncatedInput
from shoal.kernels import csv_records as kernel
from shoal.methods.arrow_input import with_gaps
from tests.reference import csv_records as twin
from tests.reference.effort import tries


class Memory:
    """Bytes in memory; the stream can break off at the end."""

    name = "visits.csv"

    def __init__(self, data: bytes, *, failure: Exception | None = None, seekable: bool = True) -> None:
        self.data, self.failure, self.is_seekable = data, failure, seekable
        self.largest_read = 0

    def open(self) -> Any:
        stream = io.BytesIO(self.data)
        memory = self

        class Stream:
            def read(self, size: int = -1) -> bytes:
                memory.largest_read = max(memory.largest_read, size)
                part = stream.read(size)
                if not part and memory.failure is not None:
                    raise memory.failure
                return part

            def seekable(self) -> bool:
                return memory.is_seekable

            def seek(self, *where: int) -> int:
                return stream.seek(*where)

            def close(self) -> None:
                stream.close()

        return Stream()

    def open_seekable(self) -> Any:
        return pa.BufferReader(self.data)


def aligned(part: Decoded) -> pa.RecordBatch:
    """All records of a part, with nulls where one was refused."""
    return with_gaps(part.batch, part.places)


def decode(data: bytes, columns: list[str], position: dict[str, int] | None = None, **options: Any) -> Any:
    """All rows as tuples, problems as (row, column, reason), lines."""
    rows, problems, lines = [], [], []
    for part in CsvDecoder(Memory(data), columns=columns, **options).batches(position):
        part.batch.validate(full=True)
        problems += [(len(rows) + p.row, p.column, p.reason) for p in part.refused]
        rows += list(zip(*aligned(part).to_pydict().values(), strict=True))
        lines += part.lines.tolist()
    return rows, problems, lines


def until_error(decoder: Decoder, column: int = 0) -> tuple[list[Any], InputError | None]:
    """Values of a column up to the error, and the error."""
    values: list[Any] = []
    try:
        for part in decoder.batches():
            values += aligned(part).column(column).to_pylist()
    except InputError as error:
        return values, error
    return values, None


def test_columns_in_the_requested_order() -> None:
    rows, problems, lines = decode(b"a,b,c\n1,2,3\n4,5,6\n", ["c", "a"])
    assert rows == [("3", "1"), ("6", "4")]
    assert problems == []
    assert lines == [2, 3]


def test_schema_is_text_unless_declared() -> None:
    with CsvDecoder(Memory(b"a,b\n"), columns=["b", "a"], types={"a": pa.int64()}) as decoder:
        assert decoder.schema == pa.schema([("b", pa.string()), ("a", pa.int64())])
        assert decoder.types == {"b": pa.string(), "a": pa.int64()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'a\n"x"\n', ["x"]),
        (b'a\n"x""y"\n', ['x"y']),
        (b'a\n"x\ny"\n', ["x\ny"]),
        (b'a\n"x,y"\n', ["x,y"]),
        (b'a\n"x"y\n', ["xy"]),
        (b'a\n"x"y"z"\n', ['xy"z"']),
        (b'a\nx"y\n', ['x"y']),
        (b'a\n""\n', [None]),
        (b'a\n""""\n', ['"']),
        (b"a\nx", ["x"]),
        (b"a\r\nx\r\ny\r\n", ["x", "y"]),
        (b"a\rx\ry", ["x", "y"]),
        (b"a\n\n\r\nx\n\n", ["x"]),
        (b"\n\na\nx\n", ["x"]),
        (b"\xef\xbb\xbfa\nx\n", ["x"]),
        (b'\xef\xbb\xbf"a"\nx\n', ["x"]),
        (b"a\n x \n", [" x "]),
        ("a\nжЖ🐟\n".encode(), ["жЖ🐟"]),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 2, 3, 1000])
def test_quoting_and_line_ends(text: bytes, expected: list[str | None], block_bytes: int) -> None:
    rows, problems, _ = decode(text, ["a"], block_bytes=block_bytes)
    assert [row[0] for row in rows] == expected
    assert problems == []


@pytest.mark.parametrize(
    ("text", "row", "column", "reason"),
    [
        (
            b"a,b\n1\n2,3\n",
            0,
            None,
            "1 field where the header has 2; complete the record, or set [source] delimiter if another character "
            "separates fields",
        ),
        (b"a,b\n1,2,3\n2,3\n", 0, None, "3 fields where the header has 2; quote fields that contain the delimiter"),
        (b"a,b\n1,\x00\n2,3\n", 0, None, "a NUL byte in the record; remove it"),
        (b"a,b\n1,\xff\n2,3\n", 0, "b", "not valid UTF-8; convert the file to UTF-8"),
        (b'a,b\n1,"2\n2,3\n', 0, None, "a quoted field is never closed; close it"),
        (
            b"a,b\n1," + b"2" * 99 + b"\n2,3\n",
            0,
            None,
            "longer than the longest record allowed; raise max_record_bytes",
        ),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 16, 4096])
def test_a_bad_record_costs_one_row(text: bytes, row: int, column: str, reason: str, block_bytes: int) -> None:
    rows, problems, lines = decode(text, ["a", "b"], block_bytes=block_bytes, max_record_bytes=64)
    assert rows == [(None, None), ("2", "3")]
    assert problems == [(row, column, reason)]
    assert lines == [2, 3]


def test_invalid_utf8_in_other_columns_does_not_matter() -> None:
    assert decode(b"a,b\n1,\xff\n", ["a"]) == ([("1",)], [], [2])


def test_declared_types() -> None:
    data = b"i,f,t\n1,0.5,2024-01-01T00:00:00\n x ,1,2024-01-01\n 7 ,,\n3,1,never\n"
    types = {"i": pa.int64(), "f": pa.float64(), "t": pa.timestamp("ns")}
    parts = list(CsvDecoder(Memory(data), columns=["i", "f", "t"], types=types).batches())
    assert aligned(parts[0]).column("i").to_pylist() == [1, None, 7, None]
    assert aligned(parts[0]).column("f").to_pylist() == [0.5, None, None, None]
    assert [(p.row, p.column, p.reason) for p in parts[0].refused] == [
        (1, "i", "not a value of type int64; correct it, or [source] types"),
        (3, "t", misfit_reason(pa.timestamp("ns"))),
    ]
    assert parts[0].batch.schema.types == list(types.values())


def test_times_without_a_zone_are_in_utc() -> None:
    data = b"t\n2024-01-01T01:00:00\n2024-01-01 02:00:00+01:00\n2024-01-01\n2024-01-01T01:00:00Z\n\nsoon\n01:00Z\n"
    rows, problems, _ = decode(data, ["t"], types={"t": pa.timestamp("ns", tz="UTC")})
    one, midnight = (datetime.datetime(2024, 1, 1, hour, tzinfo=datetime.UTC) for hour in (1, 0))
    assert [row[0] for row in rows] == [one, one, midnight, one, None, None]
    assert [problem[0] for problem in problems] == [4, 5]


def test_many_misfits() -> None:
    data = b"i\n" + b"".join(b"%d\nx%d\n" % (n, n) for n in range(500))
    rows, problems, _ = decode(data, ["i"], types={"i": pa.int32()})
    assert rows == [(n // 2 if n % 2 == 0 else None,) for n in range(1000)]
    assert [p[0] for p in problems] == list(range(1, 1000, 2))


def test_a_type_no_text_can_have() -> None:
    with pytest.raises(InputError, match=r"visits.csv: column 'a' .*cannot be read as struct"):
        CsvDecoder(Memory(b"a\n"), columns=["a"], types={"a": pa.struct([("x", pa.int8())])})


def test_large_text_types_are_plain_and_keep_spaces() -> None:
    assert decode(b"a\n x \n", ["a"], types={"a": pa.large_string()})[0] == [(" x ",)]


@pytest.mark.parametrize("seekable", [True, False])
def test_resume_from_every_position(seekable: bool) -> None:
    data = ("a,b\n" + '1,"x\ny"\r\n\nbad\n3,ж\n' * 20 + '"4,\n5,6\n7,8').encode()
    everything = decode(data, ["a", "b"], block_bytes=1)
    parts = list(CsvDecoder(Memory(data), columns=["a", "b"], block_bytes=1).batches())
    assert len(parts) > 20
    seen = 0
    for part in parts:
        seen += part.rows
        position = json.loads(json.dumps(part.position))
        assert position["record"] == seen
        again = []
        memory = Memory(data, seekable=seekable)
        for rest in CsvDecoder(memory, columns=["a", "b"], block_bytes=3).batches(position):
            again += list(zip(*aligned(rest).to_pydict().values(), rest.lines.tolist(), strict=True))
        assert again == [(*row, line) for row, line in zip(everything[0], everything[2], strict=True)][seen:]


def test_a_file_that_shrank_since_the_position() -> None:
    for seekable in (True, False):
        decoder = CsvDecoder(Memory(b"a\n1\n", seekable=seekable), columns=["a"])
        with pytest.raises(InputError, match="has changed since"):
            list(decoder.batches({"byte": 500, "record": 9, "line": 9}))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^visits\.csv: is empty; it has no header line$"):
        _ = CsvDecoder(Memory(data), columns=["a"]).schema


def test_header_only() -> None:
    assert decode(b"a,b", ["a"]) == ([], [], [])
    assert decode(b"a,b\n", ["a"]) == ([], [], [])


def test_header_given() -> None:
    assert decode(b"1,2\n3,4\n", ["b"], header=["a", "b"])[0] == [("2",), ("4",)]
    assert decode(b"", ["b"], header=["a", "b"]) == ([], [], [])


def test_missing_column_never_shows_what_the_first_line_holds() -> None:
    with pytest.raises(InputError) as error:
        list(CsvDecoder(Memory(b"Alice,1990,secret\n"), columns=["user"]).batches())
    assert str(error.value) == (
        "visits.csv: there is no column 'user' among its 3 columns; "
        "correct the policy; if the first line is a record and no header, name the columns in [source], such as "
        'header = ["first", "second"]'
    )


def test_repeated_and_empty_names() -> None:
    data = b"a,b,a, , a_2\n1,2,3,4,5\n"
    assert decode(data, ["a", "b", "a_3", "column4", "a_2"], trim=True)[0] == [("1", "2", "3", "4", "5")]
    assert decode(data, ["a", "a_2", "column4", " a_2"])[0] == [("1", "3", "4", "5")]


def test_a_header_line_without_the_first_name() -> None:
    data = b"age,,age\n1,40,x,41\n"
    assert decode(data, ["column1", "age", "column3", "age_2"], header="short")[0] == [("1", "40", "x", "41")]


@pytest.mark.parametrize("data", [b'"a\n1\n', b"a" * 99, b"a\0b\n1\n"])
def test_unusable_header(data: bytes) -> None:
    with pytest.raises(InputError, match="the header line cannot be used"):
        list(CsvDecoder(Memory(data), columns=["a"], max_record_bytes=50).batches())


def test_utf_16() -> None:
    with pytest.raises(InputError, match="UTF-16"):
        list(CsvDecoder(Memory("a\n1\n".encode("utf-16")), columns=["a"]).batches())


@pytest.mark.parametrize("options", [{"delimiter": ""}, {"delimiter": "::"}, {"quote": "\n"}, {"delimiter": '"'}])
def test_bad_options(options: dict[str, str]) -> None:
    with pytest.raises(PolicyError):
        CsvDecoder(Memory(b"a\n"), columns=["a"], **options)


def test_other_delimiter_and_quote() -> None:
    assert decode(b"a;b\n'x;y';'it''s'\n", ["a", "b"], delimiter=";", quote="'")[0] == [("x;y", "it's")]


def test_unclosed_quote_does_not_swallow_the_file() -> None:
    data = b'a,b\n1,2\n3,"4\n' + b"5,6\n" * 1000
    rows, problems, _ = decode(data, ["a", "b"], block_bytes=64)
    assert problems == [(1, None, "a quoted field is never closed; close it")]
    assert rows == [("1", "2"), (None, None)] + [("5", "6")] * 1000


@pytest.mark.compiled
def test_quotes_never_closed_take_linear_time() -> None:
    """Every line has an open quote, also if it begins inside one."""
    data = b"a,b\n" + b'5"x,"7\n' * 200_000
    rows, problems, _ = decode(data, ["a", "b"], block_bytes=1 << 20)
    assert len(rows) == len(problems) == 200_000


@pytest.mark.compiled
@pytest.mark.parametrize("tail", [b"\n", b""])
def test_a_line_of_fifty_megabytes(tail: bytes) -> None:
    data = b"a,b\n1,2\n" + b"x" * 50_000_000 + tail + (b"3,4\n" if tail else b"")
    memory = Memory(data)
    parts = list(CsvDecoder(memory, columns=["a"]).batches())
    assert [value for part in parts for value in aligned(part).column(0).to_pylist()] == [
        "1",
        None,
    ] + ["3"] * len(tail)
    assert [p.reason for part in parts for p in part.refused] == [
        "longer than the longest record allowed; raise max_record_bytes"
    ]
    assert memory.largest_read <= 32 << 20


def test_a_truncated_stream_gives_complete_records_then_an_error() -> None:
    failure = TruncatedInput("visits.csv: breaks off")
    for tail in (b"3,4", b'3,"4\n', b'3,"', b"x" * 99):
        memory = Memory(b"a,b\n1,2\n" + tail, failure=failure)
        decoder = CsvDecoder(memory, columns=["a"], block_bytes=4, max_record_bytes=50)
        assert until_error(decoder) == (["1"], failure)


def test_read_error_in_the_middle() -> None:
    memory = Memory(b"a\n1\n", failure=OSError(5, "Input/output error"))
    with pytest.raises(InputError, match=r"visits.csv: cannot be read any further \(Input/output error\)"):
        list(CsvDecoder(memory, columns=["a"]).batches())


def test_more_rows_than_a_batch() -> None:
    data = b"a\n" + b"".join(b"%d\n" % n for n in range(70_000))
    decoder = CsvDecoder(Memory(data), columns=["a"], types={"a": pa.int64()})
    assert decoder.schema.names == ["a"]
    parts = list(decoder.batches())
    assert len(parts) > 1
    values = np.concatenate([aligned(part).column(0).to_numpy() for part in parts])
    assert (values == np.arange(70_000)).all()


def test_messages_contain_no_values() -> None:
    data = b'user,n\nsecret1,x\nsecret2\n"secret3,1\nsecret\xff4,1\n'
    _, problems, _ = decode(data, ["user", "n"], types={"n": pa.int64()})
    assert len(problems) == 4
    assert "secret" not in str(problems)


def test_decoder_for() -> None:
    assert decoder_for("csv") is CsvDecoder
    with pytest.raises(PolicyError, match="use one of csv, jsonl, parquet, arrow"):
        decoder_for("xml")


# --- against the twin and against Python's csv module

ALPHABET = [b"a", b",", b'"', b"\n", b"\r", b"\r\n", b'""', b'"\n', b"\0", "ж".encode()]
LINES = [b'a"b,"c\n', b'",x\n', b"a,b\n", b'"\n', b'a,"b\r\n', b'""\n']
soup = st.lists(st.sampled_from(ALPHABET), max_size=40).map(b"".join)
quoted_soup = st.lists(st.sampled_from(LINES), max_size=20).map(b"".join)


@tries(300)
@given(data=soup | quoted_soup, block_bytes=st.integers(1, 20), longest=st.integers(1, 60))
@example(data=b'a"b,"c\n' * 4 + b'",x\n', block_bytes=99, longest=20)
@example(data=b'a"b,"c\n' * 4 + b'",x' + b"x" * 30 + b"\na,b\n", block_bytes=99, longest=20)
@example(data=b'"\nb""c"\na,b\n', block_bytes=99, longest=3)
@example(data=b'\0"\na,b\n', block_bytes=99, longest=20)
@example(data=b'a"b,"c\n' * 9, block_bytes=2, longest=20)
@example(data=b'a"b,"c\n' * 9, block_bytes=2, longest=99)
@example(data=b'"\n"\n', block_bytes=1, longest=2)
@example(data=b'a,"\r\na,"\r\na,"\r\n', block_bytes=5, longest=4)
@example(data=b'a"b,"c\n' * 5 + b'"', block_bytes=3, longest=12)
@example(data=b'"a""', block_bytes=1, longest=2)
@example(data=b'"aa"a\naaaa\n', block_bytes=1, longest=3)
@example(data=b"aaaa\naaa\n", block_bytes=2, longest=3)
@example(data=b'"\n"a\r\na\n', block_bytes=1, longest=3)
def test_same_as_the_twin(data: bytes, block_bytes: int, longest: int) -> None:
    decoder = CsvDecoder(
        Memory(data), columns=["x", "y"], header=["x", "y"], block_bytes=block_bytes, max_record_bytes=longest
    )
    rows, lines, reasons, after = [], [], {}, []
    for part in decoder.batches():
        reasons.update({len(rows) + p.row: p.reason for p in part.refused})
        rows += list(zip(*aligned(part).to_pydict().values(), strict=True))
        lines += part.lines.tolist()
        after += [None] * (part.rows - 1) + [part.position["byte"]]
    expected = twin.read_records(data, width=2, longest=longest)
    words = {
        twin.HAS_NUL: "NUL",
        twin.TOO_LONG: "longer",
        twin.UNCLOSED: "never closed",
        twin.WRONG_COUNT: "fields",
    }
    assert lines == [record.line for record in expected]
    for row, record in enumerate(expected):
        assert words.get(record.verdict, "") in reasons.get(row, "")
        assert (record.verdict == twin.GOOD) == (row not in reasons)
        if record.verdict == twin.GOOD:
            assert rows[row] == tuple(field.decode() or None for field in record.fields)
    assert all(
        found in (None, record.after, len(data)) or _only_blank(data[record.after : found])
        for found, record in zip(after, expected, strict=True)
    )


def _only_blank(part: bytes) -> bool:
    return not part.strip(b"\r\n")


def test_a_bad_record_keeps_no_bounds() -> None:
    """Else its fields would be copied, wherever their bounds point."""
    data = np.frombuffer(b"aa,bb\naa,bb,cc\n\0,bb\n", dtype=np.uint8)
    table = np.zeros(256, dtype=np.uint8)
    table[[0, 10, 13, 44, 34]] = [kernel.NUL, kernel.LF, kernel.CR, kernel.DELIMITER, kernel.QUOTE]
    starts, ends = np.full((2, 2, 5), 9)
    codes, counts, lines = np.zeros((3, 5), dtype=np.int64)
    cursor = np.array([0, 1, -1, 0])
    slots = np.array([0, 1])
    rows, why = kernel.split_records(data, True, table, 99, 2, slots, cursor, starts, ends, codes, counts, lines)
    assert (rows, why) == (3, kernel.NEEDS_MORE)
    assert codes[:3].tolist() == [kernel.GOOD, kernel.WRONG_COUNT, kernel.HAS_NUL]
    assert starts[:, :3].tolist() == [[0, 0, 0], [3, 0, 0]]
    assert ends[:, :3].tolist() == [[2, 0, 0], [5, 0, 0]]
    assert cursor.tolist()[:2] == [len(data), 4]


cells = st.text(alphabet='ab,"\n\r жé🐟', max_size=6)


@tries(150)
@given(
    table=st.lists(st.tuples(cells, cells, cells), max_size=8),
    line_end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.integers(1, 50),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_round_trip_of_pythons_csv(table: Any, line_end: str, block_bytes: int, quoting: Any) -> None:
    # Python's writer quotes a lone \r only where it quotes everything.
    assume(quoting == csv.QUOTE_ALL or "\r" not in str(table).replace("\\r", "\r"))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=line_end, quoting=quoting)
    writer.writerows([("x", "y", "z"), *table])
    rows, problems, _ = decode(text.getvalue().encode(), ["x", "y", "z"], block_bytes=block_bytes)
    assert problems == []
    assert rows == [tuple(cell or None for cell in row) for row in table]


@tries(150)
@given(data=st.lists(st.sampled_from(["a", ",", '"', "\n", "\r\n", '""']), max_size=30).map("".join))
def test_same_fields_as_pythons_csv(data: str) -> None:
    """Any text, also badly quoted, as long as every quote is closed."""
    expected = [row for row in csv.reader(io.StringIO(data, newline="")) if row]
    rows, problems, _ = decode(data.encode(), ["x", "y"], header=["x", "y"])
    if any("closed" in reason for _, _, reason in problems):
        return
    assert rows == [tuple(cell or None for cell in row) if len(row) == 2 else (None, None) for row in expected]


# ---- words for a missing value


def test_words_for_a_missing_value():
    data = b'id,age,job\nNA,?, ? \na, NA ,"NA"\nb,31,NAB\nc,?x,na\n'
    given = {"types": {"age": pa.int64()}, "nulls": ["?", "NA"]}
    rows, problems, _ = decode(data, ["id", "age", "job"], **given)
    assert rows == [(None, None, None), ("a", None, None), ("b", 31, "NAB"), (None, None, None)]
    assert [problem[:2] for problem in problems] == [(3, "age")]
    without = decode(data, ["id", "job"])[0]
    assert without == [("NA", " ? "), ("a", "NA"), ("b", "NAB"), ("c", "na")]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_another_encoding_is_read_from_any_position(encoding: str) -> None:
    """Positions are those of the text in UTF-8; a file of another encoding is read up to them."""
    names = [f"größer {number} é" for number in range(50)]
    data = "\n".join(["name;place", *(f"{name};Zürich" for name in names)]).encode(encoding)
    options: dict[str, Any] = {"columns": ["name"], "delimiter": ";", "encoding": encoding, "block_bytes": 64}
    parts = list(CsvDecoder(Memory(data), **options).batches())
    assert [name for part in parts for name in part.batch.column(0).to_pylist()] == names
    assert len(parts) > 3
    read = 0
    for part in parts:
        read += part.rows
        rest = CsvDecoder(Memory(data), **options).batches(part.position)
        assert [name for one in rest for name in one.batch.column(0).to_pylist()] == names[read:]


def test_a_byte_that_is_no_character_is_marked() -> None:
    (part,) = CsvDecoder(Memory(b"name\nA\x81\n"), columns=["name"], encoding="cp1252").batches()
    assert part.batch.column(0).to_pylist() == ["A\ufffd"]


class Dripping:
    """A live stream that sends a few bytes at a time."""

    is_live = True

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def read_some(self, size: int) -> bytes:
        return self._inner.read(min(size, 3))

    def read(self, size: int = -1) -> bytes:
        raise AssertionError("waits for more than there is")


def test_a_live_stream_of_another_encoding_is_not_waited_for() -> None:
    stream = Recoded(Dripping("größer".encode("latin-1")), "latin-1")
    assert stream.is_live
    assert stream.read_some(100).decode() == "grö"
    assert not Recoded(io.BytesIO(b""), "latin-1").is_live
