"""The keyed hash against its twin in plain integers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba.core.registry import CPUDispatcher

from shoal.kernels import siphash as kernel
from shoal.kernels import text_hashes as columns
from shoal.kernels.instructions import BLOCK
from shoal.kernels.siphash_lanes import _hash_eight, _one_by_one
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels
from tests.reference.siphash import MASK, rotated, rounds, siphash128

PIECES = plain_kernels("siphash").siphash
COLUMN_PIECES = plain_kernels("text_hashes").text_hashes

KEY = bytes(range(16))
words = st.integers(0, MASK)


def key_words(key):
    return np.frombuffer(key, dtype="<u8").astype(np.uint64)


def as_array(data):
    return np.frombuffer(data or b"\x00", dtype=np.uint8)


def as_bytes(low, high):
    return int(low).to_bytes(8, "little") + int(high).to_bytes(8, "little")


def hashed(key, data):
    key = key_words(key)
    return as_bytes(*kernel.siphash128(key[0], key[1], as_array(data), 0, len(data)))


def hash_them(key0, key1, data, begins, ends, most, out, at):
    _hash_eight(key0, key1, data, begins, ends, most, out, at)


hash_side_by_side = CPUDispatcher(hash_them, targetoptions={"nopython": True})
"""Compiled also in the run without JIT: njit would not."""


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=300))
@example(KEY, b"")
@example(b"\xff" * 16, b"\xff" * 8)
@example(KEY, bytes(255))
@example(KEY, bytes(256))
@tries(60)
def test_equals_the_twin(key, data):
    assert hashed(key, data) == siphash128(key, data)


@pytest.mark.parametrize("length", range(34))
def test_every_length_around_a_word(length):
    data = bytes((7 * i + 3) % 256 for i in range(length))
    assert hashed(KEY, data) == siphash128(KEY, data)


@given(words, st.integers(1, 63))
@tries(30)
def test_rotate(word, bits):
    assert int(kernel.rotate(np.uint64(word), bits)) == rotated(word, bits)


@given(st.lists(words, min_size=4, max_size=4))
@tries(30)
def test_sip_round(state):
    expected = list(state)
    rounds(expected, 1)
    assert [int(word) for word in PIECES.sip_round(*map(np.uint64, state))] == expected


def test_load_word_is_little_endian():
    data = np.arange(250, 266, dtype=np.uint16).astype(np.uint8)
    assert int(PIECES.load_word(data, 3)) == int.from_bytes(data[3:11].tobytes(), "little")


@given(st.lists(st.binary(max_size=20), max_size=8), st.binary(max_size=5), st.sampled_from([np.int32, np.int64]))
@tries(40)
def test_hash_texts_reads_a_column(texts, before, width):
    data = as_array(before + b"".join(texts))
    offsets = np.cumsum([len(before), *map(len, texts)]).astype(width)
    data.flags.writeable = offsets.flags.writeable = False  # as Arrow hands them in
    key = key_words(KEY)
    out = np.empty((len(texts), 2), dtype=np.int64)
    columns.hash_texts(key[0], key[1], offsets, data, out)
    assert [row.tobytes() for row in out.astype("<i8")] == [siphash128(KEY, text) for text in texts]


def write_pseudonyms(offsets, data, rows):
    out, hashes = np.empty(columns.DIGITS * len(rows), dtype=np.uint8), np.empty((columns.LANES, 2), dtype=np.int64)
    columns.write_pseudonyms(*key_words(KEY), offsets, data, rows, hashes, out)
    return out.tobytes().decode()


def test_write_pseudonyms_picks_rows():
    texts = [b"ann", b"", b"bob"]
    written = write_pseudonyms(np.array([0, 3, 3, 6]), as_array(b"".join(texts)), np.array([2, 2, 1]))
    assert written == "".join(siphash128(KEY, text).hex() for text in (b"bob", b"bob", b""))


@pytest.mark.parametrize("begin", [0, 1, 5, 8, 20])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16])
def test_last_word_takes_nothing_from_before_the_text(begin, length):
    text = bytes(range(1, length + 1))
    data = as_array(b"\xff" * begin + text)
    rest = text[length // 8 * 8 :]
    expected = int.from_bytes(rest + bytes(7 - len(rest)) + bytes([length]), "little")
    assert int(PIECES.last_word(data, begin, begin + length)) == expected


def test_begin_state_absorb_and_four_rounds():
    words = [3, 5, 7, 11]
    expected = list(words)
    expected[3] ^= 99
    rounds(expected, 2)
    expected[0] ^= 99
    assert [int(word) for word in PIECES.absorb(*map(np.uint64, words), np.uint64(99))] == expected
    rounds(words, 4)
    assert [int(word) for word in PIECES.four_rounds(*map(np.uint64, [3, 5, 7, 11]))] == words
    assert [int(word) for word in kernel.begin_state(np.uint64(0), np.uint64(0))] == [
        0x736F6D6570736575,
        0x646F72616E646F6D ^ 0xEE,
        0x6C7967656E657261,
        0x7465646279746573,
    ]


def check_column(texts, before=b""):
    """Keys and names of a column are those of its texts one by one, in any order of rows."""
    offsets, data = np.cumsum([len(before), *map(len, texts)]), as_array(before + b"".join(texts))
    out = np.empty((len(texts), 2), dtype=np.int64)
    columns.hash_texts(*key_words(KEY), offsets, data, out)
    assert [row.tobytes() for row in out] == [siphash128(KEY, text) for text in texts]
    written = write_pseudonyms(offsets, data, np.arange(len(texts))[::-1].copy())
    assert written == "".join(siphash128(KEY, text).hex() for text in texts[::-1])


lengths = st.lists(st.sampled_from([0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 100, 255, 256, 300]), max_size=35)


@given(lengths, st.sampled_from([0, 1, 7, 8]), st.integers(0, 200))
@example([9] * 8, 0, 1)  # the first text ends late enough to be loaded in one go
@example([7, *[9] * 7], 0, 1)  # here it does not
@example([7, *[9] * 7], 1, 1)  # what stands before it is loaded along
@example([0] * 8, 8, 1)
@example([300, *[1] * 7], 8, 1)  # too uneven to be worth it
@example([16, 24, 17, 8, 23, 16, 15, 9] * 2, 8, 1)  # of different numbers of words, side by side
@example([16] * 9, 8, 1)
@tries(60)
def test_columns_of_equal_and_of_uneven_lengths(lengths, before, seed):
    """Texts are hashed eight at a time where they are of similar length."""
    content = np.random.default_rng(seed).bytes(sum(lengths) + before)
    ends = np.cumsum([before, *lengths]).tolist()
    check_column([content[start:stop] for start, stop in pairwise(ends)], content[:before])


@pytest.mark.parametrize("hash_eight", [hash_side_by_side, _one_by_one])
def test_hash_eight_is_siphash128_of_each(hash_eight):
    texts = [bytes(range(length)) for length in (0, 1, 7, 8, 9, 16, 40, 255)]
    ends = np.cumsum([8, *map(len, texts)]).tolist()
    data = as_array(b"before.." + b"".join(texts))
    out = np.zeros((10, 2), dtype=np.int64)
    hash_eight(*key_words(KEY), data, tuple(ends[:-1]), tuple(ends[1:]), 31, out, 1)
    assert [row.tobytes() for row in out] == [bytes(16), *(siphash128(KEY, text) for text in texts), bytes(16)]


@given(st.lists(st.text(max_size=70).map(str.encode), max_size=12), st.integers(0, 40), st.data())
@tries(40)
def test_place_texts_and_copy_texts_are_the_rows_one_after_another(texts, before, data):
    rows = data.draw(st.permutations(range(len(texts))))[: data.draw(st.integers(0, len(texts)))]
    offsets, content = np.cumsum([before, *map(len, texts)]), as_array(bytes(before) + b"".join(texts))
    chosen, out_offsets = np.array(rows, dtype=np.int64), np.empty(len(rows) + 1, dtype=np.int32)
    size = columns.place_texts(offsets, chosen, out_offsets)
    out = np.full(size + BLOCK + 1, 7, dtype=np.uint8)
    columns.copy_texts(offsets, content, chosen, out_offsets, out[:-1])
    assert [out[start:stop].tobytes() for start, stop in pairwise(out_offsets)] == [texts[row] for row in rows]
    assert out[-1] == 7


@pytest.mark.parametrize(
    ("lengths", "before", "expected"),
    [([8] * 8, 0, (1, 8)), ([7] * 8, 0, (-1, 0)), ([7] * 8, 1, (0, 0)), ([9, 0, 80, 1, 1, 1, 1, 1], 0, (10, 11))],
)
def test_words_of_eight_counts_whole_words_and_sees_texts_too_near_the_start(lengths, before, expected):
    ends = np.cumsum([before, *lengths]).tolist()
    assert COLUMN_PIECES.words_of_eight(tuple(ends[:-1]), tuple(ends[1:])) == expected


def test_eight_texts_are_hashed_together_only_if_they_are_of_similar_length():
    assert columns.is_faster_by_eight(2, 16)
    assert columns.is_faster_by_eight(0, 0)
    assert not columns.is_faster_by_eight(-1, 0)
    assert not columns.is_faster_by_eight(30, 32)
