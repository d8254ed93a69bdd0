"""Disguised identifiers: what anyone can compute from a person, alone or with an epoch, without a key."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation, Shape, Texts

_NOT_PLAIN: Final = re.compile("[^0-9a-z]")
_PLAIN_HASHES: Final = (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512)
FORMS: Final[Shape] = {"pseudonym": str, "is_raw": bool}
KNOWN_PAIRS: Final = 4
"""Pairs of a person and an epoch to try if their pseudonym is known: one is enough if all are hashed alike."""
OTHER_PAIRS: Final = 20
"""Pairs to try if released persons are not known."""
_SEPARATORS: Final = ("", "|", ":", "-", "_", "/", ",", ";", " ", ".", "#", "\n", "\x00", "::")
_ALGORITHMS: Final = (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512, hashlib.sha3_256, hashlib.blake2b,
                      hashlib.blake2s)  # fmt: skip
_LENGTH: Final = 32
_SPELLINGS: Final = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00",
                     "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H", "%Y-%m-%d", "%Y%m%d", "%Y%m%d%H")  # fmt: skip
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)


def disguises(people: Relation) -> Relation:
    """What anyone can compute from the identifiers of the truth: themselves, respelt, as hex, hashed without a key."""
    persons = people["person"]
    known = [persons.texts[code] for code in persons.codes.tolist()]
    others = [form for person in known for form in _disguises(person)]
    count = len(known) + len(others)
    return Relation({"pseudonym": Texts(np.arange(count), known + others), "is_raw": np.arange(count) < len(known)})


def _disguises(person: str) -> tuple[str, ...]:
    data, low = person.encode("utf-8", "surrogatepass"), person.lower()
    plain = low if low.isascii() and low.isalnum() else _NOT_PLAIN.sub("", low)
    hashed = [make(data, usedforsecurity=False).hexdigest()[:32] for make in _PLAIN_HASHES]
    return plain, data.hex()[:32], *hashed


# ---- hashed with the epoch


def spread(count: int, wanted: int) -> Ints:
    """Places spread over a number of rows, the first and the last among them."""
    return np.unique(np.linspace(0, max(count - 1, 0), 4 * wanted).astype(np.int64))[:count]


def hashed_forms(pairs: Sequence[tuple[str, int]], count: int, rotation_ns: int, first: int) -> frozenset[str]:
    """Some of the people, each with an epoch, hashed together in the usual ways."""
    different = list(dict.fromkeys(pairs))
    found: set[str] = set()
    for person, epoch in different[:: max(len(different) // count, 1)][:count]:
        found.update(hashes(person, list(dict.fromkeys(epoch_spellings(epoch, rotation_ns, first)))))
    return frozenset(found)


def epoch_spellings(epoch: int, rotation_ns: int, first: int) -> Iterator[str]:
    """Yield the usual ways to write an epoch: its number, its start as a number or as a date."""
    start = epoch * rotation_ns
    yield from (str(epoch), str(epoch - first), str(epoch - first + 1), str(start))
    yield from (str(start // unit) for unit in (1_000, 1_000_000, 1_000_000_000))
    yield f"{start / 1e9}"
    try:
        moment = _START + timedelta(microseconds=start // 1_000)
    except OverflowError:
        return
    yield from (moment.strftime(spelling) for spelling in _SPELLINGS)


def hashes(person: str, epochs: Iterable[str]) -> Iterator[str]:
    """Yield the hashes of a person with an epoch, cut to the length of a pseudonym."""
    for name in dict.fromkeys((person, person.lower())):
        for epoch in epochs:
            for between in _SEPARATORS:
                for text in (f"{name}{between}{epoch}", f"{epoch}{between}{name}"):
                    yield from _digests(text.encode("utf-8", "surrogatepass"))
            yield from _with_plain_key(name.encode("utf-8", "surrogatepass"), epoch.encode())


def _digests(data: bytes) -> Iterator[str]:
    for make in _ALGORITHMS:
        yield make(data, usedforsecurity=False).hexdigest()[:_LENGTH]
    yield hashlib.blake2b(data, digest_size=16, usedforsecurity=False).hexdigest()
    yield hashlib.blake2s(data, digest_size=16, usedforsecurity=False).hexdigest()


def _with_plain_key(person: bytes, epoch: bytes) -> Iterator[str]:
    """Yield keyed hashes whose key is the epoch or the person, which protect nothing."""
    for key, data in ((epoch, person), (person, epoch)):
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            yield hmac.new(key, data, algorithm).hexdigest()[:_LENGTH]
        yield hashlib.blake2b(data, key=key[:64], digest_size=16, usedforsecurity=False).hexdigest()
        yield hashlib.blake2s(data, key=key[:32], digest_size=16, usedforsecurity=False).hexdigest()
