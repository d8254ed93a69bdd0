"""z-anonymity whose z follows the stream: set at every epoch's start, so that a share of people is k-anonymous.

Only how many people must stand behind a value changes, and only from epoch to epoch. Every z in force is a promise like
a fixed one; that the share is reached is not promised but aimed at (see models/z_controller).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.crypto.keys import Secret
from shoal.crypto.snapshots import State
from shoal.kernels.z.crowd import PRIVATE
from shoal.methods.base import Guarantee, Release
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.arrivals import Arrivals
from shoal.methods.z.columns import Levels
from shoal.methods.z.follower import Follower, ZChange
from shoal.methods.z.settings import ZSettings
from shoal.methods.z.singles import ZSingles
from shoal.models.z.controller import EpochOutcome


class ZFollowing(ZSingles):
    """Lets z follow where the settings have a target; without one nothing here does anything."""

    def _begin(self, settings: ZSettings, secret: Secret) -> None:
        super()._begin(settings, secret)
        self._follower: Follower | None = None
        if settings.target is not None:
            longest = max(column.window_ns for column in self._attributes)
            self._follower = Follower(
                settings.target, rotation_ns=settings.rotation_ns, window_ns=longest, keeps_blank=self._is_kept_blank
            )

    # ---- what it is

    @property
    def z(self) -> int | None:
        """The z in force; None where every column has its own."""
        if self._follower is not None:
            return self._follower.z
        return None if self._settings.is_table else self._attributes[0].z

    @property
    def outcomes(self) -> tuple[EpochOutcome, ...]:
        """What came of z in the epochs that are over, the last thousand at most; empty where z is fixed."""
        return () if self._follower is None else tuple(self._follower.outcomes)

    def take_changes(self) -> list[ZChange]:
        """Every z set since this was last asked; none where z is fixed."""
        return [] if self._follower is None else self._follower.take_changes()

    @property
    def metrics(self) -> dict[str, Any]:
        """How a z that follows has fared; empty where z is fixed."""
        return {} if self._follower is None else self._follower.metrics()

    @property
    def guarantee(self) -> Guarantee:
        plain, target = super().guarantee, self._settings.target
        if target is None:
            return plain
        aim = (
            f"z follows the stream, never below {target.least}, so that at least {target.p:g} of the people shown in "
            f"an epoch are {target.k}-anonymous by all that is released of them: that is aimed at, not promised"
        )
        return replace(plain, statement=f"{plain.statement}; {aim}")

    # ---- deciding

    def _judge(self, arrivals: Arrivals) -> tuple[list[Levels], Bools]:
        if self._follower is None:
            return super()._judge(arrivals)
        usable = arrivals.usable
        levels = [np.full(len(arrivals), PRIVATE, dtype=np.int32) for _ in self._attributes]
        arrivals.z = np.full(len(arrivals), -1, dtype=np.int64)
        for part in self._epochs_in(arrivals.times, np.flatnonzero(usable)):
            z = self._follower.enter(int(arrivals.times[part.start]))
            arrivals.z[part] = np.where(usable[part], z, -1)
            for column, reading, level in zip(self._attributes, arrivals.readings, levels, strict=True):
                sizes = column.count(
                    reading, part, persons=arrivals.persons, times=arrivals.times, usable=usable
                )  # fmt: skip
                self._follower.note(arrivals.persons[part], reading.keys[part], sizes)
                level[part] = np.where(sizes >= z, 0, PRIVATE)
        if self._is_kept_blank:
            return levels, usable
        return levels, np.logical_or.reduce([level >= 0 for level in levels])

    def _epochs_in(self, times: Ints, rows: Ints) -> list[slice]:
        """Stretches of usable rows that lie in one epoch each; the first and last row of each are usable."""
        if not len(rows):
            return []
        starts = np.flatnonzero(np.diff(times[rows] // self._settings.rotation_ns)) + 1
        bounds = [0, *starts.tolist(), len(rows)]
        return [slice(int(rows[start]), int(rows[end - 1]) + 1) for start, end in pairwise(bounds)]

    def _judge_one(self, texts: list[str | None], time: int) -> list[int]:
        assert self._follower is not None
        z, levels = self._follower.enter(time), []
        for column, text in zip(self._attributes, texts, strict=True):
            size, key = column.count_one(text, person=self._scratch, time=time)
            self._follower.note(self._scratch, key, size)
            levels.append(0 if size[0] >= z else PRIVATE)
        return levels

    def _start_over(self) -> Release:
        if self._follower is not None:
            self._follower.forget()
        return super()._start_over()

    # ---- state

    def _further_state(self) -> dict[str, Any]:
        mine = {} if self._follower is None else self._follower.dump()
        return {**super()._further_state(), **mine}

    def _load(self, state: State) -> None:
        super()._load(state)
        if self._follower is not None:
            self._follower.load(state.arrays)
