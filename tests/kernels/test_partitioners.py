"""Partitions of keys: the values that Kafka's own clients give, and an independent twin for all others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.partitioners import CRC32, MURMUR2, choose_partitions
from tests.reference.partitioners import murmur2, partition_of

# From the tests of Kafka's own clients.
JAVA = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


def chosen(keys: list[bytes], partitions: int, partitioner: int) -> list[int]:
    offsets = np.cumsum([0, *map(len, keys)]).astype(np.int32)
    data = np.frombuffer(b"".join(keys), dtype=np.uint8)
    out = np.empty(len(keys), dtype=np.int64)
    choose_partitions(offsets, data, partitioner, partitions, out)
    return [int(partition) for partition in out]


@pytest.mark.parametrize(("key", "expected"), JAVA.items())
def test_murmur2_is_that_of_java(key: str, expected: int) -> None:
    assert murmur2(key.encode()) == expected
    assert chosen([key.encode()], 1_000_003, MURMUR2) == [(expected & 0x7FFFFFFF) % 1_000_003]


@given(keys=st.lists(st.binary(max_size=40)), partitions=st.integers(1, 1000))
def test_equal_to_the_twin(keys: list[bytes], partitions: int) -> None:
    for partitioner, name in ((MURMUR2, "murmur2"), (CRC32, "crc32")):
        assert chosen(keys, partitions, partitioner) == [partition_of(key, partitions, name) for key in keys]
