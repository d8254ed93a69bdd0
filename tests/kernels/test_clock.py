"""Late events, wrong clocks and fresh starts, against the twin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.kernels import clock as kernel
from shoal.kernels.z.events import admit_text
from tests.reference import clock as naive
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels
from tests.reference.siphash import siphash128

PIECES = plain_kernels("clock").clock

GAP, LATENESS = 100, 10
CODES = {
    naive.TAKEN: kernel.TAKEN,
    naive.RESTART: kernel.RESTART,
    naive.LATE: kernel.LATE,
    naive.AHEAD: kernel.AHEAD,
}

people = st.tuples(st.integers(0, 3), st.integers(0, 1))
around = st.sampled_from([0, GAP, 2 * GAP, 5 * GAP, -3 * GAP])
edges = st.sampled_from([-LATENESS - 1, -LATENESS, -1, 0, 1, LATENESS, GAP // 2, GAP, GAP + 1])
times = st.builds(lambda base, edge: base + edge, around, edges)
events = st.lists(st.tuples(people, times), max_size=40)

P, Q, R = (0, 0), (1, 0), (0, 1)


def run(stream, lateness, max_gap, usable=None):
    clock = np.zeros(kernel.CLOCK, dtype=np.int64)
    persons = np.array([who for who, _ in stream], dtype=np.int64).reshape(-1, 2)
    at = np.array([time for _, time in stream], dtype=np.int64)
    usable = np.ones(len(stream), np.bool_) if usable is None else usable
    codes, newest = np.empty(len(stream), np.int8), np.empty(len(stream), np.int64)
    kernel.admit(clock, persons, at, usable, lateness, max_gap, codes, newest)
    return codes.tolist(), newest.tolist()


@given(events, st.sampled_from([0, 1, LATENESS]), st.sampled_from([1, GAP, GAP + 1]))
@example([(P, 0), (Q, -LATENESS), (Q, -LATENESS - 1)], LATENESS, GAP)
@example([(P, 0), (P, GAP), (Q, 2 * GAP + 1), (R, 2 * GAP + 1)], 0, GAP)
@example([(P, 0), (Q, GAP + 1), (Q, GAP + 1), (R, 2 * GAP + 2)], 0, GAP)
@example([(P, 0), (Q, GAP + 1), (R, 2 * GAP + 1)], 0, GAP)
@example([(P, 5 * GAP), (Q, 4 * GAP), (R, 0)], 0, GAP)
@example([(P, 5 * GAP), (Q, 4 * GAP - 1), (R, 0)], 0, GAP)
@example([(P, 5 * GAP), (P, 0), (Q, 0)], 0, GAP)
@example([(P, 0), *[(Q, (2 + 2 * n) * GAP) for n in range(9)], (R, 2 * GAP), (R, 4 * GAP)], 0, GAP)
@tries(150)
def test_codes_and_times_are_those_of_the_twin(stream, lateness, max_gap):
    twin = naive.NaiveClock(lateness, max_gap)
    expected = []
    for person, time in stream:
        code = twin.admit(person, time)
        expected.append((CODES[code], twin.newest))
    codes, newest = run(stream, lateness, max_gap)
    assert list(zip(codes, newest, strict=True)) == expected


def test_what_cannot_be_used_moves_nothing():
    codes, newest = run([(P, 50), (Q, 60), (Q, 70)], 0, GAP, np.array([True, False, True]))
    assert codes == [kernel.TAKEN, kernel.UNUSABLE, kernel.TAKEN]
    assert newest == [50, 50, 70]


def test_times_at_both_ends_do_not_wrap_round():
    ends = [(P, -(2**62)), (Q, 2**62 - 1), (R, 2**62 - 1)]
    assert run(ends, 2**62, 2**62)[0] == [kernel.TAKEN, kernel.AHEAD, kernel.TAKEN]
    assert run(ends[::-1], 2**62, 2**62)[0][-1] == kernel.LATE


@pytest.mark.parametrize("count", [1, 8, 9])
def test_is_backed_by_the_claims_note_claim_remembers(count):
    clock = np.zeros(kernel.CLOCK, dtype=np.int64)
    PIECES.start_clock(clock, 9, 9, 0)
    for number in range(count):
        PIECES.note_claim(clock, number, 0, 1000 * number)
    assert PIECES.is_backed(clock, 5, 5, GAP, GAP) == (count <= kernel.CLAIMS)
    assert not PIECES.is_backed(clock, 0, 0, GAP, GAP)
    assert not PIECES.is_backed(clock, 5, 5, -GAP - 1, GAP)
    last = 1000 * (count - 1)
    assert PIECES.is_backed(clock, 5, 5, last, GAP)


def test_admit_text_hashes_the_person_and_calls_admit_one():
    key = bytes(range(16))
    words = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    clock, other = np.zeros(kernel.CLOCK, dtype=np.int64), np.zeros(kernel.CLOCK, dtype=np.int64)
    person = np.zeros((1, 2), dtype=np.int64)
    for text, time in [(b"ann", 50), (b"bob", 40), (b"bob", 60), (b"cat", 500)]:
        low, high = np.frombuffer(siphash128(key, text), dtype="<i8")
        code = admit_text(words, clock, np.frombuffer(text, dtype=np.uint8), time, LATENESS, GAP, person)
        assert code == PIECES.admit_one(other, low, high, time, LATENESS, GAP)
        assert person.tolist() == [[low, high]]
    assert clock.tolist() == other.tolist()


def test_one_wrong_clock_does_not_push_out_what_others_claim():
    """The stream is back after a long gap while one device sends times of its own in between."""
    wrong = [(R, 10_000 * GAP + n) for n in range(20)]
    codes, newest = run([(P, 0), (Q, 0), (P, 50 * GAP), *wrong, (Q, 50 * GAP + 1)], 0, GAP)
    assert codes[-1] == kernel.TAKEN
    assert newest[-1] == 50 * GAP + 1


def test_what_may_be_late_does_not_start_the_clock_anew():
    codes, newest = run([(P, 100), (Q, 100 - 2 * GAP)], 3 * GAP, GAP)
    assert codes == [kernel.TAKEN, kernel.TAKEN]
    assert newest[-1] == 100
