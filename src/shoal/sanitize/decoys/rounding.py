"""Keep the digits of decoys realistic: frequent values, steps between values, decimals and trailing zeros."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.sanitize.decoys.cells import decimals_of

_SHARE: Final = 0.01
_LEAST: Final = 5
_ABOVE: Final = 3
_BESIDE: Final = 5
_WHOLE: Final = 2.0**53
_MOST_ZEROS: Final = 12
_JITTER: Final = 2000
Ints = npt.NDArray[np.int64]


def spikes(values: Any) -> npt.NDArray[np.bool_]:
    """Mark values that are frequent, far more than their neighbours: no speed, the top speed."""
    found, of, counts = np.unique(values, return_inverse=True, return_counts=True)
    padded = np.concatenate(([0], np.cumsum(counts)))
    at = np.arange(len(found))
    low, high = np.maximum(at - _BESIDE, 0), np.minimum(at + _BESIDE + 1, len(found))
    beside = (padded[high] - padded[low] - counts) / np.maximum(high - low - 1, 1)
    is_spike = (counts >= max(_LEAST, _SHARE * len(values))) & (counts > _ABOVE * beside)
    return np.asarray(is_spike[of])


def as_precise(made: Any, sources: Any, real: Any, draw: np.random.Generator) -> Any:
    """Round numbers to the steps of the real ones, each to as many digits as its source."""
    decimals = 0 if real.dtype.kind != "f" else decimals_of(real)
    largest = float(np.abs(real).max(initial=0)) * 10.0 ** (decimals or 0)
    if decimals is None or largest >= _WHOLE or not len(real):
        return made if real.dtype.kind == "f" else np.rint(made).astype(np.int64)
    scale = 10.0**decimals
    whole, like, wanted = (np.rint(part * scale) for part in (real, sources, made))
    low, high = whole.min(), whole.max()
    step = float(max(np.gcd.reduce((whole - low).astype(np.int64)), 1))
    plain = low + np.rint((wanted - low) / step) * step
    if low % step:
        return _unscaled(plain, scale, real)
    zeros = _zeros(like)
    unit = np.lcm(np.int64(step), 10**zeros).astype(np.float64)
    rounded = np.rint(wanted / unit) * unit
    has_more = (_zeros(rounded) > zeros) | (rounded == 0)
    rounded += np.where(has_more, unit * draw.choice([-1.0, 1.0], len(rounded)), 0.0)
    is_inside = (rounded >= low) & (rounded <= high)
    return _unscaled(np.where(is_inside, rounded, plain), scale, real)


def _zeros(whole: Any) -> Ints:
    """Return the trailing zeros of whole numbers; 0 for 0."""
    found = np.zeros(len(whole), dtype=np.int64)
    left = whole != 0
    for count in range(1, _MOST_ZEROS + 1):
        left = left & (np.mod(whole, 10.0**count) == 0)
        found[left] = count
    return found


def _unscaled(whole: Any, scale: float, real: Any) -> Any:
    return whole / scale if real.dtype.kind == "f" else whole.astype(np.int64)


def jittered(begins: Any, within: Any, width: Any, draw: np.random.Generator) -> Any:
    """Jitter offsets in a cell if hardly two are equal, or copies would show; in steps as fine as the real ones."""
    found = np.unique(within)
    if len(found) * 2 < len(within) or len(found) < 2:
        return begins
    reach = float(width) / _JITTER
    noise = draw.uniform(-reach, reach, len(begins))
    if begins.dtype.kind != "f":
        step = max(int(np.gcd.reduce(np.diff(found).astype(np.int64))), 1)
        noise = (np.rint(noise / step) * step).astype(np.int64)
    moved = begins + noise
    return np.where((moved >= found[0]) & (moved <= found[-1]), moved, begins)


def within(made: Any, real: Any) -> Any:
    """Reflect numbers into the range of the real ones."""
    if not len(real):
        return made
    low, high = float(real.min()), float(real.max())
    back = np.where(made < low, 2.0 * low - made, np.where(made > high, 2.0 * high - made, made))
    return np.clip(back, low, high)
