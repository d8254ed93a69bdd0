"""Which of the violations found are left, once some have been mended."""

from __future__ import annotations

from shoal.kernels.compiling import kernel
from shoal.kernels.sets.sampling import image
from shoal.kernels.sets.support import support


@kernel
def next_violation(index, block_of, found, first, k, scratch):
    """The first of the sets found, from a place on, that still has too few people; their number if there is none."""
    for at in range(first, len(found)):
        count = image(found[at], found.shape[1], block_of, scratch.blocks)
        if support(index, scratch.blocks, count, scratch.cursors, k) < k:
            return at
    return len(found)
