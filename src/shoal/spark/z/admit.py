"""Admission on Spark: one task sees times and people of all records in order, moves time and refuses late records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.snapshots import pack_state, unpack_state
from shoal.methods.z.admission import Clock
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import OpenBlocks, one_row
from shoal.spark.z.clocks import clock_outline
from shoal.spark.z.output_ranges import PIECES, Pieces, Ranges

Ints = npt.NDArray[np.int64]
_STATE: Final = "_shoal_state"
ADMITTED: Final = pa.schema([*PIECES, (_STATE, pa.binary())])
"""Decisions about refused records, and for each call how time moved."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What admission found out about all records."""

    clock: Clock
    refused: Ints
    """Numbers of the refused records, ascending."""
    state: bytes = b""
    """From which admission continues with the next micro-batch."""


def admission_columns(settings: Any) -> tuple[str, ...]:
    """Columns that admission reads: persons and times, and values that a hierarchy may refuse."""
    listed = [column.name for column in settings.attributes if column.hierarchy is not None]
    return (settings.roles.person, settings.roles.time, *listed)


@dataclass(frozen=True, slots=True)
class AdmitRows:
    """Admits records that come in their order, all in one task."""

    recipe: Recipe
    opening: OpenBlocks
    ranges: Ranges
    is_end: bool = True
    """Whether the stream ends with these records."""
    state: bytes | None = None
    """After the records before."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        method: Any = self.recipe.make()
        if self.state is not None:
            method.restore(self.state)
        method.bind(self.opening.types)
        pieces = Pieces(self.ranges, waits=bool(method.settings.lateness_ns))
        calls = 0
        for block in self.opening.heads(batches):
            admitted = method.admit(block.batch)
            refused = method.refused(admitted)
            numbers = np.asarray(refused.column("row"))
            if len(numbers):
                for piece in pieces.of(-1, refused, numbers, numbers, None):
                    yield piece.append_column(_STATE, pa.nulls(1, pa.binary()))
            yield _moved(calls, _needed(admitted.clock, method.settings), numbers)
            calls += 1
        nothing = np.empty(0, dtype=np.int64)
        if self.is_end:
            yield _moved(calls, method.admit_end().clock, nothing)
        else:
            yield _moved(calls, Clock(nothing, nothing), nothing, method.snapshot())


def _needed(clock: Clock, settings: Any) -> Clock:
    """What shards and epochs need of the clock: without lateness, rows are decided with their own arrival."""
    if settings.lateness_ns:
        return clock
    return clock_outline(clock, rotation_ns=None if settings.k is None else settings.rotation_ns)


def _moved(call: int, clock: Clock, refused: Ints, snapshot: bytes = b"") -> pa.RecordBatch:
    state = pack_state(
        {"call": call, "restarts": list(clock.restarts)},
        {"numbers": clock.numbers, "newest": clock.newest, "refused": refused,
         "state": np.frombuffer(snapshot, dtype=np.uint8)},
    )  # fmt: skip
    return one_row(ADMITTED, {_STATE: state})


def read_admission(table: pa.Table, *, is_end: bool = True) -> Admission:
    """What admission found out, of the states of all calls in any order; the last one is that of the end."""
    states = [unpack_state(text) for text in table.column(_STATE).drop_null().to_pylist()]
    states.sort(key=lambda state: state.header["call"])
    numbers, newest, refused = (
        np.concatenate([state.arrays[name] for state in states]) for name in ("numbers", "newest", "refused")
    )
    restarts = tuple(number for state in states for number in state.header["restarts"])
    state = states[-1].arrays["state"].tobytes()
    return Admission(Clock(numbers, newest, restarts, is_end=is_end).condensed(), refused, state)


def states_only(frame: Any) -> Any:
    """How time moved, without the decisions."""
    return frame.where(f"{_STATE} is not null").select(_STATE)


def decisions_only(frame: Any) -> Any:
    """Decisions about refused records."""
    return frame.where(f"{_STATE} is null").drop(_STATE)
