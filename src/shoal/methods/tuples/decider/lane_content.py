"""What lanes have, as one whole that can be assigned to them again: pending tuples and published clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.decider.base import Floats, Ints
from shoal.methods.tuples.decider.memory import KEPT_TALLY, POOL
from shoal.methods.tuples.decider.sequential import SequentialDecider

Bools = npt.NDArray[np.bool_]
_TUPLES: Final = ("pending_f", "pending_i", "pending_m")
_COMMON: Final = [KEPT_TALLY.index(name) for name in (t.NOW, t.NUMBER, t.REF_SIZE)]
"""Counters that are the same in every lane in use."""
_LIVE, _INCOMPLETE, _POOL_SIZE = (KEPT_TALLY.index(name) for name in (t.LIVE, t.INCOMPLETE, t.POOL_SIZE))


class LaneContent:
    """The pending tuples of some lanes in order of arrival, and their published clusters in order of formation."""

    def __init__(self, lanes: Sequence[SequentialDecider]) -> None:
        self._domain = lanes[0].memory.stream.attr_f[[t.LOW, t.HIGH]]
        states = [lane.dump() for lane in lanes]
        self._common, self._recent = states[0]["tally"][_COMMON], states[0]["recent"]
        self._typical = np.mean([state["sums"][t.TYPICAL :] for state in states], axis=0)
        self._tuples = {name: _concatenated([state[name] for state in states], axis=1) for name in _TUPLES}
        self._persons = _concatenated([state["persons"] for state in states])
        rows = self._tuples["pending_i"][t.ROW]
        self._order = np.argsort(rows)
        """Where the tuples are in these arrays, in order of arrival."""
        self.rows: Ints = rows[self._order]
        """Row numbers of the tuples."""
        self.values: Floats = self._tuples["pending_f"][: self._domain.shape[1]].take(self._order, axis=1)
        """Values of the tuples as the kernels measure them."""
        self._is_incomplete = np.isnan(self.values).sum(axis=0) > 0
        pools = {name: _concatenated([state[name] for state in states]) for name in POOL}
        order = np.argsort(pools["pool_i"][:, t.CREATED], kind="stable")
        self._pools = {name: array.take(order, axis=0) for name, array in pools.items()}
        logs, before = [state["joined"].copy() for state in states], 0
        for log, state in zip(logs, states, strict=True):
            log[:, t.J_CLUSTER] += before
            before += len(state["pool_i"])
        self._joined = np.concatenate(logs)
        self._joined[:, t.J_CLUSTER] = np.argsort(order)[self._joined[:, t.J_CLUSTER]]

    @property
    def clusters(self) -> Ints:
        """Numbers of the clusters."""
        numbers: Ints = self._pools["pool_i"][:, t.GROUP]
        return numbers

    @property
    def centers(self) -> Floats:
        """The middle of what each cluster shows, as the kernels measure values; NaN where it shows nothing."""
        wide = self._domain.shape[1]
        low, high = (self._pools["pool_f"][:, end * wide : (end + 1) * wide] for end in (t.C_LOW, t.C_HIGH))
        shown = self._pools["pool_i"][:, t.FIELDS + t.C_SHOWN * wide : t.FIELDS + (t.C_SHOWN + 1) * wide]
        span = self._domain[1] - self._domain[0]
        middle = ((low + high) / 2 - self._domain[0]) / np.where(span > 0, span, 1.0)
        return np.where(shown != 0, middle, np.nan).T

    def give(self, lane: SequentialDecider, tuples: Bools, clusters: Bools) -> None:
        """Give a lane these tuples and clusters in place of its own; it keeps its counts."""
        lane.empty_output()
        state, places = lane.memory.dump_counts(), self._order[tuples]
        state |= {name: array.take(places, axis=1) for name, array in self._tuples.items()}
        state |= {name: array[clusters] for name, array in self._pools.items()}
        state["persons"], state["recent"] = self._persons[places], self._recent
        joined = self._joined[clusters[self._joined[:, t.J_CLUSTER]]]
        joined[:, t.J_CLUSTER] = (np.cumsum(clusters) - 1)[joined[:, t.J_CLUSTER]]
        state["joined"] = joined
        tally = state["tally"]
        tally[_COMMON] = self._common
        tally[_LIVE], tally[_POOL_SIZE] = len(places), clusters.sum()
        tally[_INCOMPLETE] = np.count_nonzero(self._is_incomplete[tuples])
        state["sums"][t.TYPICAL :] = self._typical
        lane.load(state)


def _concatenated(arrays: Sequence[npt.NDArray[Any]], axis: int = 0) -> npt.NDArray[Any]:
    """The arrays one after another; one alone is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=axis)
