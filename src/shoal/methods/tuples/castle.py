"""CASTLE: tuples gather in clusters as they arrive; a cluster is published when one of its tuples expires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import Field

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.castle import generalize as c
from shoal.kernels.tuples.castle.castle import restore_clusters, run_castle
from shoal.methods.base import StreamMethod
from shoal.methods.settings import Count
from shoal.methods.tuples.decider.base import Arrays, Ints
from shoal.methods.tuples.decider.memory import Sizes
from shoal.methods.tuples.decider.sequential import SequentialDecider
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.reader import TupleReader
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Schema

_MOST_REMEMBERED: Final = 1_000_000


class FormingClusters:
    """The clusters that are forming: memory besides the stream's."""

    def __init__(self, mu: int) -> None:
        self._mu = mu

    def run(self, stream: t.Stream, arrivals: t.Arrivals, start: int, stop: int) -> int:
        """Run the kernel on the stream and the forming clusters."""
        reached: int = run_castle(stream, self.arrays, arrivals, start, stop)
        return reached

    def allocate(self, sizes: Sizes, plan: Ints) -> None:
        most = int(plan[t.OPTION])
        if plan[t.MISSING_MODE] == t.OWN:  # tuples that lack the same as no other open a cluster beyond beta
            most += 1 << sizes.attributes
        forming = min(most, sizes.pending)  # no forming cluster is empty
        parts = sizes.pending // sizes.k + 1
        self.arrays = c.Forming(
            hulls=np.zeros((c.HULL_BLOCKS * sizes.attributes + c.HULL_SUMS, forming + 2 + parts)),
            counts=np.zeros((c.CLUSTER_COUNTS, forming), dtype=np.int64),
            tally=np.zeros(c.FORMING_TALLY, dtype=np.int64),
            published=np.zeros(self._mu + 1),
        )

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.arrays)

    def dump(self, stream: t.Stream) -> Arrays:
        """Each pending tuple's cluster, and the losses of the last published clusters."""
        end, count = int(self.arrays.tally[c.NEXT_LOSS]), int(self.arrays.tally[c.LOSSES])
        return {
            "homes": stream.pending_i[t.PART, : int(stream.tally[t.LIVE])].copy(),
            "published": self.arrays.published[(end - count + np.arange(count)) % self._mu],
        }

    def load(self, stream: t.Stream, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        published = arrays["published"]
        self.arrays.published[: len(published)] = published
        self.arrays.tally[c.NEXT_LOSS] = len(published) % self._mu
        self.arrays.tally[c.LOSSES] = len(published)
        restore_clusters(stream, self.arrays, np.ascontiguousarray(arrays["homes"]))


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


class Castle(StreamMethod):
    """k-anonymity of a tuple stream within a deadline by clusters that form as tuples arrive; for comparison.

    A tuple joins the forming cluster it enlarges least, or begins a new one. When a tuple's deadline comes, its cluster
    is published if k people are in it, split in several if it is large. If not, the tuple is published as one more row
    of a recent cluster, or its cluster is merged with the nearest ones; an outlier is suppressed.
    :class:`shoal.LeastLoss` loses less.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    beta
        How many clusters may be forming at once.
    mu
        A forming cluster accepts a tuple that keeps its loss within the average of the last ``mu`` published clusters.
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
    kernel: ClassVar[Any] = staticmethod(run_castle)
    settings_class: ClassVar[type[TupleSettings]] = CastleSettings

    def __init__(self, schema: Schema, **given: Unpack[CastleParameters]) -> None:
        self._start_for(schema, **given)

    def _make_engine(self, settings: CastleSettings, secret: Secret) -> TupleEngine:
        plan, ratios = settings.plan(), settings.ratios()
        plan[t.METHOD], plan[t.OPTION] = t.CASTLE, settings.beta
        reader, forming = TupleReader(settings, secret), FormingClusters(settings.mu)
        decider = SequentialDecider(reader.shape, reader.codes, plan, ratios, run=forming.run, extra=forming)
        return TupleEngine(self.method, settings, secret, reader, decider)
