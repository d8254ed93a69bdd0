"""Hashes of whole text columns: as keys of tables, and as pseudonyms.

Eight texts of similar length are hashed at a time (siphash_lanes); the hashes are the same.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.siphash import siphash128
from shoal.kernels.siphash_lanes import LANES, hash_eight


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
                low, high = hash_eight(key0, key1, data, begins, ends, most)
                for lane in range(LANES):
                    out[i + lane, 0] = np.int64(low[lane])
                    out[i + lane, 1] = np.int64(high[lane])
                i += LANES
                continue
        for at in range(i, min(i + LANES, count)):
            one, other = siphash128(key0, key1, data, np.int64(offsets[at]), np.int64(offsets[at + 1]))
            out[at, 0] = np.int64(one)
            out[at, 1] = np.int64(other)
        i += LANES


@piece
def put_hex(low, high, digits, out, at):
    """Write two words as 32 hexadecimal characters, first byte first."""
    for byte in range(8):
        shift = np.uint64(8 * byte)
        out[np.uint64(at + byte)] = digits[(low >> shift) & np.uint64(0xFF)]
        out[np.uint64(at + 8 + byte)] = digits[(high >> shift) & np.uint64(0xFF)]


@kernel
def write_hex(key0, key1, offsets, data, rows, digits, out):
    """Write the hash of each text in rows as 32 hexadecimal characters.

    `digits` has the two characters of every byte as one number; an entry of `out` is two characters.
    """
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
                low, high = hash_eight(key0, key1, data, begins, ends, most)
                for lane in range(LANES):
                    put_hex(low[lane], high[lane], digits, out, 16 * (i + lane))
                i += LANES
                continue
        for at in range(i, min(i + LANES, count)):
            one, other = siphash128(key0, key1, data, np.int64(offsets[rows[at]]), np.int64(offsets[rows[at] + 1]))
            put_hex(one, other, digits, out, 16 * at)
        i += LANES
