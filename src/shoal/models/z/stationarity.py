"""Is a stream stationary? Compare its earlier half with its later one, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEWEST_WINDOWS: Final = 8
_MATTERS: Final = 0.05
_ERRORS: Final = 2.5


@dataclass(frozen=True, slots=True)
class Stationarity:
    """How much the later half of the windows differs from the earlier one."""

    is_steady: bool | None
    """None where there is too little data."""
    people: float | None
    """Relative change of the active people per window (0.1: a tenth more in the later half)."""
    interests: float | None
    """The share of exposures that moved to other values, beyond what is due to chance."""
    words: str


def compare_halves(active: Floats, places: Ints, values: Ints, known: int) -> Stationarity:
    """Compare the earlier with the later half of the windows.

    Parameters
    ----------
    active
        People with an event, by window.
    places, values
        For each exposure the number of its window and of its value.
    known
        The number of values.
    """
    if len(active) < FEWEST_WINDOWS:
        return Stationarity(None, None, None, "too short to tell whether the stream is steady")
    half = len(active) // 2
    people, is_many = _people_drift(active[:half], active[half:])
    moved, is_moved = _interest_drift(
        *(np.bincount(values[side], minlength=known).astype(np.float64) for side in (places < half, places >= half))
    )
    changes = []
    if is_many:
        changes.append(f"has {abs(people):.0%} {'more' if people > 0 else 'fewer'} people active a window")
    if is_moved:
        changes.append(f"{'' if changes else 'has '}{moved:.0%} of its exposures at other values")
    if not changes:
        return Stationarity(
            is_steady=True, people=people, interests=moved, words="steady: the later half looks like the earlier one"
        )
    return Stationarity(
        is_steady=False, people=people, interests=moved, words=f"it drifts: the later half {', and '.join(changes)}"
    )


def _people_drift(earlier: Floats, later: Floats) -> tuple[float, bool]:
    before, after = float(earlier.mean()), float(later.mean())
    drift = after / before - 1
    error = math.sqrt(earlier.var(ddof=1) / len(earlier) + later.var(ddof=1) / len(later)) / before
    return drift, bool(abs(drift) > max(_MATTERS, _ERRORS * error))


def _interest_drift(earlier: Floats, later: Floats) -> tuple[float, bool]:
    """The distance between the shares of values, minus that expected of two samples with the same shares."""
    before, after = float(earlier.sum()), float(later.sum())
    shares = (earlier + later) / (before + after)
    apart = float(np.abs(earlier / before - later / after).sum()) / 2
    spread = np.sqrt(shares * (1 - shares) * (1 / before + 1 / after))
    chance = float(math.sqrt(2 / math.pi) * spread.sum()) / 2
    moved = max(0.0, apart - chance)
    return moved, moved > _MATTERS
