"""Calibration, fixed after the first window: sparse columns, people per label, and how dense places are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.methods.flexible.density import crowds_of, density_tables, measure_density
from shoal.methods.flexible.settings import LEAST, Density, FlexibleSettings
from shoal.schema import Categorical

Ints = npt.NDArray[np.int64]
_EXACT: Final = 10**9
"""Shares given as decimal numbers are taken as decimals, not as the nearest binary fraction."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Sparse columns with their share of rare records, and the k of a label by the k of its block."""

    sparse: tuple[str, ...]
    shares: Mapping[str, float]
    k_s: Mapping[int, int]
    density: Density = field(default_factory=dict)
    """By column and label: the k of places, where it was measured."""

    def describe(self) -> dict[str, Any]:
        """The calibration as plain values."""
        found = {"sparse": list(self.sparse), "shares": dict(self.shares), "k_s": [[k, s] for k, s in self.k_s.items()]}
        return found | ({"density": self.density} if self.density else {})

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Calibration:
        """The calibration that describe() wrote."""
        return cls(tuple(content["sparse"]), dict(content["shares"]), dict(content["k_s"]), content.get("density", {}))

    def by_crowd(self) -> Ints:
        """The k of a label, indexed by the k of its block."""
        found = np.zeros(max(self.k_s) + 1, dtype=np.int64)
        for k, k_s in self.k_s.items():
            found[k] = k_s
        return found


def _exact(share: float) -> Fraction:
    return Fraction(share).limit_denominator(_EXACT)


def label_crowd(share: Fraction, k: int, floor: float) -> int:
    """Number of people who must share a label: the share of rare records times k, or k where few records are rare."""
    if share < _exact(floor):
        return k
    return min(max(-(-share.numerator * k // share.denominator), LEAST), k)


def rare_share(codes: Ints, persons: Ints, crowds: Ints) -> Fraction:
    """The share of records whose value fewer than k people have; a missing value counts as a value."""
    if not len(codes):
        return Fraction(0)
    pairs = np.unique(np.stack((codes, persons)), axis=1)
    values, people = np.unique(pairs[0], return_counts=True)
    rare = people[np.searchsorted(values, codes)] < crowds
    return Fraction(int(rare.sum()), len(codes))


def calibrate(settings: FlexibleSettings, codes: Ints, persons: Ints) -> Calibration:
    """Calibrate with the first window: a code for each quasi-identifier and record, people as numbers."""
    density = measure_density(settings, codes, persons)
    crowds = crowds_of(settings, density_tables(settings, density), codes)
    shares = {
        role.name: rare_share(codes[a], persons, crowds)
        for a, role in enumerate(settings.schema.quasi)
        if isinstance(role, Categorical)
    }
    sparse = _sparse_columns(settings, shares)
    if settings.p_sparse is not None:
        shares = dict.fromkeys(shares, _exact(settings.p_sparse))
    k_s = {k: _crowd_of(settings, [shares[name] for name in sparse], k) for k in settings.crowds}
    return Calibration(sparse, {name: float(share) for name, share in shares.items()}, k_s, density)


def _crowd_of(settings: FlexibleSettings, shares: list[Fraction], k: int) -> int:
    if not shares:
        return k  # nothing is sparse
    if settings.k_s is not None:
        return min(max(settings.k_s, LEAST), k)
    # The sparse column that needs most people decides.
    return max(label_crowd(share, k, settings.floor) for share in shares)


def _sparse_columns(settings: FlexibleSettings, shares: Mapping[str, Fraction]) -> tuple[str, ...]:
    if settings.sparse != "auto":
        return settings.sparse
    found = [name for name, share in shares.items() if _is_sparse(settings, name, share)]
    if len(found) == len(settings.schema.quasi):
        found = found[1:]  # blocks need a normal column
    return tuple(found)


def _is_sparse(settings: FlexibleSettings, name: str, share: Fraction) -> bool:
    concepts = settings.concepts.get(name)
    if concepts is None:
        return False  # a person's crowd must not shrink because a column, say of places, has many values
    if concepts.tag is not None:
        return concepts.tag == "sparse"
    return share >= _exact(settings.threshold)
