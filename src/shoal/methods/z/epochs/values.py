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
_KINDS: Final = {"row": "int64", "time": "int64", "turn": "int64", "passed": "bool", "reason": "int8", "delay": "int64"}


class CrowdSizes:
    """Counts the people behind every value, for a z that is chosen later; takes the place of a follower."""

    def __init__(self, settings: ZSettings) -> None:
        self._least, self._rotation_ns = settings.attributes[0].z, settings.rotation_ns
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
            for part in epochs_in(arrivals.times, np.flatnonzero(usable), self._rotation_ns):
                key = self._stretch, int(arrivals.times[part.start]) // self._rotation_ns
                peaks = self._peaks.setdefault(key, EpochPeaks())
                peaks.note(arrivals.persons[part], reading.keys[part], sizes[part, at])
        return [np.where(size >= self._least, 0, PRIVATE).astype(np.int32) for size in sizes.T], sizes

    def take_peaks(self, *, everything: bool = False) -> list[tuple[int, int, Ints]]:
        """The largest crowd behind each (person, value) pair, by stretch and epoch; of the newest epoch at the end."""
        newest = max(self._peaks, default=None)
        taken = [key for key in sorted(self._peaks) if everything or key != newest]
        return [(*key, self._peaks.pop(key).pairs()) for key in taken]

    def dump(self) -> dict[str, Any]:
        """Nothing: a stream in shards is not continued."""
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


def value_tracer_for(settings: ZSettings, reasons: tuple[str, ...]) -> ValueTracer:
    """The tracer of a shard: for combine the level of every value, for a target the people behind it."""
    columns = len(settings.attributes)
    is_combined = settings.k is not None
    return ValueTracer(np.array([AT_ONCE, *[PRIVATE] * columns] if is_combined else [0] * columns, dtype=np.int64))


def joined_values(
    traces: Sequence[pa.RecordBatch], rows: Sequence[pa.RecordBatch], attributes: Sequence[str]
) -> tuple[Decisions, pa.RecordBatch]:
    """What all shards say about rows, each row once, by (time, number); and the rows of which a value passed."""
    found = pa.Table.from_batches(traces)
    columns = {name: found[name].to_numpy() for name in found.column_names}
    numbers, passed, shown = columns["row"], columns["passed"], pa.concat_batches(rows)
    if len(attributes) > 1:
        shown = joined_rows(shown, numbers[passed], attributes)
        kept = first_of_each(numbers, ~passed)
        most = {name: values[first_of_each(numbers, -values)] for name, values in columns.items() if _DETAIL in name}
        columns = {name: values[kept] for name, values in columns.items()} | most
        passed = columns["passed"]
    order = np.lexsort((columns["row"], columns["time"]))
    shown = shown.take(pa.array((np.cumsum(passed) - 1)[order][passed[order]]))
    numbers, times, turns, released, reasons, delays = (columns[name][order] for name in _KINDS)
    details = np.stack([values[order] for name, values in columns.items() if _DETAIL in name], axis=1)
    return Decisions(numbers, times, turns, released, reasons, delays, details), shown
