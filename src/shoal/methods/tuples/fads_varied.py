"""FADS for streams whose attributes come and go: partitions never merge, so tuples may be late."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from pydantic import Field

from shoal.crypto.keys import Secret
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.k_varp import run_partitioned
from shoal.methods.base import StreamMethod
from shoal.methods.settings import Amount
from shoal.methods.tuples.decider.sequential import SequentialDecider
from shoal.methods.tuples.engine import TupleEngine
from shoal.methods.tuples.reader import TupleReader
from shoal.methods.tuples.settings import TupleParameters, TupleSettings, VariedSettings
from shoal.schema import Schema


class FadsVariedSettings(VariedSettings):
    """Parameters of FADS for streams whose attributes come and go."""

    KEEPS_DEADLINE: ClassVar[bool] = False

    late_penalty: Amount = Field(
        0.001, description="What each arrival (or second) of lateness adds to the reported loss of a row, up to 1."
    )

    def warnings(self) -> list[str]:
        late = (
            "fads-varied keeps rows beyond their deadline until enough others lack the same values; "
            "it is there for comparison"
        )
        return [*super().warnings(), late]


class FadsVariedParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    late_penalty: float


class FadsVaried(StreamMethod):
    """FADS within partitions of tuples that carry the same attributes; for comparison only.

    A tuple whose partition has too few people when its deadline comes stays pending, late, until there are enough. At
    the end the rest is suppressed. This is the only method here that does not keep its deadline: do not use it in
    production.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    late_penalty
        Reported losses grow by this share for every arrival (or second) a row is late, up to 1.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    References
    ----------
    The variant of FADS compared in the K-VARP paper, doi:10.1016/j.ins.2018.07.057.
    """

    method: ClassVar[str] = "fads-varied"
    kernel: ClassVar[Any] = staticmethod(run_partitioned)
    settings_class: ClassVar[type[TupleSettings]] = FadsVariedSettings

    def __init__(self, schema: Schema, **given: Unpack[FadsVariedParameters]) -> None:
        self._start_for(schema, **given)

    def _make_engine(self, settings: FadsVariedSettings, secret: Secret) -> TupleEngine:
        plan, ratios = settings.plan(), settings.ratios()
        plan[t.METHOD] = t.VARIED
        plan[t.IS_PARTED] = plan[t.SAME_PATTERN] = 1
        ratios[t.PENALTY] = settings.late_penalty
        reader = TupleReader(settings, secret)
        decider = SequentialDecider(reader.shape, reader.codes, plan, ratios, run=run_partitioned)
        return TupleEngine(self.method, settings, secret, reader, decider)
