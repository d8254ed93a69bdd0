"""K-VARP and its peers: tuples that carry the same attributes are a partition; partitions merge when they must."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.diversity import diversify
from shoal.kernels.tuples.generalize import generalize_members
from shoal.kernels.tuples.layout import (
    ALIVE,
    ALLOWED,
    CHAIN,
    CHAIN_HEAD,
    DISTANCE,
    ELIGIBLE,
    HEAD,
    HEAP_AT,
    IOT,
    IS_DIVERSE,
    MASKS,
    METHOD,
    NEXT,
    PART,
    PART_KEY,
    PART_LIKE,
    PART_SIZE,
    PEOPLE,
    PERSON,
    RATIO,
    STAMP,
    STAMPED,
    TAIL,
    VARIED,
    K,
)
from shoal.kernels.tuples.nearest import choose_nearest, measure
from shoal.kernels.tuples.queue import count_keys, mask_words
from shoal.kernels.tuples.run import IS_DUE, IS_OVER, begin_run, next_event, publish_or_suppress

_END = -1
_PAIRS = np.uint64(0x5555555555555555)
_FOURS = np.uint64(0x3333333333333333)
_BYTES = np.uint64(0x0F0F0F0F0F0F0F0F)
_EACH_BYTE = np.uint64(0x0101010101010101)


@piece
def count_bits(word):
    """How many bits of a word are set: summed in pairs, in fours, in bytes, and all at once."""
    word = np.uint64(word)
    word -= (word >> np.uint64(1)) & _PAIRS
    word = (word & _FOURS) + ((word >> np.uint64(2)) & _FOURS)
    word = (word + (word >> np.uint64(4))) & _BYTES
    return np.int64((word * _EACH_BYTE) >> np.uint64(56))


@piece
def likeness_of_masks(s, left, right):
    """Jaccard similarity of what two tuples carry; 1 where neither carries anything."""
    both, either = 0, 0
    for word in range(mask_words(s)):
        a, b = s.pending_i[MASKS + word, left], s.pending_i[MASKS + word, right]
        both += count_bits(a & b)
        either += count_bits(a | b)
    return both / either if either > 0 else 1.0


@piece
def chain_parts(s, t, first, last):
    """Link the tuples of each partition, oldest first, and list the partitions; return how many there are.

    Also store each partition's similarity to t's.
    """
    like, listed = s.ratios[RATIO], s.pending_i[HEAP_AT]
    parts = 0
    chain, head, part = s.pending_i[CHAIN], s.pending_i[CHAIN_HEAD], s.pending_i[PART]
    sizes, near, distance = s.pending_i[PART_SIZE], s.pending_i[PART_LIKE], s.pending_f[DISTANCE]
    for i in range(first, last):
        if s.pending_i[ALIVE, i]:
            sizes[part[i]] = 0
    for i in range(last - 1, first - 1, -1):
        if not s.pending_i[ALIVE, i]:
            continue
        p = part[i]
        if sizes[p] == 0:
            chain[i] = _END
            near[p] = 0
            listed[parts] = p
            parts += 1
            s.pending_f[PART_KEY, p] = likeness_of_masks(s, t, i)
        else:
            chain[i] = head[p]
        head[p] = i
        sizes[p] += 1
        near[p] += distance[i] <= like
    return parts


@piece
def is_better_part(s, p, best, by_likeness):
    """Whether p is merged before `best`: most similar attributes, then most similar tuples, most tuples, oldest."""
    if s.pending_f[PART_KEY, p] != s.pending_f[PART_KEY, best]:
        return s.pending_f[PART_KEY, p] > s.pending_f[PART_KEY, best]
    if by_likeness and s.pending_i[PART_LIKE, p] != s.pending_i[PART_LIKE, best]:
        return s.pending_i[PART_LIKE, p] > s.pending_i[PART_LIKE, best]
    if s.pending_i[PART_SIZE, p] != s.pending_i[PART_SIZE, best]:
        return s.pending_i[PART_SIZE, p] > s.pending_i[PART_SIZE, best]
    return s.pending_i[CHAIN_HEAD, p] < s.pending_i[CHAIN_HEAD, best]


@piece
def take_part(s, place, parts):
    """Take one partition off the list, which has one less then."""
    listed = s.pending_i[HEAP_AT]
    p = listed[place]
    listed[place] = listed[parts - 1]
    return p


@piece
def place_of_next(s, parts, by_likeness):
    """Index of the next partition to merge."""
    listed = s.pending_i[HEAP_AT]
    best = 0
    for place in range(1, parts):
        if is_better_part(s, listed[place], listed[best], by_likeness):
            best = place
    return best


@piece
def place_of(s, part, parts):
    """Where in the list a partition is."""
    for place in range(parts):
        if s.pending_i[HEAP_AT, place] == part:
            return place
    return -1


@piece
def join_part(s, p):
    """Make a partition's tuples eligible; return how many people are new among them."""
    people = 0
    i = s.pending_i[CHAIN_HEAD, p]
    while i != _END:
        s.pending_i[ELIGIBLE, i] = 1
        person = s.pending_i[PERSON, i]
        if s.pending_i[STAMPED, person] != s.tally[STAMP]:
            s.pending_i[STAMPED, person] = s.tally[STAMP]
            people += 1
        i = s.pending_i[CHAIN, i]
    return people


@piece
def form_partitioned(s, t):
    """Make the cluster of t and its nearest in its partition, merged with other partitions if the method allows it."""
    if count_keys(s, PEOPLE) < s.plan[K]:
        return 0
    first, last = s.tally[HEAD], s.tally[TAIL]
    measure(s, t, first, last)
    parts = chain_parts(s, t, first, last)
    for i in range(first, last):
        s.pending_i[ELIGIBLE, i] = 0
    s.tally[STAMP] += 1
    people = join_part(s, take_part(s, place_of(s, s.pending_i[PART, t], parts), parts))
    while people < s.plan[K]:
        if s.plan[METHOD] == VARIED:
            return 0
        parts -= 1
        people += join_part(s, take_part(s, place_of_next(s, parts, s.plan[METHOD] != IOT), parts))
    if s.plan[IS_DIVERSE]:
        for i in range(first, last):
            s.pending_i[ALLOWED, i] = s.pending_i[ELIGIBLE, i]
    members = choose_nearest(s, t, first, last, s.plan[K])
    if s.plan[IS_DIVERSE]:
        members = diversify(s, first, last, members)
    if members:
        generalize_members(s, members)
    return members


@kernel
def run_partitioned(s, arrivals, start, stop):
    """Accept arrivals from `start` to `stop`; return how far it came, which is `stop` unless room is needed."""
    begin_run(s, start)
    while True:
        event, t = next_event(s, arrivals, stop)
        if event == IS_OVER:
            return s.tally[NEXT]
        if event == IS_DUE:
            publish_or_suppress(s, t, form_partitioned(s, t))
