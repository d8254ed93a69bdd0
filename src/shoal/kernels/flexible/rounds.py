"""One round of the flexible method: pending rows are assigned to blocks and labels, at the least loss that is found.

The candidate that lowers the loss of its rows most is opened first, then the next one, until none lowers it. If rows
would stay pending, all rows under the same coarsest labels are assigned again, and then improved again.
"""

from __future__ import annotations

from shoal.kernels.compiling import kernel
from shoal.kernels.flexible.assignment import list_tuples
from shoal.kernels.flexible.blocks import find_blocks
from shoal.kernels.flexible.groups import ROUND
from shoal.kernels.flexible.layout import BLOCKS, CANDIDATE, FIRST_TUPLE, IS_FULL, LAST_TUPLE
from shoal.kernels.flexible.publishing import publish
from shoal.kernels.flexible.rescue import rescue_all
from shoal.kernels.flexible.search import close_all, improve
from shoal.kernels.flexible.tuples import find_tuples

FULL = -1
_PASSES = 6


@kernel
def form_groups(
    groups, labels, pending, scratch, blocks, tuples, sizes, a, out, order, tops, top_of, vectors, may_grow
):
    """Publish what is possible; return the number of published rows, FULL if there was no space for all candidates.

    `tops` are ends of runs in `order`: rows whose coarsest labels that may be published are the same; `top_of` is the
    run of each row. `vectors` lists the depths of all published blocks. Published rows get a block and a group; their
    sparse labels are in `out.given`. Without `may_grow` candidates that do not fit are left out.
    """
    find_blocks(groups, pending, scratch, blocks, sizes, order, tops, vectors)
    for block in range(sizes[BLOCKS]):
        if blocks.info[block, CANDIDATE]:
            find_tuples(groups, labels, pending, scratch, blocks, tuples, sizes, block)
            list_tuples(tuples, a, blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE])
    if sizes[IS_FULL] and may_grow:
        return FULL
    passes, is_last = 0, False
    while True:  # one call of each, or all would be compiled several times
        changed = improve(scratch, pending.persons, blocks, tuples, sizes, a, passes > 0, passes > 1)
        changed += close_all(blocks, tuples, sizes, a)
        passes += 1
        if is_last:
            break
        if passes == _PASSES or (passes > 1 and changed == 0):
            if not rescue_all(blocks, tuples, sizes, a, tops, top_of):
                break
            is_last = True
    groups.meta[ROUND] += 1
    published = publish(groups, pending, scratch, blocks, tuples, a, out)
    if published == 0:
        groups.meta[ROUND] -= 1
    return published
