"""Values judged apart: what a shard finds out about rows whose epochs are closed elsewhere.

Whether a value passes z, or how many people are behind it, depends on this value alone. What combine and target do with
it depends on all values of an epoch: that is done in closing.py, with the rows of an epoch from all shards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels.z.crowd import PRIVATE
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.crowds.crowd import Levels
from shoal.methods.z.epochs.follower import epochs_in
from shoal.methods.z.epochs.peaks import EpochPeaks
from shoal.methods.z.reader import Arrivals
from shoal.methods.z.settings import ZSettings
from shoal.methods.z.shards import first_of_each, joined_rows
from shoal.methods.z.trace import AT_ONCE, Decisions, refused_at_once

_DETAIL: Final = "detail"
_NO_KEY: Final = np.iinfo(np.int64).min
"""The key of a missing value: the smallest, because the largest of all shards counts."""
_KINDS: Final = {"row": "int64", "time": "int64", "turn": "int64", "passed": "bool", "reason": "int8", "delay": "int64"}


class CrowdSizes:
    """Counts the people behind every value, for a z that is chosen later; takes the place of a follower.

    With `has_keys` it names people and values too, for a follower in another process. Else it keeps the largest crowds.
    """

    def __init__(self, settings: ZSettings, *, has_keys: bool = False) -> None:
        self._least, self._rotation_ns = settings.attributes[0].z, settings.rotation_ns
        self._has_keys = has_keys
        self._stretch = 0
        self._peaks: dict[tuple[int, int], EpochPeaks] = {}

    def forget(self) -> None:
        """Begin again, because time started over."""
        self._stretch += 1

    def judge(self, attributes: Sequence[CrowdColumn], arrivals: Arrivals, usable: Bools) -> tuple[list[Levels], Ints]:
        """The level of every value of rows in time order by the lowest z there is, and the people behind each."""
        sizes = np.zeros((len(usable), len(attributes)), dtype=np.int64)
        for at, (column, reading) in enumerate(zip(attributes, arrivals.readings, strict=True)):
            whole = slice(0, len(usable))
            sizes[:, at] = column.count(reading, whole, persons=arrivals.persons, times=arrivals.times, usable=usable)
            if not self._has_keys:
                self._note_peaks(arrivals, usable, reading.keys, sizes[:, at])
        levels = [np.where(size >= self._least, 0, PRIVATE).astype(np.int32) for size in sizes.T]
        if not self._has_keys:
            return levels, sizes
        found = zip(arrivals.readings, sizes.T, strict=True)
        keys = (np.where(size > 0, reading.keys[:, 0], _NO_KEY) for reading, size in found)
        return levels, np.column_stack((sizes, *keys, arrivals.persons[:, 0]))

    def _note_peaks(self, arrivals: Arrivals, usable: Bools, keys: Ints, sizes: Ints) -> None:
        for part in epochs_in(arrivals.times, np.flatnonzero(usable), self._rotation_ns):
            key = self._stretch, int(arrivals.times[part.start]) // self._rotation_ns
            self._peaks.setdefault(key, EpochPeaks()).note(arrivals.persons[part], keys[part], sizes[part])

    def take_peaks(self, *, everything: bool = False) -> list[tuple[int, int, Ints]]:
        """The largest crowd behind each (person, value) pair, by stretch and epoch; of the newest epoch at the end."""
        newest = max(self._peaks, default=None)
        taken = [key for key in sorted(self._peaks) if everything or key != newest]
        return [(*key, self._peaks.pop(key).pairs()) for key in taken]

    def dump(self) -> dict[str, Any]:
        """Nothing: a stream that is continued has keys, and keeps no crowds here."""
        return {}

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Nothing to take over."""


class ValueTracer:
    """Writes decisions about values for the process that closes their epochs."""

    def __init__(self, unjudged: Ints) -> None:
        self._unjudged = unjudged
        kinds = [(name, pa.type_for_alias(kind)) for name, kind in _KINDS.items()]
        self.schema = pa.schema([*kinds, *((f"{_DETAIL}{at}", pa.int64()) for at in range(len(unjudged)))])

    def refused(self, rows: Ints, times: Ints, reasons: npt.NDArray[np.int8]) -> Decisions:
        """Decisions on rows that are refused because time started over."""
        return refused_at_once(rows, times, reasons, self._unjudged)

    def trace(self, decisions: Decisions) -> pa.RecordBatch:
        """One row for each decision; `passed` says whether a value may be published."""
        found = (
            decisions.rows, decisions.times, decisions.turns, decisions.released, decisions.reasons, decisions.delays,
            *decisions.details.T,
        )  # fmt: skip
        return pa.RecordBatch.from_arrays([pa.array(column) for column in found], schema=self.schema)


def value_tracer_for(settings: ZSettings, reasons: tuple[str, ...], *, has_keys: bool = False) -> ValueTracer:
    """The tracer of a shard: for combine the level of every value, for a target the people behind it."""
    columns = len(settings.attributes)
    if settings.k is not None:
        return ValueTracer(np.array([AT_ONCE, *[PRIVATE] * columns], dtype=np.int64))
    return ValueTracer(np.array([0] * columns + ([_NO_KEY] * columns + [0]) * has_keys, dtype=np.int64))


def joined_traces(traces: Sequence[pa.RecordBatch], attributes: Sequence[str]) -> Decisions:
    """What all shards say about rows, each row once, by (time, number); `released` says whether a value passed."""
    found = pa.Table.from_batches(traces)
    columns = {name: found[name].to_numpy() for name in found.column_names}
    if len(attributes) > 1:
        numbers = columns["row"]
        kept = first_of_each(numbers, ~columns["passed"])
        most = {name: values[first_of_each(numbers, ~values)] for name, values in columns.items() if _DETAIL in name}
        columns = {name: values[kept] for name, values in columns.items()} | most
    order = np.lexsort((columns["row"], columns["time"]))
    numbers, times, turns, released, reasons, delays = (columns[name][order] for name in _KINDS)
    details = np.stack([values[order] for name, values in columns.items() if _DETAIL in name], axis=1)
    return Decisions(numbers, times, turns, released, reasons, delays, details)


def joined_values(
    traces: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch], attributes: Sequence[str]
) -> tuple[Decisions, pa.RecordBatch]:
    """What all shards say about rows, as joined_traces; and the rows of which a value passed, in the same order."""
    decisions, shown = joined_traces(traces, attributes), pa.concat_batches(rows)
    numbers = np.concatenate([np.asarray(trace["row"])[_passed(trace)] for trace in traces])
    if len(attributes) > 1:
        shown, numbers = joined_rows(shown, numbers, attributes), np.unique(numbers)
    order = np.argsort(numbers, kind="stable")
    places = order[np.searchsorted(numbers, decisions.rows[decisions.released], sorter=order)]
    return decisions, shown.take(pa.array(places))


def _passed(trace: pa.RecordBatch) -> Bools:
    passed: Bools = trace["passed"].to_numpy(zero_copy_only=False)
    return passed
