"""Least loss: the method we recommend."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Final, Unpack

from pydantic import Field

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.least_loss.least_loss import run_least_loss
from shoal.methods.base import StreamMethod
from shoal.methods.settings import MOST
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.in_lanes import LaneSettings, engine_in_lanes
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Categorical, Numeric, Schema

_MOST_NEAR: Final = 8
_EXCHANGES: Final = 12
_EXCHANGES_IN_LANES: Final = 6
"""A lane sees fewer tuples to choose from: more rounds take longer and lose as much (docs/methods/least-loss.md)."""
_SMALLEST_EXCHANGED: Final = 20
_EXCHANGED_FROM: Final = 0.4
"""Where numbers weigh more than labels, clusters exchange members if recent ones lost at least this much."""
_STALENESS: Final = 0.25
"""By how much more a tuple's nearest distances count at its deadline than at arrival, where members are exchanged."""


class LeastLossSettings(LaneSettings):
    """Parameters of least-loss."""

    candidates: Annotated[int, Field(ge=0, le=MOST)] = Field(
        0,
        description="Nearest waiting rows considered for a cluster; 0 for all. A few hundred are much faster on "
        "large windows and lose little more.",
    )


class LeastLossParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    candidates: int
    threads: int


class LeastLoss(StreamMethod):
    """k-anonymity of a tuple stream within a deadline, with little loss: the method we recommend.

    There is one window, whatever attributes tuples carry. An expiring tuple's cluster grows by the tuples that widen
    its ranges and labels least, by default among those that lack the same attributes. Tuples that are hard to place, or
    have waited long, get a small preference, because they have to be published later too. A recently published cluster
    is reused where that is not worse.

    Do not use it where records must not wait (see :class:`shoal.ZAnonymity`), or, unless ``groups=True``, where an
    attacker knows when tuples arrived.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    candidates
        How many of the nearest pending tuples are considered for a cluster; 0 for all. A few hundred are much faster on
        large windows and lose little more.
    threads
        Lanes that work in parallel, each on the tuples assigned to it; by default 1. The output depends on it, never on
        how threads are scheduled.
    k
        How many different people share what is published; by default 50.
    deadline, reuse
        How long a tuple may be pending, and how long a published cluster accepts more: counts of arrivals (by default
        2000 and 200), or durations such as ``"30s"``, which need a time column.
    missing, min_carriers
        ``"own"`` (default): rows are published with rows that lack the same attributes. ``"hidden"``: an attribute is
        shown where all of a cluster carry it; ``"covered"``: where at least ``min_carriers`` people of it do, by
        default half of k, also in rows that lack it. ``"paper"`` is not k-anonymous.
    l, entropy_l, t, reference
        What is required of sensitive columns: different values, entropy, closeness to a reference.
    groups, suppressed
        Publish in groups of k people only, never by reuse; ``"drop"`` suppressed rows, or show their ``"root"``.
    alpha, max_gap, key
        The price of delay in the reported cost; how far ahead of the newest record another may be without a second
        person's record that confirms it (so a wrong clock cannot make everything due at once); secret bytes for
        snapshots. Every tuple method takes these; more in :class:`shoal.methods.tuples.settings.TupleSettings`.

    Examples
    --------
    >>> from shoal.schema import Numeric, Schema
    >>> schema = Schema(person="id", quasi=[Numeric("age", low=0, high=100), Numeric("height", low=100, high=220)])
    >>> least = LeastLoss(schema, k=2, deadline=2, reuse=0)
    >>> for who, age, height in (("ann", 31, 170), ("bob", 60, 180), ("cat", 33, 176)):
    ...     rows = least.push({"id": who, "age": age, "height": height})
    >>> rows[0] == rows[1] == {"age": {"lo": 31.0, "hi": 33.0}, "height": {"lo": 170.0, "hi": 176.0}}
    True

    Notes
    -----
    docs/methods/least-loss.md reports what else was tried, with results.
    """

    method: ClassVar[str] = "least-loss"
    kernel: ClassVar[Any] = staticmethod(run_least_loss)
    settings_class: ClassVar[type[TupleSettings]] = LeastLossSettings

    def __init__(self, schema: Schema, **given: Unpack[LeastLossParameters]) -> None:
        self._start_for(schema, **given)

    def _make_engine(self, settings: LeastLossSettings, secret: Secret) -> TupleEngine:
        plan, ratios = settings.plan(), settings.ratios()
        plan[t.METHOD] = t.LEAST_LOSS
        candidates, exchanges = settings.candidates, _has_more_labels(settings) and _may_exchange(settings)
        # Fewer than k - 1 would find no cluster, and diversity may need more.
        plan[t.CANDIDATES] = max(candidates, 2 * settings.k) if candidates else 0
        plan[t.NEAR] = min(_MOST_NEAR, settings.k)
        rounds = _EXCHANGES if settings.lanes == 1 else _EXCHANGES_IN_LANES
        plan[t.EXCHANGES] = rounds if _may_exchange(settings) else 0
        ratios[t.EXCHANGED_FROM] = 0.0 if exchanges else _EXCHANGED_FROM
        price, ratios[t.AGE], ratios[t.FLOOR] = (0.8, 0.25, 1.0) if exchanges else (1.5, 0.2, 0.5)
        ratios[t.PRICE] = price / math.sqrt(settings.k)
        ratios[t.STALENESS] = _STALENESS if exchanges else 0.0
        return engine_in_lanes(self.method, settings, secret, plan, ratios, run=run_least_loss)


def _may_exchange(settings: LeastLossSettings) -> bool:
    """Whether clusters may exchange members: k is not small, all candidates are considered, there are labels."""
    return settings.candidates == 0 and settings.k >= _SMALLEST_EXCHANGED and _weight(settings, Categorical) > 0


def _has_more_labels(settings: LeastLossSettings) -> bool:
    """Whether labels weigh at least as much as numbers: there exchange is always worth it."""
    return _weight(settings, Categorical) >= _weight(settings, Numeric)


def _weight(settings: LeastLossSettings, kind: type[Categorical | Numeric]) -> float:
    return sum(role.weight for role in settings.schema.quasi if isinstance(role, kind))
