"""Exactly what z-anonymity would have released of people in each epoch of a stream, for every z at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.z.threshold_curves import count_crowds, curve_of_sets

Ints = npt.NDArray[np.int64]

_SLOTS: Final = 2
"""Rows of the table of sets, as a multiple of the largest number of sets."""


@dataclass(frozen=True, slots=True)
class SetCurve:
    """Numbers of people as step functions of z, with a step at each of the ascending `thresholds`."""

    thresholds: Ints
    shown: Ints
    """People with a released row, for a z up to each threshold (and above the one before)."""
    anonymous: Ints
    """Those of them whose whole released set at least k people share."""

    def at(self, z: int) -> tuple[int, int]:
        """How many people are shown, and how many of them are k-anonymous, at a z."""
        place = int(np.searchsorted(self.thresholds, z))
        return (int(self.shown[place]), int(self.anonymous[place])) if place < len(self.thresholds) else (0, 0)


@dataclass(frozen=True, slots=True)
class WindowCurve(SetCurve):
    """The same for one epoch, with the number of released rows."""

    epoch: int
    active: int
    """People with an event in the epoch."""
    sizes: Ints
    """People behind each event, ascending."""

    @property
    def events(self) -> int:
        """How many events there are."""
        return len(self.sizes)

    def rows_at(self, z: int) -> int:
        """The number of rows released at a z."""
        return len(self.sizes) - int(np.searchsorted(self.sizes, z))


def set_curve(person: Ints, item: Ints, peak: Ints, k: int) -> SetCurve:
    """The curve of (person, item) pairs, each given once, by their peaks: the most people ever behind them."""
    order = np.argsort(-peak, kind="stable")
    codes = np.unique(person, return_inverse=True)[1].reshape(-1)
    people = int(codes.max(initial=-1)) + 1
    groups = np.zeros((1 << (_SLOTS * len(person)).bit_length(), 3), dtype=np.int64)
    groups[:, 2] = -1
    steps = len(np.unique(peak))
    found = np.empty((3, steps), dtype=np.int64)
    curve_of_sets(codes[order], item[order], peak[order], k, np.zeros((people, 2), np.int64), groups, *found)
    thresholds, shown, alone = found[:, ::-1]
    return SetCurve(thresholds, shown, shown - alone)


def crowd_sizes(times: Ints, persons: Ints, values: Ints, *, window_ns: int) -> Ints:
    """For each event, in the order of their times, how many people exposed its value in the window up to it."""
    order = np.argsort(values, kind="stable")
    value, person, time = values[order], persons[order], times[order]
    by_pair = np.lexsort((np.arange(len(order)), person, value))
    before, after = np.full(len(order), -1, dtype=np.int64), np.full(len(order), len(order), dtype=np.int64)
    first, second = by_pair[:-1], by_pair[1:]
    same = (value[first] == value[second]) & (person[first] == person[second])
    before[second[same]], after[first[same]] = first[same], second[same]
    counted = np.empty(len(order), dtype=np.int64)
    count_crowds(value, time, before, after, window_ns, counted)
    sizes = np.empty_like(counted)
    sizes[order] = counted
    return sizes


def window_curves(
    times: Ints, persons: Ints, values: Ints, *, window_ns: int, rotation_ns: int, k: int
) -> list[WindowCurve]:
    """The curve of every epoch of a stream; an epoch is floor(time / rotation).

    Parameters
    ----------
    times
        In nanoseconds, ascending.
    persons, values
        Any whole numbers that distinguish people, and values.
    """
    sizes = crowd_sizes(times, persons, values, window_ns=window_ns)
    epochs = times // rotation_ns
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(epochs)) + 1, [len(epochs)])) if len(epochs) else [0]
    return [
        _window(int(epochs[start]), persons[start:end], values[start:end], sizes[start:end], k)
        for start, end in pairwise(bounds)
    ]


def _window(epoch: int, persons: Ints, values: Ints, sizes: Ints, k: int) -> WindowCurve:
    order = np.lexsort((-sizes, values, persons))
    person, value, peak = persons[order], values[order], sizes[order]
    is_first = np.append(True, (person[1:] != person[:-1]) | (value[1:] != value[:-1]))
    curve = set_curve(person[is_first], value[is_first], peak[is_first], k)
    return WindowCurve(curve.thresholds, curve.shown, curve.anonymous, epoch, len(np.unique(persons)), np.sort(sizes))
