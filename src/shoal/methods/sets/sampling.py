"""How itemsets are drawn: by rejection, by person, or by the paper's Markov chain; and the seeds of the draws."""

from __future__ import annotations

import hashlib
from math import comb, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.sampling import Draws, Scratch, follow_chain
from shoal.methods.sets.data import SetData
from shoal.methods.sets.settings import MOST_ITEMS

_FIRST_STEPS: Final = 64
_MOST_STEPS: Final = 1 << 14
_EARLY, _LATE = 0.1, 0.5
_ALIKE: Final = 1e-9
"""Log-likelihoods closer than this differ only by rounding."""
_CLOSE: Final = 1.96
"""Geweke scores below this mean that the chain has converged."""


def random_key(seed: int, fingerprint: bytes, *purpose: str | int) -> npt.NDArray[np.uint64]:
    """A key of two words that depends on the seed, the data and the purpose."""
    digest = hashlib.sha256(seed.to_bytes(8, "little") + fingerprint)
    for part in purpose:
        digest.update(str(part).encode() + b"\x00")
    return np.frombuffer(digest.digest()[:16], dtype="<u8").astype(np.uint64)


def make_scratch() -> Scratch:
    """Buffers for one thread."""
    return Scratch(
        np.zeros(1, np.uint64), np.zeros(MOST_ITEMS, np.int32), np.zeros(MOST_ITEMS, np.int32),
        np.zeros(MOST_ITEMS, np.int32), np.zeros(MOST_ITEMS, np.int64),
    )  # fmt: skip


def make_draws(
    data: SetData, size: int, k: int, key: npt.NDArray[np.uint64], *, by_person: bool = False
) -> Draws | None:
    """Independent draws of itemsets of a size; None when every set is smaller."""
    sizes = data.sizes(size, by_person=by_person)
    if sizes is None:
        return None
    return Draws(sizes, size, k, by_person, samples_only=False, steps=0, shares=np.empty(0), key=key)


def as_chain(data: SetData, draws: Draws) -> Draws:
    """The same itemsets drawn by the paper's chain, with as many steps as Geweke's test asks for."""
    sizes = data.sizes(draws.size, by_person=True)
    assert sizes is not None  # some set is large enough
    lengths = range(data.longest + 1)
    shares = np.array([1 / comb(length, draws.size) if length >= draws.size else 0.0 for length in lengths])
    chain = draws._replace(sizes=sizes, shares=shares, steps=_FIRST_STEPS)
    while chain.steps < _MOST_STEPS and abs(_score(data, chain)) > _CLOSE:
        chain = chain._replace(steps=2 * chain.steps)
    return chain


def _score(data: SetData, chain: Draws) -> float:
    """Geweke's score of the log-likelihoods along one chain of twice the length."""
    trail = np.empty(2 * chain.steps)
    walk = chain._replace(steps=len(trail), key=chain.key ^ np.uint64(1))  # a random stream of its own
    follow_chain(data.sets, data.index.arrays, walk, 0, make_scratch(), trail)
    return geweke(np.log(trail))


def geweke(values: npt.NDArray[np.float64]) -> float:
    """The difference between the means of the first tenth and the last half of a chain, in standard errors."""
    early, late = values[: max(int(_EARLY * len(values)), 2)], values[-int(_LATE * len(values)) :]
    if float(np.ptp(values)) <= _ALIKE:
        return 0.0  # constant
    spread = sqrt(_variance_of_mean(early) + _variance_of_mean(late))
    apart = float(early.mean() - late.mean())
    return apart / spread if spread > 0 else float("inf")


def _variance_of_mean(values: npt.NDArray[np.float64]) -> float:
    """By batch means: neighbours in a chain are correlated, so the plain variance would be too small."""
    batches = max(int(sqrt(len(values))), 2)
    length = len(values) // batches
    means = values[: batches * length].reshape(batches, length).mean(axis=1)
    return float(means.var(ddof=1) / batches)
