"""Remove items from people's sets until at least k people share every remaining set, at a small loss.

The smallest loss would take all ways to group people; this heuristic takes time roughly proportional to the data.
People are sorted so that similar sets are adjacent, and dynamic programming finds the best way to cut that sequence
into groups. Then groups that lose something are sorted in other orders and formed again, cut or grown person by person,
wherever that loses less; and people move to groups that show more of their items. Nothing is random or depends on a
key: equal sets in equal order give equal results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from shoal.kernels.z import combining as kernel
from shoal.methods.text_keys import Bools, Ints

FEWEST, MOST, EFFORT = 8, 48, 200_000
"""Turns of regrouping: at least, at most, and divided by the number of people; few people take little time."""
_BLOCK: Final = 256
"""Neighbours considered by a growing group."""
_PATIENCE: Final = 16
"""Stop after this many turns without a gain."""
_SETTLING: Final = 4
"""People may move between groups after every this many turns."""
_LOOKS: Final = 2_000
"""Most other groups considered for one person."""
_DEPTH: Final = 8
"""Items of a set used for sorting people."""
_NOWHERE: Final = kernel.NOWHERE


Form: TypeAlias = "Callable[[Sets, int, Ints, Ints], Ints]"
"""A way to form groups of at least k neighbours in a sequence; no group spans two buckets."""


@dataclass(frozen=True)
class Sets:
    """The people's sets, concatenated, items ascending in each; an item's number is its rank, 0 for the heaviest."""

    starts: Ints
    items: Ints
    weights: Ints
    kinds: int

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def owners(self) -> Ints:
        """The person of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    @cached_property
    def totals(self) -> Ints:
        """Total weight of each set."""
        return _summed(self.weights, self.starts)


def shared_by(k: int, owners: Ints, items: Ints, weights: Ints) -> Bools:
    """Which entries (person, item, weight) may stay, so that each person's set is empty or shared by k people.

    Entries are sorted by person, without duplicates; persons and items are numbered from 0. These numbers break ties.
    """
    keep = np.zeros(len(owners), np.bool_)
    common = np.flatnonzero(np.bincount(items)[items] >= k) if len(items) else np.empty(0, np.int64)
    if not len(common):
        return keep
    people, owners = np.unique(owners[common], return_inverse=True)
    ranks = _ranks(items[common], weights[common])
    order = np.lexsort((ranks, owners))
    sets = Sets(_starts(owners, len(people)), ranks[order], weights[common][order], int(ranks.max()) + 1)
    keep[common[order]] = _only_shared(sets, k, _kept(sets, _group(sets, k)))
    return keep


def _only_shared(sets: Sets, k: int, kept: Bools) -> Bools:
    """Enforce the promise whatever the search did: remove every set that fewer than k people share."""
    names = _names(sets, kept)
    only: Bools = kept & (np.bincount(names)[names] >= k)[sets.owners]
    return only


def _ranks(items: Ints, weights: Ints) -> Ints:
    """Rank items by weight, 0 for the heaviest."""
    known, places = np.unique(items, return_inverse=True)
    total = np.bincount(places, weights=weights).astype(np.int64)
    ranks = np.empty(len(known), np.int64)
    ranks[np.lexsort((np.arange(len(known)), -total))] = np.arange(len(known))
    return ranks[places]


def _starts(owners: Ints, count: int) -> Ints:
    return np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=count)))).astype(np.int64)


def _summed(values: Ints, starts: Ints) -> Ints:
    """Sums of consecutive runs of values."""
    running = np.concatenate(([0], np.cumsum(values)))
    summed: Ints = running[starts[1:]] - running[starts[:-1]]
    return summed


def _lost(sets: Sets, kept: Bools) -> Ints:
    """The weight that each person loses."""
    return _summed(np.where(kept, 0, sets.weights), sets.starts)


def _group(sets: Sets, k: int) -> Ints:
    """The group of each person; _NOWHERE for people of whom nothing stays."""
    groups = _alike(sets, k)
    open_ = np.flatnonzero(groups == _NOWHERE)
    count = int(groups.max(initial=-1)) + 1
    row = open_[np.lexsort(_columns(sets, open_, np.arange(sets.kinds))[::-1])]
    found = _cut(sets, k, row, np.zeros(len(row), np.int64))
    groups[row] = np.where(found >= 0, found + count, _NOWHERE)
    groups = _settle(sets, k, groups)
    idle = 0 if _lost(sets, _kept(sets, groups)).any() else _PATIENCE
    for turn in range(min(MOST, max(FEWEST, EFFORT // len(sets)))):
        if idle == _PATIENCE:
            break
        gained = _again(sets, k, groups, _mixed(sets.kinds, turn), *_TURNS[turn % len(_TURNS)])
        if turn % _SETTLING == _SETTLING - 1:
            groups = _settle(sets, k, groups)
        idle = 0 if gained else idle + 1
    return groups


def _alike(sets: Sets, k: int) -> Ints:
    """Groups of at least k people with identical sets."""
    _, numbers, sizes = np.unique(_names(sets), return_inverse=True, return_counts=True)
    groups = np.full(len(sets), _NOWHERE, np.int64)
    enough = sizes[numbers] >= k
    groups[enough] = np.unique(numbers[enough], return_inverse=True)[1]
    return groups


def _names(sets: Sets, kept: Bools | None = None) -> npt.NDArray[Any]:
    """One number for each distinct set, or for what is kept of it."""
    chosen = np.ones(len(sets.items), np.bool_) if kept is None else kept
    starts = np.concatenate(([0], np.cumsum(chosen)))[sets.starts]
    data = sets.items[chosen].astype(">u4").tobytes()
    seen: dict[bytes, int] = {}
    ends = (4 * starts).tolist()
    return np.array([seen.setdefault(data[a:b], len(seen)) for a, b in pairwise(ends)], np.int64)


def _columns(sets: Sets, people: Ints, ranks: Ints) -> list[Ints]:
    """The first items of each person's set in the order of ranks, as columns to sort by."""
    mixed = ranks[sets.items]
    if not np.array_equal(ranks, np.arange(sets.kinds)):
        mixed = mixed[np.lexsort((mixed, sets.owners))]
    places = sets.starts[people][:, None] + np.arange(_DEPTH)
    inside = places < sets.starts[people + 1][:, None]
    table = np.where(inside, mixed[np.minimum(places, len(mixed) - 1)], -1)
    return list(table.T)


def _mixed(kinds: int, turn: int) -> Ints:
    """A permutation of the items, the same every time."""
    with np.errstate(over="ignore"):
        words = (np.arange(kinds, dtype=np.uint64) + np.uint64(1 + turn * 0x1_0000_0000)) * np.uint64(
            0x9E3779B97F4A7C15
        )
        words = (words ^ (words >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    ranks = np.empty(kinds, np.int64)
    ranks[np.argsort(words ^ (words >> np.uint64(32)), kind="stable")] = np.arange(kinds)
    return ranks


def _cut(sets: Sets, k: int, row: Ints, buckets: Ints) -> Ints:
    """Groups of neighbours, cut by dynamic programming."""
    loss, taken = np.zeros(len(row) + 1, np.int64), np.zeros(len(row) + 1, np.int64)
    room = int(np.diff(sets.starts).max(initial=0))
    shared, sums = np.empty(room, np.int64), np.empty(room, np.int64)
    kernel.cut_sequence(
        sets.starts, sets.items, sets.weights, sets.totals, row, buckets, k, loss, taken, shared, sums
    )  # fmt: skip
    groups = np.empty(len(row), np.int64)
    kernel.read_cuts(taken, groups)
    return groups


def _grow(sets: Sets, k: int, row: Ints, buckets: Ints) -> Ints:
    """Groups grown person by person among neighbours."""
    ends = np.searchsorted(buckets, buckets, side="right")
    ends = np.minimum(ends, np.arange(len(row)) + _BLOCK)
    room = int(np.diff(sets.starts).max(initial=0))
    shared, sums = np.empty(room, np.int64), np.empty(room, np.int64)
    groups = np.empty(len(row), np.int64)
    kernel.grow_groups(
        sets.starts, sets.items, sets.weights, row, ends, k, groups, shared, sums, np.zeros(sets.kinds, np.int64)
    )
    return groups


def _kept(sets: Sets, groups: Ints) -> Bools:
    """Which entries all members of the person's group share."""
    kept = np.zeros(len(sets.items), np.bool_)
    members = np.flatnonzero(groups >= 0)
    members = members[np.argsort(groups[members], kind="stable")]
    bounds = _starts(groups[members], int(groups.max(initial=-1)) + 1)
    kernel.mark_shared(sets.starts, sets.items, members, bounds, np.zeros(sets.kinds, np.int64), kept)
    return kept


def _again(sets: Sets, k: int, groups: Ints, ranks: Ints, depth: int, form: Form) -> bool:
    """Sort the people of groups that lose something in another order, bucket them by first items, and regroup them.

    A bucket contains whole groups, old and new: the new ones replace the old where they lose less. Return whether any
    did.
    """
    kept = _kept(sets, groups)
    lost = _lost(sets, kept)
    count = int(groups.max(initial=-1)) + 1
    loses = np.append(np.bincount(groups[groups >= 0], weights=lost[groups >= 0], minlength=count) > 0, True)
    people = np.flatnonzero(loses[groups])  # the last place is for ungrouped people
    if not len(people):
        return False
    bucket = _first_items(sets, kept | (groups == _NOWHERE)[sets.owners], ranks, depth)[people]
    order = np.lexsort((*_columns(sets, people, ranks)[::-1], bucket))
    row, bucket = people[order], bucket[order]
    found = form(sets, k, row, bucket)
    changed = groups.copy()
    changed[row] = np.where(found >= 0, found + count, _NOWHERE)
    now = _lost(sets, _kept(sets, changed))
    before, after = (np.bincount(bucket, weights=loss[row]) for loss in (lost, now))
    better = (after < before)[bucket]
    groups[row[better]] = changed[row[better]]
    return bool(better.any())


def _first_items(sets: Sets, among: Bools, ranks: Ints, depth: int) -> Ints:
    """A number for the first `depth` items of each person by other ranks; the same for all where depth is 0."""
    mixed = np.where(among, ranks[sets.items], sets.kinds)
    numbers = np.zeros(len(sets), np.int64)
    for _ in range(depth):
        first = np.minimum.reduceat(mixed, sets.starts[:-1])
        numbers = np.unique(numbers * (sets.kinds + 1) + first, return_inverse=True)[1]
        mixed[mixed == first[sets.owners]] = sets.kinds
    return numbers


def _settle(sets: Sets, k: int, groups: Ints) -> Ints:
    """Move people to groups that show more of their items, and merge groups that show the same."""
    return _joined(sets, _moved(sets, k, _joined(sets, groups)))


def _joined(sets: Sets, groups: Ints) -> Ints:
    """Merge groups that show the same; dissolve groups that show nothing."""
    kept = _kept(sets, groups)
    shows = _summed(kept.astype(np.int64), sets.starts) > 0
    joined = np.full(len(groups), _NOWHERE, np.int64)
    joined[shows] = np.unique(_names(sets, kept)[shows], return_inverse=True)[1]
    return joined


def _moved(sets: Sets, k: int, groups: Ints) -> Ints:
    """Move people to a better group where at least k stay in their own; the largest gain goes first."""
    count = int(groups.max(initial=-1)) + 1
    if not count:
        return groups
    kept = _kept(sets, groups)
    worth = sets.totals - _lost(sets, kept)
    gainers = np.flatnonzero(worth < sets.totals)
    homes, found = _homes(sets, groups, kept, gainers, worth[gainers])
    sizes = np.bincount(groups[groups >= 0], minlength=count).tolist()
    order = np.argsort(worth[gainers] - found, kind="stable")
    for place in order[homes[order] != _NOWHERE].tolist():
        person, home = gainers[place], int(homes[place])
        own = int(groups[person])
        if own == _NOWHERE or sizes[own] > k:
            sizes[own] -= own != _NOWHERE
            sizes[home] += 1
            groups[person] = home
    return groups


def _homes(sets: Sets, groups: Ints, kept: Bools, people: Ints, worth: Ints) -> tuple[Ints, Ints]:
    """A better group for each of some people, and the weight they would show there."""
    count = int(groups.max()) + 1
    inside = np.flatnonzero(groups >= 0)
    first = np.full(count, -1, np.int64)
    first[groups[inside][::-1]] = inside[::-1]
    lengths = _summed(kept.astype(np.int64), sets.starts)[first]
    group_starts = np.concatenate(([0], np.cumsum(lengths)))
    entries = np.flatnonzero(kept & np.isin(sets.owners, first))
    owner_group = groups[sets.owners[entries]]
    group_items = sets.items[entries[np.argsort(owner_group, kind="stable")]]
    last = group_items[group_starts[1:] - 1]
    listed = np.argsort(last, kind="stable")
    listed_starts = _starts(last, sets.kinds)
    homes, worth = np.empty(len(people), np.int64), worth.copy()
    kernel.find_homes(
        sets.starts, sets.items, sets.weights, people, groups[people], group_starts, group_items,
        listed_starts, listed, _LOOKS, np.zeros(sets.kinds, np.int64), homes, worth,
    )  # fmt: skip
    return homes, worth


_TURNS: Final[tuple[tuple[int, Form], ...]] = (
    (2, _cut), (0, _grow), (1, _cut), (2, _grow), (2, _cut), (0, _grow), (1, _grow), (0, _cut),
)  # fmt: skip
"""For each turn: the number of first items that a bucket shares, and how groups are formed in it."""
