"""The pieces of the CSV kernel by themselves; tests/decode/test_csv.py holds it against its twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from shoal.kernels import csv_records as kernel


def as_array(data):
    return np.frombuffer(data, dtype=np.uint8)


@pytest.mark.parametrize(
    ("data", "at", "following"),
    [(b"a\nb", 0, 2), (b"a\r\nb", 0, 3), (b"a\rb", 0, 2), (b"a\r", 0, -1), (b"abc", 1, -1), (b"a\n", 0, 2)],
)
def test_next_line(data, at, following):
    assert kernel.next_line(as_array(data), at, 0) == following
    assert kernel.next_line(as_array(data), at, 1) == (len(data) if following < 0 else following)


def test_gather_fields_takes_quotes_off():
    data = as_array(b'ab,"c""d","e"f,')
    starts, ends = np.array([0, 3, 10, 15]), np.array([2, 9, 14, 15])
    out, offsets = np.empty(20, dtype=np.uint8), np.empty(5, dtype=np.int64)
    written = kernel.gather_fields(data, starts, ends, ord('"'), out, offsets)
    texts = [out[start:end].tobytes() for start, end in pairwise(offsets.tolist())]
    assert texts == [b"ab", b'c"d', b"ef", b""]
    assert written == 7


def test_read_record_finds_the_fields_asked_for():
    table = np.zeros(256, dtype=np.uint8)
    for byte, meaning in ((",", kernel.DELIMITER), ("\n", kernel.LF), ("\r", kernel.CR), ('"', kernel.QUOTE)):
        table[ord(byte)] = meaning
    starts, ends = np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    slots = np.array([-1, 0])
    outcome = kernel.read_record(as_array(b"a,bc\nd"), 0, 1, table, 100, -1, slots, starts, ends, 0)
    assert outcome[:4] == (kernel.GOOD, 5, 2, 1)
    assert (starts[0, 0], ends[0, 0]) == (2, 4)
