"""Which windows of a stream are used to choose z, and which are kept back to check it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from shoal.models.z.estimate import exposures
from shoal.models.z.events import Events
from shoal.models.z.rhythm import period_of, varies

Check = Literal["auto", "latest", "between"]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Split:
    """Numbers of windows."""

    used: Ints
    unused: Ints
    is_interleaved: bool
    """Whether unused windows lie between used ones; otherwise they are the latest."""


def split_windows(events: Events, window_ns: int, holdout: float, check: Check = "auto") -> Split | None:
    """Keep back the latest windows, or windows in between where the latest are at other times of the day.

    A day of visits has one evening. If it is kept back, nothing of it can be known from the rest of the day. Windows in
    between cannot show that a stream drifts: a single day cannot show whether it drifts or follows the hour.
    """
    if not len(events):
        return None
    windows = np.unique(events.times // window_ns)
    middle = int(events.times[min(len(events) - 1, int((1 - holdout) * len(events)))]) // window_ns
    if middle * window_ns <= events.times[0]:
        middle += 1
    used, unused = windows[windows < middle], windows[windows >= middle]
    if not len(used) or not len(unused):
        return None
    if check == "between" or (check == "auto" and _is_unknown_time(used, unused, events, window_ns)):
        is_unused = np.arange(len(windows)) % max(2, round(1 / holdout)) == 1
        return Split(windows[~is_unused], windows[is_unused], is_interleaved=True)
    return Split(used, unused, is_interleaved=False)


def _is_unknown_time(used: Ints, unused: Ints, events: Events, window_ns: int) -> bool:
    """Whether the stream varies, and an unused window has no used one near its time of the day."""
    period_ns = period_of(window_ns, events.times)
    if period_ns is None:
        return False
    known, wanted = (np.unique(part * window_ns % period_ns) for part in (used, unused))
    gaps = np.abs(wanted[:, None] - known[None, :])
    nearest = np.minimum(gaps, period_ns - gaps).min(axis=1)
    return bool((nearest > window_ns).any()) and varies(exposures(events, window_ns))
