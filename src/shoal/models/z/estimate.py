"""What a stream tells of the people and rates of the model, and what it is too short to tell.

The model asks how likely a person exposes a value within a window. So a person who does the same thing ten times within
a window counts once, and a window counts as often as people are active in it: what matters is the window a person finds
themselves in, not an hour of the night when nobody is there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, PolicyError
from shoal.models.z.activity import activity_classes, interests
from shoal.models.z.events import Events
from shoal.models.z.stationarity import FEWEST_WINDOWS, Stationarity, judge

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST_EXPOSURES: Final = 300
MOST_CLASSES: Final = 16
_MOST_USERS: Final = 10**9
_ROUNDS: Final = 50


@dataclass(frozen=True, slots=True)
class Estimate:
    """What was found in a stream."""

    people: int
    """The model's people: as many as would, all Poisson, make as many active people and exposures as were seen."""
    seen: int
    """Different people in the whole stream. Who comes and goes is counted here, and only now and then in a crowd."""
    active: float
    """People with an event, in the window a person finds themselves in."""
    exposures: int
    """Different (person, value, window)."""
    values: int
    """Different values seen; ones not seen are ignored."""
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
    """How often a person of each class (a row) exposes each value (a column), by the second."""
    codes: Ints
    """The code of each value in the events."""

    @property
    def is_enough(self) -> bool:
        """Whether there is enough data to tell."""
        return self.windows >= FEWEST_WINDOWS and self.exposures >= FEWEST_EXPOSURES


def estimate_events(events: Events, window_ns: int, *, classes: int = 1) -> Estimate:
    """Estimate people and rates from events."""
    if isinstance(classes, bool) or not isinstance(classes, int) or not 1 <= classes <= MOST_CLASSES:
        raise PolicyError(f"classes: must be a whole number from 1 to {MOST_CLASSES}")
    if window_ns <= 0:
        raise PolicyError("window: must be longer than nothing")
    if not len(events):
        raise InputError("the stream holds no event with a person, a time and a value; nothing can be estimated")
    window, person, value = _exposures(events, window_ns)
    first, last = int(window[0]), int(window[-1])
    if last - first >= FEWEST_WINDOWS + 1:  # the first and the last may be cut off
        is_whole = (window > first) & (window < last)
        if is_whole.any():
            window, person, value = window[is_whole], person[is_whole], value[is_whole]
    codes, value = np.unique(value, return_inverse=True)
    starts = np.flatnonzero(np.diff(window, prepend=window[0] - 1))
    places = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(window))))
    is_new = np.append(True, (person[1:] != person[:-1]) | (places[1:] != places[:-1]))
    active = np.bincount(places[is_new], minlength=len(starts)).astype(np.float64)
    showed = np.diff(np.append(np.flatnonzero(is_new), len(window)))
    weights = active / active.sum()
    crowds = np.bincount(value, weights=weights[places], minlength=len(codes)).astype(np.float64)
    typical = float(weights @ active)
    sizes, exposed = _people(crowds, typical, showed, classes, events.people)
    steadiness = judge(active, places, value, len(codes))
    idle = int(window[-1] - window[0]) + 1 - len(starts)
    once = int((np.bincount(value) == 1).sum())
    found = Estimate(
        people=int(sum(sizes)), seen=events.people, active=typical, exposures=len(value), values=len(codes), once=once,
        windows=len(starts), idle=idle, stationarity=steadiness, remarks=(), sizes=sizes,
        rates=-np.log1p(-exposed) / (window_ns / 1e9), codes=codes,
    )  # fmt: skip
    return replace(found, remarks=tuple(_remarks(found, events.unusable)))


def _exposures(events: Events, window_ns: int) -> tuple[Ints, Ints, Ints]:
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
    # Who exposes a popular value twice shows it once: people do more than they show, and fewer are idle than it seems.
    for _ in range(_ROUNDS):
        share = interests(crowds, sizes, means)
        wanted, sizes = sizes, active * shares / -np.expm1(-means * share.sum())
        if np.abs(wanted - sizes).max() < 1e-6 * active:
            break
    sizes = np.clip(np.rint(sizes), 1, _MOST_USERS)
    exposed = -np.expm1(-means[:, None] * interests(crowds, sizes, means))
    return tuple(int(one) for one in sizes), np.minimum(exposed, 1 - 1e-9)


def _alike(crowds: Floats, active: float, seen: int) -> int:
    """How many people, all alike, make these crowds and so many active people.

    Everybody ever seen would be too many where people come and go: the few who are there would seem to show less each
    than they do. The active ones alone would be too few: some who are there expose nothing.
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
