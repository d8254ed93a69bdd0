"""Personal data: hashed with a key; the hashes are kept in a sealed file.

The file is a sequence of pieces, each a length and sealed bytes: new 32-byte hashes. A piece cut
short by a crash is dropped; the records that needed it were not stored either.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.crypto.private_files import sync_folder, vault_errors
from shoal.crypto.safe_open import is_regular, open_or_create, open_to_read
from shoal.errors import VaultError
from shoal.sanitize.keyring import Keyring
from shoal.sanitize.tags import Blocks, as_blocks, one_way

HASH: Final = 32
_LENGTH: Final = struct.Struct("<Q")
_MAGIC: Final = b"SHOALPII1\n"
_PURPOSE: Final = "personal hashes"
Names = npt.NDArray[np.bytes_]


class Hasher:
    """Turns the personal columns of records into keyed hashes, and hashes into references of 16 bytes."""

    def __init__(self, ring: Keyring, purpose: str) -> None:
        self._key = ring.key(purpose + " hash")
        self._reference_key = ring.key(purpose + " reference")

    def hashes(self, columns: Sequence[pa.Array]) -> tuple[npt.NDArray[np.int64], Blocks]:
        """Return the number of every record's hash, and the different hashes, 32 bytes each."""
        coded = _joined(columns).dictionary_encode()
        digests = [hmac.digest(self._key, text.encode(), hashlib.sha256) for text in coded.dictionary.to_pylist()]
        made = np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, HASH)
        return coded.indices.to_numpy().astype(np.int64), made

    def references(self, hashes: Blocks) -> Blocks:
        """Return the 16-byte references that stores keep instead of hashes."""
        mixed = np.ascontiguousarray(hashes[:, :16] ^ hashes[:, 16:])
        return one_way(self._reference_key, mixed)


def _joined(columns: Sequence[pa.Array]) -> pa.Array:
    """Join columns injectively into one text per record: every value with its length, "-" for null."""
    parts = []
    for column in columns:
        text = column.cast(pa.string())
        sized = pc.binary_join_element_wise(pc.binary_length(text).cast(pa.string()), text, ":")
        parts.append(pc.fill_null(sized, "-"))
    return pc.binary_join_element_wise(*parts, pa.scalar(""), ";")


def as_names(blocks: Blocks) -> Names:
    """Return blocks of 16 bytes as values that can be sorted and compared."""
    return np.ascontiguousarray(blocks).view("S16").reshape(-1)


class SealedHashes:
    """The sealed file of hashes: read as a whole, appended to."""

    def __init__(self, path: Path, ring: Keyring) -> None:
        self.path = path
        self._ring = ring
        self._known: set[bytes] = set()
        self._length = 0
        with vault_errors(path):
            is_there = is_regular(path)
        if is_there:
            self._read()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def hashes(self) -> Blocks:
        """All hashes, unordered."""
        return np.frombuffer(b"".join(self._known), dtype=np.uint8).reshape(-1, HASH)

    def add(self, hashes: Blocks) -> Blocks:
        """Append the new hashes, durable before this returns; return them."""
        rows = [row.tobytes() for row in hashes]
        fresh = [row for row in dict.fromkeys(rows) if row not in self._known]
        if fresh or not self._length:
            self._append(b"".join(fresh))
            self._known.update(fresh)
        return np.frombuffer(b"".join(fresh), dtype=np.uint8).reshape(-1, HASH)

    def _append(self, content: bytes) -> None:
        piece = self._ring.seal(content, _PURPOSE)
        head = b"" if self._length else _MAGIC
        with vault_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(open_or_create(self.path), "r+b") as file:
                file.truncate(self._length)  # a torn piece of a crashed run
                file.seek(self._length)
                file.write(head + _LENGTH.pack(len(piece)) + piece)
                file.flush()
                os.fsync(file.fileno())
                self._length = file.tell()
            sync_folder(self.path.parent)

    def _read(self) -> None:
        with vault_errors(self.path), open_to_read(self.path) as file:
            data = file.read()
        if not data.startswith(_MAGIC[: len(data)]):
            raise VaultError(f"{self.path}: not a file of sealed hashes; name another")
        at = len(_MAGIC)
        while at + _LENGTH.size <= len(data):
            (length,) = _LENGTH.unpack_from(data, at)
            piece = data[at + _LENGTH.size : at + _LENGTH.size + length]
            if len(piece) < length:
                break
            content = self._ring.unseal(piece, _PURPOSE, name=self.path)
            self._known.update(content[start : start + HASH] for start in range(0, len(content), HASH))
            at += _LENGTH.size + length
            self._length = at


__all__ = ["HASH", "Hasher", "SealedHashes", "as_blocks", "as_names"]
