"""The n least keys of an array, found by bisecting the range of keys: counting vectorizes, a heap does not."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece


@piece
def least_between(keys, first, last):
    """The least key from first to last; four accumulators, because each comparison waits for the one before."""
    least = second = third = fourth = np.inf
    whole = first + (last - first) // 4 * 4
    for i in range(np.uint64(first), np.uint64(whole), np.uint64(4)):
        least = min(least, keys[i])
        second = min(second, keys[i + np.uint64(1)])
        third = min(third, keys[i + np.uint64(2)])
        fourth = min(fourth, keys[i + np.uint64(3)])
    for i in range(np.uint64(whole), np.uint64(last)):
        least = min(least, keys[i])
    return min(min(least, second), min(third, fourth))


@piece
def most_between(keys, first, last):
    """The greatest finite key from first to last; minus infinity if there is none."""
    most = -np.inf
    for i in range(np.uint64(first), np.uint64(last)):
        found = keys[i] if keys[i] < np.inf else -np.inf
        most = max(most, found)
    return most


@piece
def count_up_to(keys, first, last, bound):
    """Number of keys from first to last that are not above a bound."""
    count = 0
    for i in range(np.uint64(first), np.uint64(last)):
        count += keys[i] <= bound
    return count


@piece
def bound_least(keys, first, last, wanted):
    """What separates the `wanted` least keys from the others; infinite keys are never among them.

    Return a bound (all keys up to it are among them), a key above it that ties, and how many of the ties, earliest
    first, are among them too.
    """
    low, high = least_between(keys, first, last), most_between(keys, first, last)
    if count_up_to(keys, first, last, high) <= wanted:
        return high, high, 0
    below = count_up_to(keys, first, last, low)
    if below >= wanted:
        return -np.inf, low, wanted
    while below < wanted:
        middle = low + 0.5 * (high - low)
        if middle <= low or middle >= high:  # nothing lies in between: the rest ties
            break
        count = count_up_to(keys, first, last, middle)
        if count <= wanted:
            low, below = middle, count
        else:
            high = middle
    return low, high, wanted - below


@piece
def list_up_to(keys, first, last, bound, shared, spare, places, listed):
    """Append the places of the keys that bound_least() separated to `places`, after `listed`; return the new length."""
    for i in range(first, last):
        if keys[i] <= bound:
            places[listed] = i
            listed += 1
        elif spare > 0 and keys[i] == shared:
            places[listed] = i
            listed += 1
            spare -= 1
    return listed
