"""Finding the records of CSV text in blocks of bytes, so that one bad record costs one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.decode.base import Position
from shoal.decode.blocks import Blocks
from shoal.errors import InputError
from shoal.kernels import csv_records
from shoal.kernels.csv_records import AT, BREAKS, LINE, OPEN_UNTIL

_BATCH_ROWS: Final = 65_536
_MAX_COLUMNS: Final = 65_536
REASONS: Final = {
    csv_records.HAS_NUL: "a NUL byte in the record; remove it",
    csv_records.TOO_LONG: "longer than the longest record allowed; raise max_record_bytes",
    csv_records.UNCLOSED: "a quoted field is never closed; close it",
}
"""Why a record cannot be used, by its code."""


@dataclass(frozen=True, slots=True)
class FoundRecords:
    """Records of one window: bounds of the needed fields and what is wrong with each record."""

    data: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    codes: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]


class RecordFinder:
    """The blocks of one file and the place in them up to which records were found."""

    def __init__(self, blocks: Blocks, table: npt.NDArray[np.uint8], longest: int) -> None:
        self.blocks = blocks
        self._table = table
        self._longest = longest
        self._cursor = np.array([blocks.mark_bytes(), 1, -1, 0], dtype=np.int64)
        self._record = 0

    @property
    def position(self) -> Position:
        at, line = int(self._cursor[AT]), int(self._cursor[LINE])
        return {"byte": self.blocks.offset + at, "record": self._record, "line": line}

    def go_to(self, position: Position) -> None:
        """Continue at a position given earlier, which is never before the first record."""
        self._drop()
        self.blocks.skip_to(position["byte"])
        self._cursor[:] = (0, position["line"], -1, 0)
        self._record = position["record"]

    def header(self, quote: int) -> tuple[str, ...]:
        """Names in the first record."""
        found = next(self._found(np.arange(_MAX_COLUMNS), width=0, rows=1), None)
        self._record = 0
        if found is None:
            raise self.blocks.failure or InputError(f"{self.blocks.name}: is empty, there is no header line")
        code, width = int(found.codes[0]), int(found.counts[0])
        if code or width > _MAX_COLUMNS:
            reason = REASONS.get(code, f"it has more than {_MAX_COLUMNS} columns")
            raise InputError(f"{self.blocks.name}: the header line cannot be used: {reason}")
        fields = [field_column(found, slot, quote)[0].as_py() or b"" for slot in range(width)]
        return tuple(field.decode("utf-8", errors="replace") for field in fields)

    def records(self, slots: Any) -> Iterator[FoundRecords]:
        """All records from here on."""
        return self._found(slots, width=len(slots), rows=_BATCH_ROWS)

    def _found(self, slots: npt.NDArray[np.int64], *, width: int, rows: int) -> Iterator[FoundRecords]:
        while True:
            found, why = self._split(slots, width=width, rows=rows)
            self._record += len(found.codes)
            if len(found.codes):
                yield found
            if why == csv_records.ENDLESS:
                line = int(self._cursor[LINE])
                if not self._skip_line():
                    return
                self._record += 1
                yield _one_bad(csv_records.TOO_LONG, line, columns=len(found.starts))
            elif why == csv_records.NEEDS_MORE:
                if self.blocks.is_complete:
                    return
                self._drop()
                self.blocks.grow()

    def _split(self, slots: npt.NDArray[np.int64], *, width: int, rows: int) -> tuple[FoundRecords, int]:
        data = np.frombuffer(self.blocks.data, dtype=np.uint8)
        # A record is a byte and a line end at least.
        rows = min(rows, len(data) // 2 + 1)
        starts, ends = np.zeros((2, int(slots.max(initial=-1)) + 1, rows), dtype=np.int64)
        codes = np.empty(rows, dtype=np.uint8)
        counts, lines = np.empty((2, rows), dtype=np.int64)
        used, why = csv_records.split_records(
            data,
            self._is_final(),
            self._table,
            self._longest,
            width,
            slots,
            self._cursor,
            starts,
            ends,
            codes,
            counts,
            lines,
        )
        found = FoundRecords(data, starts[:, :used], ends[:, :used], codes[:used], counts[:used], lines[:used])
        return found, int(why)

    def _is_final(self) -> bool:
        # Of a stream that breaks off, the last record may be a part only: it never counts as complete.
        return self.blocks.is_complete and self.blocks.failure is None

    def _drop(self) -> None:
        self.blocks.drop(int(self._cursor[AT]))
        self._cursor[OPEN_UNTIL] -= self._cursor[AT]
        self._cursor[AT] = 0

    def _skip_line(self) -> bool:
        """Skip a record that is too long without keeping it; False when the stream breaks off in it."""
        self._drop()
        self.blocks.drop(self._longest + 1)
        while (after := self._line_end()) < 0:
            if self.blocks.failure is not None:
                return False
            # The last byte may be the first half of a line end.
            self.blocks.drop(max(0, len(self.blocks.data) - 1))
            self.blocks.grow()
        self._cursor[:] = (after, self._cursor[LINE] + self._cursor[BREAKS] + 1, -1, 0)
        return True

    def _line_end(self) -> int:
        data = np.frombuffer(self.blocks.data, dtype=np.uint8)
        return int(csv_records.next_line(data, 0, self._is_final()))


def _one_bad(code: int, line: int, *, columns: int) -> FoundRecords:
    bounds = np.zeros((columns, 1), dtype=np.int64)
    codes = np.array([code], dtype=np.uint8)
    return FoundRecords(np.empty(0, np.uint8), bounds, bounds, codes, np.zeros(1, np.int64), np.array([line]))


def field_column(found: FoundRecords, slot: int, quote: int) -> Any:
    """One field of every record as binary; null where it is empty."""
    starts, ends = found.starts[slot], found.ends[slot]
    out = np.empty(int((ends - starts).sum()), dtype=np.uint8)
    offsets = np.empty(len(starts) + 1, dtype=np.int32)
    csv_records.gather_fields(found.data, starts, ends, quote, out, offsets)
    is_valid = np.packbits(np.diff(offsets) > 0, bitorder="little")
    buffers = [pa.py_buffer(is_valid), pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.binary(), len(starts), buffers)
