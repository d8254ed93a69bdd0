"""FADS for streams whose attributes come and go: partitions never merge, so tuples may be late."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import Field

from shoal.kernels.tuples import layout as t
from shoal.methods.base import Guarantee
from shoal.methods.settings import Amount
from shoal.methods.tuples.method import TupleMethod
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Schema


class FadsVariedSettings(TupleSettings):
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


class FadsVaried(TupleMethod):
    """FADS within partitions of tuples that carry the same attributes; for comparison only.

    A tuple whose partition has too few people when its deadline comes is held on, late, until there are enough. At
    the end what is left is suppressed. It is the one method here that does not keep its deadline.

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
    number: ClassVar[int] = t.VARIED

    settings_class: ClassVar[type[TupleSettings]] = FadsVariedSettings

    def __init__(self, schema: Schema, **given: Unpack[FadsVariedParameters]) -> None:
        self._start_checked(schema, **given)

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = super()._plan()
        plan[t.IS_PARTED] = plan[t.SAME_PATTERN] = 1
        return plan

    def _ratios(self) -> npt.NDArray[np.float64]:
        ratios = super()._ratios()
        ratios[t.PENALTY] = self._settings.options["late_penalty"]
        return ratios

    @property
    def guarantee(self) -> Guarantee:
        base = super().guarantee
        return Guarantee(base.method, base.statement, base.parameters, max_delay_ns=None, max_pending=None)
