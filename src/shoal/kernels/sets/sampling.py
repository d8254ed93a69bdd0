"""Itemsets drawn from people's sets, and whether those that were drawn hide in a crowd.

A proposal picks a set with a probability proportional to how many itemsets of the size it has, and a uniform itemset
of it. Kept with one over its support it is uniform over all itemsets that occur. Picking sets uniformly instead draws
as an adversary does who first picks a person. The paper's way is a Markov chain of such proposals. Sets stand in order
of their size, so equal sizes are neighbours.
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
    """How likely sets of each size are picked, for one size of itemsets."""

    upto: np.ndarray
    """Share of the sizes so far, in 2^-64; the last is not looked at."""
    first: np.ndarray
    """The first set of each size."""
    people: np.ndarray
    """How many sets have each size."""


class Draws(NamedTuple):
    """Which itemsets are drawn, and when one violates."""

    sizes: Sizes
    size: int
    k: int
    by_person: bool
    samples_only: bool
    """Whether only proposals that are samples can violate."""
    steps: int
    """Steps of the Markov chain; 0 draws without one."""
    shares: np.ndarray
    """By the size of a set, the probability of one of its itemsets once the set is picked; for the chain."""
    key: np.ndarray


class Scratch(NamedTuple):
    """Room to work in."""

    coins: np.ndarray
    itemset: np.ndarray
    other: np.ndarray
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
    return sizes.first[low] + next_below(coins, sizes.people[low])


@piece
def pick_itemset(sets, row, size, coins, itemset):
    """A uniform itemset of one set (Floyd's way: no list of the set is changed or copied)."""
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
def people_with(own, itemset, size, scratch, wanted):
    """How many people have an itemset, counted up to `wanted`."""
    for m in range(size):
        scratch.blocks[m] = itemset[m]
    return support(own, scratch.blocks, size, scratch.cursors, wanted)


@piece
def propose(sets, draws, coins, itemset):
    """Draw an itemset of a set."""
    pick_itemset(sets, pick_set(draws.sizes, coins), draws.size, coins, itemset)


@piece
def likelihood(sets, own, draws, itemset, scratch):
    """How likely an itemset is proposed, but for a factor: summed over everybody who has it."""
    for m in range(draws.size):
        scratch.blocks[m] = itemset[m]
    return weigh(own, scratch.blocks, draws.size, scratch.cursors, sets.starts, draws.shares)


@piece
def walk_chain(sets, own, draws, scratch, trail):
    """Walk the paper's Markov chain; the scratch holds where it ends, the trail the likelihoods on the way."""
    propose(sets, draws, scratch.coins, scratch.itemset)
    here = likelihood(sets, own, draws, scratch.itemset, scratch)
    for step in range(draws.steps):
        propose(sets, draws, scratch.coins, scratch.other)
        there = likelihood(sets, own, draws, scratch.other, scratch)
        if next_unit(scratch.coins) * there <= here:
            here = there
            for m in range(draws.size):
                scratch.itemset[m] = scratch.other[m]
        if step < len(trail):
            trail[step] = here


@kernel
def follow_chain(sets, own, draws, number, scratch, trail):
    """Walk the chain of a number and note the likelihoods on the way; for the test whether it forgot its start."""
    start_coins(scratch.coins, draws.key, number)
    walk_chain(sets, own, draws, scratch, trail)


@piece
def draw_one(sets, own, draws, number, scratch, least):
    """Draw the itemset of a number; return whether it is a sample, and how many people have it, counted to `least`."""
    start_coins(scratch.coins, draws.key, number)
    if draws.steps > 0:
        walk_chain(sets, own, draws, scratch, draws.shares[:0])
        return True, people_with(own, scratch.itemset, draws.size, scratch, least)
    propose(sets, draws, scratch.coins, scratch.itemset)
    if draws.by_person:
        return True, people_with(own, scratch.itemset, draws.size, scratch, least)
    limit = np.int64(min(1.0 / next_unit(scratch.coins), 9e18))  # kept with one over its support
    people = people_with(own, scratch.itemset, draws.size, scratch, max(least, limit + 1))
    return people <= limit, people


@piece
def judge(sets, own, blocks, block_of, draws, number, scratch):
    """Draw one proposal; return whether it is a sample, and whether its image has fewer than k people.

    Whoever hides among k people with the items themselves does so with their blocks too.
    """
    is_sample, people = draw_one(sets, own, draws, number, scratch, draws.k)
    if people >= draws.k or (draws.samples_only and not is_sample):
        return is_sample, False
    count = image(scratch.itemset, draws.size, block_of, scratch.blocks)
    return is_sample, support(blocks, scratch.blocks, count, scratch.cursors, draws.k) < draws.k


@kernel
def find_violation(sets, own, blocks, block_of, draws, first, last, wanted, scratch):
    """Draw proposals from number `first` until one violates, `wanted` samples have passed, or `last` is reached.

    Return the number after the last proposal drawn, samples passed, and whether the last one violates; the scratch
    holds its itemset.
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
    """Draw proposals from number `first` on and keep the samples: their items, and how many people have them.

    People are counted up to the crowd asked for, at least. Return the number after the last proposal, and how many
    samples were kept: `wanted` of them, unless `last` is reached first.
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
