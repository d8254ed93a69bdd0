"""Streams of LeastLoss for the tests of its kernels, which run as plain Python here."""

from __future__ import annotations

import math

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.schema import Categorical, Numeric
from tests.kernels.tuples.test_kernels import fill, make
from tests.reference.plain import plain_kernels

NAN = math.nan
LINE = [Numeric("x", low=0, high=1)]
TREE = {"top": {"left": ["a", "b"], "right": ["c", "d"]}}
BOTH = [Numeric("x", low=0, high=1), Categorical("y", Hierarchy.from_nested(TREE))]

plain = plain_kernels(
    "tuples.generalize",
    "tuples.least_loss.candidates",
    "tuples.least_loss.growth",
    "tuples.least_loss.exchange",
    "tuples.least_loss.least_loss",
)


def held(rows, people=None, quasi=LINE, **plan):
    """A stream with pending tuples, given as scaled numbers and ranks."""
    s = make(quasi, METHOD=t.LEAST_LOSS, NEAR=2, **plan)
    s.ratios[[t.PRICE, t.AGE, t.FLOOR]] = 0.0
    fill(s, rows, people or list(range(100, 100 + len(rows))))
    for row in range(plain.candidates.nears(s), plain.candidates.nears(s) + 2):
        s.pending_f[row] = 1.0
    return s


def packed(rows, people=None, quasi=LINE, **plan):
    s = held(rows, people, quasi, **plan)
    count = plain.candidates.pack_candidates(s, 0)
    plain.candidates.price_candidates(s, count)
    return s, count
