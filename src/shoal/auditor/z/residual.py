"""Recount who counts for a label by the strict residual rule, for all decisions at once.

Time is the position of a decision. A record counts for its own value from its decision until it leaves the window.
For each label further up it counts in those parts of that stretch in which no label below passes, and not above the
label it was released at. So labels are taken by depth, the deepest first: the stretches that reach the labels of one
depth give the people behind each label at every position, these say when it passes, and the stretches without those
times go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.auditor.counting import dense
from shoal.auditor.reading.columns import Bools, Ints


@dataclass(frozen=True, slots=True)
class Climbs:
    """Every decision with the labels it counts for, one entry for each label."""

    owner: Ints
    """The position of the decision."""
    is_value: Bools
    """Whether the label is the record's own value."""
    depth: Ints
    """How far below the root the label is."""
    label: Ints


@dataclass(frozen=True, slots=True)
class _Stretches:
    """From one position up to, but not including, another, a record counts for a label."""

    owner: Ints
    begin: Ints
    end: Ints

    def pick(self, which: Bools | Ints) -> _Stretches:
        return _Stretches(self.owner[which], self.begin[which], self.end[which])

    def joined(self, other: _Stretches) -> _Stretches:
        return _Stretches(
            np.concatenate((self.owner, other.owner)),
            np.concatenate((self.begin, other.begin)),
            np.concatenate((self.end, other.end)),
        )


def strict_crowds(climbs: Climbs, person: Ints, expiry: Ints, z: int) -> Ints:
    """Count, for every entry, the people who count for its label at its decision, the record's own among them.

    ``expiry`` is the position at which each record has left the window.
    """
    crowd = np.zeros(len(climbs.owner), np.int64)
    nothing = np.zeros(0, np.int64)
    climbing = _Stretches(nothing, nothing, nothing)
    entry_of = np.empty(len(person), np.int64)
    for depth in range(int(climbs.depth.max(initial=-1)), -1, -1):
        entries = np.flatnonzero(climbs.depth == depth)
        entry_of.fill(-1)
        entry_of[climbs.owner[entries]] = entries
        own = climbs.owner[entries[climbs.is_value[entries]]]
        climbing = climbing.pick(entry_of[climbing.owner] >= 0).joined(_Stretches(own, own, expiry[own]))
        label = dense(climbs.label[entries])
        label_of = np.empty(len(person), np.int64)
        label_of[climbs.owner[entries]] = label
        people = int(person.max(initial=0)) + 1
        crowds = _LabelCrowds(label_of[climbing.owner], person[climbing.owner], people, climbing, len(person) + 2)
        owner = climbs.owner[entries]
        crowd[entries] = crowds.count(label, owner) + ~crowds.includes(label, person[owner], owner)
        climbing = crowds.without_passing(z)
    return crowd


class _LabelCrowds:
    """The people behind the labels of one depth at every position."""

    def __init__(self, label: Ints, person: Ints, people: int, stretches: _Stretches, width: int) -> None:
        self._label, self._stretches, self._width = label, stretches, width
        self._people = people
        self._pairs, pair = np.unique(label * self._people + person, return_inverse=True)
        # Unite the stretches of each pair: one begins where all before it have ended.
        order = np.lexsort((stretches.begin, pair))
        begin = pair[order] * width + stretches.begin[order]
        end = np.maximum.accumulate(pair[order] * width + stretches.end[order])
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = begin[1:] > end[:-1]
        self._begin, self._end = begin[is_first], end[np.roll(is_first, -1)]
        offset = (label[order][is_first] - pair[order][is_first]) * width
        moments = np.concatenate((self._begin + offset, self._end + offset))
        change = np.repeat([1, -1], len(offset))
        self._moments, which = np.unique(moments, return_inverse=True)
        self._counts = np.cumsum(np.bincount(which, weights=change, minlength=len(self._moments))).astype(np.int64)

    def count(self, label: Ints, position: Ints) -> Ints:
        """How many people are behind a label at a position."""
        at = np.searchsorted(self._moments, label * self._width + position, side="right") - 1
        return np.append(self._counts, 0)[at]  # -1, before all moments, picks the last

    def includes(self, label: Ints, person: Ints, position: Ints) -> Bools:
        """Whether a person is among them."""
        pair = np.searchsorted(self._pairs, label * self._people + person)
        is_known = np.append(self._pairs, -1)[pair] == label * self._people + person
        moment = pair * self._width + position
        at = np.searchsorted(self._begin, moment, side="right") - 1
        found: Bools = is_known & (np.append(self._end, -1)[at] > moment)
        return found

    def without_passing(self, z: int) -> _Stretches:
        """The stretches without the times at which at least z people are behind their label."""
        is_open = np.append(self._counts < z, False)
        before = np.append(False, is_open[:-1])
        begin = self._moments[(is_open & ~before)[:-1]]
        end = np.append(self._moments, np.iinfo(np.int64).max)[before & ~is_open]
        own, offset = self._stretches, self._label * self._width
        first = np.searchsorted(end, offset + own.begin, side="right")
        parts = np.maximum(np.searchsorted(begin, offset + own.end) - first, 0)
        of = np.repeat(np.arange(len(parts)), parts)
        at = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(parts) - parts, parts)
        later = np.maximum(begin[at] - offset[of], own.begin[of])
        earlier = np.minimum(end[at] - offset[of], own.end[of])
        return _Stretches(own.owner[of], later, earlier)
