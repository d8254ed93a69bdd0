"""A block read at once gives what its objects give one by one, or is not read at once."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.decode.json_blocks import tidy_arrays
from shoal.decode.json_records import Columns, JsonParser

SCHEMA = pa.schema(
    [
        ("text", pa.string()),
        ("whole", pa.int64()),
        ("number", pa.float64()),
        ("flag", pa.bool_()),
        ("at", pa.timestamp("ns", tz="UTC")),
    ]
)
LONGEST = 10_000
TIDY = [
    b'{"text":"t%d","whole":%d,"number":%d.5,"flag":true,"at":"2026-01-01T00:00:%02d"}' % (n, n, n, n)
    for n in range(20)
]
ODD = [
    b'{"text":"x"}{"text":"y"}',
    b'{"text":"x","text":"y"}',
    b'{"text":{}',
    b'{"text":"open}',
    b'{"other":NaN}',
    b'{"number":Infinity}',
    b'{"number":-0}',
    b'{"number":-0.0}',
    b'{"number":9007199254740993}',
    b'{"number":1e400}',
    b'{"number":1.7976931348623159e308}',
    b'{"whole":1.0}',
    b'{"whole":"1"}',
    b'{"whole":true}',
    b'{"whole":9223372036854775808}',
    b'{"text":5}',
    b'{"text":[1]}',
    b'{"text":"\xff"}',
    b'{"other":"\xff"}',
    b'{"text":"\\ud800"}',
    b'{"text":"\\u0000"}',
    b'{"text":"a\x00b"}',
    b'{"other":' + b"[" * 1_200 + b"]" * 1_200 + b"}",
    b'{"text":"' + b"x" * LONGEST + b'"}',
    b'{"at":"yesterday"}',
    b'{"at":"2026-01-01T00:00:00+02:00"}',
    b'{"at":1}',
    b'{"flag":"true"}',
    b"[]",
    b"null",
    b" {}",
    b"{} ",
    b"{}",
    b'{\n"text":"two lines"\n}',
    b"\xef\xbb\xbf{}",
    b"",
]

READ_AT_ONCE = {
    b'{"text":"\\u0000"}',
    b'{"at":"2026-01-01T00:00:00+02:00"}',
    b"{}",
    b'{\n"text":"two lines"\n}',
}
"""Of the odd ones, those that Arrow's parser reads as the other parser does."""

odd = st.sampled_from(ODD)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=5),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.lists(st.integers(), max_size=2),
)
made = st.dictionaries(st.sampled_from([*SCHEMA.names, "other"]), values, max_size=6).map(
    lambda record: json.dumps(record).encode()
)


def one_by_one(texts: list[bytes | None]) -> tuple[list[Any], list[Any]]:
    records, refused = JsonParser(LONGEST, "line", too_long="too long", absent="too long").parse(texts)
    columns, misfits = Columns("input", tuple(SCHEMA.names)).arrays(records, SCHEMA, texts)
    return columns, refused + misfits


def same(texts: list[bytes | None]) -> bool:
    """Compare both ways; whether the block was read at once."""
    at_once = tidy_arrays(texts, SCHEMA, LONGEST)
    if at_once is None:
        return False
    columns, refused = one_by_one(texts)
    assert not refused
    for one, other in zip(at_once, columns, strict=True):
        assert one.type == other.type
        # The texts, so that a zero below zero differs from zero.
        assert one.cast(pa.string()).to_pylist() == other.cast(pa.string()).to_pylist()
    return True


def test_tidy_lines_are_read_at_once() -> None:
    assert same(list(TIDY))
    assert same([*TIDY, b'{"text":null}', b'{"unknown":[{"a":1}]}', '{"text":"\N{SNOWMAN}"}'.encode(), b'{"whole":-0}'])


def test_few_lines_lists_and_no_columns_are_read_one_by_one() -> None:
    assert tidy_arrays(list(TIDY[:15]), SCHEMA, LONGEST) is None
    assert tidy_arrays(list(TIDY), pa.schema([("text", pa.list_(pa.string()))]), LONGEST) is None
    assert tidy_arrays(list(TIDY), pa.schema([]), LONGEST) is None
    assert tidy_arrays([*TIDY, None], SCHEMA, LONGEST) is None


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("at", [0, 10, 20])
def test_an_odd_line_anywhere_changes_nothing(text: bytes, at: int) -> None:
    assert same([*TIDY[:at], text, *TIDY[at:]]) == (text in READ_AT_ONCE)


@given(st.lists(st.one_of(made, odd, st.sampled_from(TIDY)), min_size=1, max_size=6), st.randoms())
def test_any_lines_give_the_same(texts: list[bytes], random: Any) -> None:
    lines: list[bytes | None] = [*texts, *TIDY]
    random.shuffle(lines)
    is_at_once = same(lines)
    assert is_at_once or set(texts) - set(TIDY) - READ_AT_ONCE


def test_two_halves_of_an_object_and_two_objects_in_one_line_are_not_two_lines() -> None:
    """The counts agree, the lines do not."""
    for halves in ([b'{"text":{}', b"}"], [b'{"other":[{}', b",{}]}"], [b'{"text":"a}', b'{"}']):
        assert tidy_arrays([*TIDY, b"{}{}", *halves], SCHEMA, LONGEST) is None
