"""Streams whose people, rhythm and interests change, for a z that follows them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

WINDOW_S = 3600
DAY = 24
KINDS = ("stationary", "daily", "crowd", "decline", "growth", "interests")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Drift:
    """Events in the order of their times (nanoseconds); people and values are numbers."""

    times: Ints
    persons: Ints
    values: Ints

    def batch(self) -> pa.RecordBatch:
        """The same as Arrow columns."""
        return pa.record_batch(
            {
                "ts": pa.array(self.times, pa.timestamp("ns")),
                "user": pa.array(self.persons).cast(pa.string()),
                "site": pa.array(self.values).cast(pa.string()),
            }
        )


def make_drift(
    kind: str, *, users: int = 600, sites: int = 50, windows: int = 200, visits: float = 6.0, spread: float = 0.7,
    seed: int = 1,
) -> Drift:  # fmt: skip
    """A stream of hourly windows.

    Everybody visits sites at random, popular ones more often (Zipf), some people much more often than others
    (lognormal with `spread`). "daily": at night few are awake. "crowd": four times as many people for half a day, at
    once. "decline" and "growth": people leave, or join, steadily. "interests": what is popular changes every ten
    windows.
    """
    random = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, sites + 1)
    popularity /= popularity.sum()
    activity = random.lognormal(0, spread, users * 6)
    activity /= activity[:users].mean()
    parts = []
    for window in range(windows):
        people, rate, weights = _window(kind, window, windows, users, popularity, random)
        counts = random.poisson(activity[people] * visits * rate)
        who = np.repeat(people, counts)
        seconds = (window + random.random(len(who))) * WINDOW_S
        parts.append(np.stack((seconds * 1e9, who, random.choice(sites, len(who), p=weights))).astype(np.int64))
    times, persons, values = np.concatenate(parts, axis=1)
    order = np.argsort(times, kind="stable")
    return Drift(times[order] + WINDOW_S * 10**9, persons[order], values[order])


def _window(
    kind: str, window: int, windows: int, users: int, popularity: npt.NDArray[np.float64], random: np.random.Generator
) -> tuple[Ints, float, npt.NDArray[np.float64]]:
    """Who may come in a window, how often, and to what."""
    people, rate, weights = np.arange(users), 1.0, popularity
    if kind == "daily":
        rate = 0.15 + 0.85 * (0.5 - 0.5 * np.cos(2 * np.pi * (window % DAY) / DAY))
        people = people[random.random(users) < rate]
    elif kind == "crowd" and windows // 2 <= window < windows // 2 + DAY // 2:
        people = np.arange(4 * users)
    elif kind == "decline":
        people = people[: max(1, int(users * (1 - 0.8 * window / windows)))]
    elif kind == "growth":
        people = np.arange(int(users * (0.3 + 1.7 * window / windows)))
    elif kind == "interests":
        turn, share = window // 10, window % 10 / 10
        before, after = (np.random.default_rng(1000 + turn + step).permutation(popularity) for step in (0, 1))
        weights = (1 - share) * before + share * after
    return people, rate, weights
