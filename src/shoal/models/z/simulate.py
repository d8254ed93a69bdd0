"""Simulation of the model: draw exposures, run Algorithm 1 over them, and compare what is released of people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.models.proportions import students_t
from shoal.models.z.probability import Probability

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ALIKE, SHOWN, SHOWN_ALIKE = 0, 1, 2
"""Indices of counts: k-anonymous people; people with a released row; people with both."""
_MOST_EXPOSURES: Final = 10**8
_WORDS: Final = 1


def simulated(
    users: Ints,
    rates: Floats,
    window: float,
    z: int,
    k: int,
    *,
    runs: int,
    seed: int,
    confidence: float,
    among_shown: bool = False,
) -> Probability:
    """The share of k-anonymous people, averaged over runs; the interval is Student's, over the runs.

    With `among_shown` the share among people who show anything; runs in which no one does are left out.
    """
    _check_size(users, rates, window)
    counted = play(users, rates, window, [z], [k], runs=runs, seed=seed)[:, 0, 0]
    alike = counted[..., SHOWN_ALIKE if among_shown else ALIKE]
    of = counted[..., SHOWN] if among_shown else np.broadcast_to(users, alike.shape)
    by_class = tuple(_share(alike[:, c], of[:, c], confidence) for c in range(len(users)))
    whole = _share(alike.sum(axis=1), of.sum(axis=1), confidence)
    if len(by_class) == 1:
        return whole
    return Probability(whole.value, whole.lower, whole.upper, whole.method, confidence, by_class=by_class)


def _share(alike: Ints, of: Ints, confidence: float) -> Probability:
    is_any = of > 0
    if is_any.sum() < 2:
        return Probability(0.0, 0.0, 1.0, "simulate", confidence)  # nothing is known
    return averaged(alike[is_any] / of[is_any], confidence)


def averaged(shares: Floats, confidence: float) -> Probability:
    """The mean of shares measured in independent runs, with Student's interval."""
    mean = float(shares.mean())
    half = students_t(len(shares) - 1, confidence) * float(shares.std(ddof=1)) / math.sqrt(len(shares))
    return Probability(mean, max(mean - half, 0.0), min(mean + half, 1.0), "simulate", confidence)


def play(
    users: Ints,
    rates: Floats,
    window: float,
    zs: Sequence[int],
    ks: Sequence[int],
    *,
    runs: int,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> Ints:
    """Count people by run, z, k and class: k-anonymous ones, those who show anything, and those who are both.

    All z and k use the same exposures. After one window of warm-up, one pseudonym epoch as long as the window is
    counted.
    """
    found = np.zeros((runs, len(zs), len(ks), len(users), 3), dtype=np.int64)
    starts = np.concatenate(([0], np.cumsum(users)))[:-1]
    for run in range(runs):
        for i, sets in enumerate(_released_sets(users, rates, window, np.asarray(zs), seed, run)):
            _, which, sizes = np.unique(sets, return_inverse=True, return_counts=True)
            is_shown = sets != 0
            for j, k in enumerate(ks):
                is_alike = sizes[which] >= k
                for kind, is_counted in ((ALIKE, is_alike), (SHOWN, is_shown), (SHOWN_ALIKE, is_alike & is_shown)):
                    found[run, i, j, :, kind] = np.add.reduceat(is_counted, starts, dtype=np.int64)
        if progress is not None:
            progress(run + 1)
    return found


def publishing(users: Ints, rates: Floats, window: float, zs: Sequence[int], *, runs: int, seed: int) -> Floats:
    """The share of people who publish each attribute within an epoch, by run, z and attribute."""
    found = np.zeros((runs, len(zs), rates.shape[1]))
    for run in range(runs):
        for attribute, crowd in _crowds_seen(users, rates, window, int(min(zs)), seed, run):
            found[run, :, attribute] = [(crowd >= z).mean() for z in zs]
    return found


def exposures_of(users: Ints, rates: Floats, window: float) -> float:
    """Expected exposures in a run."""
    return float((users[:, None] * rates).sum()) * 2 * window


def _check_size(users: Ints, rates: Floats, window: float) -> None:
    """Refuse simulations that would take too much memory or time."""
    if (most := exposures_of(users, rates, window)) > _MOST_EXPOSURES or users.sum() > _MOST_EXPOSURES:
        raise PolicyError(
            f'method: "simulate" would draw {most:,.0f} exposures of {users.sum():,} people per run; the limit is '
            f'{_MOST_EXPOSURES:,} of either; use "lattice" or "sample"'
        )


def _released_sets(users: Ints, rates: Floats, window: float, zs: Ints, seed: int, run: int) -> npt.NDArray[np.uint64]:
    """For every z, a number for everybody's set of released attributes; 0 for none.

    Each attribute has a random word, a set is the sum of its words: two different sets get the same number with a
    probability of 2^-64.
    """
    random = np.random.default_rng([seed, run, _WORDS])
    words: npt.NDArray[np.uint64] = random.integers(1, 2**64, size=rates.shape[1:], dtype=np.uint64)
    sets = np.zeros((len(zs), int(users.sum())), dtype=np.uint64)
    for attribute, crowd in _crowds_seen(users, rates, window, int(zs.min()), seed, run):
        sets += np.where(crowd >= zs[:, None], words[attribute], np.uint64(0))
    return sets


def _crowds_seen(
    users: Ints, rates: Floats, window: float, least: int, seed: int, run: int
) -> Iterator[tuple[int, Ints]]:
    """For every attribute that anybody may publish: the largest crowd each person was in when exposing it."""
    for attribute, times, people in exposures(users, rates, window, seed, run):
        if len(times) < least:
            continue
        crowd = crowds(times, people, window)
        is_measured = times >= window
        seen = np.zeros(int(users.sum()), dtype=np.int64)
        np.maximum.at(seen, people[is_measured], crowd[is_measured])
        yield attribute, seen


def exposures(users: Ints, rates: Floats, window: float, seed: int, run: int) -> Iterator[tuple[int, Floats, Ints]]:
    """For every attribute its exposures within two windows, in order, with times and people: Poisson processes."""
    random = np.random.default_rng([seed, run])
    starts = np.cumsum(users) - users
    for attribute in range(rates.shape[1]):
        counts = random.poisson(users * rates[:, attribute] * 2 * window)
        times = random.random(int(counts.sum())) * (2 * window)
        people = [start + random.integers(0, size, n) for start, size, n in zip(starts, users, counts, strict=True)]
        order = np.argsort(times, kind="stable")
        yield attribute, times[order], np.concatenate(people)[order]


def crowds(times: Floats, people: Ints, window: float) -> Ints:
    """How many different people exposed an attribute within the window, at each exposure; times are in order.

    A person enters with an exposure that has none of their own within the window before it, and leaves a window after
    one that has none within the window after it. The window is closed.
    """
    order = np.argsort(people, kind="stable")
    is_same = people[order[1:]] == people[order[:-1]]
    is_within = times[order[:-1]] >= times[order[1:]] - window
    goes_on = is_same & is_within
    enters, leaves = np.ones(len(times), dtype=np.bool_), np.ones(len(times), dtype=np.bool_)
    enters[order[1:]], leaves[order[:-1]] = ~goes_on, ~goes_on
    gone = np.searchsorted(times[leaves], times - window, side="left")
    found: Ints = np.cumsum(enters) - gone
    return found
