"""Where coins come from: the seed, the data, and what they are for."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt


def coin_key(seed: int, fingerprint: bytes, *purpose: str | int) -> npt.NDArray[np.uint64]:
    """Two words of key; another seed, other data or another purpose give others."""
    digest = hashlib.sha256(seed.to_bytes(8, "little") + fingerprint)
    for part in purpose:
        digest.update(str(part).encode() + b"\x00")
    return np.frombuffer(digest.digest()[:16], dtype="<u8").astype(np.uint64)
