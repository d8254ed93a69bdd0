"""Least loss: the method we recommend."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import Field

from shoal.kernels.tuples import layout as t
from shoal.methods.settings import MOST
from shoal.methods.tuples.method import TupleMethod
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Categorical, Numeric, Schema

_MOST_NEAR = 8
_EXCHANGES = 8
_SMALLEST_EXCHANGED = 20


class LeastLossSettings(TupleSettings):
    """Parameters of least-loss."""

    candidates: Annotated[int, Field(ge=0, le=MOST)] = Field(
        0,
        description="Nearest waiting rows considered for a cluster; 0 for all. A few hundred are much faster on "
        "large windows and lose little more.",
    )


class LeastLossParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    candidates: int


class LeastLoss(TupleMethod):
    """k-anonymity of a tuple stream within a deadline, with little lost: the method we recommend.

    One window, whatever attributes tuples carry. An expiring tuple's cluster grows by whoever widens its ranges and
    labels least; tuples that are hard to place, or have waited long, are preferred a little, because what is left
    behind must leave too. A cluster published not long ago is reused where that is not worse.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    candidates
        How many of the nearest held tuples are looked at for a cluster; 0 for all. A few hundred are much faster on
        large windows and lose little more.
    k
        In how large a crowd a person hides, in different people; by default 50.
    deadline, reuse
        How long a tuple may wait, and how long a published cluster takes in more: counts of arrivals (by default 2000
        and 200), or durations such as ``"30s"``, which need a time column.
    nulls, min_carriers
        ``"strict"`` (default), ``"common"`` or ``"paper"``; in strict mode an attribute is shown where so many people
        of the cluster carried it, by default half of k.
    l, entropy_l, t, reference
        What is asked of sensitive columns: different values, entropy, closeness to a reference.
    groups, suppressed
        Leave in groups of k people only, never by reuse; ``"drop"`` rows without a crowd, or show their ``"root"``.
    alpha, max_gap, key
        The price of delay in the reported cost; the longest gap that one person's time may open; secret bytes for
        snapshots. All of these every tuple method takes; more in :class:`shoal.methods.tuples.settings.TupleSettings`.

    Examples
    --------
    >>> from shoal.schema import Numeric, Schema
    >>> schema = Schema(person="id", quasi=[Numeric("age", low=0, high=100), Numeric("height", low=100, high=220)])
    >>> least = LeastLoss(schema, k=2, deadline=2, reuse=0)
    >>> for who, age, height in (("ann", 31, 170), ("bob", 60, 180), ("cat", 33, None)):
    ...     rows = least.push({"id": who, "age": age, "height": height})
    >>> rows[0] == rows[1] == {"age": {"lo": 31.0, "hi": 33.0}, "height": {"lo": 170.0, "hi": 170.0}}
    True

    Notes
    -----
    docs/methods/least-loss.md says what else was tried and what it gave.
    """

    method: ClassVar[str] = "least-loss"
    number: ClassVar[int] = t.LEAST_LOSS

    settings_class: ClassVar[type[TupleSettings]] = LeastLossSettings

    def __init__(self, schema: Schema, **given: Unpack[LeastLossParameters]) -> None:
        self._start_checked(schema, **given)

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = super()._plan()
        candidates = self._settings.options["candidates"]
        # Fewer than k - 1 would find no cluster, and diversity may ask for more.
        plan[t.CANDIDATES] = max(candidates, 2 * self._settings.k) if candidates else 0
        plan[t.NEAR] = min(_MOST_NEAR, self._settings.k)
        plan[t.EXCHANGES] = _EXCHANGES if self._exchanges else 0
        return plan

    def _ratios(self) -> npt.NDArray[np.float64]:
        ratios = super()._ratios()
        price, ratios[t.AGE], ratios[t.FLOOR] = (0.6, 0.3, 0.8) if self._exchanges else (1.5, 0.2, 0.5)
        ratios[t.PRICE] = price / math.sqrt(self._settings.k)
        return ratios

    @property
    def _exchanges(self) -> bool:
        """Whether members are exchanged: it pays where labels weigh at least as much as numbers, and k is not small."""
        labels = sum(role.weight for role in self._settings.schema.quasi if isinstance(role, Categorical))
        numbers = sum(role.weight for role in self._settings.schema.quasi if isinstance(role, Numeric))
        is_for_all = self._settings.options["candidates"] == 0
        return is_for_all and labels >= numbers and self._settings.k >= _SMALLEST_EXCHANGED
