"""The keyed hash against its twin in plain integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.kernels import siphash as kernel
from tests.reference.effort import tries
from tests.reference.siphash import MASK, rotated, rounds, siphash128

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
    assert [int(word) for word in kernel.sip_round(*map(np.uint64, state))] == expected


def test_load_word_is_little_endian():
    data = np.arange(250, 266, dtype=np.uint16).astype(np.uint8)
    assert int(kernel.load_word(data, 3)) == int.from_bytes(data[3:11].tobytes(), "little")


@given(st.lists(st.binary(max_size=20), max_size=8), st.binary(max_size=5), st.sampled_from([np.int32, np.int64]))
@tries(40)
def test_hash_texts_reads_a_column(texts, before, width):
    data = as_array(before + b"".join(texts))
    offsets = np.cumsum([len(before), *map(len, texts)]).astype(width)
    data.flags.writeable = offsets.flags.writeable = False  # as Arrow hands them in
    key = key_words(KEY)
    out = np.empty((len(texts), 2), dtype=np.int64)
    kernel.hash_texts(key[0], key[1], offsets, data, out)
    assert [row.tobytes() for row in out.astype("<i8")] == [siphash128(KEY, text) for text in texts]


def test_write_hex_picks_rows_and_keys():
    texts, other = [b"ann", b"", b"bob"], bytes(16)
    offsets = np.array([0, 3, 3, 6])
    keys = np.array([key_words(KEY), key_words(other), key_words(KEY)])
    rows = np.array([2, 2, 1])
    digits = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
    out = np.empty(48, dtype=np.uint16)
    kernel.write_hex(keys[:, 0], keys[:, 1], offsets, as_array(b"".join(texts)), rows, digits, out)
    expected = [siphash128(KEY, b"bob"), siphash128(other, b"bob"), siphash128(KEY, b"")]
    assert out.tobytes().decode() == "".join(digest.hex() for digest in expected)


@given(st.binary(max_size=40), st.binary(max_size=24), st.binary(max_size=24))
@example(b"", b"", b"")
@example(b"1234567", b"1", b"")
@example(b"12345678", b"", b"7654321")
@tries(60)
def test_siphash128_two_hashes_both_as_one_would(before, first, second):
    other = bytes(15) + b"\x09"
    begin, end, stop = np.cumsum([len(before), len(first), len(second)]).tolist()
    assert kernel.is_pair(begin, end, end, stop) == (len(first) // 8 == len(second) // 8)
    second = second[: len(first) // 8 * 8 + len(second) % 8]
    first = first[: len(second) // 8 * 8 + len(first) % 8]
    end, stop = begin + len(first), begin + len(first) + len(second)
    data = as_array(before + first + second)
    keys = [*key_words(KEY), *key_words(other)]
    low, high, other_low, other_high = kernel.siphash128_two(*keys, data, begin, end, end, stop)
    assert as_bytes(low, high) == siphash128(KEY, first)
    assert as_bytes(other_low, other_high) == siphash128(other, second)


@pytest.mark.parametrize("begin", [0, 1, 5, 8, 20])
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 15, 16])
def test_last_word_takes_nothing_from_before_the_text(begin, length):
    text = bytes(range(1, length + 1))
    data = as_array(b"\xff" * begin + text)
    rest = text[length // 8 * 8 :]
    expected = int.from_bytes(rest + bytes(7 - len(rest)) + bytes([length]), "little")
    assert int(kernel.last_word(data, begin, begin + length)) == expected


def test_begin_state_absorb_and_four_rounds():
    words = [3, 5, 7, 11]
    expected = list(words)
    expected[3] ^= 99
    rounds(expected, 2)
    expected[0] ^= 99
    assert [int(word) for word in kernel.absorb(*map(np.uint64, words), np.uint64(99))] == expected
    rounds(words, 4)
    assert [int(word) for word in kernel.four_rounds(*map(np.uint64, [3, 5, 7, 11]))] == words
    assert [int(word) for word in kernel.begin_state(np.uint64(0), np.uint64(0))] == [
        0x736F6D6570736575,
        0x646F72616E646F6D ^ 0xEE,
        0x6C7967656E657261,
        0x7465646279746573,
    ]


def test_put_hex_writes_the_first_byte_first():
    digits = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
    out = np.zeros(18, dtype=np.uint16)
    kernel.put_hex(np.uint64(0x0123456789ABCDEF), np.uint64(0xFF), digits, out, 1)
    assert out.tobytes() == b"\x00\x00efcdab8967452301ff00000000000000\x00\x00"


@pytest.mark.parametrize("count", range(7))
def test_columns_of_equal_and_of_uneven_lengths(count):
    """Texts are hashed two at a time where they are of a length."""
    for texts in (
        [b"same"] * count,
        [b"x" * (9 * number) for number in range(count)],
        [b"a", b"b", b"12345678"] * count,
    ):
        offsets, data = np.cumsum([0, *map(len, texts)]), as_array(b"".join(texts))
        out = np.empty((len(texts), 2), dtype=np.int64)
        kernel.hash_texts(*key_words(KEY), offsets, data, out)
        assert [row.tobytes() for row in out] == [siphash128(KEY, text) for text in texts]
        digits = np.frombuffer(bytes(range(256)).hex().encode(), dtype=np.uint16)
        keys = np.array([key_words(KEY)] * len(texts), dtype=np.uint64).reshape(-1, 2)
        written = np.empty(16 * len(texts), dtype=np.uint16)
        rows = np.arange(len(texts))[::-1].copy()
        kernel.write_hex(keys[:, 0], keys[:, 1], offsets, data, rows, digits, written)
        assert written.tobytes().decode() == "".join(siphash128(KEY, text).hex() for text in texts[::-1])
