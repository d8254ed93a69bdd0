"""Which pending tuples may be published together: with `missing = "own"` only those that lack the same attributes."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import is_new_person
from shoal.kernels.tuples.layout import ALIVE, HEAD, INCOMPLETE, LIVE, MASKS, MISSING_MODE, OWN, PEOPLE, STAMP, TAIL
from shoal.kernels.tuples.nearest import mark_all
from shoal.kernels.tuples.queue import count_keys, is_complete, mask_words


@piece
def is_divided(s):
    """Whether some pending tuples may not be published together; where all are complete, all may."""
    return s.plan[MISSING_MODE] == OWN and s.tally[INCOMPLETE] > 0


@piece
def are_alike(s, one, other):
    """Whether two pending tuples lack the same attributes."""
    for word in range(mask_words(s)):
        if s.pending_i[MASKS + word, one] != s.pending_i[MASKS + word, other]:
            return False
    return True


@piece
def mark_alike(s, row, t, first, last):
    """Mark the pending tuples that may be published with t, as eligible or as allowed."""
    mark_all(s, row, first, last)
    if not is_divided(s):
        return
    marked = s.pending_i[row]
    for word in range(mask_words(s)):
        masks, own = s.pending_i[MASKS + word], s.pending_i[MASKS + word, t]
        for i in range(np.uint64(first), np.uint64(last)):
            marked[i] = marked[i] if masks[i] == own else 0


@piece
def count_alike(s, t):
    """How many pending tuples may be published with t, and of how many people; t is one of them."""
    if not is_divided(s):
        return s.tally[LIVE], count_keys(s, PEOPLE)
    s.tally[STAMP] += 1
    tuples, people = 0, 0
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, i] and are_alike(s, i, t):
            tuples += 1
            people += is_new_person(s, i)
    return tuples, people


@piece
def has_all_alike(s, t):
    """Whether a lane has all tuples that may be published with t: with OWN those that lack the same are in one lane."""
    return s.plan[MISSING_MODE] == OWN and not is_complete(s, t)
