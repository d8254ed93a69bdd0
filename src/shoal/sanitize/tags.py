"""Tags of 16 bytes: without the key all look random; with it, a decoy and a real record each prove themselves.

A decoy's tag is the AES-CMAC (RFC 4493) of its row id. A real record's tag encrypts its arrival number and a check of
its row id under another key: blocks that never repeat, so they look random, and give back the order of arrival, which
the mixed rows no longer tell. All tags of a batch are made in one call.
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
"""One row of 16 bytes a record."""
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Tags:
    """Makes and reads tags under two keys."""

    def __init__(self, decoy_key: bytes, real_key: bytes) -> None:
        self._decoy = Cipher(AES(decoy_key), ECB())
        self._real = Cipher(AES(real_key), ECB())
        self._offset = _cmac_offset(self._decoy)

    def of_decoys(self, ids: Blocks) -> Blocks:
        """Tags of decoys with these row ids."""
        return _encrypt(self._decoy, ids ^ self._offset)

    def of_real(self, ids: Blocks, arrivals: Ints) -> Blocks:
        """Tags of real records with these row ids, which arrived as these numbers."""
        blocks = np.empty((len(ids), SIZE), dtype=np.uint8)
        blocks[:, :8] = arrivals.astype(">i8").view(np.uint8).reshape(-1, 8)
        blocks[:, 8:] = self._checks(ids)
        return _encrypt(self._real, blocks)

    def are_decoys(self, ids: Blocks, tags: Blocks) -> Bools:
        """Which records carry a decoy's tag."""
        return np.asarray((self.of_decoys(ids) == tags).all(axis=1))

    def read_real(self, ids: Blocks, tags: Blocks) -> tuple[Bools, Ints]:
        """Which records carry a real one's tag, and their arrival numbers."""
        blocks = _decrypt(self._real, tags)
        arrivals = np.ascontiguousarray(blocks[:, :8]).view(">i8").reshape(-1).astype(np.int64)
        return np.asarray((blocks[:, 8:] == self._checks(ids)).all(axis=1)), arrivals

    def _checks(self, ids: Blocks) -> Blocks:
        """Half of a block that only the key and the row id give; the last bit of the input keeps it apart."""
        return _encrypt(self._real, ids ^ np.uint8(0xA5))[:, :8]


def as_blocks(data: bytes) -> Blocks:
    """Bytes, 16 a record."""
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, SIZE)


def one_way(key: bytes, blocks: Blocks) -> Blocks:
    """Another block for each, as nobody can tell who has not the key."""
    return _encrypt(Cipher(AES(key), ECB()), blocks)


def _encrypt(cipher: Cipher[ECB], blocks: Blocks) -> Blocks:
    worker = cipher.encryptor()
    return as_blocks(worker.update(np.ascontiguousarray(blocks).tobytes()) + worker.finalize())


def _decrypt(cipher: Cipher[ECB], blocks: Blocks) -> Blocks:
    worker = cipher.decryptor()
    return as_blocks(worker.update(np.ascontiguousarray(blocks).tobytes()) + worker.finalize())


def _cmac_offset(cipher: Cipher[ECB]) -> npt.NDArray[np.uint8]:
    """The first subkey of CMAC: what a whole last block is combined with."""
    start = int.from_bytes(_encrypt(cipher, np.zeros((1, SIZE), dtype=np.uint8)).tobytes())
    doubled = (start << 1) & (2**128 - 1)
    return np.frombuffer((doubled ^ (0x87 if start >> 127 else 0)).to_bytes(SIZE), dtype=np.uint8)
