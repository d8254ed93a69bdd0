"""Find pseudonyms that are not random: hashes anyone can compute, and patterns.

Every pattern test reports honest pseudonyms (independent and uniform over 32 hex digits) with a probability below 1e-10
for up to ten million of them.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import ZPromise

_KNOWN_PAIRS: Final = 4
"""Pairs of a person and an epoch to try if their pseudonym is known: one is enough if all are hashed alike."""
_OTHER_PAIRS: Final = 20
"""Pairs to try if released persons are not known."""
_SEPARATORS: Final = ("", "|", ":", "-", "_", "/", ",", ";", " ", ".", "#", "\n", "\x00", "::")
_ALGORITHMS: Final = (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512, hashlib.sha3_256, hashlib.blake2b,
                      hashlib.blake2s)  # fmt: skip
_LENGTH: Final = 32
_SPELLINGS: Final = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+00:00",
                     "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H", "%Y-%m-%d", "%Y%m%d", "%Y%m%d%H")  # fmt: skip
_START: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_hash_with_epoch(aligned: Aligned, promise: ZPromise, person: Ints) -> Bools:
    """Mark texts that are an unkeyed hash of a person and an epoch; the last place is for null.

    ``person`` is the person of every released row, -1 if unknown.
    """
    found = np.zeros(len(aligned.persons) + 1, np.bool_)
    if not aligned.shown_readable.any():
        return found
    numbers = {text: code for code, text in enumerate(aligned.persons)}
    first = int(aligned.shown_time[aligned.shown_readable].min()) // promise.rotation_ns
    for one, epoch in _pairs(aligned, promise, person):
        spelt = list(dict.fromkeys(epoch_spellings(epoch, promise.rotation_ns, first)))
        codes = {numbers[form] for form in hashes(aligned.persons[one], spelt) if form in numbers}
        found[list(codes)] = True
    return found


def _pairs(aligned: Aligned, promise: ZPromise, person: Ints) -> list[tuple[int, int]]:
    """Pick people and epochs spread over the release, or over the truth if no person is known."""
    known = np.flatnonzero(person >= 0)
    if len(known):
        return _spread(person[known], aligned.shown_time[known] // promise.rotation_ns, _KNOWN_PAIRS)
    epoch = aligned.time // promise.rotation_ns
    shown = np.unique(aligned.shown_time[aligned.shown_readable] // promise.rotation_ns)
    rows = np.flatnonzero(aligned.usable & np.isin(epoch, shown))
    return _spread(aligned.person[rows], epoch[rows], _OTHER_PAIRS)


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


_DIGITS: Final = 32
_LOG_CHANCE: Final = math.log(1e-11)
_NEAR: Final = 2**44
"""Ten million numbers below 2^128 have a gap this small with a chance of 5e-12, two of them with far less."""
_SHARED: Final = 16
"""Ten million texts share 16 digits at one place twice with a chance below 1e-11."""
Digits = npt.NDArray[np.uint8]


def digits_of(texts: list[str]) -> Digits:
    """Return a matrix of hex digits, a row for every pseudonym."""
    raw = np.frombuffer("".join(texts).encode("ascii"), np.uint8).reshape(len(texts), _DIGITS)
    return np.where(raw >= ord("a"), raw - ord("a") + 10, raw - ord("0")).astype(np.uint8)


def uneven_places(digits: Digits) -> int:
    """Count the places at which some digit is too frequent, or too rare, among different pseudonyms."""
    count = len(digits)
    if not count:
        return 0
    times = np.stack([np.bincount(digits[:, place], minlength=16) for place in range(_DIGITS)])
    return int((_log_tail(times, count, 1 / 16) + math.log(2 * 16 * _DIGITS) < _LOG_CHANCE).any(axis=1).sum())


def _log_tail(times: npt.NDArray[Any], count: int | Ints, chance: float) -> npt.NDArray[np.float64]:
    """Bound the log of the chance that something happens so often, or so rarely (Chernoff)."""
    share = np.clip(times / np.maximum(count, 1), 1e-300, 1)
    rest = np.clip(1 - share, 1e-300, 1)
    return -count * (share * np.log(share / chance) + (1 - share) * np.log(rest / (1 - chance)))


def kept_places(before: Digits, after: Digits) -> int:
    """Count the places at which people keep their digit from one epoch to the next more often than by chance."""
    same = (before == after).sum(axis=0)
    if not len(before):
        return 0
    unlikely = (same > len(before) / 16) & (_log_tail(same, len(before), 1 / 16) + math.log(_DIGITS) < _LOG_CHANCE)
    return int(unlikely.sum())


def is_alike(before: Digits, after: Digits) -> bool:
    """Return whether people keep more of their digits than by chance, over all positions."""
    if not len(before):
        return False
    same, count = np.array([(before == after).sum()]), before.size
    return bool(same[0] > count / 16 and _log_tail(same, count, 1 / 16)[0] < _LOG_CHANCE)


def shared_parts(texts: list[str]) -> int:
    """Count pseudonyms that share half of their digits, at one of three places, with one before them."""
    repeated = [len(texts) - len({text[at : at + _SHARED] for text in texts}) for at in (0, 8, 16)]
    return max(repeated, default=0) if max(repeated, default=0) >= 2 else 0


def steps(texts: list[str]) -> int:
    """Count pseudonyms, in order of appearance, that follow the one before by a step that occurs again, or are near."""
    numbers = [int(text, 16) for text in texts]
    apart = [(after - before) % 2**128 for before, after in pairwise(numbers)]
    again = len(apart) - len(set(apart))
    ranked = sorted(numbers)
    near = sum(after - before < _NEAR for before, after in pairwise(ranked))
    return max(again, near if near >= 2 else 0)


def consecutive(person: Ints, epoch: Ints, shown: Ints) -> tuple[Ints, Ints]:
    """Return the pseudonyms of the same person in one epoch and in the next one it appears in."""
    order = np.lexsort((epoch, person))
    person, epoch, shown = person[order], epoch[order], shown[order]
    follows: Bools = (person[1:] == person[:-1]) & (epoch[1:] != epoch[:-1])
    return shown[:-1][follows], shown[1:][follows]
