"""SipHash-2-4 with a 128-bit result over text columns: a keyed hash made for short inputs.

Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012; the 128-bit variant is that of the
authors' reference implementation. Without the key no one can construct a collision or invert a pseudonym.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece

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


@piece
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


@piece
def load_word(data, at):
    """Eight bytes, little endian; written so that the compiler turns it into one load.

    The index is unsigned: a signed one may count from the end, and every byte would be checked for that.
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


@piece
def absorb(v0, v1, v2, v3, word):
    """Absorb eight bytes: two rounds."""
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@piece
def four_rounds(v0, v1, v2, v3):
    """The rounds before each half of the result."""
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return sip_round(v0, v1, v2, v3)


@piece
def last_word(data, begin, end):
    """The bytes after the last whole word, and the length."""
    length = end - begin
    rest = length & 7
    word = np.uint64(length & 0xFF) << np.uint64(56)
    if end >= 8:
        # one load that ends where the text ends; the bytes before the rest are shifted out
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
