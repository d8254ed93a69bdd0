"""Which lane a tuple goes to: similar tuples go to the same lane, because a lane clusters only its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples.pair_distances import pair_distances
from shoal.methods.schema_arrays import Shape
from shoal.methods.tuples.decider.base import Floats, Ints

Bools = npt.NDArray[np.bool_]

_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class CutSearch:
    """How thoroughly cuts are searched. The default is fast enough for lanes, which are assigned again in rounds."""

    tuples: int = 512
    """Cuts are chosen by about this many tuples."""
    pairs: int = 96
    """Similarity of a part is measured on this many pairs of its tuples."""
    quantiles: int = 3
    """An attribute may be cut at this many quantiles."""


class LaneAssignment:
    """A chain of cuts, each dividing one lane's tuples in two by one attribute.

    The cuts are chosen on pending tuples, so that the tuples of one lane are as similar as possible, but both parts
    have at least the share `smallest`. A tuple that does not carry the attribute of a cut stays in the lane divided, so
    such tuples are together. Where no attribute divides well, row numbers do. With `by_pattern` the cuts divide only
    complete tuples. All others that lack the same attributes go to one lane, because they are published with no others.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        smallest: float = 0.3,
        search: CutSearch = CutSearch(),  # noqa: B008
        by_pattern: bool = False,
    ) -> None:
        self._shape, self._smallest, self._search, self._by_pattern = shape, smallest, search, by_pattern
        self._cuts: list[tuple[int, int, int, float]] = []  # lane divided, lane made, attribute, cut
        self.version = 0
        """Changes when the cuts change."""

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self._cuts) + 1

    def lanes_of(self, values: Floats, rows: Ints) -> Ints:
        """The lane of each tuple."""
        lanes = np.zeros(values.shape[1], dtype=np.int64)
        for divided, made, attribute, cut in self._cuts:
            is_above = rows % 2 == 1 if attribute == _NONE else values[attribute] > cut  # False for NaN
            lanes[(lanes == divided) & is_above] = made
        if self._by_pattern and self._cuts:
            lacks = np.isnan(values)
            is_incomplete = lacks.any(axis=0)
            numbers = np.arange(1, len(values) + 1)
            lanes[is_incomplete] = (numbers @ lacks[:, is_incomplete]) % self.lanes
        return lanes

    def choose(self, values: Floats, rows: Ints, lanes: int) -> None:
        """Choose the cuts by these tuples, for this many lanes."""
        self._cuts, self.version = [], self.version + 1
        if self._by_pattern:
            is_whole = ~np.isnan(values).any(axis=0)
            values, rows = values[:, is_whole], rows[is_whole]
        while self.lanes < lanes:
            own = self.lanes_of(values, rows)
            largest = int(np.argmax(np.bincount(own, minlength=self.lanes)))
            attribute, cut = self._best_cut(values[:, own == largest])
            self._cuts.append((largest, self.lanes, attribute, cut))

    def _best_cut(self, values: Floats) -> tuple[int, float]:
        """The attribute and cut that leave the most similar parts; by row number where no cut divides well."""
        values = np.ascontiguousarray(values[:, :: 1 + values.shape[1] // self._search.tuples])
        cuts = _fair_cuts(values, self._smallest, self._search.quantiles)
        if not cuts:
            return _NONE, 0.0
        above = [values[a] > cut for a, cut in cuts]
        shares = np.array([np.count_nonzero(is_above) for is_above in above]) / values.shape[1]
        spreads = self._spreads(values, [part for is_above in above for part in (is_above, ~is_above)]).reshape(-1, 2)
        return cuts[int(np.argmin(shares * spreads[:, 0] + (1 - shares) * spreads[:, 1]))]

    def _spreads(self, values: Floats, parts: list[Bools]) -> Floats:
        """For each part, the average distance of pairs of its tuples; the pairs are spread evenly."""
        count = self._search.pairs
        pairs = [_pairs(np.flatnonzero(is_in), count) for is_in in parts]
        left, right = (np.concatenate(side) for side in zip(*pairs, strict=True))
        means: Floats = self._distances(values, left, right).reshape(len(parts), count).mean(axis=1)
        return means

    def _distances(self, values: Floats, left: Ints, right: Ints) -> Floats:
        """The distance of each pair."""
        shape, found = self._shape, np.empty(len(left))
        pair_distances(values, left, right, shape.attr_f, shape.attr_i, shape.tree_f, found)
        return found

    def dump(self) -> Floats:
        """The cuts as numbers."""
        return np.array(self._cuts, dtype=np.float64).reshape(len(self._cuts), 4)

    def load(self, cuts: Floats) -> None:
        """Take over what dump() returned."""
        self._cuts = [(int(divided), int(made), int(a), float(cut)) for divided, made, a, cut in cuts.tolist()]
        self.version += 1


def _fair_cuts(values: Floats, smallest: float, quantiles: int) -> list[tuple[int, float]]:
    """Attributes and their quantiles that leave both parts large enough."""
    count = values.shape[1]
    if not count:
        return []
    ordered = np.sort(values, axis=1)  # NaN comes last
    known = count - np.isnan(ordered).sum(axis=1)
    places = (np.linspace(0.1, 0.9, quantiles)[:, None] * np.maximum(known - 1, 0)).astype(np.int64)
    cuts: Floats = ordered[np.arange(len(values)), places].T
    above = (values[:, None, :] > cuts[:, :, None]).sum(axis=2) / count  # False for NaN
    is_fair = (np.minimum(above, 1 - above) >= smallest) & (known > 0)[:, None]
    attributes, which = np.nonzero(is_fair)
    return sorted(set(zip(attributes.tolist(), cuts[attributes, which].tolist(), strict=True)))


def _pairs(chosen: Ints, pairs: int) -> tuple[Ints, Ints]:
    """Pairs of these tuples, spread evenly."""
    count, each = len(chosen), np.arange(pairs)
    left = each % count
    right = (left + 1 + each * 7919 % max(count - 1, 1)) % count
    return chosen[left], chosen[right]
