"""Patterns in pseudonyms that honest ones do not have: independent and uniform over 32 hex digits.

Every test reports honest pseudonyms with a probability below 1e-10 for up to ten million of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.checks import Answer
from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.sorting import distinct, order_of
from shoal.auditor.z.pseudonyms import ANOTHER, are_pseudonyms, of_people, of_pseudonyms

_LOOKED_AT: Final = 200_000
"""Patterns are looked for in this many pseudonyms, the first ones."""
_DIGITS: Final = 32
_LOG_CHANCE: Final = math.log(1e-11)
_NEAR: Final = 2**44
"""Ten million numbers below 2^128 have a gap this small with a chance of 5e-12, two of them with far less."""
Digits = npt.NDArray[np.uint8]


def first_pseudonyms(parts: Iterable[Relation]) -> Relation:
    """The pseudonyms in which patterns are looked for, in order of appearance."""
    found: list[str] = []
    for part in parts:
        texts = part["pseudonym"]
        found += [texts.texts[code] for code in texts.codes[: _LOOKED_AT - len(found)].tolist()]
        if len(found) >= _LOOKED_AT:
            break
    return Relation({"pseudonym": Texts(np.arange(len(found)), found)})


def _bytes_of(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """A row of 16 bytes for every pseudonym."""
    return np.frombuffer(bytes.fromhex("".join(texts)), np.uint8).reshape(len(texts), _DIGITS // 2)


def digits_of(texts: Sequence[str]) -> Digits:
    """Return a matrix of hex digits, a row for every pseudonym."""
    data = _bytes_of(texts)
    return np.stack((data >> 4, data & 15), axis=2).reshape(len(texts), _DIGITS)


@of_pseudonyms(
    "weak-pseudonym", "Pseudonyms are not random: some digits are more frequent than others.", advice=ANOTHER
)
def uneven_digits(first: Relation) -> Answer:
    places = uneven_places(digits_of(first["pseudonym"].texts))
    sentence = f"Pseudonyms are not random: digits at {places} of 32 places are not equally frequent."
    return Answer(count=places, sentence=sentence)


@of_pseudonyms(
    "weak-pseudonym", "Pseudonyms are not random: half of the digits of one are those of another.",
    advice=ANOTHER)  # fmt: skip
def shared_halves(first: Relation) -> int:
    return shared_parts(first["pseudonym"].texts)


@of_pseudonyms(
    "weak-pseudonym",
    "Pseudonyms are not random: they follow one another in equal or small steps, as a counter does.",
    advice=ANOTHER)  # fmt: skip
def counted_up(first: Relation) -> int:
    return steps(first["pseudonym"].texts)


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


def shared_parts(texts: Sequence[str]) -> int:
    """Count pseudonyms that share half of their digits, at one of three places, with one before them.

    Ten million texts share 16 digits at one place twice with a chance below 1e-11.
    """
    data = _bytes_of(texts)
    halves = (np.ascontiguousarray(data[:, at : at + 8]).view(np.int64).ravel() for at in (0, 4, 8))
    repeated = max((len(half) - len(distinct(half)) for half in halves), default=0)
    return repeated if repeated >= 2 else 0


def steps(texts: Sequence[str]) -> int:
    """Count pseudonyms, in order of appearance, that follow the one before by a step that occurs again, or are near."""
    words = _bytes_of(texts).view(">u8").astype(np.uint64)
    apart = _differences(words)
    ordered = apart[np.lexsort(apart.T)]
    again = int((ordered[1:] == ordered[:-1]).all(axis=1).sum())
    gaps = _differences(words[np.lexsort((words[:, 1], words[:, 0]))])
    near = int(((gaps[:, 0] == 0) & (gaps[:, 1] < _NEAR)).sum())
    return max(again, near if near >= 2 else 0)


def _differences(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each number of two words minus the one before it, modulo 2^128."""
    low = words[1:, 1] - words[:-1, 1]
    return np.stack((words[1:, 0] - words[:-1, 0] - (words[1:, 1] < words[:-1, 1]), low), axis=1)


# ---- kept from epoch to epoch


def kept_digits(rows: Relation) -> Ints:
    """Compare the pseudonyms of each person in an epoch and in the next one that the person appears in.

    Returns how many have the same digit at each place, and how many were compared.
    """
    order = order_of(rows.codes("person"), rows["shown epoch"], rows["row"])
    person, epoch, shown = rows.codes("person")[order], rows["shown epoch"][order], rows.codes("pseudonym")[order]
    fits = are_pseudonyms(texts := rows["pseudonym"].texts)
    digits = digits_of(list(compress(texts, fits.tolist())))
    place = np.where(fits, np.cumsum(fits) - 1, -1)[shown]  # among those that are pseudonyms
    follows = (person[1:] == person[:-1]) & (epoch[1:] != epoch[:-1]) & (shown[1:] != shown[:-1])
    follows &= (place[1:] >= 0) & (place[:-1] >= 0)
    same = digits[place[:-1][follows]] == digits[place[1:][follows]]
    return np.append(same.sum(axis=0), len(same))


@of_people(
    "pseudonym-across-epochs", "Parts of pseudonyms stay the same over epochs: people can be linked.", advice=ANOTHER
)
def kept_parts(same: Ints, count: int) -> Answer:
    places = kept_places(same, count)
    sentence = (
        f"Parts of pseudonyms stay the same over epochs, at {places or 'some'} of 32 places: people can be linked."
    )
    return Answer(count=places or int(is_alike(same, count)), sentence=sentence)


def kept_places(same: Ints, count: int) -> int:
    """Count the places at which people keep their digit from one epoch to the next more often than by chance."""
    if not count:
        return 0
    unlikely = (same > count / 16) & (_log_tail(same, count, 1 / 16) + math.log(_DIGITS) < _LOG_CHANCE)
    return int(unlikely.sum())


def is_alike(same: Ints, count: int) -> bool:
    """Return whether people keep more of their digits than by chance, over all positions."""
    if not count:
        return False
    total = np.array([same.sum()])
    return bool(total[0] > count * _DIGITS / 16 and _log_tail(total, count * _DIGITS, 1 / 16)[0] < _LOG_CHANCE)
