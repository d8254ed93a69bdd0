"""The order in which the rows of one event are published, in plain Python.

A row's place is decided by SipHash of the event's set of rows and the row's number. The set is the sum of SplitMix64 of
all row numbers. Hashes are compared as signed 64-bit numbers. The key is derived from the instance's secret.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from tests.reference.siphash import MASK, siphash128


def order_key(secret: bytes) -> bytes:
    """The key of the order, by HMAC-SHA256 from the secret and the key's purpose."""
    return hmac.new(secret, b"order of published tuples\0", hashlib.sha256).digest()[:16]


def splitmix64(number: int) -> int:
    """Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014; the first output."""
    z = (number + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def published_order(rows: Sequence[int], key: bytes) -> list[int]:
    """The rows of one event in the order of publication."""
    together = (sum(map(splitmix64, rows)) & MASK).to_bytes(8, "little")

    def place(row: int) -> int:
        return int.from_bytes(siphash128(key, together + row.to_bytes(8, "little"))[:8], "little", signed=True)

    return sorted(rows, key=place)


def in_published_order(decisions: Sequence[Any], secret: bytes) -> list[Any]:
    """The decisions of one event (each with a ``row``) in the order of publication."""
    by_row = {one.row: one for one in decisions}
    assert len(by_row) == len(decisions), "a row was decided twice"
    return [by_row[row] for row in published_order(list(by_row), order_key(secret))]
