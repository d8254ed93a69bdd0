"""Judgement, the second step: rows wait until their turn has come, then the people behind every value are counted.

It knows time only from what admission says, and numbers rows as admission did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from shoal.methods.arrow_input import as_bytes
from shoal.methods.release import NO_REASON
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.admission import Clock
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.crowds.crowd import Levels
from shoal.methods.z.crowds.values import Rule
from shoal.methods.z.epochs.follower import Follower
from shoal.methods.z.epochs.values import CrowdSizes
from shoal.methods.z.helper_thread import each
from shoal.methods.z.reader import Arrivals
from shoal.methods.z.reorder_buffer import ReorderBuffer, Waiting
from shoal.methods.z.settings import ZSettings
from shoal.times import LATEST


@dataclass(slots=True)
class Judged:
    """Rows judged by z, in the order decided."""

    arrivals: Arrivals
    levels: list[Levels]
    """For each attribute: 0 for the value itself, n for its n-th ancestor, negative where it is private."""
    passed: Bools
    """Which rows may be published."""
    z: Ints | None
    """Where z follows the stream: the z that each row was judged with, or how many people are behind each value."""


Shard: TypeAlias = tuple[int, int]
"""An attribute by its place, and one of its tables."""


class Counting:
    """Rows whose people are being counted, shard by shard; only here the crowds change."""

    def __init__(self, attributes: Sequence[CrowdColumn], follower: Any, part: Arrivals, *, keeps_blank: bool) -> None:
        self._attributes, self._follower, self._part = attributes, follower, part
        self._keeps_blank = keeps_blank
        self._usable: Bools = part.reasons == NO_REASON
        self._found: list[Any] = (
            [] if follower is not None else [column.undecided(len(part.seqs)) for column in attributes]
        )
        self._z: Ints | None = None

    def count(self, shard: Shard) -> None:
        """Count the people behind the values of one shard."""
        if self._follower is not None:
            self._found, self._z = self._follower.judge(self._attributes, self._part, self._usable)
            return
        place, table = shard
        column = self._attributes[place]
        rule = Rule(self._part.persons, self._part.times, self._usable, column.window_ns)
        column.decide(table, self._part.readings[place], rule, self._found[place])

    def judged(self) -> Judged:
        """What was decided, once all shards are counted."""
        levels = self._found
        if self._follower is None:
            levels = [column.levels(found) for column, found in zip(self._attributes, levels, strict=True)]
        passed = self._usable if self._keeps_blank else levels[0] >= 0
        for level in [] if self._keeps_blank else levels[1:]:
            passed |= level >= 0
        return Judged(self._part, levels, passed, self._z)


class Judge:
    """Judges rows in time order: keeps those that wait, and the crowd behind every value."""

    def __init__(
        self,
        settings: ZSettings,
        attributes: Sequence[CrowdColumn],
        *,
        follower: Follower | CrowdSizes | None,
        keeps_blank: bool,
    ) -> None:
        self._lateness_ns = settings.lateness_ns
        self._keeps_blank = keeps_blank  # rows whose value is private are published without it
        self._follower: Any = follower
        self.attributes = attributes
        self.shards = [(place, shard) for place, column in enumerate(attributes) for shard in range(len(column.crowds))]
        """What can be counted side by side."""
        if follower is not None:
            self.shards = [(0, 0)]  # it counts all columns, row by row
        self.buffer = ReorderBuffer()

    def forget(self) -> Waiting:
        """Forget all events, because the first clock was wrong; return the rows that waited."""
        for column in self.attributes:
            column.clear()
        if self._follower is not None:
            self._follower.forget()
        return self.buffer.take_until(LATEST)

    def expire(self, limit: int) -> None:
        """Forget what no event from a time on can count; an idle stream gives its memory back."""
        for column in self.attributes:
            column.expire(limit)

    # ---- the reorder buffer

    def reorder(self, arrivals: Arrivals, clock: Clock) -> tuple[Waiting, Ints, Ints]:
        """Let usable rows wait; return the rows whose turn has come, the arrival that each is decided with, and delays.

        A row is decided with the arrival that moves time past it, as if records were pushed one by one.
        """
        waiting = Waiting(arrivals.seqs, arrivals.times, arrivals.persons, arrivals.batch)
        self.buffer.add(waiting.pick(arrivals.reasons == NO_REASON))
        ready = self.buffer.take_until(clock.decided_until(self._lateness_ns))
        places = np.searchsorted(clock.newest[:-1] - self._lateness_ns, ready.times)
        turns = np.maximum(clock.numbers[places], ready.seqs)
        return ready, turns, np.maximum(clock.newest[places] - ready.times, 0)

    # ---- z

    def judge(self, part: Arrivals) -> Judged:
        """Count the people behind every value of rows that are in time order."""
        counting = self.begin(part)
        each(counting.count, self.shards, rows=len(part.seqs))
        self.settle()
        return counting.judged()

    def begin(self, part: Arrivals) -> Counting:
        """Begin to count; each shard must have counted all rows before."""
        return Counting(self.attributes, self._follower, part, keeps_blank=self._keeps_blank)

    def settle(self) -> None:
        """Bring all shards to the same time, once the rows of a call are counted."""
        if self._follower is None:
            for column in self.attributes:
                column.settle()

    def judge_one(self, texts: list[str | None], person: Ints, time: int) -> list[int]:
        """The level of every value of one event."""
        if self._follower is not None:
            levels: list[int] = self._follower.judge_one(self.attributes, texts, person, time)
            return levels
        return [
            column.decide_one(text, person=person, time=time)
            for column, text in zip(self.attributes, texts, strict=True)
        ]

    # ---- state

    def dump(self) -> dict[str, Any]:
        """Everything, as arrays."""
        waiting = self.buffer.dump()
        arrays: dict[str, Any] = {
            "held.rows": as_bytes(waiting.batch.serialize()),
            "held.seqs": waiting.seqs,
            "held.times": waiting.times,
            "held.persons": waiting.persons,
        }
        for number, column in enumerate(self.attributes):
            arrays |= {f"crowd{number}.{name}": array for name, array in column.dump().items()}
        return arrays if self._follower is None else {**arrays, **self._follower.dump()}

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over what dump returned."""
        rows = pa.ipc.read_record_batch(pa.py_buffer(arrays["held.rows"]), self.buffer.schema)
        self.buffer.add(Waiting(arrays["held.seqs"], arrays["held.times"], arrays["held.persons"], rows))
        for number, column in enumerate(self.attributes):
            column.load({name.removeprefix(f"crowd{number}."): array for name, array in arrays.items()})
        if self._follower is not None:
            self._follower.load(arrays)
