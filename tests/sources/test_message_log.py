"""The log of messages on disk: what was appended is read again, whatever happens to its end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.crypto.keys import Secret, as_secret
from shoal.errors import InputError
from shoal.sources.message_log import LoggedMessage, MessageLog

SECRET: Secret = as_secret(b"a key of more than sixteen bytes")
BLOCKS = st.lists(st.integers(1, 9), min_size=1, max_size=8)


def message(number: int) -> LoggedMessage:
    return LoggedMessage(f"topic/{number % 3}", 1_000 + number, b"x" * (number % 50), number % 4 == 0)


@contextmanager
def opened(folder: Path, segment_bytes: int = 10**6) -> Iterator[MessageLog]:
    with closing(MessageLog(folder, SECRET, segment_bytes=segment_bytes)) as log:
        yield log


def append(log: MessageLog, count: int) -> None:
    log.append([message(number) for number in range(log.next, log.next + count)])


def content(log: MessageLog, start: int = 0) -> list[tuple[int, LoggedMessage]]:
    return list(log.read(start, 10**9))


@given(blocks=BLOCKS, start=st.integers(0, 60), segment=st.integers(1, 999))
def test_messages_come_back_from_any_number(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[int], start: int, segment: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    expected = [(number, message(number)) for number in range(start, sum(blocks))]
    with opened(folder, segment) as log:
        for count in blocks:
            append(log, count)
        assert content(log, start) == expected
    with opened(folder) as log:
        assert content(log, start) == expected


def test_a_torn_end_is_cut_off_and_written_again(tmp_path: Path) -> None:
    """Cut anywhere in its last block, the log has everything before that block."""
    with opened(tmp_path) as log:
        append(log, 3)
        sound = log.size
        append(log, 4)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for size in range(sound, len(whole), 17):
        path.write_bytes(whole[:size])
        with opened(tmp_path) as log:
            assert log.next == 3
            append(log, 2)
            assert content(log) == [(number, message(number)) for number in range(5)]


def test_damage_inside_is_reported(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        append(log, 3)
        middle = log.size // 2
        append(log, 3)
        (path,) = tmp_path.iterdir()
        damaged = bytearray(path.read_bytes())
        damaged[middle] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="this part of the message log is damaged"):
            content(log)


def test_contents_and_topics_are_sealed(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.append([LoggedMessage("homes/ann", 1, b"a secret reading")])
    (path,) = tmp_path.iterdir()
    assert b"ann" not in path.read_bytes()
    assert b"reading" not in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0


def test_old_segments_are_dropped_and_numbers_stay(tmp_path: Path) -> None:
    with opened(tmp_path, 1) as log:
        for _ in range(5):
            append(log, 2)
        log.drop(7)
        assert log.first == 6
    with opened(tmp_path, 1) as log:
        assert (log.first, log.next) == (6, 10)
        log.drop(10)
        assert (log.first, log.next) == (8, 10)  # the last one stays: it knows the next number


def test_a_block_that_cannot_be_written_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    expected = [(number, message(number)) for number in range(3)]
    with opened(tmp_path) as log:
        append(log, 2)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                append(log, 3)
        append(log, 1)
        assert content(log) == expected
    with opened(tmp_path) as log:
        assert content(log) == expected
