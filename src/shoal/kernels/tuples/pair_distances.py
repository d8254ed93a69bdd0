"""How different pairs of tuples are, to choose where lanes are cut."""

from __future__ import annotations

from shoal.kernels.compiling import kernel
from shoal.kernels.tuples.layout import CATEGORICAL, KIND, LEAVES, PAIRS_AT, SMALL_TREE, WEIGHT


@kernel
def pair_distances(values, left, right, attr_f, attr_i, tree_f, out):
    """Write the distance of each pair: the average over the attributes that both tuples carry, 1 if there are none.

    The distance of two labels is the loss of what they have in common; in a large tree it is 1.
    """
    for pair in range(len(out)):
        total = mass = 0.0
        for a in range(values.shape[0]):
            one, other = values[a, left[pair]], values[a, right[pair]]
            if one != one or other != other:  # NaN
                continue
            leaves, weight = attr_i[LEAVES, a], attr_f[WEIGHT, a]
            if attr_i[KIND, a] != CATEGORICAL:
                total += abs(one - other) * weight
            elif leaves <= SMALL_TREE:
                total += tree_f[attr_i[PAIRS_AT, a] + int(one) * leaves + int(other)] * weight
            elif one != other:
                total += weight
            mass += weight
        out[pair] = total / mass if mass > 0 else 1.0
