"""Exchange of members, step by step as plain Python."""

from __future__ import annotations

import pytest

from shoal.kernels.tuples import layout as t
from tests.kernels.tuples.least_loss_streams import BOTH, packed, plain

candidates, growth, exchange = plain.candidates, plain.growth, plain.exchange


def test_cuts_of_numbers():
    s, _ = packed([(0.5,), (0.9,), (0.6,), (0.1,), (0.45,)])
    s.pending_i[t.MEMBER, :5] = range(5)
    count = exchange.sort_values(s, 0, 5)
    assert s.pending_f[t.HEAP_KEY, :count].tolist() == [0.1, 0.45, 0.5, 0.6, 0.9]
    assert exchange.cuts_of_numbers(s, 0, 0, count, 5) == 2
    assert s.pending_f[t.DISTANCE, :2].tolist() == pytest.approx([0.35, 0.3])
    assert s.pending_f[[t.PART_KEY, t.LATER], 0].tolist() == [0.45, 0.9]
    assert s.pending_f[[t.PART_KEY, t.LATER], 1].tolist() == [0.1, 0.6]
    assert exchange.keep_inside(s, 0, 5) == 4


def test_cuts_of_labels():
    s, _ = packed([(0.5, 0), (0.5, 1), (0.5, 2)], quasi=BOTH)
    s.pending_i[t.MEMBER, :3] = range(3)
    count = exchange.sort_values(s, 1, 3)
    assert exchange.cuts_of_labels(s, 1, 0, count, 3) == 2
    assert s.pending_f[t.PART_KEY, :2].tolist() == [0.0, 0.0]
    assert s.pending_f[t.LATER, :2].tolist() == [0.0, 1.0]
    assert s.pending_f[t.DISTANCE, :2].tolist() == pytest.approx([0.5, 2 / 3])
    assert exchange.span_above(s, 1, 0, 0) == (0, 1)
    assert exchange.span_above(s, 1, 0, 1) == (0, 3)


def test_cuts_are_tried_best_first_and_once():
    s, _ = packed([(0.5,), (0.9,)])
    cuts = exchange.note_cut(s, 0, 0, 0.0, 0.5, 0.2)
    cuts = exchange.note_cut(s, cuts, 0, 0.0, 0.4, 0.7)
    assert [exchange.best_cut(s, cuts) for _ in range(3)] == [1, 0, -1]
    s.pending_i[t.MEMBER, :2] = range(2)
    assert exchange.find_cuts(s, 2) == 1


def test_exchange_keeps_the_better_cluster():
    """The one at 0.9 was taken; two at 0.5 are there instead."""
    s, count = packed([(0.5,), (0.9,), (0.5,), (0.51,)], EXCHANGES=3)
    s.pending_i[t.MEMBER, :3] = 0, 1, 2
    exchange.exchange(s, 3, count, 0.0)
    assert sorted(s.pending_i[t.MEMBER, :3].tolist()) == [0, 2, 3]


def test_only_the_best_candidates_are_tried_again(monkeypatch):
    monkeypatch.setattr(exchange, "TRIED", 1)
    s, count = packed([(0.5,), (0.1,), (0.6,), (0.9,), (0.55,), (0.58,)])
    s.pending_i[t.MEMBER, 0] = 0
    assert growth.grow(s, t.MEMBER, 1, count, 2, 0.0, 0.0) == 2
    assert s.pending_i[t.MEMBER, :2].tolist() == [0, 4]
    assert exchange.narrow(s, 2, count) == 4
    assert s.pending_i[t.CHAIN, :4].tolist() == [0, 2, 4, 5]
    assert s.pending_f[candidates.packed(s), :4].tolist() == [0.5, 0.6, 0.55, 0.58]
    assert s.pending_i[t.MEMBER, :2].tolist() == [0, 2]
    assert exchange.narrow(s, 2, 4) == 4
