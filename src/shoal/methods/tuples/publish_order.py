"""The order in which decided tuples are published."""

from __future__ import annotations

import numpy as np

from shoal.kernels.tuples.publish_order import order_events
from shoal.methods.text_keys import Words
from shoal.methods.tuples.state import Decided


def in_secret_order(decided: Decided, key: Words) -> Decided:
    """The same decisions, those of one event in an order that depends on the secret key."""
    if len(decided) < 2:
        return decided
    keys = np.empty((2, len(decided)), dtype=np.int64)
    order = np.empty_like(keys)
    order_events(key, np.ascontiguousarray(decided.rows), np.ascontiguousarray(decided.at), keys, order)
    return decided.in_order(order[0])
