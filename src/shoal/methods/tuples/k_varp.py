"""K-VARP: tuples that carry the same attributes are clustered with each other first."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from pydantic import Field

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.k_varp import run_partitioned
from shoal.methods.base import StreamMethod
from shoal.methods.settings import Share
from shoal.methods.tuples.decider.sequential import SequentialDecider
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.reader import TupleReader
from shoal.methods.tuples.settings import TupleParameters, TupleSettings, VariedSettings
from shoal.schema import Schema


class KVarpSettings(VariedSettings):
    """Parameters of K-VARP."""

    likeness: Share = Field(
        0.2,
        description="Of partitions with equally similar attributes, the one with more rows within this distance "
        "is added first.",
    )


class KVarpParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    likeness: float


class KVarp(StreamMethod):
    """k-anonymity within a deadline for streams whose attributes come and go.

    Pending tuples that carry the same attributes form a partition. An expiring tuple is published with its nearest in
    its own partition if k people are there; else the most similar partitions are added until there are k people.

    As published, the method keeps each row's missing values missing (``missing="paper"``), which distinguishes rows of
    one cluster: most of them are in a class smaller than k. The default is ``"covered"``.
    :class:`shoal.LeastLoss` usually loses less.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    likeness
        Of two partitions with equally similar attributes, the one with more tuples within this distance is added first.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    References
    ----------
    Otgonbayar, Pervez, Dahal, Eager: K-VARP: K-anonymity for varied data streams via partitioning.
    Information Sciences 467 (2018), doi:10.1016/j.ins.2018.07.057.
    """

    method: ClassVar[str] = "k-varp"
    kernel: ClassVar[Any] = staticmethod(run_partitioned)
    settings_class: ClassVar[type[TupleSettings]] = KVarpSettings

    def __init__(self, schema: Schema, **given: Unpack[KVarpParameters]) -> None:
        self._start_for(schema, **given)

    def _make_engine(self, settings: KVarpSettings, secret: Secret) -> TupleEngine:
        plan, ratios = settings.plan(), settings.ratios()
        plan[t.METHOD], plan[t.IS_PARTED] = t.K_VARP, 1
        ratios[t.RATIO] = settings.likeness
        reader = TupleReader(settings, secret)
        decider = SequentialDecider(reader.shape, reader.codes, plan, ratios, run=run_partitioned)
        return TupleEngine(self.method, settings, secret, reader, decider)
