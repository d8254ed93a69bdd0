"""FAST: FADS in several lanes at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, TypeVar, Unpack, cast

import numpy as np
import numpy.typing as npt
from pydantic import Field

from shoal.kernels.tuples import layout as t
from shoal.methods.schema_arrays import Shape
from shoal.methods.settings import Count
from shoal.methods.tuples.lane_assignment import Dealing
from shoal.methods.tuples.lane_threads import Chore, Chores
from shoal.methods.tuples.lanes import Lanes
from shoal.methods.tuples.method import TupleMethod
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.methods.tuples.state import TupleState
from shoal.schema import Schema

_ROUNDS = 4
_TIMED_ROUND = 256
_Made = TypeVar("_Made")


class FastSettings(TupleSettings):
    """Parameters of FAST."""

    threads: Annotated[int, Field(ge=1, le=64)] = Field(
        2, description="Lanes that work at the same time. The output depends on it, never on how threads are scheduled."
    )
    round: Count | None = Field(
        None, description="Arrivals in a round; by default a quarter of `deadline`, or 256 if that is a duration."
    )

    def warnings(self) -> list[str]:
        most = self.k if self.is_timed else self.deadline // self.threads + 1
        if most >= self.k:
            return super().warnings()
        hopeless = (
            f"at most {most:,} rows of a lane can wait for one another within the deadline, fewer than k, so "
            "nothing will ever be published; raise the deadline, or lower k or threads"
        )
        return [*super().warnings(), hopeless]


class FastParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    threads: int
    round: int | None


class Fast(TupleMethod):
    """FADS on several cores: tuples are dealt to lanes that work side by side and share what may be reused.

    A lane knows its own tuples only, so a cluster is found among fewer. To keep that cheap, like tuples are dealt to
    the same lane, by cuts chosen on the first round. A tuple leaves at the end of the last round before its deadline.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    threads
        How many lanes there are. The output depends on it, but never on how threads are scheduled.
    round
        How many arrivals make a round; by default a quarter of the deadline, or 256 where that is a duration.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    References
    ----------
    Mohammadian, Noferesti, Jalili: FAST: fast anonymization of big data streams. BigDataScience (2014).
    """

    method: ClassVar[str] = "fast"
    number: ClassVar[int] = t.FADS

    settings_class: ClassVar[type[TupleSettings]] = FastSettings

    def __init__(self, schema: Schema, **given: Unpack[FastParameters]) -> None:
        self._start_checked(schema, **given)

    @property
    def _round(self) -> int:
        settings = self._settings
        if settings.is_timed:
            return cast(int, settings.options["round"] or _TIMED_ROUND)
        rows = settings.options["round"] or max(1, settings.deadline // _ROUNDS)
        return cast(int, min(rows, settings.deadline))  # a longer round would make rows late

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = super()._plan()
        plan[t.IN_ROUNDS] = 1
        return plan

    def _make_state(self, shape: Shape) -> TupleState:
        make = super()._make_state
        threads = self._settings.options["threads"]
        self._chores = Chores()
        lanes = Lanes(lambda: make(shape), Dealing(threads, shape), self._chores, lanes=threads, round_rows=self._round)
        return cast(TupleState, lanes)  # it answers the same questions

    def _piece_rows(self) -> int:
        return max(1, super()._piece_rows() // 2)  # so that lanes soon have work, and soon something is to publish

    def _soon(self, work: Callable[[int], _Made], count: int) -> Callable[[], list[_Made]]:
        if self._settings.options["threads"] == 1:
            return super()._soon(work, count)
        chore = Chore(work, count)
        self._chores.add(chore)
        return chore.result
