"""How itemsets are drawn, and the seeds of the draws."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.sampling import Draws, Scratch
from shoal.methods.sets.data import KnownSets
from shoal.methods.sets.settings import MOST_ITEMS


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
    data: KnownSets, size: int, k: int, key: npt.NDArray[np.uint64], *, by_person: bool = False
) -> Draws | None:
    """Independent draws of itemsets of a size; None when every set is smaller."""
    sizes = data.sizes(size, by_person=by_person)
    if sizes is None:
        return None
    return Draws(sizes, size, k, by_person, samples_only=False, steps=0, shares=np.empty(0), key=key)
