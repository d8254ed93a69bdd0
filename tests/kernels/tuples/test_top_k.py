"""The least of many, as plain Python."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.reference.plain import plain_kernels

selecting = plain_kernels("tuples.least_loss.top_k").top_k
INF = np.inf


@pytest.mark.parametrize("seed", range(60))
def test_the_least_are_listed_and_the_earliest_of_equals(seed):
    draw = random.Random(seed)
    count, first = draw.choice([1, 7, 40]), draw.choice([0, 3])
    scale = draw.choice([1, 4, 10**6])
    keys = np.array([draw.choice([draw.randrange(-scale, scale + 1) / scale, INF, 0.5]) for _ in range(count + first)])
    wanted, places = draw.randrange(1, count + 1), np.zeros(count + 1, dtype=np.int64)
    bound, shared, spare = selecting.bound_least(keys, first, len(keys), wanted)
    listed = selecting.list_up_to(keys, first, len(keys), bound, shared, spare, places, 1)
    finite = [place for place in range(first, len(keys)) if keys[place] < INF]
    assert places[1:listed].tolist() == sorted(sorted(finite, key=lambda place: (keys[place], place))[:wanted])


def test_keys_that_differ_by_nothing_but_the_last_bit():
    keys = np.array([np.nextafter(1.0, 2.0), 1.0, np.nextafter(1.0, 2.0), 0.0])
    assert selecting.bound_least(keys, 0, 4, 3) == (1.0, np.nextafter(1.0, 2.0), 1)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_the_least_and_the_most_of_a_stretch(count):
    keys = np.array([-5.0, *[float(7 * i % 5) for i in range(count)], INF, -5.0])
    inside = keys[1 : 1 + count].tolist()
    assert selecting.least_between(keys, 1, 2 + count) == min([*inside, INF])
    assert selecting.most_between(keys, 1, 2 + count) == max([*inside, -INF])
    assert selecting.count_up_to(keys, 1, 2 + count, 2.0) == sum(key <= 2 for key in inside)
