"""What is offered to people who add a method or a format."""

from __future__ import annotations

import io

import pytest
from hypothesis import given

from shoal.errors import TruncatedInput
from shoal.testing.driving import LawBroken, require
from shoal.testing.scripted import ScriptedFile
from shoal.testing.strategies import EVENT_SCHEMA, as_records, as_table, event_records
from tests.reference.effort import tries

SCRIPT = [b"ts,us", b"", b"er\n1,ann\n", TruncatedInput("broke off")]


def test_a_script_is_played_piece_by_piece():
    file = ScriptedFile(SCRIPT, name="visits")
    stream = file.open()
    assert stream.readable()
    assert [stream.read(3), stream.read(0), stream.read(), stream.read(100)] == [b"ts,", b"", b"us", b"er\n1,ann\n"]
    for _ in range(2):
        with pytest.raises(TruncatedInput):
            stream.read(1)
    assert (file.name, file.openings) == ("visits", 1)


def test_every_opening_starts_afresh():
    file = ScriptedFile([b"ab", b"cd"])
    assert file.open().read(9) == file.open().read(9) == b"ab"
    assert io.BufferedReader(file.open()).read() == b"abcd"
    assert file.open_seekable().read() == b"abcd"
    assert file.openings == 4
    with pytest.raises(TruncatedInput):
        ScriptedFile(SCRIPT).open_seekable()


def test_a_script_fills_buffers():
    stream, buffer = ScriptedFile([b"abc"]).open(), bytearray(2)
    assert (stream.readinto(buffer), bytes(buffer)) == (2, b"ab")
    assert (stream.readinto(buffer), bytes(buffer)) == (1, b"cb")
    assert stream.readinto(buffer) == 0


@given(event_records())
@tries(30)
def test_events_as_a_table_and_back(records):
    table = as_table(records)
    assert table.schema == EVENT_SCHEMA
    assert as_records(table) == records


def test_a_law_is_broken_with_a_sentence():
    require(True, "fine")
    with pytest.raises(LawBroken, match="not fine"):
        require(False, "not fine")
