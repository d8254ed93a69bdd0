"""Estimate the people and rates of the model from a stream, and report what the stream is too short for.

The model asks how likely a person exposes a value within a window. So a person who does the same thing ten times within
a window counts once, and a window counts as often as people are active in it: what matters is the window in which a
person is active, not an hour of the night when no one is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, PolicyError
from shoal.models.z.events import Events
from shoal.models.z.stationarity import FEWEST_WINDOWS, Stationarity, compare_halves

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST_EXPOSURES: Final = 300
MOST_CLASSES: Final = 16
_MOST_USERS: Final = 10**9
_ROUNDS: Final = 50
_CLASS_ROUNDS: Final = 400
_NEWTON_STEPS: Final = 12
_LEAST_MEAN: Final = 0.05
"""Below this mean, few people who are rarely active look like many who are even less so."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimate, and what it is based on."""

    people: int
    """The model's people: the number that, as Poisson processes, gives the active people and exposures observed."""
    seen: int
    """Distinct people in the whole stream, including those who are rarely active."""
    active: float
    """People with an event, in the window of a typical active person."""
    exposures: int
    """Distinct (person, value, window)."""
    values: int
    """Distinct values observed; unobserved ones are ignored."""
    once: int
    """Values seen in one exposure only."""
    windows: int
    """Windows with an event, whole ones where there are enough."""
    idle: int
    """Windows without any event between the first and the last."""
    stationarity: Stationarity
    remarks: tuple[str, ...]
    sizes: tuple[int, ...]
    """People of each class."""
    rates: Floats
    """How often a person of each class (a row) exposes each value (a column), per second."""
    codes: Ints
    """The code of each value in the events."""

    @property
    def is_enough(self) -> bool:
        """Whether there is enough data."""
        return self.windows >= FEWEST_WINDOWS and self.exposures >= FEWEST_EXPOSURES


@dataclass(frozen=True, slots=True)
class Exposures:
    """Different (window, person, value), in that order."""

    windows: Ints
    persons: Ints
    values: Ints
    """Places in `codes`."""
    codes: Ints
    """The code of each value in the events."""
    window_ns: int
    seen: int
    """Distinct people in the whole stream."""

    @property
    def starts(self) -> Ints:
        """Where each window begins."""
        return np.flatnonzero(np.diff(self.windows, prepend=self.windows[0] - 1))

    def of(self, windows: Ints) -> Exposures:
        """Those in some windows."""
        kept = np.isin(self.windows, windows)
        return replace(self, windows=self.windows[kept], persons=self.persons[kept], values=self.values[kept])


def exposures(events: Events, window_ns: int) -> Exposures:
    """The exposures of whole windows, or of all windows where there are few."""
    window, person, value = _distinct(events, window_ns)
    first, last = int(window[0]), int(window[-1])
    if last - first >= FEWEST_WINDOWS + 1:  # the first and the last may be cut off
        is_whole = (window > first) & (window < last)
        if is_whole.any():
            window, person, value = window[is_whole], person[is_whole], value[is_whole]
    codes, value = np.unique(value, return_inverse=True)
    return Exposures(window, person, value, codes, window_ns, events.people)


def estimate_events(events: Events, window_ns: int, *, classes: int = 1, skipped: int = 0) -> Estimate:
    """Estimate people and rates from events.

    Parameters
    ----------
    skipped
        Windows left out on purpose between the first and the last.
    """
    if isinstance(classes, bool) or not isinstance(classes, int) or not 1 <= classes <= MOST_CLASSES:
        raise PolicyError(f"classes: must be a whole number from 1 to {MOST_CLASSES}")
    if window_ns <= 0:
        raise PolicyError("window: must be longer than 0")
    if not len(events):
        raise InputError("the stream has no event with a person, a time and a value; nothing can be estimated")
    found = exposures(events, window_ns)
    windows, values = found.windows, found.values
    sizes, rates, active, places = people_and_rates(found, classes)
    once = int((np.bincount(values) == 1).sum())
    estimate = Estimate(
        people=int(sum(sizes)), seen=events.people, active=float(active @ active / active.sum()),
        exposures=len(values), values=len(found.codes), once=once, windows=len(active),
        idle=max(0, int(windows[-1] - windows[0]) + 1 - len(active) - skipped),
        stationarity=compare_halves(active, places, values, len(found.codes)), remarks=(), sizes=sizes,
        rates=rates, codes=found.codes,
    )  # fmt: skip
    return replace(estimate, remarks=tuple(_remarks(estimate, events.unusable)))


def people_and_rates(found: Exposures, classes: int) -> tuple[tuple[int, ...], Floats, Floats, Ints]:
    """People and rates of each class, the active people of each window, and the number of each exposure's window."""
    starts = found.starts
    places = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(found.windows))))
    is_new = np.append(True, (np.diff(found.persons) != 0) | (np.diff(places) != 0))
    active = np.bincount(places[is_new], minlength=len(starts)).astype(np.float64)
    showed = np.diff(np.append(np.flatnonzero(is_new), len(places)))
    weights = active / active.sum()
    crowds = np.bincount(found.values, weights=weights[places], minlength=len(found.codes)).astype(np.float64)
    sizes, exposed = _people(crowds, float(weights @ active), showed, classes, found.seen)
    return sizes, -np.log1p(-exposed) / (found.window_ns / 1e9), active, places


def _distinct(events: Events, window_ns: int) -> tuple[Ints, Ints, Ints]:
    """Different (window, person, value), in that order."""
    window = events.times // window_ns
    order = np.lexsort((events.values, events.persons, window))
    window, person, value = window[order], events.persons[order], events.values[order]
    is_new = np.append(True, (window[1:] != window[:-1]) | (person[1:] != person[:-1]) | (value[1:] != value[:-1]))
    return window[is_new], person[is_new], value[is_new]


def _people(crowds: Floats, active: float, showed: Ints, classes: int, seen: int) -> tuple[tuple[int, ...], Floats]:
    """Sizes of classes, and the chance of a person of each to expose each value within a window."""
    if classes == 1:
        users = _alike(crowds, active, seen)
        return (users,), np.minimum(crowds / users, 1 - 1e-9)[None, :]
    shares, means = activity_classes(showed, classes)
    is_there = active * shares >= 0.5
    is_there[np.argmax(shares)] = True
    shares, means = shares[is_there], means[is_there]
    sizes = wanted = active * shares / -np.expm1(-means)
    # a value exposed twice is shown once: people are more active than they show, and fewer are idle than it seems
    for _ in range(_ROUNDS):
        share = interests(crowds, sizes, means)
        wanted, sizes = sizes, active * shares / -np.expm1(-means * share.sum())
        if np.abs(wanted - sizes).max() < 1e-6 * active:
            break
    sizes = np.clip(np.rint(sizes), 1, _MOST_USERS)
    exposed = -np.expm1(-means[:, None] * interests(crowds, sizes, means))
    return tuple(int(one) for one in sizes), np.minimum(exposed, 1 - 1e-9)


def _alike(crowds: Floats, active: float, seen: int) -> int:
    """The number of identical people that gives these crowds and this number of active people.

    Everybody ever seen would be too many where people come and go: each would seem to expose less than they do. The
    active people alone would be too few: some people present expose nothing.
    """
    low = max(active, float(crowds.max()), 1.0)
    high = max(low, float(seen), 1.0)
    for _ in range(100):
        middle = (low + high) / 2
        idle = math.exp(float(np.log1p(-np.minimum(crowds / middle, 1 - 1e-12)).sum()))
        low, high = (middle, high) if middle * (1 - idle) < active else (low, middle)
    return min(math.ceil(high - 1e-6), _MOST_USERS)


def _remarks(found: Estimate, unusable: int) -> list[str]:
    remarks = []
    if found.windows < FEWEST_WINDOWS:
        remarks.append(
            f"too short to tell: {found.windows} windows with events, {FEWEST_WINDOWS} are needed; "
            "take more data or a shorter window"
        )
    if found.exposures < FEWEST_EXPOSURES:
        remarks.append(f"too few events to tell: {found.exposures} exposures, {FEWEST_EXPOSURES} are needed")
    remarks.append(found.stationarity.words)
    if found.once:
        remarks.append(
            f"{found.once:,} of {found.values:,} values were seen in one exposure only; about "
            f"{found.once / found.exposures:.1%} of exposures to come will be of values not seen yet, which are ignored"
        )
    if found.idle:
        remarks.append(f"{found.idle:,} windows without any event are left out")
    if unusable:
        remarks.append(f"{unusable:,} rows without a person, a time or a value are left out")
    return remarks


# ---- classes of people by activity: a mixture of Poisson counts, whose zeros are never observed


def activity_classes(counts: Ints, classes: int) -> tuple[Floats, Floats]:
    """Shares of the active people, and means, of at most this many classes; quieter classes first.

    A person shows a Poisson number of values with the mean of their class, and is observed only if it is not 0. The
    most likely classes are found by expectation maximization, from the same start every time.

    Parameters
    ----------
    counts
        The number of distinct values that each active person showed, at least 1.
    """
    size, weight = np.unique(counts, return_counts=True)
    sizes, weights = size.astype(np.float64), weight / weight.sum()
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, size[-1] + 1)))))[size]
    means = _first_means(sizes, weights, classes)
    shares = np.full(len(means), 1.0 / len(means))
    for _ in range(_CLASS_ROUNDS):
        logs = sizes * np.log(means[:, None]) - _log_grown(means)[:, None] - factorials
        likely = np.log(shares)[:, None] + logs
        likely = np.exp(likely - likely.max(axis=0))
        belongs = likely / likely.sum(axis=0) * weights
        total = np.maximum(belongs.sum(axis=1), 1e-12)
        previous, shares = shares, total / total.sum()
        means = _untruncated((belongs @ sizes) / total)
        if np.abs(shares - previous).max() < 1e-7:
            break
    order = np.argsort(means, kind="stable")
    return shares[order], means[order]


def _first_means(sizes: Floats, weights: Floats, classes: int) -> Floats:
    """Distinct means spread over the observed sizes."""
    reached = np.cumsum(weights)
    places = (np.arange(classes) + 0.5) / classes
    spread = sizes[np.searchsorted(reached, np.minimum(places, reached[-1]))]
    found: Floats = np.maximum(np.unique(spread), 1.0) * 0.999 + 0.01
    return found


def _log_grown(means: Floats) -> Floats:
    """log(exp(mean) - 1), without overflow."""
    found: Floats = means + np.log(-np.expm1(-means))
    return found


def _untruncated(seen: Floats) -> Floats:
    """The mean of a Poisson count whose values above 0 have this mean."""
    found = np.maximum(seen, _LEAST_MEAN)
    for _ in range(_NEWTON_STEPS):  # the curve is convex: from above, Newton's steps never overshoot
        some = -np.expm1(-found)
        slope = (some - found * np.exp(-found)) / (some * some)
        found = np.maximum(found - (found / some - seen) / slope, _LEAST_MEAN)
    return found


def interests(crowds: Floats, sizes: Floats, means: Floats) -> Floats:
    """For each value the share of interest with which all classes together give this crowd.

    A person of a class exposes a value with probability 1 - exp(-mean * share).
    """
    goal = np.minimum(crowds, 0.999 * sizes.sum())
    found: Floats = np.zeros(len(goal))
    for _ in range(100):
        stays = np.exp(-means[:, None] * found)
        step = (goal - sizes @ (1 - stays)) / ((sizes * means) @ stays)
        found += step  # the curve is concave: from below, Newton's steps never overshoot
        if np.abs(step).max(initial=0.0) <= 1e-13 * max(1.0, float(found.max(initial=0.0))):
            break
    return found
