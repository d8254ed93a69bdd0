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
from shoal.crypto.sealing import WrongKey
from shoal.errors import InputError
from shoal.sources.logged.message_log import LoggedMessage, MessageLog

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


@pytest.mark.parametrize("segment", [1, 10**6])
def test_readings_do_not_depend_on_earlier_ones(tmp_path: Path, segment: int) -> None:
    """A reading goes on where the last one ended; any other place is found as well, also after more messages."""
    with opened(tmp_path, segment) as log:
        for _ in range(4):
            append(log, 3)
            for start in (0, 5, 2, log.next - 1, log.next, 0):
                assert content(log, start) == [(number, message(number)) for number in range(start, log.next)]


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
    with pytest.raises(InputError, match="this part of the message log is damaged"), opened(tmp_path):
        pass  # nothing is cut off: messages behind the damage were accepted
    assert path.read_bytes() == bytes(damaged)


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


OLD: Secret = as_secret(b"the key that was used before")


def sealed_with_the_old_key(folder: Path) -> list[tuple[int, LoggedMessage]]:
    """A log of several segments."""
    with closing(MessageLog(folder, OLD, segment_bytes=200)) as log:
        for _ in range(9):
            append(log, 5)
        return content(log)


def test_a_log_of_the_old_key_goes_on_and_is_sealed_again(tmp_path: Path) -> None:
    expected = sealed_with_the_old_key(tmp_path)
    assert len(list(tmp_path.iterdir())) > 3
    with pytest.raises(WrongKey):
        MessageLog(tmp_path, SECRET)
    with closing(MessageLog(tmp_path, SECRET, old=OLD)) as log:
        append(log, 4)
    with closing(MessageLog(tmp_path, OLD)) as log:
        expected = content(log)
        assert len(expected) == 49, "the old key can come back until the log is sealed again"
    with closing(MessageLog(tmp_path, SECRET, old=OLD)) as log:
        log.reseal()
        append(log, 4)
        assert content(log)[:-4] == expected
    with opened(tmp_path) as log:
        assert content(log)[:-4] == expected, "without the old key"
        assert log.next == 53


@pytest.mark.parametrize("at", range(4))
def test_a_log_whose_sealing_was_killed_is_sealed_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    expected = sealed_with_the_old_key(tmp_path)
    replaced = 0

    def replace(old: Path, new: Path) -> None:
        nonlocal replaced
        if replaced == at:
            raise KeyboardInterrupt
        replaced += 1
        Path(old).rename(new)

    with closing(MessageLog(tmp_path, SECRET, old=OLD)) as log, monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(KeyboardInterrupt):
            log.reseal()
    with closing(MessageLog(tmp_path, SECRET, old=OLD)) as log:
        log.reseal()
    with opened(tmp_path) as log:
        assert content(log) == expected
