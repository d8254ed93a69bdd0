"""Decide which records of the flexible method are published: pending rows, calibration and groups.

This is the only place where the method's state changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.methods.arrow_input import as_bytes
from shoal.methods.carried_columns import CarriedColumns
from shoal.methods.flexible.calibration import Calibration, calibrate
from shoal.methods.flexible.density import density_tables
from shoal.methods.flexible.grouping import Grouped, Grouping
from shoal.methods.flexible.reader import FlexibleReader, ReadRecords, are_unknown
from shoal.methods.flexible.settings import FlexibleSettings
from shoal.methods.release import NO_REASON, Counts
from shoal.methods.schema_reader import tuple_reasons
from shoal.methods.text_keys import key_words

Ints = npt.NDArray[np.int64]
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Decided:
    """Records published together: after which record, and with which labels."""

    at: int
    """Number of the last record seen by then; only for rows of a round."""
    rows: Ints
    delays: Ints
    grouped: Grouped
    carried: pa.RecordBatch
    is_round: bool


class Rows(NamedTuple):
    """Records as arrays; the last axis is the record."""

    rows: Ints
    """Numbers of the records."""
    arrivals: Ints
    """Numbers among the usable records."""
    keys: Ints
    """Two words that identify the person."""
    codes: Ints
    """A code for each quasi-identifier."""

    def people(self) -> Ints:
        """Numbers from 0 for the people, the same for the same person."""
        order = np.lexsort(self.keys)
        is_new = (np.diff(self.keys[:, order], axis=1) != 0).any(axis=0)
        numbers = np.zeros(len(order), np.int64)
        numbers[order[1:]] = np.cumsum(is_new)
        return numbers

    def between(self, begin: int, end: int) -> Rows:
        """A run of records."""
        return self if end - begin == len(self.rows) else Rows(*(array[..., begin:end] for array in self))

    def without(self, positions: Ints) -> Rows:
        """The other records."""
        stays = np.ones(len(self.rows), dtype=np.bool_)
        stays[positions] = False
        return Rows(*(np.ascontiguousarray(array[..., stays]) for array in self))


class PendingRows:
    """Records that need more people, in arrival order."""

    def __init__(self, quasi: int) -> None:
        none = np.empty(0, np.int64)
        self._whole = Rows(none, none, np.empty((2, 0), np.int64), np.empty((quasi, 0), np.int64))
        self._parts: list[Rows] = []

    def __len__(self) -> int:
        return len(self._whole.rows) + sum(len(part.rows) for part in self._parts)

    @property
    def all(self) -> Rows:
        """All pending records."""
        if self._parts:
            parts = [self._whole, *self._parts]
            self._whole = Rows(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))
            self._parts = []
        return self._whole

    def add(self, rows: Rows) -> None:
        """Append records that came after all others."""
        if len(rows.rows):
            self._parts.append(rows)

    def drop(self, positions: Ints) -> None:
        """Remove records."""
        self._whole = self.all.without(positions)

    def load(self, arrays: Arrays) -> None:
        """Replace the records by the arrays of a snapshot."""
        self._parts, self._whole = [], Rows(*(arrays[name].copy() for name in Rows._fields))


class Decider:
    """Publishes records that fit a published group at once; the others stay pending until a window is full.

    When a window is full, groups are formed among all pending records. The first window also calibrates which columns
    are sparse, how many people must share a label, and how dense places are; that stays fixed afterwards.
    """

    def __init__(self, settings: FlexibleSettings, secret: Secret, reader: FlexibleReader) -> None:
        self._settings = settings
        self._reader = reader
        self._group_key = key_words(secret.subkey("table of groups"))
        self._order_key = key_words(secret.subkey("order of rows"))
        self.counts = Counts(tuple_reasons(settings.schema))
        self.unknown = {settings.schema.quasi[a].name: 0 for a in reader.unknown_codes}
        """By column: accepted records with an unlisted value."""
        self.lost = np.zeros(len(settings.schema.quasi), np.int64)
        """By column: the sum of the weighted losses of released rows, in parts of SCALE."""
        self._usable = 0
        self._pending = PendingRows(len(settings.schema.quasi))
        self.grouping: Grouping | None = None

    def set_types(self, schema: pa.Schema, carried: pa.Schema) -> None:
        """Prepare for input of these types."""
        self._types = schema
        self._carried = CarriedColumns(carried)

    @property
    def calibration(self) -> Calibration | None:
        """Which columns are sparse and how many people a label needs; None before the first window is full."""
        return self.grouping.calibration if self.grouping else None

    @property
    def pending(self) -> int:
        """Number of pending records."""
        return len(self._pending)

    @property
    def state_bytes(self) -> int:
        """Bytes of the tables."""
        return (self.grouping.table.nbytes if self.grouping else 0) + sum(array.nbytes for array in self._pending.all)

    # ---- records

    def refuse(self, reason: int) -> None:
        """Count one refused record."""
        self.counts.pushed += 1
        self.counts.refuse(reason)

    def accept_one(self, read: ReadRecords, carried: tuple[Any, ...]) -> list[Decided]:
        """Publish or keep one usable record; return what is published now."""
        row, self.counts.pushed = self.counts.pushed, self.counts.pushed + 1
        self._carried.add_one(row, carried)
        return self._accept(np.array([row], dtype=np.int64), read)

    def accept(self, read: ReadRecords, carried: pa.RecordBatch) -> list[Decided]:
        """Publish or keep the usable records of a batch; return what is published now."""
        usable = read.reasons == NO_REASON
        rows = self.counts.pushed + np.flatnonzero(usable)
        self.counts.pushed += len(usable)
        for reason, count in zip(*np.unique(read.reasons[~usable], return_counts=True), strict=True):
            self.counts.refuse(int(reason), int(count))
        self._carried.add(rows, carried)
        return self._accept(rows, read)

    def _accept(self, rows: Ints, read: ReadRecords) -> list[Decided]:
        self.counts.clamped += read.clamped
        for a, code in self._reader.unknown_codes.items():
            codes = read.codes[a]
            self.unknown[self._reader.readers[a].name] += int(np.count_nonzero(are_unknown(codes) | (codes == code)))
        arrivals = np.arange(self._usable, self._usable + len(rows))
        return list(self._decide(Rows(rows, arrivals, read.keys, read.codes)))

    def _decide(self, records: Rows) -> Iterator[Decided]:
        """Publish rows at once or keep them pending; form groups whenever a window is full."""
        begin, count, window = 0, len(records.rows), self._settings.window
        while begin < count:
            end = min(count, begin + window - self._usable % window)
            yield from self._decide_run(records.between(begin, end))
            if self._usable % window == 0:
                yield from self._form_groups(int(records.rows[end - 1]))
            begin = end

    def _decide_run(self, run: Rows) -> Iterator[Decided]:
        self._usable += len(run.rows)
        joined = self.grouping.join(run.codes) if self.grouping is not None else None
        if joined is not None and len(joined.positions):
            rows = run.rows[joined.positions]
            yield self._released(-1, rows, np.zeros_like(rows), joined, is_round=False)
            run = run.without(joined.positions)
        self._pending.add(run)

    def _form_groups(self, at: int) -> Iterator[Decided]:
        """Form groups among the pending rows; rows released now are released after the record `at`."""
        pending = self._pending.all
        if self.grouping is None:
            # The pending rows are all rows so far.
            self.set_calibration(calibrate(self._settings, pending.codes, pending.people()))
        assert self.grouping is not None
        grouped = self.grouping.form(pending.codes, pending.people())
        if len(grouped.positions):
            grouped = grouped.ordered(self._order_of(grouped.groups))
            rows, delays = pending.rows[grouped.positions], self._usable - 1 - pending.arrivals[grouped.positions]
            self._pending.drop(grouped.positions)
            yield self._released(at, rows, delays, grouped, is_round=True)

    def _order_of(self, groups: Ints) -> Ints:
        """An order for the rows of a round: by group, then random. The arrival order would reveal when rows came."""
        counter = [0, 0, self._usable, self.counts.released]
        random = np.random.Generator(np.random.Philox(key=self._order_key, counter=counter))
        return np.lexsort((random.permutation(len(groups)), groups)).astype(np.int64)

    def _released(self, at: int, rows: Ints, delays: Ints, grouped: Grouped, *, is_round: bool) -> Decided:
        self.counts.released += len(rows)
        self.lost += grouped.lost
        return Decided(at, rows, delays, grouped, self._carried.take(rows), is_round)

    def flush(self) -> list[Decided]:
        """Release everything that can be released; the rest stays pending."""
        decided: list[Decided] = []
        while len(self._pending):
            formed = list(self._form_groups(self.counts.pushed))
            if not formed:
                break
            decided += formed  # rows may join the groups just published, so try again
        return decided

    def forget_released(self) -> None:
        """Drop the carried columns of rows that are no longer pending, when they are many."""
        self._carried.keep_only(self._pending.all.rows)

    def set_calibration(self, calibration: Calibration) -> None:
        """Form groups by this calibration, and never by another."""
        given = (self._settings, calibration, self._types, self._group_key)
        density = density_tables(self._settings, calibration.density)
        self.grouping = Grouping(*given, density=density, unknown=self._reader.unknown_codes)

    # ---- state

    def dump(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """The state as plain values and named arrays."""
        found = self.calibration
        header = {
            "usable": self._usable, "lost": self.lost.tolist(), "unknown": self.unknown,
            "calibration": found.describe() if found else None,
        }  # fmt: skip
        pending = self._pending.all
        arrays = {f"{_PENDING}{name}": array for name, array in pending._asdict().items()}
        if self.grouping is not None:
            arrays |= {f"{_GROUPS}{name}": array for name, array in self.grouping.dump().items()}
        return header, {**arrays, "carried": as_bytes(self._carried.forget_all_but(pending.rows).serialize())}

    def load(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Take over a state from dump(), after set_types()."""
        self._usable, self.unknown = header["usable"], dict(header["unknown"])
        self.lost = np.array(header["lost"], dtype=np.int64)
        self._pending.load(_part(arrays, _PENDING))
        if header["calibration"]:
            self.set_calibration(Calibration.of(header["calibration"]))
            assert self.grouping is not None
            self.grouping.load(_part(arrays, _GROUPS))
        carried = pa.ipc.read_record_batch(pa.py_buffer(arrays["carried"]), self._carried.schema)
        self._carried.add(self._pending.all.rows, carried)


_PENDING: Final = "pending."
_GROUPS: Final = "groups."


def _part(arrays: Arrays, prefix: str) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
