"""Pseudonyms that change with every epoch and cannot be linked or inverted without the key."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.siphash import siphash128, write_hex
from shoal.vault.keys import Secret

_REMEMBERED: Final = 64
_DIGITS: Final = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
Words = npt.NDArray[np.uint64]


class Pseudonyms:
    """The function f(t, u) of the paper: one name a person and epoch, epoch = floor(time / rotation).

    The epoch's key is HMAC-SHA256 over the epoch; under it a name is the 128-bit SipHash of the person's text.
    """

    def __init__(self, secret: Secret, *, rotation_ns: int) -> None:
        self._secret = secret
        self._rotation_ns = rotation_ns
        self._keys: OrderedDict[int, Words] = OrderedDict()

    def name(self, person: bytes, time_ns: int) -> str:
        """The pseudonym of one person at one time."""
        key = self._epoch_key(time_ns // self._rotation_ns)
        low, high = siphash128(key[0], key[1], np.frombuffer(person, dtype=np.uint8), 0, len(person))
        return (int(low).to_bytes(8, "little") + int(high).to_bytes(8, "little")).hex()

    def names(
        self,
        offsets: npt.NDArray[np.signedinteger],
        data: npt.NDArray[np.uint8],
        rows: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.uint8]:
        """Pseudonyms of the texts in rows, 32 characters each; times belong to rows and are in time order."""
        keys = self._row_keys(times // self._rotation_ns)
        out = np.empty(16 * len(rows), dtype=np.uint16)
        write_hex(keys[:, 0], keys[:, 1], offsets, data, rows, _DIGITS, out)
        return out.view(np.uint8)

    def _row_keys(self, epochs: npt.NDArray[np.int64]) -> Words:
        starts = np.concatenate(([0], np.flatnonzero(np.diff(epochs)) + 1)) if len(epochs) else np.empty(0, np.int64)
        lengths = np.diff(np.append(starts, len(epochs)))
        keys = [self._epoch_key(int(epoch)) for epoch in epochs[starts]]
        return np.repeat(np.array(keys, dtype=np.uint64).reshape(-1, 2), lengths, axis=0)

    def _context(self, epoch: int) -> bytes:
        """An epoch is its number and how long it is: numbers come again when the rotation is changed."""
        return epoch.to_bytes(8, "big", signed=True) + self._rotation_ns.to_bytes(8, "big")

    def _epoch_key(self, epoch: int) -> Words:
        key = self._keys.get(epoch)
        if key is None:
            derived = self._secret.subkey("pseudonym", self._context(epoch))
            key = self._keys[epoch] = np.frombuffer(derived[:16], dtype="<u8").astype(np.uint64)
            if len(self._keys) > _REMEMBERED:
                self._keys.popitem(last=False)
        return key
