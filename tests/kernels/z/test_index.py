"""The open-addressed index by itself, with tags that collide."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.kernels.z import index as kernel
from tests.reference.effort import tries
from tests.reference.keys import LAST_SLOT, signed
from tests.reference.plain import plain_kernels

PIECES = plain_kernels("z.index").index
words = st.integers(-(2**63), 2**63 - 1)


@given(
    st.integers(2, 12),
    st.lists(st.tuples(st.booleans(), st.sampled_from([LAST_SLOT, LAST_SLOT - 1, 0, 2**31, 2**30])), max_size=40),
)
@example(4, [(True, LAST_SLOT)] * 3 + [(False, 0)] * 3)
@example(5, [(True, LAST_SLOT), (True, 0), (True, LAST_SLOT), (False, LAST_SLOT), (False, LAST_SLOT)])
@tries(100)
def test_put_find_position_and_erase_keep_every_entry_findable(size, actions):
    index, there = np.zeros(size, dtype=np.int64), {}
    for number, (adds, tag) in enumerate(actions):
        if adds and len(there) < size - 1:
            PIECES.put(index, np.int64(tag), number)
            there[number] = tag
        elif not adds and there:
            first = next(iter(there))
            PIECES.erase(index, PIECES.find_position(index, np.int64(there.pop(first)), first))
        assert np.count_nonzero(index) == len(there)
        for position, its_tag in there.items():
            slot = kernel.home_of(size, np.int64(its_tag))
            while kernel.position_of(index[slot]) != position:
                assert index[slot] != 0
                slot = kernel.after(size, slot)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**31 - 2))
@tries(30)
def test_entry_gives_back_tag_of_and_position_of(tag, position):
    held = kernel.entry(np.int64(tag), position)
    assert held != 0
    assert (kernel.tag_of(held), kernel.position_of(held)) == (tag, position)


@given(words)
@tries(30)
def test_fold_mixes_both_halves(word):
    assert kernel.fold(np.int64(word)) == ((word & 0xFFFFFFFF) ^ ((word >> 32) & 0xFFFFFFFF))


def test_steps_between_goes_round_the_end():
    assert [kernel.steps_between(5, 3, stop) for stop in (3, 4, 0, 2)] == [0, 1, 2, 4]


@given(words, words)
@tries(30)
def test_pair_tag_folds_both_keys(person, value):
    assert kernel.pair_tag(np.int64(person), np.int64(value)) == kernel.fold(np.int64(signed(person + value)))
