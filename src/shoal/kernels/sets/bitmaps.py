"""All sets of blocks of one size that too few people have, by bitmaps: for data in which most combinations occur.

Every block has one bit per set, the largest sets first. All combinations of blocks are enumerated, and most of them
reach k people within a few words, so the cost hardly depends on the number of people. All blocks of a
combination but the last are kept as the list of their nonzero words, of which few are needed in most cases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.sets.counting import DISTINCT, note_violation

_ODD = np.uint64(0x5555555555555555)
_PAIRS = np.uint64(0x3333333333333333)
_NIBBLES = np.uint64(0x0F0F0F0F0F0F0F0F)
_BYTES = np.uint64(0x0101010101010101)


class Prefixes(NamedTuple):
    """Scratch space of one thread; the first axis is the number of blocks in the prefix."""

    words: np.ndarray
    """Nonzero words of the people who have all blocks of the prefix."""
    places: np.ndarray
    lengths: np.ndarray
    """By depth: number of these words, and the block added last."""
    prefix: np.ndarray
    head: int
    """Nonzero words that are kept of the last block but one."""


WORDS, LAST = range(2)


@inlined
def ones(word):
    """Number of ones in a word."""
    word = word - ((word >> np.uint64(1)) & _ODD)
    word = (word & _PAIRS) + ((word >> np.uint64(2)) & _PAIRS)
    word = (word + (word >> np.uint64(4))) & _NIBBLES
    return np.int64((word * _BYTES) >> np.uint64(56))


@piece
def narrow(bits, rank, walk, depth, most):
    """Keep the people of the prefix who also have a block, up to `most` words; return their number, and if all fit."""
    kept, people = 0, 0
    for at in range(walk.lengths[depth, WORDS]):
        place = walk.places[depth, at]
        word = walk.words[depth, at] & bits[rank, place]
        if word != np.uint64(0):
            if kept == most:
                return people, False
            walk.words[depth + 1, kept] = word
            walk.places[depth + 1, kept] = place
            kept += 1
            walk.lengths[depth + 1, WORDS] = kept
            people += ones(word)
    walk.lengths[depth + 1, WORDS] = kept
    return people, True


@piece
def people_with(bits, rank, walk, depth, wanted):
    """Number of people kept at a depth who have a block, counted up to `wanted`."""
    people = 0
    for at in range(walk.lengths[depth, WORDS]):
        people += ones(walk.words[depth, at] & bits[rank, walk.places[depth, at]])
        if people >= wanted:
            break
    return people


@piece
def judge_block(bits, walk, depth, one, size, k, least, names, key, found):
    """Judge the prefix combined with a block and any block of higher rank.

    The first words decide nearly all combinations; the others are made only where they do not.
    """
    people, is_whole = narrow(bits, one, walk, depth, walk.head)
    if people < least and not is_whole:
        people, is_whole = narrow(bits, one, walk, depth, bits.shape[1])
    if people < least:
        return
    walk.prefix[size - 2] = one
    for other in range(one + 1, len(bits)):
        people = people_with(bits, other, walk, depth + 1, k)
        if people < k and not is_whole:
            _, is_whole = narrow(bits, one, walk, depth, bits.shape[1])
            people = people_with(bits, other, walk, depth + 1, k)
        if people > 0:
            found.tally[DISTINCT] += 1
            if people < k:
                walk.prefix[size - 1] = other
                note_violation(found, walk.prefix, size, names, key)


@piece
def enter_prefix(bits, walk, depth, rank, least):
    """Add a block to the prefix; return whether the prefix has at least `least` people."""
    people, _ = narrow(bits, rank, walk, depth, bits.shape[1])
    walk.prefix[depth] = rank
    walk.lengths[depth + 1, LAST] = rank
    return people >= least


@kernel
def judge_combinations(bits, walk, ranks, size, k, least, names, key, found):
    """All violations of a size of at least two whose rarest block has one of these ranks.

    Prefixes with fewer than `least` people are skipped.
    """
    whole = size - 2
    for r in range(len(ranks)):
        if whole == 0:
            judge_block(bits, walk, 0, ranks[r], size, k, least, names, key, found)
            continue
        depth, rank = 0, ranks[r]
        if enter_prefix(bits, walk, 0, rank, least):
            depth = 1
        rank += 1
        while depth > 0:
            if rank == len(bits):
                rank = walk.lengths[depth, LAST] + 1
                depth -= 1
                continue
            if depth == whole:
                judge_block(bits, walk, depth, rank, size, k, least, names, key, found)
            elif enter_prefix(bits, walk, depth, rank, least):
                depth += 1
            rank += 1
