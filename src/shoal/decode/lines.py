"""Lines of a text file, whatever the size of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.decode.base import BATCH_ROWS, Position
from shoal.decode.json_records import SAMPLE_RECORDS
from shoal.decode.text import Blocks

_SAMPLE_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines that are not blank; None for one that is too long to store."""

    texts: list[bytes | None]
    numbers: npt.NDArray[np.int64]


class LineWindow:
    """Takes lines from the blocks of one file and counts records and lines."""

    def __init__(self, blocks: Blocks, longest: int) -> None:
        self.blocks = blocks
        self._longest = longest
        self._line = 1
        self._record = 0
        blocks.drop(blocks.mark_bytes())

    @property
    def position(self) -> Position:
        return {"byte": self.blocks.offset, "record": self._record, "line": self._line}

    def go_to(self, position: Position) -> None:
        self.blocks.skip_to(position["byte"])
        self._line, self._record = position["line"], position["record"]

    def sample(self, counted: Callable[[list[bytes]], int]) -> list[bytes]:
        """The first records, without taking them, whatever the size of blocks: until they are counted as 1,000."""
        while True:
            head = self.blocks.data[:_SAMPLE_BYTES]
            is_all = self.blocks.is_complete and self.blocks.failure is None
            end = len(head) if is_all and len(head) < _SAMPLE_BYTES else head.rfind(b"\n") + 1
            texts = [text for text in head[:end].split(b"\n") if text.strip()]
            if counted(texts) >= SAMPLE_RECORDS or len(head) == _SAMPLE_BYTES or self.blocks.is_complete:
                return texts[:SAMPLE_RECORDS]
            self.blocks.grow()

    def lines(self) -> Iterator[Lines]:
        """All lines from here on."""
        while True:
            data = self.blocks.data
            end = data.rfind(b"\n") + 1
            if end:
                yield from self._take(data[: end - 1].split(b"\n"))
            elif self.blocks.is_complete:
                if self.blocks.failure is None:
                    yield from self._take([data], end_bytes=0)
                return
            elif len(data) > self._longest:
                yield from self._skip_line()
            else:
                self.blocks.grow()

    def _take(self, texts: list[bytes], *, end_bytes: int = 1) -> Iterator[Lines]:
        for start in range(0, len(texts), BATCH_ROWS):
            part = texts[start : start + BATCH_ROWS]
            numbers = np.arange(self._line, self._line + len(part), dtype=np.int64)
            self._line += len(part)
            self.blocks.drop(sum(map(len, part)) + len(part) * end_bytes)
            if not all(map(bytes.strip, part)):
                kept = [at for at, text in enumerate(part) if text.strip()]
                part, numbers = [part[at] for at in kept], numbers[kept]
            self._record += len(part)
            if part:
                yield Lines(part, numbers)  # type: ignore[arg-type]

    def _skip_line(self) -> Iterator[Lines]:
        """Skip a line that is too long, without storing it; yields nothing if the stream breaks off in it."""
        while (end := self.blocks.data.find(b"\n")) < 0 and not self.blocks.is_complete:
            self.blocks.drop(len(self.blocks.data))
            self.blocks.grow()
        if end < 0 and self.blocks.failure is not None:
            return
        self.blocks.drop(end + 1 if end >= 0 else len(self.blocks.data))
        number, self._line = self._line, self._line + 1
        self._record += 1
        yield Lines([None], np.array([number], dtype=np.int64))
