"""Epochs closed apart: the rows of an epoch from all shards, decided as one process would decide them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.methods.release import NO_REASON
from shoal.methods.text_keys import Bools
from shoal.methods.z.admission import Clock
from shoal.methods.z.epochs.combiner import Combiner, Passed, numbers_of, without_cells
from shoal.methods.z.epochs.follower import Follower
from shoal.methods.z.epochs.shown_sets import EpochRows, ShownSets
from shoal.methods.z.reader import AHEAD
from shoal.methods.z.trace import AT_ONCE, Decisions
from shoal.models.z.target.epoch_needs import EpochProfile

FORGOTTEN: Final = AT_ONCE
"""The epoch, in the order of decisions, of a row that is refused because time started over: before all others."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an epoch ends: with the arrival `turn`, which moves time to `newest`."""

    turn: int
    newest: int
    is_forgotten: bool = False
    """Whether time started over before the epoch ended: its rows are refused."""

    @classmethod
    def of(cls, clock: Clock, stretch: int, end_ns: int, *, lateness_ns: int, last: int) -> Ending | None:
        """The ending of an epoch that is over at a time, in a stretch of a clock; None if the epoch is not over yet.

        `last` is the number after the last arrival: if the stream ends there, everything is decided with it.
        """
        stretches = clock.stretches()
        own = stretches[stretch]
        place = int(np.searchsorted(own.newest - lateness_ns, end_ns))
        if place < len(own.numbers):
            return cls(int(own.numbers[place]), int(own.newest[place]))
        if stretch + 1 < len(stretches):
            return cls(clock.restarts[stretch], int(stretches[stretch + 1].newest[0]), is_forgotten=True)
        return cls(last, int(own.newest[-1])) if clock.is_end else None


@dataclass(frozen=True, slots=True)
class ClosedEpoch:
    """What is decided about all rows of an epoch."""

    rows: pa.RecordBatch
    """What is published."""
    decisions: Decisions
    """In the order of time, first what was decided at once."""
    is_closed: Bools
    """Which rows waited for the end of the epoch."""


@dataclass(frozen=True, slots=True)
class EpochEvents:
    """What is known of an epoch, counted in all shards: the time of its first event, and what every z would show."""

    first_ns: int
    profile: EpochProfile


def follow_epoch(
    sets: ShownSets, values: Decisions, rows: pa.RecordBatch, names: tuple[str, list[str]], *, z: int, end_ns: int
) -> ClosedEpoch:
    """Publish the values of an epoch that keep the target, by the people behind them; `names`: person, attributes.

    `values` and `rows` are from joined_values: rows are those that the lowest z would publish.
    """
    person, attributes = names
    judged = values.reasons == NO_REASON
    cells = [numbers_of(rows.column(name)) for name in attributes]
    sizes = np.where(np.stack(cells) >= 0, values.details[values.released].T, 0)
    keys = np.stack([cell + at * (rows.num_rows + 1) for at, cell in enumerate(cells)])
    people = numbers_of(rows.column(person))[:, np.newaxis]
    usable = np.ones(rows.num_rows, np.bool_)
    keep = sets.publish(EpochRows(people, keys, sizes, values.times[values.released], usable), z, end_ns) >= 0
    shown = np.ones_like(usable) if sets.keeps_blank else np.logical_or.reduce(keep)
    released = values.released.copy()
    released[values.released] = shown
    in_force = np.where(judged, z, -1)[:, np.newaxis]
    decisions = Decisions(values.rows, values.times, values.turns, released, values.reasons, values.delays, in_force)
    kept = without_cells(rows, attributes, list(keep), np.flatnonzero(shown))
    return ClosedEpoch(kept, decisions, ~judged)


def follow_values(follower: Follower, values: Decisions, rows: pa.RecordBatch, attributes: list[str]) -> ClosedEpoch:
    """Publish the values of some rows that keep the target, where the follower knows all rows before them.

    `values` and `rows` are from joined_values, of shards that name people and values (see CrowdSizes).
    """
    count, judged = len(attributes), values.reasons == NO_REASON
    sizes, keys, person = np.split(np.ascontiguousarray(values.details.T), [count, 2 * count])
    levels, in_force = follower.judge_counted(EpochRows(person.T, keys, sizes, values.times, judged))
    keep = [level >= 0 for level in levels]
    released = judged if follower.keeps_blank else np.logical_or.reduce(keep)
    decisions = Decisions(
        values.rows, values.times, values.turns, released, values.reasons, values.delays, in_force[:, np.newaxis]
    )
    passed = values.released
    kept = without_cells(rows, attributes, [cells[passed] for cells in keep], np.flatnonzero(released[passed]))
    return ClosedEpoch(kept, decisions, ~judged)


def combine_epoch(combiner: Combiner, values: Decisions, rows: pa.RecordBatch, ending: Ending | None) -> ClosedEpoch:
    """Remove values until k people share every set of an epoch; `values` and `rows` are from joined_values.

    Without an ending, rows that passed z go on waiting and the others are decided.
    """
    waits = values.released
    kept, at_once = values.arranged(waits), values.arranged(~waits)
    if ending is None:
        return ClosedEpoch(rows.slice(0, 0), at_once, np.zeros(len(at_once.rows), np.bool_))
    if ending.is_forgotten:
        refused = Decisions(
            kept.rows, kept.times, np.full(len(kept.rows), ending.turn), np.zeros(len(kept.rows), np.bool_),
            np.full(len(kept.rows), AHEAD, dtype=np.int8), np.zeros(len(kept.rows), np.int64),
            np.tile(np.array([AT_ONCE, *[-1] * (kept.details.shape[1] - 1)]), (len(kept.rows), 1)),
        )  # fmt: skip
        closed, shown, is_closed = refused, rows.slice(0, 0), False
    elif len(kept.rows):
        shown, closed = combiner.close(
            Passed(kept.rows, kept.times, kept.details[:, 1:], rows), ending.turn, ending.newest
        )
        is_closed = True
    else:
        closed, shown, is_closed = kept, rows, True
    marks = np.repeat([False, is_closed], [len(at_once.rows), len(closed.rows)])
    return ClosedEpoch(shown, Decisions.joined([at_once, closed]), marks)
