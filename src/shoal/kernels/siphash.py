"""SipHash-2-4 with a 128-bit result over text columns: a keyed hash made for short inputs.

Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012; the 128-bit variant is that of the
authors' reference implementation. Without the key nobody can aim at a collision or invert a pseudonym.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel

_V0 = np.uint64(0x736F6D6570736575)
_V1 = np.uint64(0x646F72616E646F6D)
_V2 = np.uint64(0x6C7967656E657261)
_V3 = np.uint64(0x7465646279746573)
_EE = np.uint64(0xEE)
_DD = np.uint64(0xDD)


@inlined
def rotate(x, bits):
    """Rotate 64 bits to the left."""
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@inlined
def sip_round(v0, v1, v2, v3):
    """One SipRound."""
    v0 = v0 + v1
    v2 = v2 + v3
    v1 = rotate(v1, 13) ^ v0
    v3 = rotate(v3, 16) ^ v2
    v0 = rotate(v0, 32)
    v2 = v2 + v1
    v0 = v0 + v3
    v1 = rotate(v1, 17) ^ v2
    v3 = rotate(v3, 21) ^ v0
    v2 = rotate(v2, 32)
    return v0, v1, v2, v3


@kernel
def load_word(data, at):
    """Eight bytes, little endian; written so that the compiler makes one load of it.

    The index is unsigned: a signed one could count from the end, and each byte would be asked which way.
    """
    i = np.uint64(at)
    word = np.uint64(data[i])
    word |= np.uint64(data[i + np.uint64(1)]) << np.uint64(8)
    word |= np.uint64(data[i + np.uint64(2)]) << np.uint64(16)
    word |= np.uint64(data[i + np.uint64(3)]) << np.uint64(24)
    word |= np.uint64(data[i + np.uint64(4)]) << np.uint64(32)
    word |= np.uint64(data[i + np.uint64(5)]) << np.uint64(40)
    word |= np.uint64(data[i + np.uint64(6)]) << np.uint64(48)
    return word | (np.uint64(data[i + np.uint64(7)]) << np.uint64(56))


@inlined
def begin_state(key0, key1):
    """The four words before the first byte."""
    return key0 ^ _V0, key1 ^ _V1 ^ _EE, key0 ^ _V2, key1 ^ _V3


@inlined
def absorb(v0, v1, v2, v3, word):
    """Take in eight bytes: two rounds."""
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@inlined
def four_rounds(v0, v1, v2, v3):
    """The rounds before each half of the result."""
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return sip_round(v0, v1, v2, v3)


@kernel
def last_word(data, begin, end):
    """The bytes after the last whole word, and the length."""
    length = end - begin
    rest = length & 7
    word = np.uint64(length & 0xFF) << np.uint64(56)
    if end >= 8:
        # One load that ends where the text ends; what stands before the rest is shifted out.
        return word | ((load_word(data, end - 8) >> np.uint64(8 * (7 - rest))) >> np.uint64(8))
    for i in range(rest):
        word |= np.uint64(data[end - rest + i]) << np.uint64(8 * i)
    return word


@kernel
def siphash128(key0, key1, data, begin, end):
    """Hash data[begin:end] to two 64-bit words."""
    v0, v1, v2, v3 = begin_state(key0, key1)
    at = begin
    for _ in range((end - begin) >> 3):
        v0, v1, v2, v3 = absorb(v0, v1, v2, v3, load_word(data, at))
        at += 8
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, last_word(data, begin, end))
    v0, v1, v2, v3 = four_rounds(v0, v1, v2 ^ _EE, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = four_rounds(v0, v1 ^ _DD, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3


@kernel
def siphash128_two(key0, key1, other0, other1, data, begin, end, start, stop):
    """Hash data[begin:end] and data[start:stop] side by side: one waits less than two after each other.

    Both must have the same number of whole words.
    """
    v0, v1, v2, v3 = begin_state(key0, key1)
    w0, w1, w2, w3 = begin_state(other0, other1)
    at, to = begin, start
    for _ in range((end - begin) >> 3):
        v0, v1, v2, v3 = absorb(v0, v1, v2, v3, load_word(data, at))
        w0, w1, w2, w3 = absorb(w0, w1, w2, w3, load_word(data, to))
        at += 8
        to += 8
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, last_word(data, begin, end))
    w0, w1, w2, w3 = absorb(w0, w1, w2, w3, last_word(data, start, stop))
    v0, v1, v2, v3 = four_rounds(v0, v1, v2 ^ _EE, v3)
    w0, w1, w2, w3 = four_rounds(w0, w1, w2 ^ _EE, w3)
    low, other_low = v0 ^ v1 ^ v2 ^ v3, w0 ^ w1 ^ w2 ^ w3
    v0, v1, v2, v3 = four_rounds(v0, v1 ^ _DD, v2, v3)
    w0, w1, w2, w3 = four_rounds(w0, w1 ^ _DD, w2, w3)
    return low, v0 ^ v1 ^ v2 ^ v3, other_low, w0 ^ w1 ^ w2 ^ w3


@inlined
def is_pair(begin, end, start, stop):
    """Whether two texts have the same number of whole words."""
    return ((end - begin) >> 3) == ((stop - start) >> 3)


@kernel
def hash_texts(key0, key1, offsets, data, out):
    """Hash text i, data[offsets[i]:offsets[i + 1]], into out[i]."""
    count = len(offsets) - 1
    i = 0
    while i < count:
        begin, end = offsets[i], offsets[i + 1]
        if i + 1 < count and is_pair(begin, end, end, offsets[i + 2]):
            low, high, other_low, other_high = siphash128_two(
                key0, key1, key0, key1, data, begin, end, end, offsets[i + 2]
            )
            out[i + 1, 0] = np.int64(other_low)
            out[i + 1, 1] = np.int64(other_high)
            step = 2
        else:
            low, high = siphash128(key0, key1, data, begin, end)
            step = 1
        out[i, 0] = np.int64(low)
        out[i, 1] = np.int64(high)
        i += step


@kernel
def put_hex(low, high, digits, out, at):
    """Write two words as 32 hexadecimal characters, first byte first."""
    for byte in range(8):
        shift = np.uint64(8 * byte)
        out[np.uint64(at + byte)] = digits[(low >> shift) & np.uint64(0xFF)]
        out[np.uint64(at + 8 + byte)] = digits[(high >> shift) & np.uint64(0xFF)]


@kernel
def write_hex(key0, key1, offsets, data, rows, digits, out):
    """Write the hash of each text in rows as 32 hexadecimal characters.

    key0 and key1 hold one key a row: a pseudonym depends on the epoch its row falls in. digits holds the two
    characters of every byte as one number, out takes two characters an entry.
    """
    i = 0
    while i < len(rows):
        begin, end = offsets[rows[i]], offsets[rows[i] + 1]
        step = 1
        if i + 1 < len(rows):
            start, stop = offsets[rows[i + 1]], offsets[rows[i + 1] + 1]
            if is_pair(begin, end, start, stop):
                step = 2
        if step == 2:
            low, high, other_low, other_high = siphash128_two(
                key0[i], key1[i], key0[i + 1], key1[i + 1], data, begin, end, start, stop
            )
            put_hex(other_low, other_high, digits, out, 16 * (i + 1))
        else:
            low, high = siphash128(key0[i], key1[i], data, begin, end)
        put_hex(low, high, digits, out, 16 * i)
        i += step
