"""The published clusters that may be reused, where several lanes share them.

Lanes forget clusters together and keep theirs at the front of the pool, so its ring never goes round.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.methods.tuples.decider.base import Arrays, Ints
from shoal.methods.tuples.decider.memory import POOL, write_front
from shoal.methods.tuples.decider.sequential import SequentialDecider


def created(lane: SequentialDecider) -> Ints:
    """When the clusters known at the beginning of the round were formed."""
    times: Ints = lane.memory.stream.pool_i[: int(lane.tally[t.VISIBLE]), t.CREATED]
    return times


def new_clusters(lane: SequentialDecider) -> Arrays:
    """The clusters formed in this round."""
    start, end = int(lane.tally[t.VISIBLE]), int(lane.tally[t.POOL_SIZE])
    joined = lane.memory.joined()
    joined = joined[joined[:, t.J_CLUSTER] >= start]
    joined[:, t.J_CLUSTER] -= start
    return {**{name: getattr(lane.memory.stream, name)[start:end].copy() for name in POOL}, "joined": joined}


def known_joined(lane: SequentialDecider) -> Ints:
    """Published rows of the clusters known at the beginning of the round, with their persons."""
    joined = lane.memory.joined()
    return joined[joined[:, t.J_CLUSTER] < int(lane.tally[t.VISIBLE])]


def copy_counts(source: SequentialDecider, target: SequentialDecider) -> None:
    """Give a lane what another has added to the clusters known at the beginning of the round."""
    known, found = int(source.tally[t.VISIBLE]), source.memory.stream.class_f
    own = target.memory.stream.class_f
    values = min(own.shape[3], found.shape[3])
    own[:known, :, :, :values] = found[:known, :, :, :values]
    joined = target.memory.joined()
    new = joined[joined[:, t.J_CLUSTER] >= int(target.tally[t.VISIBLE])]
    target.memory.write_joined(np.concatenate([known_joined(source), new]))


def keep_clusters(lane: SequentialDecider, is_kept: npt.NDArray[np.bool_]) -> None:
    """Forget all other clusters known at the beginning of the round; none is formed in it yet."""
    count = int(np.count_nonzero(is_kept))
    for name in POOL if count else ():
        array = getattr(lane.memory.stream, name)
        array[:count] = array[: len(is_kept)][is_kept]
    joined = known_joined(lane)
    joined = joined[is_kept[joined[:, t.J_CLUSTER]]] if len(joined) else joined
    joined[:, t.J_CLUSTER] = (np.cumsum(is_kept) - 1)[joined[:, t.J_CLUSTER]]
    lane.memory.write_joined(joined)
    lane.tally[t.POOL_SIZE] = lane.tally[t.VISIBLE] = count


def add_clusters(lane: SequentialDecider, clusters: Arrays) -> None:
    """Add clusters to those known, in place of those this lane has formed in this round."""
    known, sizes = int(lane.tally[t.VISIBLE]), lane.memory.sizes
    count = known + len(clusters["pool_i"])
    if 2 * count + sizes.pending // sizes.k + 8 > sizes.clusters:
        lane.resize(sizes.with_room(clusters=2 * sizes.clusters + 2 * count))
    joined = clusters["joined"].copy()
    joined[:, t.J_CLUSTER] += known
    lane.memory.write_joined(np.concatenate([known_joined(lane), joined]))
    for name in POOL:
        write_front(getattr(lane.memory.stream, name)[known:], clusters[name])
    lane.tally[t.POOL_SIZE] = lane.tally[t.VISIBLE] = count
