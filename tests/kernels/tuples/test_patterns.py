"""Which pending tuples may be published together, as plain Python: with OWN only those that lack the same."""

from __future__ import annotations

import math

import pytest

from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.castle.generalize import FORMING
from shoal.schema import Numeric
from tests.kernels.tuples.test_castle import castle, hulls, placed
from tests.kernels.tuples.test_kernels import fill, make
from tests.reference.plain import plain_kernels

plain = plain_kernels("tuples.patterns", "tuples.emit", "tuples.queue")
NAN = math.nan
TWO = [Numeric("x", low=0, high=1), Numeric("y", low=0, high=1)]
WIDE = [Numeric(f"a{number}", low=0, high=1) for number in range(70)]
ROWS = [(0.1, 0.2), (0.3, NAN), (0.5, NAN), (NAN, NAN), (0.5, NAN)]
PEOPLE = [1, 2, 3, 4, 2]


def held(rows=ROWS, people=PEOPLE, quasi=TWO, mode=t.OWN, **plan):
    s = make(quasi, MISSING_MODE=mode, **plan)
    fill(s, rows, people)
    return s


def marked(s, at):
    plain.patterns.mark_alike(s, t.ELIGIBLE, at, 0, s.tally[t.TAIL])
    return s.pending_i[t.ELIGIBLE, : s.tally[t.TAIL]].tolist()


def test_tuples_that_lack_the_same_may_be_published_together():
    s = held()
    assert plain.patterns.is_divided(s)
    assert [marked(s, at) for at in (0, 1, 3)] == [[1, 0, 0, 0, 0], [0, 1, 1, 0, 1], [0, 0, 0, 1, 0]]
    assert [plain.patterns.count_alike(s, at) for at in range(5)] == [(1, 1), (3, 2), (3, 2), (1, 1), (3, 2)]
    assert [plain.patterns.are_alike(s, 1, other) for other in range(5)] == [False, True, True, False, True]
    assert [plain.patterns.has_all_alike(s, at) for at in range(5)] == [False, True, True, True, True]
    plain.queue.remove_pending(s, 1)
    assert marked(s, 2) == [0, 0, 1, 0, 1]
    assert plain.patterns.count_alike(s, 2) == (2, 2)


@pytest.mark.parametrize("mode", [t.COVERED, t.HIDDEN, t.PAPER])
def test_in_other_modes_all_may(mode):
    s = held(mode=mode)
    assert not plain.patterns.is_divided(s)
    assert marked(s, 1) == [1, 1, 1, 1, 1]
    assert plain.patterns.count_alike(s, 1) == (5, 4)
    assert not plain.patterns.has_all_alike(s, 1)


def test_complete_tuples_are_not_divided():
    s = held([(0.1, 0.2), (0.3, 0.4)], [1, 2])
    assert not plain.patterns.is_divided(s)
    assert plain.patterns.count_alike(s, 0) == (2, 2)


def test_more_attributes_than_bits_in_a_word():
    rows = [[0.5] * 70 for _ in range(3)]
    rows[1][0] = rows[2][69] = NAN
    s = held(rows, [1, 2, 3], WIDE)
    assert [marked(s, at) for at in range(3)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("k", "ending", "at_end", "expected"),
    [(3, 0, 0, [1, 1, 1, 1, 1]), (2, 0, 0, [1, 0, 0, 1, 0]), (5, 0, 0, [0] * 5), (2, 1, 1, [0] * 5),
     (3, 1, 3, [1, 1, 1, 1, 1])],
)  # fmt: skip
def test_which_rows_are_suppressed_because_few_lack_the_same(k, ending, at_end, expected):
    """Four people are pending; at the end those count that were pending when it began."""
    s = held(K=k)
    s.tally[t.ENDING], s.tally[t.VARIED_AT_END] = ending, at_end
    assert [int(plain.emit.is_rare(s, at)) for at in range(5)] == expected
    plain.emit.suppress(s, 0)
    assert s.tally[t.RARE] == expected[0]


@pytest.mark.parametrize(("mode", "filled"), [(t.COVERED, 3), (t.HIDDEN, 0), (t.PAPER, 0), (t.OWN, 0)])
def test_values_that_rows_show_and_records_lack(mode, filled):
    s = held(mode=mode)
    s.pool_i[-1, t.FIELDS + t.C_SHOWN * 2 + 1] = 1  # the second attribute is shown
    for at in (0, 1, 2, 3):
        plain.emit.count_filled(s, s.pool_i.shape[0] - 1, at)
    assert s.tally[t.FILLED] == filled


# ---- CASTLE


def test_forming_clusters_accept_only_what_lacks_the_same():
    s, f = placed(ROWS, [0, 1, 1, 2, 1], PEOPLE, quasi=TWO, MISSING_MODE=t.OWN)
    hulls.load_tuple(s, f, 2)
    scratch = hulls.scratch_of(f)
    assert [castle.are_like(s, f, c, scratch) for c in range(f.tally[FORMING])] == [False, True, False]
    then = f.hulls[hulls.lost_then(s)]
    then[:3] = 0.5
    castle.exclude_unlike(s, f, scratch)
    assert then[:3].tolist() == [math.inf, 0.5, math.inf]


def test_where_nothing_is_missing_all_forming_clusters_do():
    s, f = placed([(0.1, 0.2), (0.3, 0.4)], [0, 1], [1, 2], quasi=TWO, MISSING_MODE=t.OWN)
    then = f.hulls[hulls.lost_then(s)]
    then[:2] = 0.5
    castle.exclude_unlike(s, f, hulls.scratch_of(f))
    assert then[:2].tolist() == [0.5, 0.5]
