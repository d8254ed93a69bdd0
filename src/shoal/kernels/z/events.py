"""One event at a time: the same decisions as the batch kernels, in as few calls as possible."""

from __future__ import annotations

import numpy as np

from shoal.kernels.clock import admit_one
from shoal.kernels.compiling import kernel
from shoal.kernels.siphash import siphash128
from shoal.kernels.z.crowd import PRIVATE, attribute_row, expire, has_room, see, shard_of

NO_ROOM = -2


@kernel
def admit_text(key, clock, text, time, lateness, max_gap, person):
    """Hash a person's text into person, take or refuse their event."""
    low, high = siphash128(key[0], key[1], text, np.int64(0), len(text))
    person[0, 0] = np.int64(low)
    person[0, 1] = np.int64(high)
    return admit_one(clock, person[0, 0], person[0, 1], time, lateness, max_gap)


@kernel
def hash_value(key, text, shards, value):
    """Hash the text of a value into value; return its shard."""
    low, high = siphash128(key[0], key[1], text, np.int64(0), len(text))
    value[0, 0] = np.int64(low)
    value[0, 1] = np.int64(high)
    return shard_of(value[0, 1], shards)


@kernel
def decide_value(pool, pairs, attrs, names, marks, person, value, time, z, window):
    """Decide one event by the key of its value, as PlainValues does: 0 or PRIVATE; NO_ROOM if the tables are full."""
    expire(pool, attrs, names, marks, time - window)
    if not has_room(pool, marks, np.int64(1)):
        return NO_ROOM
    attribute = attribute_row(attrs, names, marks, value[0, 0], value[0, 1])
    people = see(pool, pairs, attrs, marks, person[0, 0], person[0, 1], time, attribute)
    return 0 if people >= z else PRIVATE
