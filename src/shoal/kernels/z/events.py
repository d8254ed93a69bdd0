"""One event at a time: the same decisions as the batch kernels, in as few calls as possible."""

from __future__ import annotations

import numpy as np

from shoal.kernels.clock import admit_one
from shoal.kernels.compiling import kernel
from shoal.kernels.siphash import siphash128
from shoal.kernels.z.crowd import PRIVATE, attribute_row, expire, has_room, see

NO_ROOM = -2


@kernel
def admit_text(key, clock, text, time, lateness, max_gap, person):
    """Hash a person's text into person, take or refuse their event."""
    low, high = siphash128(key[0], key[1], text, np.int64(0), len(text))
    person[0, 0] = np.int64(low)
    person[0, 1] = np.int64(high)
    return admit_one(clock, person[0, 0], person[0, 1], time, lateness, max_gap)


@kernel
def decide_text(key, pool, pairs, attrs, names, marks, person, text, time, z, window):
    """Decide one event whose value is a text, as PlainValues.decide does: 0 or PRIVATE; NO_ROOM if tables are full."""
    low, high = siphash128(key[0], key[1], text, np.int64(0), len(text))
    expire(pool, attrs, names, marks, time - window)
    if not has_room(pool, marks, np.int64(1)):
        return NO_ROOM
    attribute = attribute_row(attrs, names, marks, np.int64(low), np.int64(high))
    people = see(pool, pairs, attrs, marks, person[0, 0], person[0, 1], time, attribute)
    return 0 if people >= z else PRIVATE
