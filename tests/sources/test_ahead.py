"""Reading ahead changes neither records nor positions nor errors, and never leaves a thread behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from shoal.decode.base import Decoded
from shoal.errors import InputError
from shoal.sources.ahead import ReadAhead
from shoal.sources.base import End, Polled
from shoal.testing.scripted import ScriptedSource

SCHEMA = pa.schema([("n", pa.int64())])


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": [number]})


def polled(source: ReadAhead | ScriptedSource) -> Iterator[tuple[Polled, object]]:
    while True:
        found = source.poll()
        yield found, source.position
        if isinstance(found, End):
            return


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "shoal read ahead"]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_records_and_positions_are_those_of_the_source(count: int) -> None:
    script = [batch(number) for number in range(count)]
    plain, ahead = ScriptedSource(script, schema=SCHEMA), ReadAhead(ScriptedSource(script, schema=SCHEMA))
    for source in (plain, ahead):
        source.open(("n",), None)
    assert ahead.position == plain.position
    expected, found = list(polled(plain)), list(polled(ahead))
    assert len(found) == count + 1
    for (one, at), (other, there) in zip(expected, found, strict=True):
        assert at == there
        assert type(one) is type(other)
        if isinstance(one, Decoded) and isinstance(other, Decoded):
            assert one.batch.equals(other.batch)
    ahead.close()
    assert not threads()


def test_an_error_comes_after_the_records_before_it() -> None:
    source = ReadAhead(ScriptedSource([batch(0), batch(1), InputError("broke off")], schema=SCHEMA))
    source.open(("n",), None)
    assert isinstance(source.poll(), Decoded)
    assert isinstance(source.poll(), Decoded)
    for _ in range(2):
        with pytest.raises(InputError, match="broke off"):
            source.poll()
    source.close()


def test_the_end_stays_the_end() -> None:
    source = ReadAhead(ScriptedSource([batch(0)], schema=SCHEMA))
    source.open(("n",), None)
    assert isinstance(source.poll(), Decoded)
    assert [source.poll(), source.poll()] == [End(), End()]
    source.close()


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_closing_early_ends_the_thread(taken: int) -> None:
    source = ReadAhead(ScriptedSource([batch(number) for number in range(50)], schema=SCHEMA))
    source.open(("n",), None)
    for _ in range(taken):
        source.poll()
    source.close()
    assert not threads()
