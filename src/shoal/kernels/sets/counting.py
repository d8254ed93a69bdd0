"""All sets of blocks of one size that too few people have, without storing those that enough people have.

Depth first: the people who have a first block, then of those who have a second, and so on; at the last step the
blocks that come after are only counted. Blocks are ranked from the rarest on, which keeps what is copied short. Every
prefix shorter than the size has enough people already, or it is left alone: it is a violation of a smaller size.
Where all that occur are to be counted, nothing is left alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.randomness import mixed


class Ranked(NamedTuple):
    """Generalized sets: blocks by rank, ascending, and for each rank the sets that have it."""

    starts: np.ndarray
    ranks: np.ndarray
    owner_starts: np.ndarray
    owners: np.ndarray


class Walk(NamedTuple):
    """Room for one walk; the first axis is the depth."""

    counts: np.ndarray
    touched: np.ndarray
    ends: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    state: np.ndarray
    """By depth: how many ranks were touched, which comes next, where the people in question begin and end."""
    prefix: np.ndarray


class Found(NamedTuple):
    """Violations kept: those whose hash ends in so many zeros that all of them have room."""

    sets: np.ndarray
    hashes: np.ndarray
    tally: np.ndarray


TOUCHED, NEXT, BEGIN, END = range(4)
KEPT, TOTAL, ZEROS, DISTINCT = range(4)


@piece
def place_of(sets, row, rank):
    """Where a rank stands in a set that has it."""
    low, high = sets.starts[row], sets.starts[row + 1]
    while low < high:
        middle = (low + high) >> 1
        if sets.ranks[middle] < rank:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def following(sets, rank):
    """How many entries come after a rank in all sets that have it: the room its people need at every depth."""
    total = 0
    for at in range(sets.owner_starts[rank], sets.owner_starts[rank + 1]):
        row = sets.owners[at]
        total += sets.starts[row + 1] - place_of(sets, row, rank) - 1
    return total


@piece
def count_following(sets, walk, depth):
    """Count what comes after, for the people in question; note what was touched."""
    counts, touched, state = walk.counts[depth], walk.touched[depth], walk.state[depth]
    seen = 0
    for at in range(state[BEGIN], state[END]):
        row = walk.rows[depth, at]
        for place in range(walk.places[depth, at] + 1, sets.starts[row + 1]):
            rank = sets.ranks[place]
            if counts[rank] == 0:
                touched[seen] = rank
                seen += 1
            counts[rank] += 1
    state[TOUCHED] = seen
    state[NEXT] = 0


@piece
def forget_counts(walk, depth):
    """Set what was counted back to nothing."""
    for t in range(walk.state[depth, TOUCHED]):
        walk.counts[depth, walk.touched[depth, t]] = 0


@piece
def split_following(sets, walk, depth, least):
    """List the people of each rank that comes after, one depth down; those of fewer than the least are left out."""
    counts, ends = walk.counts[depth], walk.ends[depth]
    filled = 0
    for t in range(walk.state[depth, TOUCHED]):
        rank = walk.touched[depth, t]
        ends[rank] = filled if counts[rank] >= least else -1
        filled += counts[rank] if counts[rank] >= least else 0
    for at in range(walk.state[depth, BEGIN], walk.state[depth, END]):
        row = walk.rows[depth, at]
        for place in range(walk.places[depth, at] + 1, sets.starts[row + 1]):
            rank = sets.ranks[place]
            if ends[rank] >= 0:
                walk.rows[depth + 1, ends[rank]] = row
                walk.places[depth + 1, ends[rank]] = place
                ends[rank] += 1


@piece
def hash_of(prefix, size, key):
    """A word that depends on a set of ranks and a key."""
    word = key
    for m in range(size):
        word = mixed(word + np.uint64(prefix[m] + 1))
    return word


@piece
def thin_out(found, size):
    """Keep only the violations whose hash ends in one more zero, until there is room."""
    while found.tally[KEPT] == len(found.hashes):
        found.tally[ZEROS] += 1
        mask = (np.uint64(1) << np.uint64(found.tally[ZEROS])) - np.uint64(1)
        kept = 0
        for at in range(found.tally[KEPT]):
            if found.hashes[at] & mask == np.uint64(0):
                found.hashes[kept] = found.hashes[at]
                for m in range(size):
                    found.sets[kept, m] = found.sets[at, m]
                kept += 1
        found.tally[KEPT] = kept


@piece
def note_violation(found, prefix, size, names, key):
    """Keep one violation, by the numbers of its blocks, if its hash says so."""
    found.tally[TOTAL] += 1
    for m in range(size):
        prefix[size + m] = names[prefix[m]]
    word = hash_of(prefix[size:], size, key)
    mask = (np.uint64(1) << np.uint64(found.tally[ZEROS])) - np.uint64(1)
    if word & mask != np.uint64(0):
        return
    at = found.tally[KEPT]
    found.hashes[at] = word
    for m in range(size):
        found.sets[at, m] = prefix[size + m]
    found.tally[KEPT] += 1
    if found.tally[KEPT] == len(found.hashes):
        thin_out(found, size)


@piece
def judge_following(walk, depth, size, k, names, key, found):
    """Note every rank that comes after with fewer than k people."""
    found.tally[DISTINCT] += walk.state[depth, TOUCHED]
    for t in range(walk.state[depth, TOUCHED]):
        rank = walk.touched[depth, t]
        if walk.counts[depth, rank] < k:
            walk.prefix[size - 1] = rank
            note_violation(found, walk.prefix, size, names, key)


@piece
def enter(sets, walk, depth, size, k, least, names, key, found):
    """Look at the people in question at one depth: judge at the last one, else list who goes deeper."""
    count_following(sets, walk, depth)
    if depth == size - 2:
        judge_following(walk, depth, size, k, names, key, found)
        forget_counts(walk, depth)
        walk.state[depth, TOUCHED] = 0
    else:
        split_following(sets, walk, depth, least)


@piece
def go_deeper(walk, depth):
    """Choose the next rank that has enough people; False when there is none."""
    state = walk.state[depth]
    while state[NEXT] < state[TOUCHED]:
        rank = walk.touched[depth, state[NEXT]]
        state[NEXT] += 1
        end = walk.ends[depth, rank]
        if end >= 0:
            walk.prefix[depth + 1] = rank
            walk.state[depth + 1, BEGIN] = end - walk.counts[depth, rank]
            walk.state[depth + 1, END] = end
            return True
    return False


@piece
def walk_from(sets, walk, rank, size, k, least, names, key, found):
    """All violations of a size, two or more, whose rarest block has this rank."""
    begin, end = sets.owner_starts[rank], sets.owner_starts[rank + 1]
    if end - begin < least:
        return
    walk.prefix[0] = rank
    for at in range(begin, end):
        walk.rows[0, at - begin] = sets.owners[at]
        walk.places[0, at - begin] = place_of(sets, sets.owners[at], rank)
    walk.state[0, BEGIN] = 0
    walk.state[0, END] = end - begin
    depth = 0
    enter(sets, walk, depth, size, k, least, names, key, found)
    while depth >= 0:
        if go_deeper(walk, depth):
            depth += 1
            enter(sets, walk, depth, size, k, least, names, key, found)
        else:
            forget_counts(walk, depth)
            depth -= 1


@kernel
def find_violations(sets, walk, ranks, size, k, least, names, key, found):
    """All violations whose rarest block has one of these ranks, in their order.

    Prefixes of fewer than `least` people are left alone.
    """
    for r in range(len(ranks)):
        walk_from(sets, walk, ranks[r], size, k, least, names, key, found)
