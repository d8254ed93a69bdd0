"""Reads quasi-identifiers in one pass: checked against their domain, and scaled as the tuple kernels measure them."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel

LARGEST = 2.0**53
"""From here on a float may stand for several whole numbers."""


@kernel
def read_numbers(given, low, high, clamps, raws, values, refused):
    """Read numbers: clamp or refuse what is outside the domain; a number that is too large to be exact is outside."""
    span = high - low
    for i in range(len(given)):
        number = given[i]
        if abs(number) >= LARGEST:
            number = np.copysign(np.inf, number)
        is_outside = number < low or number > high  # False for NaN
        if is_outside and clamps:
            number = low if number < low else high
        refused[i] = is_outside and not clamps
        raws[i] = number
        values[i] = (number - low) / span


@kernel
def read_ranks(ranks, present, raws, values, refused):
    """Read ranks of leaves: below 0 is missing, or unknown and refused where a text is present."""
    for i in range(len(ranks)):
        rank = np.float64(ranks[i]) if ranks[i] >= 0 else np.nan
        refused[i] = ranks[i] < 0 and present[i]
        raws[i] = rank
        values[i] = rank


@kernel
def mark_missing(values, has_gaps, bits, masks):
    """Clear the bit of every attribute that a tuple does not carry; a word of a mask has `bits` bits.

    `has_gaps` says of which attributes values may be missing at all.
    """
    for a in range(values.shape[0]):
        if not has_gaps[a]:
            continue
        word, bit = a // bits, np.int64(1) << (a % bits)
        for i in range(values.shape[1]):
            if values[a, i] != values[a, i]:
                masks[i, word] ^= bit
