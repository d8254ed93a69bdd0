"""The parameter `threads`: a tuple method in several lanes, each deciding its own tuples in a thread of its own."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.decider.base import Floats, Ints
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.methods.tuples.decider.lane_threads import Tasks
from shoal.methods.tuples.decider.lanes import ROWS_OF_A_LANE, Lanes
from shoal.methods.tuples.decider.sequential import Run, SequentialDecider
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.reader import TupleReader
from shoal.methods.tuples.settings import TupleSettings

Threads = Annotated[int, Field(ge=1, le=64)]
THREADS = "Lanes that work at the same time. The output depends on it, never on how threads are scheduled."


class LaneSettings(TupleSettings):
    """Parameters of a method that can run in lanes."""

    threads: Threads = Field(1, description=THREADS)

    @property
    def lanes(self) -> int:
        """The most lanes in use: a lane that could hardly find k people within the deadline does not exist."""
        if self.is_timed:
            return self.threads
        return max(1, min(self.threads, int(self.deadline) // (ROWS_OF_A_LANE * self.k)))

    @property
    def options(self) -> dict[str, Any]:
        return {**super().options, "lanes": self.lanes}

    def warnings(self) -> list[str]:
        if self.lanes == self.threads:
            return super().warnings()
        few = (
            f"threads = {self.threads}, but only {self.lanes} will be used: a lane needs {ROWS_OF_A_LANE} times k "
            f"arrivals within the deadline; raise the deadline to {ROWS_OF_A_LANE * self.k * self.threads:,}, or lower "
            "k or threads"
        )
        return [*super().warnings(), few]


def engine_in_lanes(
    method: str,
    settings: LaneSettings,
    secret: Secret,
    plan: Ints,
    ratios: Floats,
    *,
    run: Run,
    rows: int | None = None,
    smallest: float = 0.3,
) -> TupleEngine:
    """The engine of a method in lanes, or without where one is enough.

    Lanes are checked every `rows` arrivals. `smallest` is the least share of a lane when one is divided in two: the
    larger, the more even are lanes, and the less similar may be the tuples of one.
    """
    reader, count = TupleReader(settings, secret), settings.lanes
    plan[t.LANES] = count
    lanes = [SequentialDecider(reader.shape, reader.codes, plan, ratios, run=run) for _ in range(count)]
    if count == 1:
        return TupleEngine(method, settings, secret, reader, lanes[0])
    tasks = Tasks(count)
    assignment = LaneAssignment(reader.shape, smallest=smallest, by_pattern=settings.missing == "own")
    decider = Lanes(lanes, assignment, tasks, round_rows=rows)
    return TupleEngine(method, settings, secret, reader, decider, start=tasks.start)
