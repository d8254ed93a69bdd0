"""Pseudonyms: one a person and epoch, and the same from both ways of asking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.crypto import pseudonyms
from shoal.crypto.keys import Secret
from shoal.crypto.pseudonyms import Pseudonyms
from tests.reference.effort import tries
from tests.reference.siphash import siphash128

SECRET = Secret(bytes(range(16)))


def expected(person, time, rotation):
    epoch = (time // rotation).to_bytes(8, "big", signed=True) + rotation.to_bytes(8, "big")
    return siphash128(SECRET.subkey("pseudonym", epoch)[:16], person).hex()


def layout(people):
    return np.cumsum([0, *map(len, people)]), np.frombuffer(b"".join(people) or b"\x00", dtype=np.uint8)


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.integers(-(2**62), 2**62 - 1)), max_size=10),
    st.sampled_from([1, 10, 3600 * 10**9]),
)
@tries(40)
def test_names_of_many_are_those_of_each(entries, rotation):
    people, times = [person for person, _ in entries], [time for _, time in entries]
    offsets, data = layout(people)
    names = Pseudonyms(SECRET, rotation_ns=rotation)
    rows = np.arange(len(people))
    out = np.empty(32 * len(rows), dtype=np.uint8)
    names.write_names(offsets, data, rows, np.array(times, dtype=np.int64), out)
    written = out.tobytes().decode()
    made = [written[start : start + 32] for start in range(0, len(written), 32)]
    assert made == [expected(person, time, rotation) for person, time in entries]
    assert made == [names.name(person, time) for person, time in entries]


@pytest.mark.parametrize(("time", "other", "is_same"), [(0, 9, True), (9, 10, False), (-1, 0, False), (-10, -1, True)])
def test_a_name_lasts_an_epoch(time, other, is_same):
    names = Pseudonyms(SECRET, rotation_ns=10)
    assert (names.name(b"ann", time) == names.name(b"ann", other)) is is_same
    assert names.name(b"ann", time) != names.name(b"bob", time)


def test_another_key_gives_other_names():
    ours, theirs = Pseudonyms(SECRET, rotation_ns=10), Pseudonyms(Secret(b"x" * 16), rotation_ns=10)
    assert ours.name(b"ann", 0) != theirs.name(b"ann", 0)


def test_only_some_epoch_keys_are_remembered(monkeypatch):
    monkeypatch.setattr(pseudonyms, "_REMEMBERED", 3)
    names = Pseudonyms(SECRET, rotation_ns=1)
    first = names.name(b"ann", 0)
    for time in range(20):
        names.name(b"ann", time)
    assert len(names._keys) == 3
    assert names.name(b"ann", 0) == first
    assert "Secret(…)" in repr(vars(names))


def test_another_rotation_gives_other_names_in_epochs_of_the_same_number():
    hourly, longer = (Pseudonyms(SECRET, rotation_ns=minutes * 60 * 10**9) for minutes in (60, 61))
    assert hourly.name(b"ann", 5 * 3600 * 10**9) != longer.name(b"ann", 5 * 3660 * 10**9)
