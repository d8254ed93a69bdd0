"""Itemsets drawn from people's sets, and whether their images have at least k people.

A proposal picks a set with a probability proportional to the number of its itemsets of the size, and a uniform itemset
of that set. Accepted with probability 1 / support, it is uniform over all itemsets that occur. Picking sets uniformly
instead models an adversary who picks a person first. The paper uses a Markov chain of such proposals. Sets are sorted
by size, so sets of one size are adjacent. Where itemsets have many people each, most proposals are rejected; drawing
combinations of items and keeping those that occur gives the same distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.randomness import next_below, next_unit, next_word, start_coins
from shoal.kernels.sets.support import support, weigh


class Sets(NamedTuple):
    """People's sets, in order of size."""

    starts: np.ndarray
    items: np.ndarray


class Sizes(NamedTuple):
    """The probability of picking a set of each size, for one size of itemsets."""

    upto: np.ndarray
    """Cumulative share of the sizes, in units of 2^-64; the last entry is not read."""
    first: np.ndarray
    """The first set of each size."""
    people: np.ndarray
    """Number of sets of each size."""


class Draws(NamedTuple):
    """How itemsets are drawn, and when one is a violation."""

    sizes: Sizes
    size: int
    k: int
    by_person: bool
    samples_only: bool
    """Whether only accepted proposals count as violations."""
    steps: int
    """Steps of the Markov chain; 0 draws without one."""
    shares: np.ndarray
    """By the size of a set, the probability of one of its itemsets once the set is picked; for the chain."""
    key: np.ndarray


class Scratch(NamedTuple):
    """Scratch space of one thread."""

    coins: np.ndarray
    itemset: np.ndarray
    other: np.ndarray
    blocks: np.ndarray
    cursors: np.ndarray


@piece
def pick_set(sizes, coins):
    """Pick a set: first its size by weight, then one of that size."""
    drawn = next_word(coins)
    low, high = 0, len(sizes.upto) - 1
    while low < high:
        middle = (low + high) >> 1
        if drawn < sizes.upto[middle]:
            high = middle
        else:
            low = middle + 1
    return sizes.first[low] + next_below(coins, sizes.people[low])


@piece
def pick_itemset(sets, row, size, coins, itemset):
    """Pick a uniform itemset of one set by Floyd's algorithm, which neither changes nor copies the set."""
    begin = sets.starts[row]
    total = sets.starts[row + 1] - begin
    for m in range(size):
        last = total - size + m
        item = sets.items[begin + next_below(coins, last + 1)]
        for other in range(m):
            if itemset[other] == item:
                item = sets.items[begin + last]
                break
        itemset[m] = item


@piece
def image(itemset, size, block_of, blocks):
    """Write the distinct blocks of an itemset; return their number."""
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
def people_with(own, itemset, size, scratch, wanted):
    """Number of people who have an itemset, counted up to `wanted`."""
    for m in range(size):
        scratch.blocks[m] = itemset[m]
    return support(own, scratch.blocks, size, scratch.cursors, wanted)


@piece
def propose(sets, draws, coins, itemset):
    """Draw an itemset of a set."""
    pick_itemset(sets, pick_set(draws.sizes, coins), draws.size, coins, itemset)


@piece
def likelihood(sets, own, draws, itemset, scratch):
    """The probability of proposing an itemset, up to a constant factor: summed over everyone who has it."""
    for m in range(draws.size):
        scratch.blocks[m] = itemset[m]
    return weigh(own, scratch.blocks, draws.size, scratch.cursors, sets.starts, draws.shares)


@piece
def walk_chain(sets, own, draws, scratch, trail, by_people):
    """Walk the paper's Markov chain; the last state is in the scratch space.

    The trail gets the likelihood of each state, or with `by_people` the number of people who have it.
    """
    propose(sets, draws, scratch.coins, scratch.itemset)
    here = likelihood(sets, own, draws, scratch.itemset, scratch)
    people = -1
    for step in range(draws.steps):
        propose(sets, draws, scratch.coins, scratch.other)
        there = likelihood(sets, own, draws, scratch.other, scratch)
        if next_unit(scratch.coins) * there <= here:
            here = there
            people = -1
            for m in range(draws.size):
                scratch.itemset[m] = scratch.other[m]
        if step < len(trail):
            if by_people and people < 0:
                people = people_with(own, scratch.itemset, draws.size, scratch, np.int64(1) << 62)
            trail[step] = people if by_people else here


@kernel
def follow_chain(sets, own, draws, number, scratch, trail, by_people):
    """Walk the chain of a number and fill the trail, for a convergence test."""
    start_coins(scratch.coins, draws.key, number)
    walk_chain(sets, own, draws, scratch, trail, by_people)


@piece
def draw_one(sets, own, draws, number, scratch, least):
    """Draw the itemset of a number; return whether it is accepted, and its support, counted up to `least`."""
    start_coins(scratch.coins, draws.key, number)
    if draws.steps > 0:
        walk_chain(sets, own, draws, scratch, draws.shares[:0], by_people=False)
        return True, people_with(own, scratch.itemset, draws.size, scratch, least)
    propose(sets, draws, scratch.coins, scratch.itemset)
    if draws.by_person:
        return True, people_with(own, scratch.itemset, draws.size, scratch, least)
    limit = np.int64(min(1.0 / next_unit(scratch.coins), 9e18))  # accepted with probability 1 / support
    people = people_with(own, scratch.itemset, draws.size, scratch, max(least, limit + 1))
    return people <= limit, people


@piece
def judge(sets, own, blocks, block_of, draws, number, scratch):
    """Draw one proposal; return whether it is accepted, and whether its image has fewer than k people.

    An itemset with k people needs no further check: its image has at least as many.
    """
    is_sample, people = draw_one(sets, own, draws, number, scratch, draws.k)
    if people >= draws.k or (draws.samples_only and not is_sample):
        return is_sample, False
    count = image(scratch.itemset, draws.size, block_of, scratch.blocks)
    return is_sample, support(blocks, scratch.blocks, count, scratch.cursors, draws.k) < draws.k


@kernel
def find_violation(sets, own, blocks, block_of, draws, first, last, wanted, scratch):
    """Draw proposals from number `first` until one violates, `wanted` samples have passed, or `last` is reached.

    Return the number after the last proposal drawn, the samples passed, and whether the last one is a violation; its
    itemset is in the scratch space.
    """
    passed = 0
    for number in range(first, last):
        is_sample, violates = judge(sets, own, blocks, block_of, draws, number, scratch)
        if violates:
            return number + 1, passed, True
        passed += is_sample
        if passed >= wanted:
            return number + 1, passed, False
    return last, passed, False


@kernel
def draw_samples(sets, own, draws, first, last, wanted, scratch, drawn, people):
    """Draw proposals from number `first` on and keep the samples: their items, and their support.

    The support is counted up to k at least. Return the number after the last proposal, and the number of samples kept:
    `wanted`, unless `last` is reached first.
    """
    kept = 0
    for number in range(first, last):
        if kept == wanted:
            return number, kept
        is_sample, found = draw_one(sets, own, draws, number, scratch, draws.k)
        if is_sample:
            for m in range(draws.size):
                drawn[kept, m] = scratch.itemset[m]
            people[kept] = found
            kept += 1
    return last, kept


@kernel
def draw_combinations(own, kinds, draws, first, last, wanted, scratch, people):
    """Draw combinations of the items `kinds` from number `first` on and keep the support of those that occur, up to k.

    They are uniform over all itemsets that occur, like accepted proposals. Return what `draw_samples` returns.
    """
    kept = 0
    for number in range(first, last):
        if kept == wanted:
            return number, kept
        start_coins(scratch.coins, draws.key, number)
        pick_itemset(kinds, 0, draws.size, scratch.coins, scratch.itemset)
        found = people_with(own, scratch.itemset, draws.size, scratch, draws.k)
        if found > 0:
            people[kept] = found
            kept += 1
    return last, kept


@kernel
def next_violation(index, block_of, found, first, k, scratch):
    """The first itemset from `first` on whose image still has fewer than k people; the number of itemsets if none."""
    for at in range(first, len(found)):
        count = image(found[at], found.shape[1], block_of, scratch.blocks)
        if support(index, scratch.blocks, count, scratch.cursors, k) < k:
            return at
    return len(found)
