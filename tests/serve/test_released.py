"""Listeners of released rows: all read the same rows, whoever does not read costs nothing and is cut off."""

from __future__ import annotations

import asyncio
import json
from unittest.mock import patch

import pyarrow as pa
import pytest

from shoal.serve import released
from shoal.serve.released import MOST_LISTENERS, ReleasedRows, TooSlow


def rows(number: int, count: int = 3) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"site": [f"s{number}"] * count})


async def read(listener: released.Listener, pieces: int) -> list[str]:
    found = []
    for _ in range(pieces):
        lines = await listener.get()
        assert lines is not None
        found += [json.loads(line)["site"] for line in lines.splitlines()]
    return found


async def until_waiting(all_rows: ReleasedRows, count: int) -> None:
    while len(all_rows._waiting) < count:
        await asyncio.to_thread(int)


def test_every_listener_reads_every_row_and_rows_are_encoded_once() -> None:
    async def story() -> None:
        all_rows = ReleasedRows()
        all_rows.add(rows(0))  # nobody listens
        listeners = [one for _ in range(20) if (one := all_rows.listen()) is not None]
        for number in (1, 2):
            all_rows.add(rows(number))
        with patch.object(released, "_lines", wraps=released._lines) as encoding:
            for listener in listeners:
                assert await read(listener, 2) == ["s1"] * 3 + ["s2"] * 3
        assert encoding.call_count == 2
        all_rows.add(rows(3))
        assert all_rows.nbytes < 2_000, "what all have read is dropped"

    asyncio.run(story())


def test_rows_reach_listeners_that_wait_with_one_call() -> None:
    async def story() -> None:
        all_rows = ReleasedRows()
        listeners = [one for _ in range(5) if (one := all_rows.listen()) is not None]
        reading = [asyncio.create_task(one.get()) for one in listeners]
        await until_waiting(all_rows, 5)
        loop = asyncio.get_running_loop()
        with patch.object(loop, "call_soon_threadsafe", wraps=loop.call_soon_threadsafe) as calls:
            await asyncio.to_thread(all_rows.add, rows(1))
            woken = [call for call in calls.call_args_list if call.args[0] is released._go_on]
        assert len(woken) == 1
        assert [json.loads(line.splitlines()[0]) for line in await asyncio.gather(*reading) if line] == [
            {"site": "s1"}
        ] * 5

    asyncio.run(story())


def test_listeners_that_never_read_wake_nobody_encode_nothing_and_share_bounded_memory() -> None:
    async def story() -> None:
        all_rows = ReleasedRows(most_bytes=50_000)
        idle = [one for _ in range(100) if (one := all_rows.listen()) is not None]
        loop = asyncio.get_running_loop()
        with (
            patch.object(released, "_lines", wraps=released._lines) as encoding,
            patch.object(loop, "call_soon_threadsafe", wraps=loop.call_soon_threadsafe) as calls,
        ):
            for number in range(1_000):
                all_rows.add(rows(number))
                assert all_rows.nbytes <= 50_000
        assert (encoding.call_count, calls.call_count) == (0, 0)
        for listener in idle:
            with pytest.raises(TooSlow):
                await listener.get()
            all_rows.leave(listener)
        assert all_rows.nbytes == 0

    asyncio.run(story())


def test_a_slow_listener_does_not_disturb_one_that_reads() -> None:
    async def story() -> None:
        all_rows = ReleasedRows(most_bytes=20_000)
        slow, quick = all_rows.listen(), all_rows.listen()
        assert slow is not None
        assert quick is not None
        found = []
        for number in range(200):
            all_rows.add(rows(number, 1))
            found += await read(quick, 1)
        assert found == [f"s{number}" for number in range(200)]
        with pytest.raises(TooSlow):
            await slow.get()

    asyncio.run(story())


def test_listeners_at_different_places_both_get_every_row() -> None:
    async def story() -> None:
        all_rows = ReleasedRows()
        behind, ahead = all_rows.listen(), all_rows.listen()
        assert behind is not None
        assert ahead is not None
        wanted = [f"s{number}" for number in range(5)]
        found = []
        for number in range(5):
            all_rows.add(rows(number, 1))
            found += await read(ahead, 1)
        assert found == wanted
        assert await read(behind, 5) == wanted

    asyncio.run(story())


def test_streams_end_with_the_run_and_rows_before_are_read() -> None:
    async def story() -> None:
        all_rows = ReleasedRows()
        waiting, behind = all_rows.listen(), all_rows.listen()
        assert waiting is not None
        assert behind is not None
        all_rows.add(rows(1))
        assert await read(waiting, 1)
        end = asyncio.create_task(waiting.get())
        await until_waiting(all_rows, 1)
        all_rows.close()
        assert await end is None
        assert await read(behind, 1) == ["s1"] * 3
        assert await behind.get() is None

    asyncio.run(story())


def test_too_many_listeners_are_refused() -> None:
    async def story() -> None:
        all_rows = ReleasedRows()
        found = [all_rows.listen() for _ in range(MOST_LISTENERS + 1)]
        assert found[-1] is None
        assert found[0] is not None
        all_rows.leave(found[0])
        assert all_rows.listen() is not None

    asyncio.run(story())
