"""Itemsets drawn from people's sets, and whether those that were drawn hide in a crowd.

A proposal picks a set with a probability proportional to how many itemsets of the size it has, and a uniform itemset
of it. Kept with one over its support it is uniform over all itemsets that occur. Picking sets uniformly instead draws
as an adversary does who first picks a person. Sets stand in order of their size, so equal sizes are neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.coins import next_below, next_unit, next_word, start_coins
from shoal.kernels.compiling import kernel, piece
from shoal.kernels.set_support import support


class Sets(NamedTuple):
    """People's sets, in order of size."""

    starts: np.ndarray
    items: np.ndarray


class Sizes(NamedTuple):
    """How likely sets of each size are picked, for one size of itemsets."""

    upto: np.ndarray
    """Share of the sizes so far, in 2^-64; the last is not looked at."""
    first: np.ndarray
    """The first set of each size."""
    count: np.ndarray


class Scratch(NamedTuple):
    """Room to work in."""

    coins: np.ndarray
    itemset: np.ndarray
    blocks: np.ndarray
    cursors: np.ndarray


@piece
def pick_set(sizes, coins):
    """The number of a set: first its size by weight, then one of that size."""
    drawn = next_word(coins)
    low, high = 0, len(sizes.upto) - 1
    while low < high:
        middle = (low + high) >> 1
        if drawn < sizes.upto[middle]:
            high = middle
        else:
            low = middle + 1
    return sizes.first[low] + next_below(coins, sizes.count[low])


@piece
def pick_itemset(sets, row, size, coins, itemset):
    """A uniform itemset of one set (Floyd's way: no list of the set is changed or copied)."""
    begin = sets.starts[row]
    total = sets.starts[row + 1] - begin
    for m in range(size):
        last = total - size + m
        place = next_below(coins, last + 1)
        item = sets.items[begin + place]
        for other in range(m):
            if itemset[other] == item:
                item = sets.items[begin + last]
                break
        itemset[m] = item


@piece
def image(itemset, size, block_of, blocks):
    """Write the different blocks of an itemset; return how many there are."""
    count = 0
    for m in range(size):
        block = block_of[itemset[m]]
        is_new = True
        for other in range(count):
            if blocks[other] == block:
                is_new = False
                break
        if is_new:
            blocks[count] = block
            count += 1
    return count


@piece
def original_support(index, itemset, size, scratch, wanted):
    """How many people have an itemset, counted up to `wanted`."""
    for m in range(size):
        scratch.blocks[m] = itemset[m]
    return support(index, scratch.blocks, size, scratch.cursors, wanted)


@piece
def propose(sets, sizes, size, key, number, scratch):
    """Draw the proposal of a number; return up to which support it is kept."""
    start_coins(scratch.coins, key, number)
    row = pick_set(sizes, scratch.coins)
    pick_itemset(sets, row, size, scratch.coins, scratch.itemset)
    return np.int64(min(1.0 / next_unit(scratch.coins), 9e18))


@piece
def judge(sets, sizes, own, blocks, block_of, size, k, by_person, key, number, scratch):
    """Draw one proposal; return whether it counts as a sample, and whether its image has fewer than k people.

    Whoever hides among k people with the items themselves does so with their blocks too.
    """
    limit = propose(sets, sizes, size, key, number, scratch)
    people = original_support(own, scratch.itemset, size, scratch, k if by_person else max(k, limit + 1))
    is_sample = by_person or people <= limit
    if people >= k:
        return is_sample, False
    count = image(scratch.itemset, size, block_of, scratch.blocks)
    return is_sample, support(blocks, scratch.blocks, count, scratch.cursors, k) < k


@kernel
def find_violation(sets, sizes, own, blocks, block_of, size, k, by_person, samples_only, key, first, last, wanted, scratch):
    """Draw proposals from number `first` until one violates, `wanted` samples have passed, or `last` is reached.

    Return the number after the last proposal drawn, samples passed, and whether the last one violates; the scratch
    holds its itemset. With `samples_only` proposals that are no samples cannot violate.
    """
    passed = 0
    for number in range(first, last):
        is_sample, violates = judge(sets, sizes, own, blocks, block_of, size, k, by_person, key, number, scratch)
        if violates and (is_sample or not samples_only):
            return number + 1, passed, True
        passed += is_sample
        if passed >= wanted:
            return number + 1, passed, False
    return last, passed, False


@kernel
def draw_samples(sets, sizes, own, size, by_person, key, first, last, scratch, drawn, people):
    """Draw proposals `first` to `last` and keep the samples: their items, and how many people have them.

    Return how many were kept. People are counted in full.
    """
    kept = 0
    for number in range(first, last):
        limit = propose(sets, sizes, size, key, number, scratch)
        wanted = np.int64(2**62) if by_person else limit + 1
        found = original_support(own, scratch.itemset, size, scratch, wanted)
        if not by_person and found > limit:
            continue
        for m in range(size):
            drawn[kept, m] = scratch.itemset[m]
        people[kept] = found
        kept += 1
    return kept
