"""Tags of 16 bytes: random without the key; with it, they prove that a record is real or a decoy.

A decoy's tag is the AES-CMAC (RFC 4493) of its row id. A real record's tag encrypts its arrival number and a check of
its row id under another key: blocks never repeat, so they look random, and they restore the order of arrival, which
the shuffled rows do not show. All tags of a batch are made in one call.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

SIZE: Final = 16
Blocks = npt.NDArray[np.uint8]
"""One row of 16 bytes per record."""
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Tags:
    """Makes and reads tags under two keys."""

    def __init__(self, decoy_key: bytes, real_key: bytes) -> None:
        self._decoy = Cipher(AES(decoy_key), ECB())
        self._real = Cipher(AES(real_key), ECB())
        self._offset = _cmac_offset(self._decoy)

    def of_decoys(self, ids: Blocks) -> Blocks:
        """Return the tags of decoys with these row ids."""
        return _encrypt(self._decoy, ids ^ self._offset)

    def of_real(self, ids: Blocks, arrivals: Ints) -> Blocks:
        """Return the tags of real records with these row ids and arrival numbers."""
        blocks = np.empty((len(ids), SIZE), dtype=np.uint8)
        blocks[:, :8] = arrivals.astype(">i8").view(np.uint8).reshape(-1, 8)
        blocks[:, 8:] = self._checks(ids)
        return _encrypt(self._real, blocks)

    def are_decoys(self, ids: Blocks, tags: Blocks) -> Bools:
        """Return which records have a decoy's tag."""
        return np.asarray((self.of_decoys(ids) == tags).all(axis=1))

    def read_real(self, ids: Blocks, tags: Blocks) -> tuple[Bools, Ints]:
        """Return which records have a real record's tag, and their arrival numbers."""
        blocks = _decrypt(self._real, tags)
        arrivals = np.ascontiguousarray(blocks[:, :8]).view(">i8").reshape(-1).astype(np.int64)
        return np.asarray((blocks[:, 8:] == self._checks(ids)).all(axis=1)), arrivals

    def _checks(self, ids: Blocks) -> Blocks:
        """Return half a block derived from the key and the row id; the XOR separates it from other uses of the key."""
        return _encrypt(self._real, ids ^ np.uint8(0xA5))[:, :8]


def as_blocks(data: bytes) -> Blocks:
    """Return bytes as rows of 16."""
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, SIZE)


def one_way(key: bytes, blocks: Blocks) -> Blocks:
    """Map each block to another one, unpredictable without the key."""
    return _encrypt(Cipher(AES(key), ECB()), blocks)


def _encrypt(cipher: Cipher[ECB], blocks: Blocks) -> Blocks:
    worker = cipher.encryptor()
    return as_blocks(worker.update(np.ascontiguousarray(blocks).tobytes()) + worker.finalize())


def _decrypt(cipher: Cipher[ECB], blocks: Blocks) -> Blocks:
    worker = cipher.decryptor()
    return as_blocks(worker.update(np.ascontiguousarray(blocks).tobytes()) + worker.finalize())


def _cmac_offset(cipher: Cipher[ECB]) -> npt.NDArray[np.uint8]:
    """Return the first subkey of CMAC, which is combined with a complete last block."""
    start = int.from_bytes(_encrypt(cipher, np.zeros((1, SIZE), dtype=np.uint8)).tobytes())
    doubled = (start << 1) & (2**128 - 1)
    return np.frombuffer((doubled ^ (0x87 if start >> 127 else 0)).to_bytes(SIZE), dtype=np.uint8)
