"""The deterministic k^m method: all itemsets are counted, size after size, and nothing rests on chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from shoal.methods.sets.errors import ErrorChoice
from shoal.methods.sets.km_anonymity import KmAnonymity


class KmApriori(KmAnonymity):
    """k^m-anonymity with certainty: every itemset of up to m items is counted.

    Parameters
    ----------
    k
        The least crowd, or a list, one for every size from 1 to m.
    m
        The most items the adversary knows of a person.
    generalize, error
        As for :class:`shoal.KmAnonymity`.

    References
    ----------
    Terrovitis, Mamoulis, Kalnis: Privacy-preserving anonymization of set-valued data. VLDB (2008).
    """

    method: ClassVar[str] = "k^m-apriori"

    def __init__(self, k: int | Sequence[int] = 10, m: int = 2, *, generalize: Any, error: ErrorChoice = None) -> None:
        super().__init__(k, m, 1.0, generalize=generalize, error=error, counted="all", trials=1)
