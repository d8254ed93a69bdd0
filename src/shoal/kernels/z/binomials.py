"""Tails of binomial distributions, accurate in their last digits for up to a thousand million trials.

A probability is built from deviances, not from logarithms of factorials, whose digits cancel (C. Loader's way); a tail
is summed from its largest term on, so that nothing is subtracted.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece

_SERIES = 0.1
_LEAST = 1e-18
_HALF_LOG_2_PI = 0.9189385332046727
_SMALL = (
    0.0,
    0.08106146679532726,
    0.0413406959554093,
    0.02767792568499834,
    0.020790672103765093,
    0.016644691189821193,
    0.013876128823070748,
    0.01189670994589177,
    0.010411265261972096,
    0.009255462182712733,
    0.00833056343336287,
    0.007573675487951841,
    0.00694284010720953,
    0.006408994188004207,
    0.0059513701127588475,
    0.005554733551962801,
)
"""What Stirling's formula leaves out for 0 to 15."""


@piece
def stirling_error(n):
    """What Stirling's formula for log n! leaves out."""
    if n < 16.0:
        return _SMALL[int(n)]
    square = n * n
    last = 1.0 / 1680.0 - (1.0 / 1188.0 - 691.0 / 360360.0 / square) / square
    return (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - last / square) / square) / square) / n


@piece
def deviance(x, mean):
    """x log(x / mean) + mean - x, without cancelling where the two are near."""
    if abs(x - mean) < _SERIES * (x + mean):
        v = (x - mean) / (x + mean)
        total = (x - mean) * v
        term, square = 2.0 * x * v, v * v
        for j in range(1, 1000):
            term *= square
            following = total + term / (2 * j + 1)
            if following == total:
                break
            total = following
        return total
    return x * np.log(x / mean) + mean - x


@piece
def log_chance(found, trials, share):
    """The logarithm of the probability of exactly `found` successes."""
    if found == 0.0:
        return trials * np.log1p(-share)
    if found == trials:
        return trials * np.log(share)
    rest = trials - found
    errors = stirling_error(trials) - stirling_error(found) - stirling_error(rest)
    away = deviance(found, trials * share) + deviance(rest, trials * (1.0 - share))
    return errors - away - _HALF_LOG_2_PI - 0.5 * np.log(found * rest / trials)


@piece
def at_least(found, trials, share):
    """The probability of at least `found` successes."""
    if found <= 0.0:
        return 1.0
    if found > trials or share <= 0.0:
        return 0.0
    if share >= 1.0:
        return 1.0
    odds = share / (1.0 - share)
    if found > trials * share:
        term = np.exp(log_chance(found, trials, share))
        total, x = 0.0, found
        while term > total * _LEAST and x <= trials:
            total += term
            term *= (trials - x) / (x + 1.0) * odds
            x += 1.0
        return min(total, 1.0)
    x = found - 1.0
    term = np.exp(log_chance(x, trials, share))
    total = 0.0
    while term > total * _LEAST and x >= 0.0:
        total += term
        term *= x / (trials - x + 1.0) / odds
        x -= 1.0
    return max(1.0 - total, 0.0)


@kernel
def chances_of(first, trials, share, out):
    """The probabilities of exactly `first`, `first` + 1, … successes."""
    for i in range(len(out)):
        if share <= 0.0 or share >= 1.0:
            out[i] = 1.0 if first + i == trials * share else 0.0
        else:
            out[i] = np.exp(log_chance(first + i, trials, share))


@kernel
def chances_of_logs(found, trials, logs, out):
    """The probability of exactly `found` successes, for shares given by their logarithms."""
    for i in range(len(logs)):
        share = np.exp(logs[i])
        if found > trials:
            out[i] = 0.0
        elif share <= 0.0 or share >= 1.0:
            out[i] = 1.0 if found == trials * share else 0.0
        else:
            out[i] = np.exp(log_chance(found, trials, share))


@kernel
def tails(found, trials, shares, out):
    """For each share the probability of at least `found` successes."""
    for i in range(len(shares)):
        out[i] = at_least(found, trials, shares[i])


@kernel
def tails_of_each(found, trials, shares, out):
    """The same where every share has its own number of trials."""
    for i in range(len(shares)):
        out[i] = at_least(found, trials[i], shares[i])


@kernel
def tails_of_logs(found, trials, start, step, out):
    """The same for shares whose logarithms go down from `start` in equal steps."""
    for i in range(len(out)):
        out[i] = at_least(found, trials, np.exp(start - i * step))


@kernel
def spread_out(chances, steps, mass):
    """Convolve two-point distributions: each goes `steps` cells on with its chance. The last cell takes all beyond.

    Returns how many cells were ever reached.
    """
    last = len(mass) - 1
    reached = 1
    for a in range(len(chances)):
        q, n = chances[a], steps[a]
        beyond = 0.0
        for i in range(max(0, min(last - n, last)), min(reached, last)):
            beyond += mass[i]
        if n == 0:
            continue
        for i in range(min(reached - 1 + n, last - 1), n - 1, -1):
            mass[i] = mass[i] * (1.0 - q) + mass[i - n] * q
        for i in range(min(n, reached, last)):
            mass[i] *= 1.0 - q
        mass[last] += beyond * q
        reached = min(reached + n, last)
    return reached
