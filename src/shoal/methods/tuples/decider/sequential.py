"""One kernel decides all tuples, in order of arrival."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.schema_arrays import Shape
from shoal.methods.tuples.decider.base import Arrays, Decided, Floats, Ints
from shoal.methods.tuples.decider.memory import Extra, Memory, Sizes, no_arrivals
from shoal.methods.tuples.sensitive import SensitiveCodes

Run = Callable[[t.Stream, t.Arrivals, int, int], int]
"""A kernel: accepts arrivals from start to stop; returns how far it came before it needed room."""


class SequentialDecider:
    """A :class:`Decider` that runs a method's kernel, and makes room whenever the kernel asks for it.

    `plan` and `ratios` are the settings as the kernels read them (see shoal.kernels.tuples.layout), `run` is the
    method's kernel, `extra` memory that only this method needs.
    """

    def __init__(
        self,
        shape: Shape,
        codes: Sequence[SensitiveCodes],
        plan: Ints,
        ratios: Floats,
        *,
        run: Run,
        extra: Extra | None = None,
    ) -> None:
        self.memory = Memory(shape, codes, plan, ratios, extra)
        self.plan, self.ratios = plan, ratios
        self._run = run
        self._nothing = Decided.of(self.memory.stream)
        self.parts: list[Decided] = []
        """Decisions moved out of the kernels' output, not returned yet."""

    # ---- what it knows

    @property
    def pending(self) -> int:
        return int(self.tally[t.LIVE])

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    @property
    def tally(self) -> Ints:
        tally: Ints = self.memory.stream.tally
        return tally

    @property
    def sums(self) -> Floats:
        sums: Floats = self.memory.stream.sums
        return sums

    def pending_rows(self) -> Ints:
        held = self.memory.stream.pending_i
        rows: Ints = held[t.ROW][held[t.ALIVE].astype(np.bool_)]
        return rows

    def oldest_arrival(self) -> int | None:
        """When the oldest pending tuple arrived."""
        held, head, tail = self.memory.stream.pending_i, int(self.tally[t.HEAD]), int(self.tally[t.TAIL])
        alive = np.flatnonzero(held[t.ALIVE, head:tail])
        return int(held[t.ARRIVED, head + int(alive[0])]) if len(alive) else None

    def know_values(self) -> None:
        self.memory.know_values()

    # ---- deciding

    def take(self, arrivals: t.Arrivals) -> list[Decided]:
        self.work(arrivals, 0, len(arrivals.rows))
        return self.decided()

    def work(self, arrivals: t.Arrivals, start: int, stop: int) -> None:
        """Accept the arrivals from start to stop; decided() returns what is decided."""
        while True:
            start = self._run(self.memory.stream, arrivals, start, stop)
            if not self.tally[t.FULL]:
                return
            self.empty_output()
            self.memory.make_room()

    def resize(self, sizes: Sizes) -> None:
        """Move the state into arrays of other sizes."""
        self.empty_output()
        self.memory.resize(sizes)

    def empty_output(self) -> None:
        """Move decisions out of the kernels' output."""
        if self.tally[t.OUT_ROWS]:
            self.parts.append(Decided.of(self.memory.stream))

    def decided(self) -> list[Decided]:
        """What was decided since the last call, at least one part."""
        self.empty_output()
        parts, self.parts = self.parts, []
        return parts or [self._nothing]  # most single records decide nothing

    def finish(self) -> list[Decided]:
        is_divided = self.plan[t.MISSING_MODE] == t.OWN and self.tally[t.INCOMPLETE] > 0
        people = self.memory.stream.slots.shape[2] - self.tally[t.FREE_PEOPLE]
        self.tally[t.ENDING], self.tally[t.VARIED_AT_END] = 1, people if is_divided else 0
        decided = self.take(no_arrivals(self.memory.sizes))
        self.tally[t.ENDING] = 0
        return decided

    def pass_time(self, now: int) -> list[Decided]:
        self.work_until(now)
        return self.decided()

    def work_until(self, now: int) -> None:
        """Decide what is due by now; decided() returns it."""
        self.tally[t.PASSING], self.tally[t.UNTIL] = 1, max(now, int(self.tally[t.NOW]))
        self.work(no_arrivals(self.memory.sizes), 0, 0)
        self.tally[t.PASSING] = 0

    # ---- snapshots

    def dump(self) -> Arrays:
        return self.memory.dump()

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.memory.load(arrays)
