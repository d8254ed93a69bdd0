"""JSON lines: one object per line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from shoal.decode.base import Decoded, Readable
from shoal.decode.json_records import SAMPLE_RECORDS, Columns, FirstRecords, JsonParser
from shoal.decode.lines import LineWindow
from shoal.decode.text import BLOCK_BYTES, MAX_RECORD_BYTES, TOO_LONG, Blocks, TextDecoder


class JsonlDecoder(TextDecoder["LineWindow"]):
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

    def _begin(self, blocks: Blocks) -> LineWindow:
        window = LineWindow(blocks, self._parser.longest)
        if self._schema is None:
            self._schema = self._infer(window)
        return window

    def _decoded(self, window: LineWindow) -> Iterator[Decoded]:
        for lines in window.lines():
            columns, refused = self._needed.parsed(self._parser, lines.texts, self.schema)
            yield Decoded.of(columns, self.schema, refused, window.position, lines.numbers)

    def _infer(self, window: LineWindow) -> pa.Schema:
        missing = {name for name in self._columns if name not in self._declared}
        records = self._first_records(window, missing) if missing else []
        return self._needed.schema(records, is_live=window.blocks.is_live)

    def _first_records(self, window: LineWindow, names: set[str]) -> list[dict[str, Any]]:
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
