"""JSON lines: one object per line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.decode.base import BATCH_ROWS, Decoded, Position, Readable
from shoal.decode.json_records import SAMPLE_RECORDS, Columns, FirstRecords, JsonParser
from shoal.decode.text import BLOCK_BYTES, MAX_RECORD_BYTES, TOO_LONG, Blocks, TextDecoder

_SAMPLE_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Lines:
    """Lines that are not blank; None for one that is too long to store."""

    texts: list[bytes | None]
    numbers: npt.NDArray[np.int64]


class JsonlDecoder(TextDecoder["_Window"]):
    """Objects, one per line, in UTF-8. A missing key and null are null; blank lines are skipped.

    Columns that `types` does not declare get their type from the first 1,000 records (of the first 16 MiB): bool if all
    are, then integer, then number, else text. In a text column numbers and booleans keep their JSON text. A later
    value that does not fit is refused, and so are objects and lists (unless `types` declares a list).

    A live stream, such as standard input, is not read ahead: types come from its first record, or from as many as it
    takes until each column has appeared as a key (at most 1,000). A column that is null there is text, and a whole
    number in a carried column is a number that may have a fraction.

    Parameters
    ----------
    carried
        Columns that are only published, never counted or compared.
    assumed
        Types of columns whose type the first records do not show: numbers that happen to be whole, or null, so far.
    lists
        Columns of items, alone or in lists: if one of the first records has a list, it is a column of lists of texts.
        Items are texts or whole numbers of up to 64 bits; other values are refused.
    """

    def __init__(
        self,
        file: Readable,
        *,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType] | None = None,
        assumed: Mapping[str, pa.DataType] | None = None,
        lists: Collection[str] = (),
        carried: Collection[str] = (),
        max_record_bytes: int = MAX_RECORD_BYTES,
        block_bytes: int = BLOCK_BYTES,
        optional: Collection[str] = (),
    ) -> None:
        super().__init__(file, columns=columns, types=types, optional=optional)
        self._needed = Columns(
            file.name, self._columns, self._declared, dict(assumed or {}), frozenset(lists), frozenset(carried),
            self._optional,
        )  # fmt: skip
        self._parser = JsonParser(max_record_bytes, "line", too_long=TOO_LONG, absent=TOO_LONG)
        self._block_bytes = block_bytes

    def _begin(self, blocks: Blocks) -> _Window:
        window = _Window(blocks, self._parser.longest)
        if self._schema is None:
            self._schema = self._infer(window)
        return window

    def _decoded(self, window: _Window) -> Iterator[Decoded]:
        for lines in window.lines():
            columns, refused = self._needed.parsed(self._parser, lines.texts, self.schema)
            yield Decoded.of(columns, self.schema, refused, window.position, lines.numbers)

    def _infer(self, window: _Window) -> pa.Schema:
        missing = {name for name in self._columns if name not in self._declared}
        records = self._first_records(window, missing) if missing else []
        return self._needed.schema(records, is_live=window.blocks.is_live)

    def _first_records(self, window: _Window, names: set[str]) -> list[dict[str, Any]]:
        """The records that types are taken from, without taking them out of the window."""
        if not window.blocks.is_live:
            return self._parser.parse(window.sample(len))[0]
        first = FirstRecords(names - self._optional)

        def until_all_appeared(texts: list[bytes]) -> int:
            for text in texts[len(first.records) :]:
                if first.suffice:
                    break
                first.add(self._parser.parse([text])[0][0])
            return SAMPLE_RECORDS if first.suffice else len(texts)

        window.sample(until_all_appeared)
        return first.records


class _Window:
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

    def lines(self) -> Iterator[_Lines]:
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

    def _take(self, texts: list[bytes], *, end_bytes: int = 1) -> Iterator[_Lines]:
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
                yield _Lines(part, numbers)  # type: ignore[arg-type]

    def _skip_line(self) -> Iterator[_Lines]:
        """Skip a line that is too long, without storing it; yields nothing if the stream breaks off in it."""
        while (end := self.blocks.data.find(b"\n")) < 0 and not self.blocks.is_complete:
            self.blocks.drop(len(self.blocks.data))
            self.blocks.grow()
        if end < 0 and self.blocks.failure is not None:
            return
        self.blocks.drop(end + 1 if end >= 0 else len(self.blocks.data))
        number, self._line = self._line, self._line + 1
        self._record += 1
        yield _Lines([None], np.array([number], dtype=np.int64))
