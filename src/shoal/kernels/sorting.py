"""Sort rows by a number, stably and without allocating memory."""

from __future__ import annotations

from shoal.kernels.compiling import piece

_RUN = 16


@piece
def copy_run(source, begin, end, target, at):
    """Copy a run of numbers, one by one: Numba's slice assignment allocates memory, in case the two overlap."""
    for i in range(end - begin):
        target[at + i] = source[begin + i]


@piece
def sort_rows(keys, rows, count):
    """Sort the first `count` rows of keys[0] and rows[0] by key, stably; keys[1] and rows[1] are scratch."""
    for begin in range(0, count, _RUN):
        for i in range(begin + 1, min(begin + _RUN, count)):
            key, row = keys[0, i], rows[0, i]
            j = i - 1
            while j >= begin and keys[0, j] > key:
                keys[0, j + 1], rows[0, j + 1] = keys[0, j], rows[0, j]
                j -= 1
            keys[0, j + 1], rows[0, j + 1] = key, row
    run, side = _RUN, 0
    while run < count:
        for begin in range(0, count, 2 * run):
            _merge(keys, rows, side, begin, min(begin + run, count), min(begin + 2 * run, count))
        side, run = 1 - side, 2 * run
    if side == 1:
        for i in range(count):
            keys[0, i], rows[0, i] = keys[1, i], rows[1, i]


@piece
def _merge(keys, rows, side, begin, middle, end):
    """Merge two sorted runs over to the other side."""
    left, right = begin, middle
    for out in range(begin, end):
        if right >= end or (left < middle and keys[side, left] <= keys[side, right]):
            keys[1 - side, out], rows[1 - side, out] = keys[side, left], rows[side, left]
            left += 1
        else:
            keys[1 - side, out], rows[1 - side, out] = keys[side, right], rows[side, right]
            right += 1
