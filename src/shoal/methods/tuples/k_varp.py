"""K-VARP: tuples that carry the same attributes hide among each other, and among others when they must."""

from __future__ import annotations

from typing import ClassVar, Unpack

import numpy as np
import numpy.typing as npt
from pydantic import Field

from shoal.kernels.tuples import layout as t
from shoal.methods.settings import Share
from shoal.methods.tuples.method import TupleMethod
from shoal.methods.tuples.settings import TupleParameters, TupleSettings
from shoal.schema import Schema


class KVarpSettings(TupleSettings):
    """Parameters of K-VARP."""

    likeness: Share = Field(
        0.2,
        description="Of partitions with equally similar attributes, the one with more rows within this distance "
        "is added first.",
    )


class KVarpParameters(TupleParameters, total=False):
    """Keyword arguments for type checkers."""

    likeness: float


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
        The parameters every tuple method takes; see :class:`shoal.methods.tuples.settings.TupleSettings`.

    References
    ----------
    Otgonbayar, Pervez, Dahal, Eager: K-VARP: K-anonymity for varied data streams via partitioning.
    Information Sciences 467 (2018), doi:10.1016/j.ins.2018.07.057.
    """

    method: ClassVar[str] = "k-varp"
    number: ClassVar[int] = t.K_VARP

    settings_class: ClassVar[type[TupleSettings]] = KVarpSettings

    def __init__(self, schema: Schema, **given: Unpack[KVarpParameters]) -> None:
        self._start_checked(schema, **given)

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = super()._plan()
        plan[t.IS_PARTED] = 1
        return plan

    def _ratios(self) -> npt.NDArray[np.float64]:
        ratios = super()._ratios()
        ratios[t.RATIO] = self._settings.options["likeness"]
        return ratios
