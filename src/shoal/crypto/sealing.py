"""Seal bytes with AES-256-GCM, so that they can be neither read nor altered without the key.

Layout: magic, 8 bytes that identify the key, 12 bytes nonce, 8 bytes length, then pieces of 64 MiB, each with its tag.
The nonce is derived from the content (the idea of SIV modes): equal content gives equal bytes, which keeps
snapshots reproducible, and different content has the same nonce only with probability 2^-96.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from shoal.crypto.keys import Secret
from shoal.errors import VaultError

MAGIC: Final = b"SHOALSEAL1"
_HEAD: Final = struct.Struct("<10s8s12sQ")
_PIECE: Final = 64 * 1024 * 1024
_TAG: Final = 16


class SealBroken(VaultError):
    """The sealed bytes are torn or altered."""


class WrongKey(VaultError):
    """The bytes were sealed under another key."""


def is_sealed(data: bytes) -> bool:
    """Return whether bytes look sealed."""
    return data[: len(MAGIC)] == MAGIC


def seal(secret: Secret, data: bytes, *, purpose: str) -> bytes:
    """Seal bytes; they open only with the same secret and purpose."""
    nonce = _nonce(secret, data, purpose)
    head = _HEAD.pack(MAGIC, _key_mark(secret), nonce, len(data))
    cipher = AESGCM(secret.subkey("seal", purpose.encode()))
    view = memoryview(data)
    pieces = [
        cipher.encrypt(_piece_nonce(nonce, number), view[start : start + _PIECE], head + number.to_bytes(4))
        for number, start in enumerate(range(0, max(len(data), 1), _PIECE))
    ]
    return b"".join((head, *pieces))


def unseal(secret: Secret, data: bytes, *, purpose: str) -> bytes:
    """Open sealed bytes, or raise SealBroken or WrongKey."""
    if len(data) < _HEAD.size or not is_sealed(data):
        raise SealBroken("not sealed by shoal, or its beginning is lost")
    _, mark, nonce, length = _HEAD.unpack_from(data)
    if not hmac.compare_digest(mark, _key_mark(secret)):
        raise WrongKey("sealed under another key; set SHOAL_KEY_FILE to the key it was made with")
    return _open_pieces(AESGCM(secret.subkey("seal", purpose.encode())), data, nonce, length)


def _open_pieces(cipher: AESGCM, data: bytes, nonce: bytes, length: int) -> bytes:
    count = max(1, -(-length // _PIECE))
    if len(data) != _HEAD.size + length + count * _TAG:
        raise SealBroken("its end is lost, or something was added to it")
    view, head, pieces = memoryview(data), data[: _HEAD.size], []
    for number in range(count):
        start = _HEAD.size + number * (_PIECE + _TAG)
        try:
            piece = view[start : start + _PIECE + _TAG]
            pieces.append(cipher.decrypt(_piece_nonce(nonce, number), piece, head + number.to_bytes(4)))
        except InvalidTag:
            raise SealBroken("altered, or sealed for another purpose") from None
    return b"".join(pieces)


def _nonce(secret: Secret, data: bytes, purpose: str) -> bytes:
    return hmac.digest(secret.subkey("nonce", purpose.encode()), data, hashlib.sha256)[:12]


def _piece_nonce(nonce: bytes, number: int) -> bytes:
    return nonce[:8] + bytes(a ^ b for a, b in zip(nonce[8:], number.to_bytes(4), strict=True))


def _key_mark(secret: Secret) -> bytes:
    return secret.subkey("key mark")[:8]
