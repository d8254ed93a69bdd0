"""From a value to the keys of all nodes above it, for hierarchies that list their labels and for open ones.

A path is a run of rows in ``nodes``: the value first, the root last. ``starts[i]:starts[i + 1]`` is the run of row i.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.siphash import siphash128
from shoal.kernels.z.index import find_name, fold, position_of

MOST_ANCESTORS = 64
ROOT = -1


@kernel
def find_nodes(names, label_keys, values, usable, nodes):
    """Node of each value, -1 where the hierarchy does not know it or the row is not usable."""
    for i in range(len(values)):
        nodes[i] = -1
        if usable[i]:
            slot = find_name(names, label_keys, fold(values[i, 0]), values[i, 0], values[i, 1])
            nodes[i] = position_of(names[slot])


@kernel
def count_closed(depths, nodes, starts):
    """Fill starts for paths of listed nodes; unknown nodes have an empty path."""
    starts[0] = 0
    for i in range(len(nodes)):
        starts[i + 1] = starts[i] + (depths[nodes[i]] + 1 if nodes[i] >= 0 else 0)


@kernel
def fill_closed(parents, label_keys, nodes, starts, out):
    """Write the keys of every path of listed nodes."""
    for i in range(len(nodes)):
        node = nodes[i]
        for at in range(starts[i], starts[i + 1]):
            out[at, 0] = label_keys[node, 0]
            out[at, 1] = label_keys[node, 1]
            node = parents[node]


@kernel
def climb(parents, nodes, levels, out):
    """Node `levels[i]` steps above each node; -1 where the level is private."""
    for i in range(len(nodes)):
        node = nodes[i]
        for _ in range(levels[i]):
            node = parents[node]
        out[i] = node if levels[i] >= 0 else -1


@piece
def is_text(data, begin, end, text):
    """Whether data[begin:end] equals text."""
    if end - begin != len(text):
        return False
    for i in range(len(text)):
        if data[begin + i] != text[i]:
            return False
    return True


@piece
def is_suffix_cut(data, begin, end, at, separator):
    """Whether what follows a separator at `at` starts with a segment that is not empty."""
    return data[at] == separator and at + 1 < end and data[at + 1] != separator


@piece
def is_prefix_cut(data, begin, end, at, separator):
    """Whether what precedes a separator at `at` ends with a segment that is not empty."""
    return data[at] == separator and at > begin and data[at - 1] != separator


@piece
def list_cuts(data, begin, end, separator, from_front, root, cuts):
    """Put the parts of one text, from itself to just below the root, into cuts; return how many.

    A part is [begin, end). Only the MOST_ANCESTORS coarsest parts besides the text itself are kept.
    """
    if is_text(data, begin, end, root):
        return 0
    total = 0
    for at in range(begin, end):
        if from_front:
            total += is_suffix_cut(data, begin, end, at, separator)
        else:
            total += is_prefix_cut(data, begin, end, at, separator)
    cuts[0, 0] = begin
    cuts[0, 1] = end
    skip = max(0, total - MOST_ANCESTORS)
    seen = 0
    kept = 1
    for step in range(end - begin):
        at = begin + step if from_front else end - 1 - step
        if from_front:
            is_cut = is_suffix_cut(data, begin, end, at, separator)
        else:
            is_cut = is_prefix_cut(data, begin, end, at, separator)
        if not is_cut:
            continue
        seen += 1
        if seen <= skip:
            continue
        part_begin = at + 1 if from_front else begin
        part_end = end if from_front else at
        if is_text(data, part_begin, part_end, root):
            break
        cuts[kept, 0] = part_begin
        cuts[kept, 1] = part_end
        kept += 1
    return kept


@kernel
def count_open(offsets, data, usable, separator, from_front, root, cuts, starts):
    """Fill starts for paths read off the text; cuts is scratch of MOST_ANCESTORS + 1 rows."""
    starts[0] = 0
    for i in range(len(offsets) - 1):
        steps = 0
        if usable[i]:
            steps = 1 + list_cuts(data, offsets[i], offsets[i + 1], separator, from_front, root, cuts)
        starts[i + 1] = starts[i] + steps


@kernel
def fill_open(key0, key1, root_low, root_high, offsets, data, separator, from_front, root, cuts, starts, out):
    """Write the keys of every path read off the text."""
    for i in range(len(offsets) - 1):
        if starts[i + 1] == starts[i]:
            continue
        kept = list_cuts(data, offsets[i], offsets[i + 1], separator, from_front, root, cuts)
        for step in range(kept):
            low, high = siphash128(key0, key1, data, cuts[step, 0], cuts[step, 1])
            out[starts[i] + step, 0] = np.int64(low)
            out[starts[i] + step, 1] = np.int64(high)
        out[starts[i] + kept, 0] = root_low
        out[starts[i] + kept, 1] = root_high


@kernel
def cut_open(offsets, data, rows, levels, separator, from_front, root, cuts, parts):
    """Part of the text released for each of rows, as [begin, end); ROOT as begin for the root label."""
    for i in range(len(rows)):
        begin, end = offsets[rows[i]], offsets[rows[i] + 1]
        kept = list_cuts(data, begin, end, separator, from_front, root, cuts)
        if levels[i] < kept:
            parts[i, 0] = cuts[levels[i], 0]
            parts[i, 1] = cuts[levels[i], 1]
        else:
            parts[i, 0] = ROOT
            parts[i, 1] = ROOT


@kernel
def copy_parts(data, parts, root, offsets, out):
    """Write the text of each part one after another; offsets say where."""
    for i in range(len(parts)):
        at = offsets[i]
        if parts[i, 0] == ROOT:
            for j in range(len(root)):
                out[at + j] = root[j]
        else:
            for j in range(parts[i, 1] - parts[i, 0]):
                out[at + j] = data[parts[i, 0] + j]
