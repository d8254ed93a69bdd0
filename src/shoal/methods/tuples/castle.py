"""CASTLE: tuples gather in clusters as they come; a cluster leaves when one of its tuples must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import Field

from shoal.kernels.tuples import castle_generalize as c
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.castle import run_castle, take_homes_back
from shoal.methods.schema_arrays import Shape
from shoal.methods.settings import Count
from shoal.methods.tuples.method import TupleMethod
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.methods.tuples.state import Arrays, Ints, TupleState
from shoal.schema import Schema

_MOST_REMEMBERED: Final = 1_000_000


class CastleState(TupleState):
    """A stream's memory, and that of the clusters that are forming in it."""

    def __init__(
        self, shape: Shape, plan: Ints, ratios: npt.NDArray[np.float64], *, mu: int, columns: int, recent: int
    ) -> None:
        self._mu = mu
        super().__init__(shape, plan, ratios, run=self._run_castle, columns=columns, recent=recent)

    def _run_castle(self, stream: t.Stream, arrivals: t.Arrivals, start: int, stop: int) -> int:
        came: int = run_castle(stream, self.forming, arrivals, start, stop)
        return came

    def _fresh(self) -> t.Stream:
        wide, held = self._sizes.attributes, self._sizes.held
        forming = min(int(self._plan[t.OPTION]), held)  # none is ever empty
        parts = held // int(self._plan[t.K]) + 1
        self.forming = c.Forming(
            hulls=np.zeros((c.HULL_BLOCKS * wide + c.HULL_SUMS, forming + 2 + parts)),
            counts=np.zeros((c.CLUSTER_COUNTS, forming), dtype=np.int64),
            tally=np.zeros(c.FORMING_TALLY, dtype=np.int64),
            published=np.zeros(self._mu + 1),
        )
        return super()._fresh()

    @property
    def nbytes(self) -> int:
        forming: int = sum(array.nbytes for array in self.forming)
        return super().nbytes + forming

    def dump(self) -> Arrays:
        arrays = super().dump()
        end, count = int(self.forming.tally[c.NEXT_LOSS]), int(self.forming.tally[c.LOSSES])
        return {
            **arrays,
            "homes": self.stream.held_i[t.PART, : self.held].copy(),
            "published": self.forming.published[(end - count + np.arange(count)) % self._mu],
        }

    def load(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        super().load(arrays)
        published = arrays["published"]
        self.forming.published[: len(published)] = published
        self.forming.tally[c.NEXT_LOSS] = len(published) % self._mu
        self.forming.tally[c.LOSSES] = len(published)
        take_homes_back(self.stream, self.forming, np.ascontiguousarray(arrays["homes"]))


class CastleSettings(TupleSettings):
    """Parameters of CASTLE."""

    beta: Count = Field(50, description="Clusters that may be forming at the same time.")
    mu: Annotated[int, Field(ge=1, le=_MOST_REMEMBERED)] = Field(
        100,
        description="A forming cluster accepts what keeps its loss within the average of this many published clusters.",
    )


class CastleParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    beta: int
    mu: int


class Castle(TupleMethod):
    """k-anonymity of a tuple stream within a deadline by clusters that form as tuples come; for comparison.

    A tuple joins the forming cluster it enlarges least, or begins one. When a tuple's deadline comes, its cluster
    leaves if k people are in it, split in several if it is large. If not, the tuple leaves as one more of a cluster
    published not long ago, or its cluster is merged with those nearest to it; an outlier is suppressed.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    beta
        How many clusters may be forming at once.
    mu
        A forming cluster takes in what keeps its loss within the average of so many last published clusters.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    Examples
    --------
    >>> from shoal.schema import Numeric, Schema
    >>> castle = Castle(Schema(person="id", quasi=[Numeric("age", low=0, high=100)]), k=2, deadline=2, reuse=0, beta=2)
    >>> [castle.push({"id": who, "age": age}) for who, age in (("ann", 31.0), ("bob", 60.0), ("cat", 33.0))][-1]
    [{'age': {'lo': 31.0, 'hi': 33.0}}, {'age': {'lo': 31.0, 'hi': 33.0}}]

    References
    ----------
    Cao, Carminati, Ferrari, Tan: CASTLE: Continuously anonymizing data streams. IEEE Transactions on Dependable and
    Secure Computing 8 (2011), doi:10.1109/TDSC.2009.47.

    Notes
    -----
    A cluster may hold several tuples of one person; k and carriers count people. Missing values are allowed.
    """

    method: ClassVar[str] = "castle"
    number: ClassVar[int] = t.CASTLE
    kernel: ClassVar[Any] = staticmethod(run_castle)

    settings_class: ClassVar[type[TupleSettings]] = CastleSettings

    def __init__(self, schema: Schema, **given: Unpack[CastleParameters]) -> None:
        self._start_checked(schema, **given)

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = super()._plan()
        plan[t.OPTION] = self._settings.options["beta"]
        return plan

    def _make_state(self, shape: Shape) -> TupleState:
        return CastleState(
            shape, self._plan(), self._ratios(), mu=self._settings.options["mu"], columns=len(self._codes),
            recent=self._settings.remembers,
        )  # fmt: skip
