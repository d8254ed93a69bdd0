"""Published columns, written for several attributes in one call: a range or a label for each decided tuple.

A row shows the generalization of its cluster; a row without a cluster shows the whole domain.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel
from shoal.kernels.instructions import BLOCK, copy_block


@kernel
def write_ranges(clusters, groups, domain, columns, is_whole, out, out_f):
    """Write a column of ends of ranges to each line of `out`: column columns[j] of `clusters` to line j.

    Lines come in pairs, low ends and high ends. Ends of whole numbers are rounded inward: a range has the whole numbers
    between its ends, so none is lost. `out_f` is the same memory as `out`, as floats.
    """
    for j in range(len(columns)):
        column, of_all = columns[j], domain[columns[j]]
        for i in range(len(groups)):
            end = clusters[groups[i], column] if groups[i] >= 0 else of_all
            if not is_whole[j]:
                out_f[j, i] = end + 0.0  # -0.0 becomes 0.0: two spellings of one number would distinguish rows
            elif j % 2 == 0:
                out[j, i] = np.int64(np.ceil(end))
            else:
                out[j, i] = np.int64(np.floor(end))


@kernel
def place_labels(clusters, groups, columns, first_labels, starts, offsets, begins):
    """Write where the label of each row begins in its column, and where each column begins in the bytes of all.

    Column columns[j] of `clusters` has the nodes of attribute j, whose labels are numbered from first_labels[j] on, the
    root first; label n is at starts[n]:starts[n + 1].
    """
    begins[0] = 0
    for j in range(len(columns)):
        column, root, total = columns[j], first_labels[j], np.int64(0)
        offsets[j, 0] = 0
        for i in range(len(groups)):
            label = root + clusters[groups[i], column] if groups[i] >= 0 else root
            total += starts[label + 1] - starts[label]
            offsets[j, i + 1] = total
        begins[j + 1] = begins[j] + total


@kernel
def copy_labels(clusters, groups, columns, first_labels, starts, data, offsets, begins, out):
    """Copy the labels to where place_labels has put them; `data` and `out` have BLOCK more bytes than needed."""
    for j in range(len(columns)):
        column, root = columns[j], first_labels[j]
        for i in range(len(groups)):
            label = root + clusters[groups[i], column] if groups[i] >= 0 else root
            to = begins[j] + np.int64(offsets[j, i])
            for at in range(starts[label], starts[label + 1], BLOCK):
                copy_block(data, at, out, to)  # what it copies too much is overwritten by the next label
                to += BLOCK
