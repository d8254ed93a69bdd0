"""Pseudonyms that change with every epoch and cannot be linked or inverted without the key."""

from __future__ import annotations

from collections import OrderedDict
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.crypto.keys import Secret
from shoal.kernels.siphash import siphash128
from shoal.kernels.siphash_lanes import LANES
from shoal.kernels.text_hashes import DIGITS, write_pseudonyms

_REMEMBERED: Final = 64
Words = npt.NDArray[np.uint64]


class Pseudonyms:
    """The function f(t, u) of the paper: one name per person and epoch, epoch = floor(time / rotation).

    The epoch's key is HMAC-SHA256 over the epoch, with the secret that counts when the epoch starts; under it a name is
    the 128-bit SipHash of the person's text.
    """

    def __init__(self, secret: Secret, *, rotation_ns: int) -> None:
        self._secret = secret
        self._rotation_ns = rotation_ns
        self._keys: OrderedDict[int, Words] = OrderedDict()

    def name(self, person: bytes, time_ns: int) -> str:
        """Return the pseudonym of one person at one time."""
        key = self._epoch_key(time_ns // self._rotation_ns)
        low, high = siphash128(key[0], key[1], np.frombuffer(person, dtype=np.uint8), 0, len(person))
        return (int(low).to_bytes(8, "little") + int(high).to_bytes(8, "little")).hex()

    def write_names(
        self,
        offsets: npt.NDArray[np.signedinteger],
        data: npt.NDArray[np.uint8],
        rows: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        out: npt.NDArray[np.uint8],
    ) -> None:
        """Write the pseudonyms of the texts in rows, DIGITS characters each; `times` are those of all texts."""
        hashes = np.empty((LANES, 2), dtype=np.int64)
        for start, stop, epoch in self._epochs(times, rows):
            key = self._epoch_key(epoch)
            write_pseudonyms(
                key[0], key[1], offsets, data, rows[start:stop], hashes, out[DIGITS * start : DIGITS * stop]
            )

    def _epochs(self, times: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> list[tuple[int, int, int]]:
        """Return runs of rows in one epoch: start, stop and epoch."""
        if not len(rows):
            return []
        first, last = int(times.min()) // self._rotation_ns, int(times.max()) // self._rotation_ns
        if first == last:  # of other texts too: times need not be taken by row
            return [(0, len(rows), first)]
        epochs = times.take(rows) // self._rotation_ns
        bounds = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(epochs)]
        return [(start, stop, int(epochs[start])) for start, stop in pairwise(bounds)]

    def _context(self, epoch: int) -> bytes:
        """Encode an epoch by its number and length: numbers repeat if the rotation changes."""
        return epoch.to_bytes(8, "big", signed=True) + self._rotation_ns.to_bytes(8, "big")

    def _epoch_key(self, epoch: int) -> Words:
        key = self._keys.get(epoch)
        if key is None:
            secret = self._secret.at(epoch * self._rotation_ns)
            derived = secret.subkey("pseudonym", self._context(epoch))
            key = self._keys[epoch] = np.frombuffer(derived[:16], dtype="<u8").astype(np.uint64)
            if len(self._keys) > _REMEMBERED:
                self._keys.popitem(last=False)
        return key
