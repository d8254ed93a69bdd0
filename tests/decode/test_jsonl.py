"""JSON lines: types, what breaks, any block size, resuming."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.decode import decoder_for
from shoal.decode.jsonl import JsonlDecoder
from shoal.errors import InputError, TruncatedInput
from tests.decode.test_csv import Memory, aligned, until_error
from tests.reference.effort import tries


def decode(data: bytes, columns: list[str], position: dict[str, int] | None = None, **options: Any) -> Any:
    rows, problems, lines = [], [], []
    for part in JsonlDecoder(Memory(data), columns=columns, **options).batches(position):
        part.batch.validate(full=True)
        problems += [(len(rows) + p.row, p.column, p.reason) for p in part.refused]
        rows += list(zip(*aligned(part).to_pydict().values(), strict=True))
        lines += part.lines.tolist()
    return rows, problems, lines


def jsonl(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def kind_of(*values: Any) -> pa.DataType:
    with JsonlDecoder(Memory(jsonl(*({"a": value} for value in values))), columns=["a"]) as decoder:
        return decoder.schema.field("a").type


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, None, False], pa.bool_()),
        ([1, 2], pa.int64()),
        ([1, 2.5], pa.float64()),
        ([0.5, None], pa.float64()),
        (["x"], pa.string()),
        (["x", 1], pa.string()),
        ([True, 1], pa.string()),
        ([None], pa.string()),
        ([], pa.string()),
        ([[1], {"x": 1}, 3], pa.int64()),
        ([2**63], pa.string()),
        ([-(2**63) + 1], pa.int64()),
        ([10**30, 1], pa.string()),
    ],
)
def test_inferred_types(values: list[Any], kind: pa.DataType) -> None:
    assert kind_of(*values) == kind


def test_the_sample_has_a_thousand_records_whatever_the_block_size() -> None:
    data = jsonl(*[{"a": 1}] * 999) + b"\n\n" + jsonl({"a": 0.5}, *[{"a": "late"}] * 3)
    for block_bytes in (1, 100, 1 << 20):
        decoder = JsonlDecoder(Memory(data), columns=["a"], block_bytes=block_bytes)
        assert decoder.schema.field("a").type == pa.float64()
        problems = [p for part in decoder.batches() for p in part.refused]
        assert [(p.column, p.reason) for p in problems] == [
            ("a", "not a value of type double; correct it, or [source] types")
        ] * 3


class Pipe(Memory):
    """A pipe that is still open: it gives one piece at each read, and the test fails if all are read."""

    def __init__(self, *pieces: bytes) -> None:
        super().__init__(b"")
        self.pieces = list(pieces)

    def open(self) -> Any:
        pieces = self.pieces

        class Stream:
            is_live = True

            def read_some(self, size: int) -> bytes:
                return pieces.pop(0)

            read = read_some

            def close(self) -> None: ...

        return Stream()


FIRST = jsonl({"t": 1, "p": "ann", "n": 5, "x": None, "yes": True})
LATER = jsonl({"t": 2, "p": 7, "n": 5.5, "x": 3, "yes": False})


@pytest.mark.parametrize(
    "pieces", [(FIRST, LATER), (FIRST[:9], FIRST[9:], LATER), (FIRST + LATER,), (b"\n", b"not json\n", FIRST, LATER)]
)
def test_the_first_record_of_a_live_pipe_decides_the_types(pieces: tuple[bytes, ...]) -> None:
    pipe = Pipe(*pieces)
    with JsonlDecoder(pipe, columns=["t", "p", "n", "x", "yes"], carried=["n"]) as decoder:
        kinds = [pa.int64(), pa.string(), pa.float64(), pa.string(), pa.bool_()]
        assert decoder.schema.types == kinds
        assert pipe.pieces == list(pieces[-1:] if len(pieces) > 1 else ())  # nothing is read beyond it
        rows, parts = [], decoder.batches()
        while len(rows) < 2:
            rows += next(parts).batch.to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, "ann", 5.0, None, True), (2, "7", 5.5, "3", False)]


def test_a_live_pipe_is_read_until_every_key_appeared() -> None:
    pieces = [jsonl({"a": 1}), jsonl({"a": 2}), jsonl({"b": 2**60}), jsonl({"b": 0.5})]
    pipe = Pipe(*pieces)
    with JsonlDecoder(pipe, columns=["a", "b", "c"], optional=["c"], carried=["b"]) as decoder:
        assert decoder.types == {"a": pa.int64(), "b": pa.int64()}
        assert pipe.pieces == pieces[3:]
    with pytest.raises(InputError, match="there is no key 'b' in its first 1000 records"):
        JsonlDecoder(Pipe(*[jsonl({"a": 1})] * 1000), columns=["a", "b"]).schema  # noqa: B018


def test_types_are_kept_over_files() -> None:
    first = JsonlDecoder(Memory(jsonl({"a": 1, "b": "x"})), columns=["a", "b"])
    types = first.types
    first.close()
    rows, problems, _ = decode(jsonl({"a": "seven", "b": 7}, {"a": 8}), ["a", "b"], types=types)
    assert rows == [(None, None), (8, None)]
    assert problems == [(0, "a", "not a value of type int64; correct it, or [source] types")]


def test_numbers_in_a_text_column_are_their_json_text() -> None:
    data = b'{"a":"x"}\n{"a":7}\n{"a":1.50}\n{"a":true}\n{"a":123456789012345678901234567890}\n{"a":-0.0}\n'
    rows, problems, _ = decode(data, ["a"])
    assert [row[0] for row in rows] == ["x", "7", "1.50", "true", "123456789012345678901234567890", "-0.0"]
    assert problems == []


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (pa.int64(), [1, 2.0, None], [1.5, "1", True, 2**63, 1e300, -(2**64)]),
        (pa.int8(), [-128], [128, 1e9]),
        (pa.float64(), [1, 2.5, 2**53], ["1", True, 2**53 + 1]),
        (pa.bool_(), [True, None], [1, 0.0, "true"]),
        (pa.timestamp("ns"), ["2024-01-01T00:00:00"], [5, "soon", True]),
        (pa.timestamp("ns", tz="UTC"), ["2024-01-01T00:00:00", "2024-01-01T00:00:00Z"], [5, "soon"]),
        (pa.date32(), ["2024-01-01"], ["2024-13-01"]),
        (pa.list_(pa.string()), [["x", "y", None], [], None], ["x", {"x": 1}, [["x"]]]),
        (pa.list_(pa.int64()), [[1, 2]], [["x"], [1, 1.5]]),
    ],
)
def test_declared_types(kind: pa.DataType, good: list[Any], bad: list[Any]) -> None:
    data = jsonl(*({"a": value} for value in good + bad))
    rows, problems, _ = decode(data, ["a"], types={"a": kind})
    assert [p[0] for p in problems] == list(range(len(good), len(good + bad)))
    assert [row[0] for row in rows[len(good) :]] == [None] * len(bad)
    if not pa.types.is_temporal(kind):
        assert [row[0] for row in rows[: len(good)]] == good
    else:
        assert isinstance(rows[0][0], datetime.date)


def test_assumed_types_hold_whatever_the_first_records_show() -> None:
    data = jsonl({"a": 1, "b": None}, {"a": 2, "b": None}, {"a": 2.5, "b": 7}, {"a": "x", "b": 7})
    rows, problems, _ = decode(data, ["a", "b"], assumed={"a": pa.float64(), "b": pa.float64()})
    assert rows == [(1.0, None), (2.0, None), (2.5, 7.0), (None, None)]
    assert [(row, column) for row, column, _ in problems] == [(3, "a")]
    assert decode(data, ["a"], types={"a": pa.string()}, assumed={"a": pa.float64()})[0][0] == ("1",)
    with pytest.raises(InputError, match="there is no key 'c' in its first 4 records"):
        decode(data, ["c"], assumed={"c": pa.float64()})


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        (b"{", None, "not valid JSON; write one object a line"),
        (b"{'a': 1}", None, "not valid JSON; write one object a line"),
        (b'{"a": NaN}', None, "not valid JSON; write one object a line"),
        (b"[1]", None, "not a JSON object; write one object a line"),
        (b"null", None, "not a JSON object; write one object a line"),
        (b'{"a": "\xff"}', None, "not valid UTF-8; convert the file to UTF-8"),
        (b'{"a": "\x00"}', None, "a NUL byte in the record; remove it"),
        (b'{"a": {"b": 1}}', "a", "an object or a list where a single value is needed"),
        (b'{"a": [1]}', "a", "an object or a list where a single value is needed"),
        (b'{"a": "x"}', "a", "not a value of type int64; correct it, or [source] types"),
        (b'{"a": "' + b"x" * 99 + b'"}', None, "longer than the longest record allowed; raise max_record_bytes"),
        (b'{"z": "' + b"x" * 99 + b'"}', None, "longer than the longest record allowed; raise max_record_bytes"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 16, 4096])
def test_a_bad_record_costs_one_row(line: bytes, column: str, reason: str, block_bytes: int) -> None:
    data = b'{"a":1,"b":2}\n' + line + b'\n\r\n{"b":3}'
    rows, problems, lines = decode(
        data,
        ["a", "b"],
        types={"a": pa.int64(), "b": pa.int64()},
        block_bytes=block_bytes,
        max_record_bytes=64,
    )
    assert rows == [(1, 2), (None, None), (None, 3)]
    assert problems == [(1, column, reason)]
    assert lines == [1, 2, 4]


def test_integers_of_more_than_64_bits() -> None:
    rows, problems, _ = decode(jsonl({"a": 2**63 - 1}, {"a": 2**63}), ["a"], types={"a": pa.int64()})
    assert rows == [(2**63 - 1,), (None,)]
    assert problems == [(1, "a", "not a value of type int64; correct it, or [source] types")]


def test_nested_values_in_other_columns_do_not_matter() -> None:
    assert decode(jsonl({"a": 1, "b": [{"c": 2}]}), ["a"])[:2] == ([(1,)], [])


def test_line_ends_and_byte_order_mark() -> None:
    assert decode(b'\xef\xbb\xbf{"a":1}\r\n\r\n  \n{"a":2}', ["a"]) == ([(1,), (2,)], [], [1, 4])


def test_empty_file_has_no_records() -> None:
    assert decode(b"", ["a"]) == ([], [], [])
    assert decode(b"\n \n", ["a"]) == ([], [], [])


@pytest.mark.parametrize("seekable", [True, False])
def test_resume_from_every_position(seekable: bool) -> None:
    data = b"\n".join([b'{"a":%d,"b":"x"}' % n if n % 5 else b"broken" for n in range(100)])
    everything, _, numbers = decode(data, ["a", "b"])
    parts = list(JsonlDecoder(Memory(data), columns=["a", "b"], block_bytes=1).batches())
    # Looking for types reads ahead: small parts come from declared ones.
    types = {"a": pa.int64(), "b": pa.string()}
    parts += list(JsonlDecoder(Memory(data), columns=["a", "b"], types=types, block_bytes=1).batches())
    assert len(parts) > 30
    for part in parts:
        memory = Memory(data, seekable=seekable)
        rest = list(JsonlDecoder(memory, columns=["a", "b"], block_bytes=7).batches(part.position))
        rows = [row for found in rest for row in zip(*aligned(found).to_pydict().values(), strict=True)]
        assert rows == everything[part.position["record"] :]
        assert [n for found in rest for n in found.lines] == numbers[part.position["record"] :]


def test_a_truncated_stream_gives_complete_lines_then_an_error() -> None:
    failure = TruncatedInput("visits: breaks off")
    for tail in (b'{"a":2}', b'{"a', b"x" * 99):
        memory = Memory(b'{"a":1}\n' + tail, failure=failure)
        types = {"a": pa.int64()}
        decoder = JsonlDecoder(memory, columns=["a"], types=types, block_bytes=4, max_record_bytes=50)
        assert until_error(decoder) == ([1], failure)


def test_utf_16_is_named() -> None:
    with pytest.raises(InputError, match="UTF-16"):
        list(JsonlDecoder(Memory('{"a":1}'.encode("utf-16")), columns=["a"]).batches())


@pytest.mark.compiled
def test_a_line_of_fifty_megabytes() -> None:
    data = b'{"a":1}\n{"a":"' + b"x" * 50_000_000 + b'"}\n{"a":2}\n'
    memory = Memory(data)
    parts = list(JsonlDecoder(memory, columns=["a"]).batches())
    assert [value for part in parts for value in aligned(part).column(0).to_pylist()] == [
        1,
        None,
        2,
    ]
    assert memory.largest_read <= 32 << 20


def test_more_rows_than_a_batch() -> None:
    data = b"".join(b'{"a":%d}\n' % n for n in range(70_000))
    parts = list(JsonlDecoder(Memory(data), columns=["a"]).batches())
    assert len(parts) > 1
    assert [value for part in parts for value in aligned(part).column(0).to_pylist()] == list(range(70_000))


def test_messages_contain_no_values() -> None:
    data = b'{"u":1}\n{"u":"secret"}\n{"u":["secret"]}\n{secret\n"secret"\n{"u":"secret\xff"}\n'
    _, problems, _ = decode(data, ["u"], types={"u": pa.int64()})
    assert len(problems) == 5
    assert "secret" not in str(problems)


def test_decoder_for() -> None:
    assert decoder_for("jsonl") is JsonlDecoder


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text(max_size=3)
    | st.floats(allow_nan=False, allow_infinity=False)
)


@tries(150)
@given(values=st.lists(scalars, max_size=8), block_bytes=st.integers(1, 60))
def test_every_value_is_kept_or_refused(values: list[Any], block_bytes: int) -> None:
    """A row has what the line has, as its column's type or as text; block sizes change nothing."""
    data = jsonl(*({"a": value} for value in values))
    rows, problems, _ = decode(data, ["a"], block_bytes=block_bytes)
    assert (rows, problems) == decode(data, ["a"])[:2]
    refused = {p[0] for p in problems}
    for row, value in enumerate(values):
        found = rows[row][0]
        if row in refused or value is None:
            assert found is None
        elif isinstance(found, str) and not isinstance(value, str):
            assert found == json.dumps(value)
        else:
            assert found == value
