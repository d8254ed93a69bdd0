"""Sort rows by several columns of numbers."""

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
