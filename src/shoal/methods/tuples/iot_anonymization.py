"""IoT Anonymization: like K-VARP, with the largest of the likest partitions first and a stricter reuse."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.method import TupleMethod


class IotAnonymization(TupleMethod):
    """k-anonymity for streams whose attributes come and go, by partitions and imputation.

    Partitions are added by the likeness of their attributes, then by size. Rows of a cluster all show what the
    cluster shows: a missing value is filled in with the cluster's range. In the paper's own mode one carrier is
    enough for that; ``"strict"`` asks for ``min_carriers``. Only clusters whose rows carried exactly what a tuple
    carries may be reused for it.

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
    number: ClassVar[int] = t.IOT
    _hides_own = False

    def _plan(self) -> npt.NDArray[np.int64]:
        plan = super()._plan()
        plan[t.IS_PARTED] = plan[t.SAME_PATTERN] = plan[t.SKIP_MERGED] = 1
        if self._settings.nulls == "paper":
            plan[t.NULLS], plan[t.MIN_CARRIERS] = t.SHOW_ALL, 1
        return plan
