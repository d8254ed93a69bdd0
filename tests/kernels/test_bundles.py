"""Bundles are handed over by their address, and what is in them is found there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from llvmlite import ir
from numba import typeof
from numba.core.registry import cpu_target

from shoal.kernels.bundles import Bundle, bundle
from shoal.kernels.compiling import njit, piece

pytestmark = pytest.mark.compiled


@bundle
class Ledger(NamedTuple):
    counts: Any
    sums: Any
    grid: Any


def make_ledger(size=3, grid=None):
    return Ledger(np.arange(size), np.zeros(2), np.ones((2, size)) if grid is None else grid)


@piece
def add(s, amount):
    s.sums[0] += amount
    s.counts[0] += 1


@piece
def add_all(s):
    for column in range(s.grid.shape[1]):
        add(s, s.grid[1, column])
    return len(s.counts)


@njit
def first_count(s):
    return s.counts[0]


@njit
def run(s, times):
    size = 0
    for _ in range(times):
        size += add_all(s)
    return size, first_count(s)


def test_a_bundle_is_one_argument():
    bundled = typeof(make_ledger())
    assert isinstance(bundled, Bundle)
    assert isinstance(cpu_target.target_context.data_model_manager[bundled].get_argument_type(), ir.PointerType)


def test_pieces_and_kernels_read_and_write_the_arrays_of_a_bundle():
    ledger = make_ledger()
    assert run(ledger, 4) == (12, 12)
    assert ledger.sums.tolist() == [12.0, 0.0]
    assert ledger.counts.tolist() == [12, 1, 2]


def test_every_call_works_on_the_bundle_it_is_given():
    for size in range(1, 20):
        ledger = make_ledger(size)
        assert run(ledger, 1) == (size, size)
        assert first_count(ledger._replace(counts=np.array([-size]))) == -size


def test_bundles_of_one_class_may_hold_different_arrays():
    assert run(make_ledger(grid=np.full((2, 3), 2, np.int64)), 1) == (3, 3)
    assert run(make_ledger(grid=np.asfortranarray(np.ones((2, 3)))), 1) == (3, 3)
