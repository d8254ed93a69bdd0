"""FAST: FADS in several lanes in parallel."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Unpack

from pydantic import Field

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.fads import run_fads
from shoal.methods.base import StreamMethod
from shoal.methods.settings import Count
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.in_lanes import THREADS, LaneSettings, Threads, engine_in_lanes
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Schema

_SMALLEST: Final = 0.4
"""Least share of a lane when one is divided in two: a decision is cheap, so speed depends on even lanes."""


class FastSettings(LaneSettings):
    """Parameters of FAST."""

    threads: Threads = Field(2, description=THREADS)
    round: Count | None = Field(
        None,
        description="Arrivals after which lanes are checked, and tuples assigned to them again if the stream has "
        "changed; by default twice `deadline`, and at least 4096.",
    )


class FastParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    threads: int
    round: int | None


class Fast(StreamMethod):
    """FADS on several cores: tuples are assigned to lanes, which decide them in parallel.

    A lane knows its own tuples only, so it finds clusters among fewer. To keep the loss small, similar tuples go to the
    same lane. A tuple that its lane cannot publish is decided among the tuples of all lanes. There are fewer lanes than
    threads where the deadline is too short for lanes of enough people, and none where one lane is left: then this is
    :class:`shoal.Fads`.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    threads
        Greatest number of lanes. The output depends on it, but never on how threads are scheduled.
    round
        Arrivals after which lanes are checked, and tuples assigned to them again if the stream has changed; by default
        twice the deadline, and at least 4096.
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
        plan[t.METHOD] = t.FADS
        return engine_in_lanes(
            self.method, settings, secret, plan, ratios, run=run_fads, rows=settings.round, smallest=_SMALLEST
        )
