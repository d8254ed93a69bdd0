"""Which partition of a Kafka topic the key of a message belongs to, as clients choose it.

`murmur2` is the choice of Java's clients, `crc32` the default of librdkafka, on which most other clients are built.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel

MURMUR2, CRC32 = 0, 1

_SEED = np.uint32(0x9747B28C)
_FACTOR = np.uint32(0x5BD1E995)
_POSITIVE = np.uint32(0x7FFFFFFF)
_ALL = np.uint32(0xFFFFFFFF)
_POLYNOMIAL = np.uint32(0xEDB88320)


@kernel
def choose_partitions(offsets, data, partitioner, partitions, out):
    """Write the partition of every text; text i is `data[offsets[i]:offsets[i + 1]]`."""
    for i in range(len(out)):
        start, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        if partitioner == CRC32:
            h = _ALL
            for at in range(start, end):
                h ^= np.uint32(data[at])
                for _ in range(8):
                    low = h & np.uint32(1)
                    h >>= np.uint32(1)
                    if low:
                        h ^= _POLYNOMIAL
            h ^= _ALL
        else:
            size = end - start
            h = _SEED ^ np.uint32(size)
            words = size // 4
            for word in range(words):
                first = start + 4 * word
                k = np.uint32(data[first])
                k |= np.uint32(data[first + 1]) << np.uint32(8)
                k |= np.uint32(data[first + 2]) << np.uint32(16)
                k |= np.uint32(data[first + 3]) << np.uint32(24)
                k = np.uint32(k * _FACTOR)
                k ^= k >> np.uint32(24)
                k = np.uint32(k * _FACTOR)
                h = np.uint32(h * _FACTOR) ^ k
            rest = start + 4 * words
            left = end - rest
            if left > 2:
                h ^= np.uint32(data[rest + 2]) << np.uint32(16)
            if left > 1:
                h ^= np.uint32(data[rest + 1]) << np.uint32(8)
            if left > 0:
                h ^= np.uint32(data[rest])
                h = np.uint32(h * _FACTOR)
            h ^= h >> np.uint32(13)
            h = np.uint32(h * _FACTOR)
            h ^= h >> np.uint32(15)
            h &= _POSITIVE
        out[i] = np.int64(h) % partitions
