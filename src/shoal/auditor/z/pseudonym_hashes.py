"""Whether pseudonyms are hashes of a person and an epoch that anyone could compute."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from shoal.auditor.aligned import Facts
from shoal.auditor.promise import ZPromise
from shoal.auditor.reading.columns import Bools, Ints

_KNOWN_PAIRS: Final = 4
"""Pairs of a person and an epoch to try where their pseudonym is known: one who hashes one person hashes all alike."""
_OTHER_PAIRS: Final = 20
"""Pairs to try where it is not known who was released."""
_SEPARATORS: Final = ("", "|", ":", "-", "_", "/", ",", ";", " ", ".", "#", "\n", "\x00", "::")
_ALGORITHMS: Final = (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512, hashlib.sha3_256, hashlib.blake2b,
                      hashlib.blake2s)  # fmt: skip
_DIGITS: Final = 32
_SPELLINGS: Final = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00",
                     "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H", "%Y-%m-%d", "%Y%m%d", "%Y%m%d%H")  # fmt: skip
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_hash_with_epoch(facts: Facts, promise: ZPromise, person: Ints) -> Bools:
    """Mark the texts that are a hash of a person and an epoch without a key; the last place is for no text.

    ``person`` is the person of every released row, -1 where it is not known.
    """
    found = np.zeros(len(facts.persons) + 1, np.bool_)
    if not facts.shown_readable.any():
        return found
    numbers = {text: code for code, text in enumerate(facts.persons)}
    first = int(facts.shown_time[facts.shown_readable].min()) // promise.rotation_ns
    for one, epoch in _pairs(facts, promise, person):
        spelt = list(dict.fromkeys(epoch_spellings(epoch, promise.rotation_ns, first)))
        codes = {numbers[form] for form in hashes(facts.persons[one], spelt) if form in numbers}
        found[list(codes)] = True
    return found


def _pairs(facts: Facts, promise: ZPromise, person: Ints) -> list[tuple[int, int]]:
    """Pick people and epochs, spread over the release, or over the truth where nobody is known."""
    known = np.flatnonzero(person >= 0)
    if len(known):
        return _spread(person[known], facts.shown_time[known] // promise.rotation_ns, _KNOWN_PAIRS)
    epoch = facts.time // promise.rotation_ns
    shown = np.unique(facts.shown_time[facts.shown_readable] // promise.rotation_ns)
    rows = np.flatnonzero(facts.usable & np.isin(epoch, shown))
    return _spread(facts.person[rows], epoch[rows], _OTHER_PAIRS)


def _spread(person: Ints, epoch: Ints, count: int) -> list[tuple[int, int]]:
    at = np.unique(np.linspace(0, max(len(person) - 1, 0), 4 * count).astype(np.int64))[: len(person)]
    pairs = list(dict.fromkeys(zip(person[at].tolist(), epoch[at].tolist(), strict=True)))
    return pairs[:: max(len(pairs) // count, 1)][:count]


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
        yield make(data, usedforsecurity=False).hexdigest()[:_DIGITS]
    yield hashlib.blake2b(data, digest_size=16, usedforsecurity=False).hexdigest()
    yield hashlib.blake2s(data, digest_size=16, usedforsecurity=False).hexdigest()


def _with_plain_key(person: bytes, epoch: bytes) -> Iterator[str]:
    """Hashes with a key are as good as without where the key is the epoch or the person."""
    for key, data in ((epoch, person), (person, epoch)):
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            yield hmac.new(key, data, algorithm).hexdigest()[:_DIGITS]
        yield hashlib.blake2b(data, key=key[:64], digest_size=16, usedforsecurity=False).hexdigest()
        yield hashlib.blake2s(data, key=key[:32], digest_size=16, usedforsecurity=False).hexdigest()
