"""K-VARP: tuples that carry the same attributes hide among each other, and among others when they must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.method import Common, TupleMethod
from shoal.methods.tuples.settings import TupleChecker
from shoal.schema import Schema


class KVarp(TupleMethod):
    """k-anonymity within a deadline for streams whose attributes come and go.

    Held tuples that carry the same attributes are a partition. An expiring tuple leaves with its nearest in its own
    partition if k people are there, else partitions are added, likest first, until k people are.

    As published, the method keeps each row's missing values missing (``nulls="paper"``), which tells rows of one
    cluster apart: most of them stand in a class smaller than k. The default is ``"strict"``.

    Parameters
    ----------
    schema
        A :class:`shoal.Schema`.
    likeness
        Of two partitions with equally like attributes, the one with more tuples within this distance is added first.
    **given
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.method.Common`.

    References
    ----------
    Otgonbayar, Pervez, Dahal, Eager: K-VARP: K-anonymity for varied data streams via partitioning.
    Information Sciences 467 (2018), doi:10.1016/j.ins.2018.07.057.
    """

    method: ClassVar[str] = "k-varp"
    number: ClassVar[int] = t.K_VARP

    def __init__(self, schema: Schema, *, likeness: float = 0.2, **given: Unpack[Common]) -> None:
        self._start_checked(schema, given, likeness=likeness)

    def _check_own(self, checker: TupleChecker, own: Mapping[str, Any]) -> dict[str, Any]:
        return {"likeness": checker.ratio("likeness", own["likeness"], 0, 1)}

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = super()._plan()
        plan[t.IS_PARTED] = 1
        return plan

    def _ratios(self) -> npt.NDArray[np.float64]:
        ratios = super()._ratios()
        ratios[t.RATIO] = self._settings.options["likeness"]
        return ratios
