"""Check the pseudonyms that replace persons: are they random, and kept within their epoch?

Every test of patterns reports honest pseudonyms (independent and uniform over 32 hex digits) with a probability below
1e-10 for up to ten million of them.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.counting import dense, shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import check_metadata
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import ZPromise

_LOOKED_AT: Final = 200_000
PSEUDONYM = re.compile(r"[0-9a-f]{32}")

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


def check_pseudonyms(aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Check that released persons are pseudonyms, none a raw identifier, none seen in two epochs."""
    well_formed = np.array([bool(PSEUDONYM.fullmatch(text)) for text in aligned.persons] + [False])
    shown = aligned.shown_person
    raw = np.isin(shown, np.unique(aligned.person[aligned.person >= 0]))
    notes.violation("raw-identifier", "A released row contains an identifier of the truth.", rows=raw)
    notes.violation(
        "bad-pseudonym",
        "The person column contains something other than a pseudonym of 32 lowercase hex characters.",
        rows=~well_formed[shown] & aligned.shown_readable,
    )
    notes.violation(
        "disguised-identifier",
        "A released person is an identifier of the truth in another form: respelt, as hex, or hashed without a key.",
        rows=_is_disguise(aligned)[shown],
    )
    _check_patterns(aligned, well_formed, notes)
    epoch = aligned.shown_time // promise.rotation_ns
    notes.violation(
        "pseudonym-across-epochs",
        "A pseudonym appears in more than one epoch, so that rows of different epochs can be linked.",
        rows=has_several(shown, epoch, aligned.shown_readable & (shown >= 0)),
    )


def _check_patterns(aligned: Aligned, well_formed: Bools, notes: Notes) -> None:
    """Check that pseudonyms look random: the first of them, each once."""
    codes, first = np.unique(aligned.shown_person[well_formed[aligned.shown_person]], return_index=True)
    texts = [aligned.persons[code] for code in codes[np.argsort(first)][:_LOOKED_AT].tolist()]
    places = uneven_places(digits_of(texts))
    sentence = f"Pseudonyms are not random: digits at {places} of 32 places are not equally frequent."
    notes.violation("weak-pseudonym", sentence, count=places)
    sentence = "Pseudonyms are not random: half of the digits of one are those of another."
    notes.violation("weak-pseudonym", sentence, count=shared_parts(texts))
    sentence = "Pseudonyms are not random: they follow one another in equal or small steps, as a counter does."
    notes.violation("weak-pseudonym", sentence, count=steps(texts))


def _check_kept(aligned: Aligned, person: Ints, epoch: Ints, known: Bools, notes: Notes) -> None:
    """Check that a person's pseudonyms of different epochs are unrelated."""
    before, after = consecutive(person[known], epoch[known], aligned.shown_person[known])
    fits = np.array([bool(PSEUDONYM.fullmatch(text)) for text in aligned.persons] + [False])
    fits = fits[before] & fits[after] & (before != after)
    pair = [digits_of([aligned.persons[code] for code in codes[fits].tolist()]) for codes in (before, after)]
    places = kept_places(*pair)
    notes.violation(
        "pseudonym-across-epochs",
        f"Parts of pseudonyms stay the same over epochs, at {places or 'some'} of 32 places: people can be linked.",
        count=places or int(is_alike(*pair)),
    )


def _is_disguise(aligned: Aligned) -> Bools:
    """Mark texts that anyone can compute from an identifier of the truth; the last place is for null."""
    known = np.unique(aligned.person[aligned.person >= 0]).tolist()
    forms = {form for code in known for form in _disguises(aligned.persons[code])}
    return np.array([text in forms for text in aligned.persons] + [False])


def _disguises(person: str) -> Iterator[str]:
    data = person.encode("utf-8", "surrogatepass")
    yield re.sub("[^0-9a-z]", "", person.lower())
    yield data.hex()[:32]
    for make in (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512):
        yield make(data, usedforsecurity=False).hexdigest()[:32]


def check_linked_pseudonyms(aligned: Aligned, promise: ZPromise, link: Ints, notes: Notes) -> None:
    """Check that persons and pseudonyms match one to one within an epoch, as far as records are known."""
    known = (link >= 0) & aligned.shown_readable & (aligned.shown_person >= 0)
    known[known] = aligned.usable[link[known]]
    person = np.where(known, aligned.person[link], -1) if len(aligned.person) else link
    epoch = aligned.shown_time // promise.rotation_ns
    _check_kept(aligned, person, epoch, known, notes)
    notes.violation(
        "disguised-identifier",
        "A released person is an identifier of the truth hashed with its epoch, without a key.",
        rows=is_hash_with_epoch(aligned, promise, person)[aligned.shown_person],
    )
    notes.violation(
        "pseudonym-split",
        "One person has two pseudonyms in one epoch.",
        rows=has_several(dense(person, epoch), aligned.shown_person, known),
    )
    notes.violation(
        "pseudonym-shared",
        "Two persons share one pseudonym in one epoch.",
        rows=has_several(dense(aligned.shown_person, epoch), person, known),
    )


def has_several(key: Ints, other: Ints, among: Bools) -> Bools:
    """Mark the rows whose key occurs with more than one value of ``other``."""
    marked = np.zeros(len(key), np.bool_)
    if among.any():
        group = dense(key[among])
        lowest = np.full(int(group.max()) + 1, np.iinfo(np.int64).max)
        highest = np.full(len(lowest), np.iinfo(np.int64).min)
        np.minimum.at(lowest, group, other[among])
        np.maximum.at(highest, group, other[among])
        marked[among] = (lowest < highest)[group]
    return marked


def check_other_columns(promise: ZPromise, release: Rows, truth: Rows, notes: Notes) -> None:
    """Warn if an identifier of the truth is in a carried or unexpected column."""
    own = {promise.person, promise.time, *(attribute.name for attribute in promise.attributes)}
    persons = truth.text(promise.person)
    check_metadata(persons, (*own, *promise.carry), release, notes)
    marked = np.zeros(len(release), np.bool_)
    for name in release.columns:
        if name not in own:
            known, shown = shared_codes(persons, release.text(name))[1]
            marked |= np.isin(shown, np.unique(known[known >= 0]))
    note_identifiers(marked, notes)


def note_identifiers(rows: Bools, notes: Notes) -> None:
    """Warn of rows with an identifier outside the person column."""
    sentence = "A column other than the person column contains an identifier of the truth."
    notes.warning("identifier-in-column", sentence, rows=rows)


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
