"""Messages: JSON against the json module and the decoder of lines, what surrounds the value, what is refused."""

from __future__ import annotations

import datetime
import itertools
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.decode.base import Decoded
from shoal.decode.json_records import Columns
from shoal.decode.jsonl import JsonlDecoder
from shoal.decode.messages import TOMBSTONE, TOO_LONG, Envelope, MessageDecoder, Messages, json_parser
from shoal.errors import InputError
from tests.decode.test_csv import Memory, aligned
from tests.reference.effort import tries

KINDS = {"user": pa.string(), "n": pa.int64(), "x": pa.float64(), "flag": pa.bool_()}


def make(
    columns: tuple[str, ...] = tuple(KINDS), declared: Any = KINDS, *, longest: int = 1000, **options: Any
) -> MessageDecoder:
    declared = {name: kind for name, kind in declared.items() if name in columns}
    needed = Columns("topic visits", columns, declared, **options.pop("needed", {}))
    return MessageDecoder(json_parser(longest), needed, **options)


def rows(decoded: Decoded) -> list[dict[str, Any] | None]:
    """All messages in order, None for a refused one."""
    kept = iter(decoded.batch.to_pylist())
    refused = set(decoded.places)
    return [None if row in refused else next(kept) for row in range(decoded.rows)]


def reasons(decoded: Decoded) -> dict[int, str]:
    return {one.row: one.reason for one in decoded.refused}


# ---- values

values = st.fixed_dictionaries(
    {},
    optional={
        "user": st.none() | st.text(max_size=5),
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "flag": st.none() | st.booleans(),
        "other": st.lists(st.integers(), max_size=2),
    },
)
odd = st.sampled_from(
    [
        None, b"", b"{}{}", b'{"user":"a"}{"user":"b"}', b"[]", b"null", b"3", b'"x"', b'{"user":', b"\xff", b"{} x",
        b'{"user":"\xff"}', b'{"n":"x"}', b'{"x":"1"}', b'{"flag":1}', b'{"user":{}}', b'{"n":1.5}', b"NaN",
        b'{"n":99999999999999999999}', b'{"user":"' + b"x" * 2000 + b'"}', b'{"user":"a"}\n{"user":"b"}', b'{"a":\0}',
    ]
)  # fmt: skip


@given(st.lists(st.tuples(st.booleans(), values, odd), max_size=30))
@tries(100)
def test_odd_messages_never_shift_a_row(drawn: list[tuple[bool, dict[str, Any], Any]]) -> None:
    payloads = [strange if is_odd else json.dumps(value).encode() for is_odd, value, strange in drawn]
    found = rows(make().decode(Messages(payloads)))
    assert len(found) == len(drawn)
    for (is_odd, value, _), row in zip(drawn, found, strict=True):
        assert row == (None if is_odd else {name: value.get(name) for name in KINDS})


@pytest.mark.parametrize("depth", [10, 900, 1000, 1020])
def test_a_number_in_a_column_of_texts_stays_as_written_however_deep_the_rest_is(depth: int) -> None:
    deep = b"[" * depth + b"]" * depth
    texts = [
        b'{"user": 1.50, "other": ' + deep + b"}",
        b'{"other": {"user": 2.5, "x": ' + deep + b'}, "us\\u0065r": 1.50, "n": 7}',
        b'{"user": 7.7, "x\\"{": ' + deep + b' , "user" : 1.50}',
        b'{"user": "ann"}',
    ]
    found = rows(make(("user",), longest=10_000).decode(Messages(texts)))
    assert [one and one["user"] for one in found] == ["1.50", "1.50", "1.50", "ann"]


def test_text_around_a_value_that_is_not_unicode_is_refused() -> None:
    made = make(("user", "k", "h"), {"user": pa.string()}, envelope=Envelope(key="k", headers={"h": "from"}))
    found = made.decode(
        Messages([b'{"user":"a"}'] * 3, ["x", "\ud800", None], None, [None, None, [("from", "\udcff")]])
    )
    assert rows(found) == [{"user": "a", "k": "x", "h": None}, None, None]


@given(st.lists(values | st.just({"n": "no number"}) | st.just([1]), min_size=1, max_size=20))
@tries(60)
def test_the_same_rows_and_reasons_as_lines(records: list[Any]) -> None:
    texts = [json.dumps(record).encode() for record in records]
    lines = JsonlDecoder(Memory(b"".join(text + b"\n" for text in texts)), columns=list(KINDS), types=KINDS)
    (expected,) = lines.batches()
    found = make().decode(Messages(texts))
    assert found.batch == expected.batch
    assert [(one.row, one.column) for one in found.refused] == [(one.row, one.column) for one in expected.refused]
    for one, other in zip(found.refused, expected.refused, strict=True):
        assert one.reason == other.reason.replace("a line", "a message")
    assert aligned(found).num_rows == len(records)


@given(st.lists(st.tuples(st.booleans(), values, odd), max_size=12), st.integers(1, 5))
@tries(40)
def test_how_messages_are_split_does_not_matter(drawn: list[tuple[bool, dict[str, Any], Any]], size: int) -> None:
    payloads = [strange if is_odd else json.dumps(value).encode() for is_odd, value, strange in drawn]
    decoder = make()
    parts = [decoder.decode(Messages(payloads[at : at + size])) for at in range(0, len(payloads), size)]
    whole = decoder.decode(Messages(payloads))
    assert [row for part in parts for row in rows(part)] == rows(whole)
    assert [list(reasons(part).values()) for part in parts if part.refused] != [[]]
    assert [one.reason for part in parts for one in part.refused] == [one.reason for one in whole.refused]


def test_odd_messages_among_many_tidy_ones_change_only_themselves() -> None:
    """Many tidy messages may be parsed as one text; a strange one must not be seen as part of it."""
    tidy = [b'{"user":"u%d","n":%d,"x":0.5,"flag":true}' % (at, at) for at in range(40)]
    expected = [{"user": f"u{at}", "n": at, "x": 0.5, "flag": True} for at in range(40)]
    strange = [
        None, b"", b"{}{}", b'{"user":"a"}{"user":"b"}', b'{"user":"a"}\n{"user":"b"}', b'{"user":"a"},{"user":"b"}',
        b'{"user":"a"', b'"user":"a"}', b'{"user":{}', b"\n", b"[{}]", b'{"user":"a\nb"}', b"{\"user\":'a'}", b"{}//{}",
    ]  # fmt: skip
    decoder = make()
    for one in strange:
        for at in (0, 17, 40):
            found = rows(decoder.decode(Messages([*tidy[:at], one, *tidy[at:]])))
            assert found == [*expected[:at], None, *expected[at:]]
    for one, other in itertools.pairwise(strange):  # two that together could be one or three
        found = rows(decoder.decode(Messages([*tidy[:9], one, other, *tidy[9:]])))
        assert found == [*expected[:9], None, None, *expected[9:]]
    spread = b'{\n "user": "a",\n "n": 7\n}'
    found = rows(decoder.decode(Messages([*tidy, spread])))
    assert found == [*expected, {"user": "a", "n": 7, "x": None, "flag": None}]


def test_every_refusal_has_its_reason_and_no_value() -> None:
    payloads = [None, b"{", b"[]", b'{"n":"secret"}', b'{"user":"' + b"secret" * 200 + b'"}', b"\xff", b'{"n":1}']
    decoded = make().decode(Messages(payloads))
    found = reasons(decoded)
    assert found[0] == TOMBSTONE
    assert "not valid JSON" in found[1]
    assert "not a JSON object" in found[2]
    assert "not a value of type int64" in found[3]
    assert found[4] == TOO_LONG
    assert "UTF-8" in found[5]
    assert decoded.batch.column("n").to_pylist() == [1]
    assert "secret" not in str(decoded.refused)


def test_numbers_in_a_column_of_texts_stay_as_written() -> None:
    decoded = make(("user",)).decode(Messages([b'{"user":1.50}', None, b'{"user":12345678901234567890123}']))
    assert decoded.batch.column("user").to_pylist() == ["1.50", "12345678901234567890123"]


# ---- types


def test_types_come_from_the_first_messages_until_each_column_has_appeared() -> None:
    decoder = make(("a", "b", "c"), {}, needed={"carried": frozenset("c")})
    assert not decoder.is_ready
    assert not decoder.learn([None, b"junk", b'{"a":1,"c":2}'])
    assert decoder.learn([b'{"b":true,"a":"text"}', b'{"b":3.5}'])
    assert decoder.types == {"a": "string", "b": "bool", "c": "double"}
    decoded = decoder.decode(Messages([b'{"a":1,"c":2}', b'{"b":3.5}']))
    assert rows(decoded) == [{"a": "1", "b": None, "c": 2.0}, None]


def test_a_key_that_never_appears_is_an_error() -> None:
    decoder = make(("a", "vist"), {})
    with pytest.raises(InputError, match=r"topic visits: there is no key 'vist' in its first 1000 records"):
        decoder.learn([b'{"a":1}'] * 2000)
    decoder = make(("a", "vist"), {})
    with pytest.raises(InputError, match="first 1 records"):
        decoder.learn([b'{"a":1}'], is_last=True)


def test_an_empty_topic_that_ends_has_columns_of_text() -> None:
    decoder = make(("a",), {})
    assert decoder.learn([], is_last=True)
    assert decoder.schema == pa.schema([("a", pa.string())])


def test_without_types_there_is_no_schema() -> None:
    with pytest.raises(InputError, match=r"give them in \[source\] types"):
        _ = make(("a",), {}).schema


def test_types_survive_a_restart() -> None:
    first = make(("a", "t", "l"), {"t": pa.timestamp("ns", tz="UTC"), "l": pa.list_(pa.string())})
    first.learn([b'{"a":1.5}'])
    kept = json.loads(json.dumps(first.types))
    again = make(("a", "t", "l"), {}, types=kept)
    assert again.is_ready
    assert again.schema == first.schema
    assert again.learn([b'{"a":"text"}'])
    assert again.schema == first.schema


def test_types_of_a_newer_version_are_refused() -> None:
    with pytest.raises(InputError, match="does not know"):
        make(("a",), {}, types={"a": "decimal256(40, 2)"})


# ---- around the value


def test_key_headers_and_time_become_columns() -> None:
    envelope = Envelope(key="device", time="arrived", headers={"tenant": "x-tenant", "size": "n"})
    decoder = make(
        ("n", "device", "arrived", "tenant", "size"), {"n": pa.int64(), "size": pa.int64()}, envelope=envelope
    )
    assert (decoder.needs_keys, decoder.needs_headers, decoder.needs_times) == (True, True, True)
    assert decoder.is_ready
    messages = Messages(
        [b'{"n":1,"device":"other"}', b'{"n":2}', b'{"n":3}', None],
        keys=[b"d1", None, b"\xff", "d4"],
        times=np.array([1_000_000_000, 2, 3, 4]),
        headers=[[("x-tenant", b"t"), ("x-tenant", b"u"), ("n", b"7")], [], None, [("n", "8")]],
    )
    decoded = decoder.decode(messages)
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    assert decoded.batch.to_pylist()[0] == {"n": 1, "device": "d1", "arrived": moment, "tenant": "u", "size": 7}
    assert decoded.batch.schema == decoder.schema
    assert decoded.batch.column("device").to_pylist() == ["d1", None]
    assert set(reasons(decoded)) == {2, 3}
    assert "UTF-8" in reasons(decoded)[2]


def test_a_header_that_does_not_fit_is_refused() -> None:
    decoder = make(("size",), {"size": pa.int64()}, envelope=Envelope(headers={"size": "n"}))
    decoded = decoder.decode(Messages([b"{}", b"{}"], headers=[[("n", b"seven")], [("n", b"7")]]))
    assert decoded.refused[0].column == "size"
    assert rows(decoded) == [None, {"size": 7}]


def test_what_is_not_needed_need_not_be_given() -> None:
    decoder = make(("n",), envelope=Envelope(key="device", time="arrived", headers={"tenant": "t"}))
    assert (decoder.needs_keys, decoder.needs_headers, decoder.needs_times) == (False, False, False)
    assert rows(decoder.decode(Messages([b'{"n":1}']))) == [{"n": 1}]


# ---- times and row numbers


def test_times_in_a_unit_become_timestamps_and_row_numbers_come_last() -> None:
    needed = {"optional": frozenset(["row"])}
    decoder = make(("row", "t", "n"), {"n": pa.int64()}, time="t", unit="ms", row="row", needed=needed)
    assert decoder.learn([b'{"t":5,"n":1}'])
    assert decoder.types == {"t": "int64", "n": "int64"}
    assert decoder.numbers_rows
    payloads = [b'{"t":1000,"n":1}', None, b'{"t":99999999999999999,"n":2}', b'{"t":2000,"n":3}', b'{"n":4}']
    decoded = decoder.decode(Messages(payloads))
    times, usable = decoder.event_times(decoded) or ((), ())
    assert list(times) == [10**9, 2 * 10**9, 0]
    assert list(usable) == [True, True, False]
    assert set(reasons(decoded)) == {1, 2}
    numbered = decoder.numbered(decoded, 100)
    assert numbered.batch.schema == decoder.schema
    assert numbered.batch.column("row").to_pylist() == [100, 103, 104]
    assert numbered.refused == decoded.refused


def test_messages_that_have_row_numbers_keep_them() -> None:
    needed = {"optional": frozenset(["row"])}
    decoder = make(("row", "n"), {"n": pa.int64()}, row="row", needed=needed)
    decoder.learn([b'{"row":7,"n":1}'])
    assert not decoder.numbers_rows
    decoded = decoder.decode(Messages([b'{"row":7,"n":1}']))
    assert decoder.numbered(decoded, 100).batch.to_pylist() == [{"row": 7, "n": 1}]


def test_without_a_time_column_there_are_no_event_times() -> None:
    decoder = make(("n",))
    assert decoder.event_times(decoder.decode(Messages([b"{}"]))) is None
