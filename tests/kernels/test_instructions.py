"""Instructions of the processor against the Python functions that replace them where nothing is compiled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba.core.registry import CPUDispatcher

from shoal.kernels import instructions
from tests.reference.effort import tries

words = st.integers(-(2**63), 2**63 - 1)
tags = st.sampled_from([0, 1, 2**31, 2**32 - 1])
numbers = st.sampled_from([0, 1, 2, 5, 2**31, 2**32 - 2, 2**32 - 1])


def compiled(function):
    """Compiled also in the run without JIT: njit would not."""
    return CPUDispatcher(function, targetoptions={"nopython": True})


@compiled
def compare(array, at, tag, oldest, count):
    return instructions._compare_line(array, at, tag, oldest, count)


@compiled
def lowest(number):
    return instructions._lowest_bit(number)


@compiled
def copy(source, at, target, to):
    instructions._copy_block(source, at, target, to)


@compiled
def to_hex(numbers, row, target, to):
    instructions._write_hex(numbers, row, target, to)


@compiled
def ask(array, at):
    instructions._prefetch(array, at)


@given(st.lists(st.tuples(tags, numbers), min_size=9, max_size=9), tags, numbers, st.integers(0, 7))
@example([(1, 0)] * 9, 1, 0, 0)
@example([(1, 2)] * 9, 1, 2**32 - 1, 4)  # the range wraps round
@tries(60)
def test_compare_line_finds_tags_and_live_numbers(entries, tag, oldest, count):
    array = np.array([its_tag << 32 | number for its_tag, number in entries], dtype=np.uint64).astype(np.int64)
    expected = 0
    for place, (its_tag, number) in enumerate(entries[1:]):
        is_live = (number - oldest) % 2**32 < count
        expected |= (is_live and its_tag == tag) << place | is_live << (8 + place)
    for oldest_number in (oldest, oldest + 2**32):
        assert compare(array, 1, tag, oldest_number, count) == expected
        assert instructions._compare_words(array, 1, tag, oldest_number, count) == expected


@pytest.mark.parametrize("number", [1, 2, 12, 2**40, -(2**63)])
def test_lowest_bit(number):
    assert lowest(number) == instructions._lowest_place(number) == len(bin(number & -number)) - 3


@pytest.mark.parametrize("copier", [copy, instructions._copy_bytes])
def test_copy_block_copies_32_bytes_and_no_more(copier):
    source, target = np.arange(50, dtype=np.uint8), np.zeros(50, dtype=np.uint8)
    copier(source, 18, target, 3)
    assert target.tolist() == [0] * 3 + list(range(18, 50)) + [0] * 15


@pytest.mark.parametrize("writer", [to_hex, instructions._write_digits])
def test_write_hex_writes_the_lowest_byte_first(writer):
    hashes = np.array([[1, 2], [0x0123456789ABCDEF, -1]], dtype=np.int64)
    target = np.zeros(34, dtype=np.uint8)
    writer(hashes, 1, target, 1)
    assert target.tobytes() == b"\x00efcdab8967452301ffffffffffffffff\x00"


@pytest.mark.parametrize("array", [np.arange(9), np.arange(18).reshape(9, 2)])
@pytest.mark.parametrize("prefetch", [ask, instructions._nothing])
def test_prefetch_changes_nothing(array, prefetch):
    before = array.copy()
    prefetch(array, 8)
    assert np.array_equal(array, before)
