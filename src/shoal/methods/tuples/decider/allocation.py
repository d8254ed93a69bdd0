"""The arrays of a tuple stream: how large they are, and how they are allocated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.interning import clear_names
from shoal.methods.schema_arrays import Shape

PERSON_WORDS: Final = 2
SPARE_ROWS: Final = 4096
SPARE_GROUPS: Final = 1024
TYPICAL_AT_FIRST: Final = 0.3
"""The loss of a typical cluster, before any cluster is known."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many of each the arrays can hold at once."""

    attributes: int
    k: int
    pending: int
    clusters: int
    sensitive: int = 0
    """Sensitive columns that matter; 0 when no diversity is required."""
    values: int = 0
    """Different values of one sensitive column."""
    recent: int = 0
    """Arrivals whose sensitive values are remembered."""
    is_capped: bool = False
    """Whether a person's share of a cluster is capped: then published rows are remembered with their persons."""

    @property
    def words(self) -> int:
        """Words of a mask that has a bit for each attribute."""
        return (self.attributes + 62) // 63

    @property
    def joined(self) -> int:
        """Published rows that are remembered with their persons."""
        return self.pending + SPARE_ROWS if self.is_capped else 0

    def with_room(self, *, pending: int = 0, clusters: int = 0, values: int = 0) -> Self:
        """Other sizes, with room for the clusters that the pending tuples may form."""
        pending = pending or self.pending
        clusters = max(clusters or self.clusters, pending // self.k + 8)
        return replace(self, pending=pending, clusters=clusters, values=values or self.values)


def make_stream(sizes: Sizes, shape: Shape, plan: npt.NDArray[np.int64], ratios: npt.NDArray[np.float64]) -> t.Stream:
    """An empty stream."""
    wide, words, room = sizes.attributes, sizes.words, sizes.pending
    near = int(plan[t.NEAR])
    seen = (sizes.sensitive, sizes.values)
    out_groups = sizes.pending // sizes.k + SPARE_GROUPS
    stream = t.Stream(
        plan=plan,
        ratios=ratios,
        tally=np.zeros(t.TALLY, dtype=np.int64),
        sums=np.array([0.0] * t.TYPICAL + [TYPICAL_AT_FIRST] + [0.0] * wide),
        attr_f=shape.attr_f,
        attr_i=shape.attr_i,
        tree_f=shape.tree_f,
        tree_i=shape.tree_i,
        held_f=np.zeros((t.VALUES + 2 * wide + (near + 3 * wide if near else 0), room)),
        held_i=np.zeros((t.MASKS + words + sizes.sensitive, room), dtype=np.int64),
        tables=np.zeros((2, 1 << (2 * room - 1).bit_length()), dtype=np.int64),
        slots=np.zeros((2, t.KEYS + max(words, PERSON_WORDS), room), dtype=np.int64),
        pool_f=np.zeros((sizes.clusters + 1, 3 * wide)),
        pool_i=np.zeros((sizes.clusters + 1, t.FIELDS + 3 * wide + words + 2 * sizes.is_capped), dtype=np.int64),
        joined=np.zeros((sizes.joined, t.J_KEYS + PERSON_WORDS), dtype=np.int64),
        class_f=np.zeros((sizes.clusters + 1, 2, *seen)),
        sens_f=np.zeros((4, *seen)),
        sens_i=np.zeros((2, sizes.sensitive), dtype=np.int64),
        recent=np.zeros((sizes.sensitive, sizes.recent), dtype=np.int64),
        out_i=np.zeros((sizes.pending + SPARE_ROWS, t.OUT_MASKS + words), dtype=np.int64),
        group_f=np.zeros((out_groups, 2 * wide)),
        group_i=np.zeros((out_groups, t.G_FIELDS + 3 * wide), dtype=np.int64),
        group_r=np.zeros((out_groups, *(seen if sizes.recent else (0, 0)))),
    )
    clear_names(stream, t.PEOPLE)
    clear_names(stream, t.PATTERNS)
    return stream


def no_arrivals(sizes: Sizes) -> t.Arrivals:
    """A batch without rows."""
    nothing = np.zeros(0, dtype=np.int64)
    return t.Arrivals(
        np.zeros((sizes.attributes, 0)), np.zeros((sizes.attributes, 0)), np.zeros((0, sizes.words), dtype=np.int64),
        np.zeros((0, PERSON_WORDS), dtype=np.int64), nothing, nothing, nothing,
        np.zeros((sizes.sensitive, 0), dtype=np.int64),
    )  # fmt: skip
