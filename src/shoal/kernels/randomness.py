"""Random numbers that depend only on a key and a number, never on threads or chunks.

Each stream counts up from its own start and mixes the counter (the finalizer of SplitMix64).
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, piece

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53


@inlined
def mixed(word):
    """64 bits, each of which depends on every bit of the word."""
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


@piece
def start_coins(coins, key, number):
    """Begin the stream of one number under a key of two words."""
    coins[0] = mixed(mixed(key[0] + _STEP * np.uint64(number + 1)) ^ key[1])


@piece
def next_word(coins):
    """The next 64 bits of a stream."""
    coins[0] += _STEP
    return mixed(coins[0])


@piece
def next_below(coins, bound):
    """A whole number from 0 to bound - 1, all equally likely: draws that do not fit are rejected."""
    mask = np.uint64(bound - 1)
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> np.uint64(shift)
    drawn = next_word(coins) & mask
    while drawn >= np.uint64(bound):
        drawn = next_word(coins) & mask
    return np.int64(drawn)


@piece
def next_unit(coins):
    """A number above 0 and up to 1, in steps of 2^-53."""
    return (np.float64(next_word(coins) >> np.uint64(11)) + 1.0) * _TO_UNIT
