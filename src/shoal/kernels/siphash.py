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
    """Eight bytes, little endian; written so that the compiler makes one load of it."""
    return (
        np.uint64(data[at])
        | (np.uint64(data[at + 1]) << np.uint64(8))
        | (np.uint64(data[at + 2]) << np.uint64(16))
        | (np.uint64(data[at + 3]) << np.uint64(24))
        | (np.uint64(data[at + 4]) << np.uint64(32))
        | (np.uint64(data[at + 5]) << np.uint64(40))
        | (np.uint64(data[at + 6]) << np.uint64(48))
        | (np.uint64(data[at + 7]) << np.uint64(56))
    )


@kernel
def siphash128(key0, key1, data, begin, end):
    """Hash data[begin:end] to two 64-bit words."""
    v0 = key0 ^ _V0
    v1 = key1 ^ _V1 ^ _EE
    v2 = key0 ^ _V2
    v3 = key1 ^ _V3
    length = end - begin
    at = begin
    for _ in range(length >> 3):
        word = load_word(data, at)
        v3 ^= word
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0 ^= word
        at += 8
    word = np.uint64(length & 0xFF) << np.uint64(56)
    for i in range(end - at):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    v3 ^= word
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    v0 ^= word
    v2 ^= _EE
    for _ in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= _DD
    for _ in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3


@kernel
def hash_texts(key0, key1, offsets, data, out):
    """Hash text i, data[offsets[i]:offsets[i + 1]], into out[i]."""
    for i in range(len(offsets) - 1):
        low, high = siphash128(key0, key1, data, offsets[i], offsets[i + 1])
        out[i, 0] = np.int64(low)
        out[i, 1] = np.int64(high)


@kernel
def write_hex(key0, key1, offsets, data, rows, digits, out):
    """Write the hash of each text in rows as 32 hexadecimal characters, first byte first.

    key0 and key1 hold one key a row: a pseudonym depends on the epoch its row falls in. digits holds the two
    characters of every byte as one number, out takes two characters an entry.
    """
    for i in range(len(rows)):
        row = rows[i]
        low, high = siphash128(key0[i], key1[i], data, offsets[row], offsets[row + 1])
        at = 16 * i
        for byte in range(8):
            shift = np.uint64(8 * byte)
            out[at + byte] = digits[(low >> shift) & np.uint64(0xFF)]
            out[at + 8 + byte] = digits[(high >> shift) & np.uint64(0xFF)]
