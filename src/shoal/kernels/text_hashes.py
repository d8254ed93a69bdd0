"""Whole text columns: their hashes as keys of tables and as pseudonyms, and some of their rows.

Eight texts of similar length are hashed at a time (siphash_lanes); the hashes are the same.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.instructions import BLOCK, copy_block, write_hex
from shoal.kernels.siphash import siphash128
from shoal.kernels.siphash_lanes import LANES, hash_eight

DIGITS = 32
"""Characters of a pseudonym."""


@inlined
def is_faster_by_eight(most, words):
    """Whether eight texts, `words` whole words in all and at most `most` each, are hashed faster together.

    A step of all eight takes about as long as three of one, and each text has about five steps besides its whole words.
    """
    return most >= 0 and 3 * (most + 5) <= words + 5 * LANES


@piece
def words_of_eight(begins, ends):
    """The most whole words of any of eight texts and those of all, or -1 where one ends too early to be loaded."""
    most = np.int64(0)
    words = np.int64(0)
    for lane in range(LANES):
        if ends[lane] < 8:
            return np.int64(-1), words
        count = (ends[lane] - begins[lane]) >> 3
        words += count
        most = max(most, count)
    return most, words


@kernel
def hash_texts(key0, key1, offsets, data, out):
    """Hash text i, data[offsets[i]:offsets[i + 1]], into out[i]."""
    count = len(offsets) - 1
    i = 0
    while i < count:
        if i + LANES <= count:
            o = offsets[i : i + LANES + 1]
            begins = (
                np.int64(o[0]), np.int64(o[1]), np.int64(o[2]), np.int64(o[3]),
                np.int64(o[4]), np.int64(o[5]), np.int64(o[6]), np.int64(o[7]),
            )  # fmt: skip
            ends = (begins[1], begins[2], begins[3], begins[4], begins[5], begins[6], begins[7], np.int64(o[8]))
            most, words = words_of_eight(begins, ends)
            if is_faster_by_eight(most, words):
                hash_eight(key0, key1, data, begins, ends, most, out, i)
                i += LANES
                continue
        for at in range(i, min(i + LANES, count)):
            one, other = siphash128(key0, key1, data, np.int64(offsets[at]), np.int64(offsets[at + 1]))
            out[at, 0] = np.int64(one)
            out[at, 1] = np.int64(other)
        i += LANES


@kernel
def write_pseudonyms(key0, key1, offsets, data, rows, hashes, out):
    """Write the hash of each text in rows as 32 hexadecimal characters, one after another; hashes is scratch."""
    count = len(rows)
    i = 0
    while i < count:
        if i + LANES <= count:
            r = rows[i : i + LANES]
            begins = (
                np.int64(offsets[r[0]]), np.int64(offsets[r[1]]), np.int64(offsets[r[2]]), np.int64(offsets[r[3]]),
                np.int64(offsets[r[4]]), np.int64(offsets[r[5]]), np.int64(offsets[r[6]]), np.int64(offsets[r[7]]),
            )  # fmt: skip
            ends = (
                np.int64(offsets[r[0] + 1]), np.int64(offsets[r[1] + 1]), np.int64(offsets[r[2] + 1]),
                np.int64(offsets[r[3] + 1]), np.int64(offsets[r[4] + 1]), np.int64(offsets[r[5] + 1]),
                np.int64(offsets[r[6] + 1]), np.int64(offsets[r[7] + 1]),
            )  # fmt: skip
            most, words = words_of_eight(begins, ends)
            if is_faster_by_eight(most, words):
                hash_eight(key0, key1, data, begins, ends, most, hashes, 0)
                for lane in range(LANES):
                    write_hex(hashes, lane, out, DIGITS * (i + lane))
                i += LANES
                continue
        for at in range(i, min(i + LANES, count)):
            one, other = siphash128(key0, key1, data, np.int64(offsets[rows[at]]), np.int64(offsets[rows[at] + 1]))
            hashes[0, 0] = np.int64(one)
            hashes[0, 1] = np.int64(other)
            write_hex(hashes, 0, out, DIGITS * at)
        i += LANES


@kernel
def place_texts(offsets, rows, out_offsets):
    """Where each text in rows begins and ends if they are stored one after another; return the number of bytes."""
    total = np.int64(0)
    out_offsets[0] = 0
    for i in range(len(rows)):
        total += np.int64(offsets[rows[i] + 1]) - np.int64(offsets[rows[i]])
        out_offsets[i + 1] = total
    return total


@kernel
def copy_texts(offsets, data, rows, out_offsets, out):
    """Copy the texts in rows one after another; `out` has BLOCK more bytes than they need."""
    last_block = len(data) - BLOCK
    for i in range(len(rows)):
        at, to = np.int64(offsets[rows[i]]), np.int64(out_offsets[i])
        left = np.int64(offsets[rows[i] + 1]) - at
        while left > 0 and at <= last_block:
            copy_block(data, at, out, to)
            at += BLOCK
            to += BLOCK
            left -= BLOCK
        for place in range(left):
            out[np.uint64(to + place)] = data[np.uint64(at + place)]
