"""Whether pseudonyms have a pattern that random ones do not have.

Every test alarms on honest pseudonyms (independent and uniform over 32 hex digits) with a chance below 1e-10 for up
to ten million of them.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Bools, Ints

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
    """Tell whether people keep more of their digits than by chance, over all places together."""
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
