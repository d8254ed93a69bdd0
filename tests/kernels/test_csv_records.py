"""The pieces of the CSV kernel by themselves; tests/decode/test_csv.py holds it against its twin."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from shoal.kernels import csv_records as kernel
from tests.reference.plain import plain_kernels

PIECES = plain_kernels("csv_records").csv_records
TABLE = np.zeros(256, dtype=np.uint8)
TABLE[[ord(","), 10, 13, ord('"')]] = kernel.DELIMITER, kernel.LF, kernel.CR, kernel.QUOTE


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


def test_read_record_finds_the_wanted_fields():
    starts, ends = np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)
    slots = np.array([-1, 0])
    outcome = PIECES.read_record(as_array(b"a,bc\nd"), 0, 1, TABLE, 100, -1, slots, starts, ends, 0)
    assert outcome[:4] == (kernel.GOOD, 5, 2, 1)
    assert (starts[0, 0], ends[0, 0]) == (2, 4)


def test_scan_record_stops_at_the_line_break_that_is_not_quoted():
    bounds = np.zeros((2, 1, 1), dtype=np.int64)
    data = as_array(b'a,"b\nc"\nd')
    found = PIECES.scan_record(data, 0, len(data), 1, TABLE, -1, np.array([-1, 0]), bounds[0], bounds[1], 0)
    assert found == (7, 8, 1, 2, 1, 5, False, False, False)


def test_keep_bounds_stores_only_fields_that_are_read():
    starts, ends = np.zeros((1, 2), dtype=np.int64), np.zeros((1, 2), dtype=np.int64)
    for field in range(3):
        PIECES.keep_bounds(np.array([-1, 0]), starts, ends, 1, field, 10 + field, 20)
    assert (starts.tolist(), ends.tolist()) == ([[0, 11]], [[0, 20]])
