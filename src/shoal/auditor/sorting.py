"""Sort rows by columns of numbers, and find the different ones, by sorting plain 64-bit numbers."""

from __future__ import annotations

import numpy as np

from shoal.auditor.reading.columns import Ints


def order_of(*keys: Ints) -> Ints:
    """The order that sorts rows by some keys, the first one first; rows that are equal in all keep their order.

    Keys and the number of the row are packed into one 64-bit number if they fit, because plain numbers sort faster.
    """
    count = len(keys[0])
    if not count:
        return np.zeros(0, np.int64)
    lows = [int(key.min()) for key in keys]
    bits = [(int(key.max()) - low).bit_length() for key, low in zip(keys, lows, strict=True)]
    last = (count - 1).bit_length()
    if sum(bits) + last > 63:
        return np.lexsort(keys[::-1])
    packed = np.zeros(count, np.int64)
    for key, low, width in zip(keys, lows, bits, strict=True):
        packed = (packed << width) | (key - low)
    row = np.arange(count)
    if (packed[1:] >= packed[:-1]).all():
        return row
    packed = (packed << last) | row
    packed.sort()
    return packed & ((1 << last) - 1)


def distinct(numbers: Ints) -> Ints:
    """The different numbers, rising, at no cost if they are; faster than np.unique, which builds a hash table."""
    if (numbers[1:] > numbers[:-1]).all():
        return numbers
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), np.bool_)
    is_new[1:] = ordered[1:] != ordered[:-1]
    return ordered[is_new]


def dense(*keys: Ints) -> Ints:
    """Number the different combinations of some keys from 0, in their order; NaN equals NaN."""
    keys = tuple(key if key.dtype.kind in "iu" else np.unique(key, return_inverse=True)[1] for key in keys)
    order = order_of(*keys)
    is_new = np.zeros(len(order), np.bool_)
    for key in keys:
        ordered = key[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(is_new)
    return numbers


def firsts(codes: Ints) -> Ints:
    """The first row of every different code, in the order of codes; these are numbers from 0, -1 is none."""
    first = np.full(int(codes.max(initial=-1)) + 2, -1)  # code -1 picks the last
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first[:-1][first[:-1] >= 0]
