"""All sets of blocks of one size that too few people have, without storing those that enough people have.

The walk is depth first: list the people who have a first block, then those of them who have a second, and so on; at the
last depth the following blocks are only counted. Blocks are ranked from the rarest to the most common, which keeps the
copied lists short. Prefixes with fewer than `least` people are skipped: with `least` = k they are violations of a
smaller size; with `least` = 1 every set that occurs is counted.
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
    """Scratch space of one walk; the first axis is the depth."""

    counts: np.ndarray
    touched: np.ndarray
    ends: np.ndarray
    rows: np.ndarray
    places: np.ndarray
    state: np.ndarray
    """By depth: number of ranks touched, the next of them to enter, and the range of the listed people."""
    prefix: np.ndarray


class Found(NamedTuple):
    """The violations kept: those whose hash ends in `ZEROS` zero bits, raised whenever they do not fit."""

    sets: np.ndarray
    hashes: np.ndarray
    tally: np.ndarray


TOUCHED, NEXT, BEGIN, END = range(4)
KEPT, TOTAL, ZEROS, DISTINCT = range(4)


@piece
def place_of(sets, row, rank):
    """Position of a rank in a set that has it."""
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
    """Number of entries after a rank in all sets that have it: the space its people need at every depth."""
    total = 0
    for at in range(sets.owner_starts[rank], sets.owner_starts[rank + 1]):
        row = sets.owners[at]
        total += sets.starts[row + 1] - place_of(sets, row, rank) - 1
    return total


@piece
def count_following(sets, walk, depth):
    """Count the following ranks of the listed people, and note which ranks were touched."""
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
    """Reset the counts of the touched ranks."""
    for t in range(walk.state[depth, TOUCHED]):
        walk.counts[depth, walk.touched[depth, t]] = 0


@piece
def split_following(sets, walk, depth, least):
    """List the people of each following rank, one depth down; ranks with fewer than `least` people are skipped."""
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
    """A keyed hash of a set of ranks."""
    word = key
    for m in range(size):
        word = mixed(word + np.uint64(prefix[m] + 1))
    return word


@piece
def thin_out(found, size):
    """Keep only violations whose hash ends in one more zero bit, until there is space."""
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
    """Count a violation; keep it, as numbers of blocks, if its hash ends in enough zeros."""
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
    """Note every following rank with fewer than k people."""
    found.tally[DISTINCT] += walk.state[depth, TOUCHED]
    for t in range(walk.state[depth, TOUCHED]):
        rank = walk.touched[depth, t]
        if walk.counts[depth, rank] < k:
            walk.prefix[size - 1] = rank
            note_violation(found, walk.prefix, size, names, key)


@piece
def enter(sets, walk, depth, size, k, least, names, key, found):
    """Count at one depth: judge at the last depth, otherwise list the people for the next."""
    count_following(sets, walk, depth)
    if depth == size - 2:
        judge_following(walk, depth, size, k, names, key, found)
        forget_counts(walk, depth)
        walk.state[depth, TOUCHED] = 0
    else:
        split_following(sets, walk, depth, least)


@piece
def go_deeper(walk, depth):
    """Enter the next rank that has enough people; False if there is none."""
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
    """All violations of a size of at least two whose rarest block has this rank."""
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

    Prefixes with fewer than `least` people are skipped.
    """
    for r in range(len(ranks)):
        walk_from(sets, walk, ranks[r], size, k, least, names, key, found)
