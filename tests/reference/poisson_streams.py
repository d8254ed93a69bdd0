"""Streams of people who do things at random, with rates that are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.models.z.events import Events

SECOND = 10**9
WINDOW = 3600 * SECOND


def poisson_events(
    users: int, a_window: Sequence[float], windows: int, *, seed: int = 0, activity: np.ndarray | None = None
) -> Events:
    """People expose each value so often a window, as Poisson processes, each times their activity."""
    random = np.random.default_rng(seed)
    active = np.ones(users) if activity is None else activity
    counts = random.poisson(np.outer(active, np.asarray(a_window)) * windows)
    person, value = np.nonzero(counts)
    times = counts[person, value]
    person, value = np.repeat(person, times), np.repeat(value, times)
    when = (random.random(len(person)) * windows * WINDOW).astype(np.int64)
    order = np.argsort(when)
    return Events(when[order], person[order].astype(np.int64), value[order].astype(np.int64))
