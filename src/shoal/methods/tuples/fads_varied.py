"""FADS for streams whose attributes come and go: partitions never merge, so tuples may be late."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.base import Guarantee
from shoal.methods.tuples.method import Common, TupleMethod
from shoal.methods.tuples.settings import TupleChecker
from shoal.schema import Schema


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
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.method.Common`.

    References
    ----------
    The variant of FADS compared in the K-VARP paper, doi:10.1016/j.ins.2018.07.057.
    """

    method: ClassVar[str] = "fads-varied"
    number: ClassVar[int] = t.VARIED

    def __init__(self, schema: Schema, *, late_penalty: float = 0.001, **given: Unpack[Common]) -> None:
        self._start_checked(schema, given, late_penalty=late_penalty)

    def _check_own(self, checker: TupleChecker, own: Mapping[str, Any]) -> dict[str, Any]:
        return {"late_penalty": checker.ratio("late_penalty", own["late_penalty"], 0, math.inf)}

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
