"""A log of messages on disk, for a system that keeps none itself: numbered from 0, sealed, in segments.

A segment is a file ``messages-N``, named by its first message. It consists of blocks: a head (length, first number,
count) and a sealed body. A block is complete or it does not count: the end of the last segment may be torn.
"""

from __future__ import annotations

import os
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from shoal.crypto.keys import Secret
from shoal.crypto.private_files import sync_folder
from shoal.crypto.safe_open import create_file, open_existing, open_to_read
from shoal.crypto.sealing import SealBroken, WrongKey, seal, unseal
from shoal.errors import InputError

_HEAD: Final = struct.Struct("<IQI")
_ONE: Final = struct.Struct("<QHI?")
_NAME: Final = re.compile(r"messages-(\d{20})")
_SEGMENT_BYTES: Final = 16 * 1024 * 1024
_PURPOSE: Final = "message log"


class LoggedMessage(NamedTuple):
    """A message as it arrived."""

    topic: str
    time: int
    """When it arrived, in nanoseconds since 1970."""
    value: bytes
    is_repeat: bool = False


@dataclass(slots=True)
class _Segment:
    path: Path
    first: int
    size: int


class MessageLog:
    """Appends messages and reads them again; numbers never change.

    Parameters
    ----------
    folder
        Created if missing, readable only by the owner.
    old
        The key before this one, if the log may be sealed with it. Until `reseal` new messages are too, so that a
        process that goes back to the old key can read all of them.
    segment_bytes
        A new segment begins when the last one is longer.
    """

    def __init__(
        self, folder: Path, secret: Secret, *, old: Secret | None = None, segment_bytes: int = _SEGMENT_BYTES
    ) -> None:
        self._folder, self._secret, self._segment_bytes = folder, secret, segment_bytes
        self._old = old
        self._in_use = secret
        """The key of new messages."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = sorted((int(match[1]), path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)))
        self._segments = [_Segment(path, first, path.stat().st_size) for first, path in found]
        self.next = 0
        """The number of the next message."""
        self._file: BinaryIO | None = None
        self._read_to: tuple[int, Path, int] | None = None
        """Where a reading ended: the next message, its segment and place there. The next one usually begins there."""
        if self._segments:
            self._recover()

    def _recover(self) -> None:
        """Remove a torn block at the end of the last segment."""
        for segment in self._segments if self._old is not None else ():
            with open_to_read(segment.path) as file:
                for _, _, body in islice(_blocks(file), 1):
                    with suppress(SealBroken):  # reported when it is read
                        self._unseal(body)  # notes which key is in use
        last = self._segments[-1]
        self.next, sound, broken = last.first, 0, None
        with open_to_read(last.path) as file:
            for first, count, body in _blocks(file):
                try:
                    self._unseal(body)
                except SealBroken as error:
                    broken = broken or error
                    continue
                if broken is not None:  # not the torn end of a killed run: messages behind it were accepted
                    raise _damaged(last.path, broken)
                self.next, sound = first + count, file.tell()
        self._file = open_existing(last.path, private=True)
        self._file.truncate(sound)
        self._file.seek(sound)
        os.fsync(self._file.fileno())
        last.size = sound

    def _unseal(self, body: bytes) -> bytes:
        try:
            return unseal(self._secret, body, purpose=_PURPOSE)
        except WrongKey:
            if self._old is None:
                raise
            found = unseal(self._old, body, purpose=_PURPOSE)
            self._in_use = self._old
            return found

    def reseal(self) -> None:
        """Seal everything with the new key; the old one is not needed any more. A killed call is repeated."""
        if self._in_use is self._secret:
            return
        for segment in self._segments:  # the last one is done last: it says whether all are
            self._reseal(segment)
        assert self._file is not None
        self._file.close()
        self._file = open_existing(self._segments[-1].path, private=True)
        self._file.seek(self._segments[-1].size)
        self._in_use = self._secret

    def _reseal(self, segment: _Segment) -> None:
        temporary = segment.path.with_name(segment.path.name + ".tmp")
        with open_to_read(segment.path) as old, create_file(temporary, private=True) as new:
            for first, count, body in _blocks(old, segment.size):
                sealed = seal(self._secret, self._unseal(body), purpose=_PURPOSE)
                new.write(_HEAD.pack(len(sealed), first, count) + sealed)
            new.flush()
            os.fsync(new.fileno())
            size = new.tell()
        os.replace(temporary, segment.path)
        sync_folder(self._folder)
        segment.size = size

    @property
    def first(self) -> int:
        """The number of the oldest message that is kept."""
        return self._segments[0].first if self._segments else self.next

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(one.size for one in self._segments)

    def append(self, messages: Sequence[LoggedMessage]) -> None:
        """Append messages; they are on disk when this returns."""
        if self._file is None or self._segments[-1].size >= self._segment_bytes:
            self._begin_segment()
        assert self._file is not None
        parts: list[bytes] = []
        for one in messages:
            topic = one.topic.encode()
            parts += (_ONE.pack(one.time, len(topic), len(one.value), one.is_repeat), topic, one.value)
        body = seal(self._in_use, b"".join(parts), purpose=_PURPOSE)
        start = self._segments[-1].size
        try:
            self._file.write(_HEAD.pack(len(body), self.next, len(messages)) + body)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            self._forget(start)
            raise
        self._segments[-1].size += _HEAD.size + len(body)
        self.next += len(messages)

    def _forget(self, size: int) -> None:
        """Give up a block that could not be written, so that the next one follows the last complete one."""
        assert self._file is not None
        path = self._segments[-1].path
        self._file.close()
        self._file = open_existing(path, private=True)
        self._file.truncate(size)
        self._file.seek(size)

    def _begin_segment(self) -> None:
        if self._file is not None:
            self._file.close()
        path = self._folder / f"messages-{self.next:020d}"
        self._file = create_file(path, private=True)
        sync_folder(self._folder)
        self._segments.append(_Segment(path, self.next, 0))

    def read(self, start: int, limit: int) -> Iterator[tuple[int, LoggedMessage]]:
        """Messages from a number on, about as many as the limit (whole blocks), with their numbers."""
        at = max(0, bisect_right([one.first for one in self._segments], start) - 1)
        for segment in self._segments[at:]:
            with open_to_read(segment.path) as file:
                if self._read_to is not None and self._read_to[:2] == (start, segment.path):
                    file.seek(self._read_to[2])
                for first, count, body in _blocks(file, segment.size):
                    if first + count <= start:
                        continue
                    for number, message in enumerate(self._open(body, segment.path), first):
                        if number >= start:
                            yield number, message
                            limit -= 1
                    self._read_to = first + count, segment.path, file.tell()
                    if limit <= 0:
                        return

    def _open(self, body: bytes, path: Path) -> Iterator[LoggedMessage]:
        try:
            data = self._unseal(body)
        except SealBroken as error:
            raise _damaged(path, error) from None
        place = 0
        while place < len(data):
            time, topic, value, is_repeat = _ONE.unpack_from(data, place)
            place += _ONE.size
            name = data[place : place + topic].decode()
            yield LoggedMessage(name, time, data[place + topic : place + topic + value], is_repeat)
            place += topic + value

    def drop(self, before: int) -> None:
        """Remove whole segments of messages with smaller numbers."""
        while len(self._segments) > 1 and self._segments[1].first <= before:
            self._segments.pop(0).path.unlink()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _damaged(path: Path, error: SealBroken) -> InputError:
    return InputError(
        f"{path}: this part of the message log is damaged ({error}); restore it, or start over with a new "
        "checkpoint folder"
    )


def _blocks(file: BinaryIO, size: int | None = None) -> Iterator[tuple[int, int, bytes]]:
    """The complete blocks up to a size: first number, count, sealed body."""
    while size is None or file.tell() < size:
        head = file.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return
        length, first, count = _HEAD.unpack(head)
        body = file.read(length)
        if len(body) < length:
            return
        yield first, count, body
