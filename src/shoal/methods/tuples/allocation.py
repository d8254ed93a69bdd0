"""Memory for the kernels of tuple streams: made here, grown here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.tuples.interning import clear_names
from shoal.kernels.tuples.layout import (
    FIELDS,
    G_FIELDS,
    J_KEYS,
    KEYS,
    MASKS,
    NEAR,
    OUT_MASKS,
    PATTERNS,
    PEOPLE,
    TALLY,
    TYPICAL,
    VALUES,
    Stream,
)
from shoal.methods.schema_arrays import Shape

PERSON_WORDS = 2
TYPICAL_AT_FIRST = 0.3
"""The loss of a cluster before any is known."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many of each there may be at once."""

    attributes: int
    sensitive: int
    """Sensitive columns that matter; 0 when no diversity is asked for."""
    values: int
    """Different values of one sensitive column."""
    recent: int
    """Arrivals whose sensitive values are remembered."""
    held: int
    clusters: int
    out_rows: int
    out_groups: int
    keeps_reference: bool
    joined: int = 0
    """Rows of clusters that are remembered with their persons; 0 where no share is capped."""

    @property
    def words(self) -> int:
        """Words that say which attributes a tuple carries."""
        return (self.attributes + 62) // 63


def make_stream(sizes: Sizes, shape: Shape, plan: npt.NDArray[np.int64], ratios: npt.NDArray[np.float64]) -> Stream:
    """A stream in which nothing has happened yet."""
    wide, words, room = sizes.attributes, sizes.words, sizes.held
    near = int(plan[NEAR])
    seen = (sizes.sensitive, sizes.values)
    kept = seen if sizes.keeps_reference else (0, 0)
    stream = Stream(
        plan=plan,
        ratios=ratios,
        tally=np.zeros(TALLY, dtype=np.int64),
        sums=np.array([0.0] * TYPICAL + [TYPICAL_AT_FIRST] + [0.0] * wide),
        attr_f=shape.attr_f,
        attr_i=shape.attr_i,
        tree_f=shape.tree_f,
        tree_i=shape.tree_i,
        held_f=np.zeros((VALUES + 2 * wide + (near + 3 * wide if near else 0), room)),
        held_i=np.zeros((MASKS + words + sizes.sensitive, room), dtype=np.int64),
        tables=np.zeros((2, 1 << (2 * room - 1).bit_length()), dtype=np.int64),
        slots=np.zeros((2, KEYS + max(words, PERSON_WORDS), room), dtype=np.int64),
        pool_f=np.zeros((sizes.clusters + 1, 3 * wide)),
        pool_i=np.zeros((sizes.clusters + 1, FIELDS + 3 * wide + words + 2 * (sizes.joined > 0)), dtype=np.int64),
        joined=np.zeros((sizes.joined, J_KEYS + PERSON_WORDS), dtype=np.int64),
        class_f=np.zeros((sizes.clusters + 1, 2, *seen)),
        sens_f=np.zeros((4, *seen)),
        sens_i=np.zeros((2, sizes.sensitive), dtype=np.int64),
        recent=np.zeros((sizes.sensitive, sizes.recent), dtype=np.int64),
        out_i=np.zeros((sizes.out_rows, OUT_MASKS + words), dtype=np.int64),
        group_f=np.zeros((sizes.out_groups, 2 * wide)),
        group_i=np.zeros((sizes.out_groups, G_FIELDS + 3 * wide), dtype=np.int64),
        group_r=np.zeros((sizes.out_groups, *kept)),
    )
    clear_names(stream, PEOPLE)
    clear_names(stream, PATTERNS)
    return stream


def front(array: npt.NDArray[Any], like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The part of an array that has the shape of another."""
    return array[tuple(slice(0, size) for size in like.shape)]
