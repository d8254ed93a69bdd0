"""FAST: FADS in several lanes at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar, Unpack, cast

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.schema_arrays import Shape
from shoal.methods.tuples.lane_assignment import Dealing
from shoal.methods.tuples.lane_threads import Chore, Chores
from shoal.methods.tuples.lanes import Lanes
from shoal.methods.tuples.method import Common, TupleMethod
from shoal.methods.tuples.settings import TupleChecker
from shoal.methods.tuples.state import TupleState
from shoal.schema import Schema

_ROUNDS = 4
_TIMED_ROUND = 256
_Made = TypeVar("_Made")


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
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.method.Common`.

    References
    ----------
    Mohammadian, Noferesti, Jalili: FAST: fast anonymization of big data streams. BigDataScience (2014).
    """

    method: ClassVar[str] = "fast"
    number: ClassVar[int] = t.FADS

    def __init__(
        self,
        schema: Schema,
        *,
        threads: int = 2,
        round: int | None = None,  # noqa: A002 - its name in the paper
        **given: Unpack[Common],
    ) -> None:
        self._start_checked(schema, given, threads=threads, round=round)

    def _check_own(self, checker: TupleChecker, own: Mapping[str, Any]) -> dict[str, Any]:
        rows = own["round"]
        return {
            "threads": checker.whole("threads", own["threads"], 1, 64),
            "round": None if rows is None else checker.whole("round", rows, 1),
        }

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
