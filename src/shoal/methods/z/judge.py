"""Judgement, the second step: rows wait until their turn has come, then the people behind every value are counted.

It knows time only from what admission says, and numbers rows as admission did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    def judge(self, parts: Sequence[Arrivals]) -> list[Judged]:
        """Count the people behind every value of parts, whose rows are in time order; only here the crowds change."""
        if self._follower is not None:
            return [self._followed(self._follower, part) for part in parts]
        usable = [part.reasons == NO_REASON for part in parts]
        found = [[column.undecided(len(part.seqs)) for column in self.attributes] for part in parts]

        def decide(task: tuple[int, int]) -> None:
            place, shard = task
            column = self.attributes[place]
            for part, rows, out in zip(parts, usable, found, strict=True):
                rule = Rule(part.persons, part.times, rows, column.window_ns)
                column.decide(shard, part.readings[place], rule, out[place])

        tasks = [(place, shard) for place, column in enumerate(self.attributes) for shard in range(len(column.crowds))]
        each(decide, tasks, rows=sum(map(len, usable)))
        for column in self.attributes:
            column.settle()
        return [
            self._judged(part, rows, [column.levels(one) for column, one in zip(self.attributes, out, strict=True)])
            for part, rows, out in zip(parts, usable, found, strict=True)
        ]

    def _followed(self, follower: Follower | CrowdSizes, part: Arrivals) -> Judged:
        usable = part.reasons == NO_REASON
        levels, z = follower.judge(self.attributes, part, usable)
        return self._judged(part, usable, levels, z)

    def _judged(self, part: Arrivals, usable: Bools, levels: list[Levels], z: Ints | None = None) -> Judged:
        passed = usable if self._keeps_blank else levels[0] >= 0
        for level in [] if self._keeps_blank else levels[1:]:
            passed |= level >= 0
        return Judged(part, levels, passed, z)

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
