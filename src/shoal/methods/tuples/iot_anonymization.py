"""IoT Anonymization: like K-VARP, with the largest of the most similar partitions first and a stricter reuse."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.k_varp import run_partitioned
from shoal.methods.base import StreamMethod
from shoal.methods.tuples.decider.sequential import SequentialDecider
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.reader import TupleReader
from shoal.methods.tuples.settings import TupleParameters, TupleSettings, VariedSettings
from shoal.schema import Schema


class IotAnonymization(StreamMethod):
    """k-anonymity for streams whose attributes come and go, by partitions and imputation; for comparison.

    Partitions are added by the similarity of their attributes, then by size. All rows of a cluster show what the
    cluster shows: a missing value is filled in with the cluster's range. In the paper's own mode one carrier is
    enough for that; ``"covered"`` requires ``min_carriers``. A cluster is reused only for tuples that carry exactly the
    attributes its own rows carried.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    References
    ----------
    Otgonbayar, Pervez, Dahal: Toward anonymizing IoT data streams via partitioning. IEEE MASS (2016); as compared in
    the K-VARP paper.
    """

    method: ClassVar[str] = "iot-anonymization"
    kernel: ClassVar[Any] = staticmethod(run_partitioned)
    settings_class: ClassVar[type[TupleSettings]] = VariedSettings

    def __init__(self, schema: Schema, **given: Unpack[TupleParameters]) -> None:
        self._start_for(schema, **given)

    def _make_engine(self, settings: TupleSettings, secret: Secret) -> TupleEngine:
        plan, ratios = settings.plan(), settings.ratios()
        plan[t.METHOD] = t.IOT
        plan[t.IS_PARTED] = plan[t.SAME_PATTERN] = plan[t.SKIP_MERGED] = 1
        if settings.missing == "paper":
            plan[t.MISSING_MODE], plan[t.MIN_CARRIERS] = t.COVERED, 1
        reader = TupleReader(settings, secret)
        decider = SequentialDecider(reader.shape, reader.codes, plan, ratios, run=run_partitioned)
        return TupleEngine(self.method, settings, secret, reader, decider, fills_missing=True)
