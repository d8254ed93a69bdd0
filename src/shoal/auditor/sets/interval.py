"""How far a share found in a sample may be from the whole: Clopper and Pearson's exact interval."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

TAIL = 0.001
"""Each bound alone is wrong with at most this probability: 99.9 % confidence one-sided."""
_HALVINGS = 60


def interval(hits: int, trials: int, tail: float = TAIL) -> tuple[float, float]:
    """Return the lower and the upper bound of a share of which ``hits`` were seen in ``trials`` independent draws."""
    if not trials:
        return 0.0, 1.0
    ways = _log_choices(trials)
    # The more likely a hit, the likelier at least `hits` of them: look for where that likelihood passes the tail.
    lower = 0.0 if hits == 0 else _crossing(ways, hits, tail)
    upper = 1.0 if hits == trials else 1 - _crossing(ways, trials - hits, tail)
    return lower, upper


def _crossing(ways: npt.NDArray[np.float64], hits: int, tail: float) -> float:
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_least(ways, hits, middle) < tail:
            low = middle
        else:
            high = middle
    return low


def _at_least(ways: npt.NDArray[np.float64], hits: int, share: float) -> float:
    trials = len(ways) - 1
    seen = np.arange(hits, trials + 1)
    terms = ways[hits:] + seen * np.log(share) + (trials - seen) * np.log1p(-share)
    return float(np.exp(terms).sum())


def _log_choices(trials: int) -> npt.NDArray[np.float64]:
    """Return the logarithms of C(trials, 0), …, C(trials, trials)."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, trials + 1)))])
    return np.asarray(factorials[-1] - factorials - factorials[::-1], np.float64)
