"""Twins of the compiled partitioners, in plain numbers of Python."""

from __future__ import annotations

import zlib

_MASK = 0xFFFFFFFF
_FACTOR = 0x5BD1E995


def murmur2(key: bytes) -> int:
    """The hash of Java's clients, as a signed number."""
    h = 0x9747B28C ^ len(key)
    whole = len(key) - len(key) % 4
    for at in range(0, whole, 4):
        k = int.from_bytes(key[at : at + 4], "little") * _FACTOR & _MASK
        k = (k ^ k >> 24) * _FACTOR & _MASK
        h = h * _FACTOR & _MASK ^ k
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * _FACTOR & _MASK
    h = (h ^ h >> 13) * _FACTOR & _MASK
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def partition_of(key: bytes, partitions: int, partitioner: str = "murmur2") -> int:
    """The partition of a key."""
    if partitioner == "crc32":
        return zlib.crc32(key) % partitions
    return (murmur2(key) & 0x7FFFFFFF) % partitions
