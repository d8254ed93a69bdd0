"""FAST: FADS in several lanes in parallel."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Unpack

from pydantic import Field

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.fads import run_fads
from shoal.methods.base import StreamMethod
from shoal.methods.settings import Count
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.methods.tuples.decider.lane_threads import Tasks
from shoal.methods.tuples.decider.lanes import Lanes
from shoal.methods.tuples.decider.sequential import SequentialDecider
from shoal.methods.tuples.engine import CHUNK_ROWS, TupleEngine
from shoal.methods.tuples.publisher import at_once
from shoal.methods.tuples.reader import TupleReader
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Schema

_ROUNDS: Final = 4
_TIMED_ROUND: Final = 256


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


class Fast(StreamMethod):
    """FADS on several cores: tuples are assigned to lanes that run in parallel and share what may be reused.

    A lane knows its own tuples only, so it finds clusters among fewer. To keep the loss small, similar tuples go to the
    same lane, by cuts chosen on the first round. A tuple is decided at the end of the last round before its deadline.
    On one core, use :class:`shoal.Fads`.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    threads
        Number of lanes. The output depends on it, but never on how threads are scheduled.
    round
        How many arrivals make a round; by default a quarter of the deadline, or 256 where that is a duration.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    References
    ----------
    Mohammadian, Noferesti, Jalili: FAST: fast anonymization of big data streams. BigDataScience (2014).
    """

    method: ClassVar[str] = "fast"
    kernel: ClassVar[Any] = staticmethod(run_fads)
    settings_class: ClassVar[type[TupleSettings]] = FastSettings

    def __init__(self, schema: Schema, **given: Unpack[FastParameters]) -> None:
        self._start_for(schema, **given)

    def _make_engine(self, settings: FastSettings, secret: Secret) -> TupleEngine:
        plan, ratios = settings.plan(), settings.ratios()
        plan[t.METHOD], plan[t.IN_ROUNDS] = t.FADS, 1
        threads, tasks = settings.threads, Tasks()
        reader = TupleReader(settings, secret)
        lanes = [SequentialDecider(reader.shape, reader.codes, plan, ratios, run=run_fads) for _ in range(threads)]
        decider = Lanes(lanes, LaneAssignment(threads, reader.shape), tasks, round_rows=_round_rows(settings))
        return TupleEngine(
            self.method, settings, secret, reader, decider,
            chunk_rows=CHUNK_ROWS // 2,  # lanes have work sooner, and there is something to publish sooner
            start=at_once if threads == 1 else tasks.start,
        )  # fmt: skip


def _round_rows(settings: FastSettings) -> int:
    if settings.is_timed:
        return settings.round or _TIMED_ROUND
    rows = settings.round or max(1, settings.deadline // _ROUNDS)
    return min(rows, settings.deadline)  # a longer round would make rows late
