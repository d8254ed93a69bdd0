"""A flush of LeastLoss suppresses no row that some arrangement would publish: brute force over all arrangements."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.methods.tuples.test_least_loss_twin import both, records
from tests.reference.least_loss import LeastLossTwin
from tests.reference.tuples import Held, with_values


def partitions(tuples: list[Held]) -> Iterator[list[list[Held]]]:
    """All ways to divide tuples into groups."""
    if not tuples:
        yield []
        return
    first, *rest = tuples
    for groups in partitions(rest):
        yield [[first], *groups]
        for at in range(len(groups)):
            yield [*groups[:at], [first, *groups[at]], *groups[at + 1 :]]


def most_reused(twin: LeastLossTwin, left: list[Held]) -> int:
    """The most tuples that join published clusters one after the other, in the best order."""
    most = 0
    for at, one in enumerate(left):
        for cluster in twin.pool:
            if twin.may_reuse(one, cluster):
                before = cluster.rows, cluster.classes
                cluster.rows = cluster.rows + Counter([one.person])
                cluster.classes = with_values(cluster.classes, one.sensitive)
                most = max(most, 1 + most_reused(twin, left[:at] + left[at + 1 :]))
                cluster.rows, cluster.classes = before
        if most == len(left):
            break
    return most


def fewest_suppressed(twin: LeastLossTwin) -> int:
    """The least number of pending tuples that are in no publishable group and cannot join a published cluster."""

    def is_publishable(group: list[Held]) -> bool:
        is_alike = twin.missing != "own" or len({one.carried for one in group}) == 1
        return is_alike and twin.is_publishable(group)

    twin.forget_old(twin.now)
    tuples, least, tried = list(twin.held.values()), len(twin.held), set()
    for groups in partitions(tuples):
        left = [one for group in groups if not is_publishable(group) for one in group]
        numbers = frozenset(one.number for one in left)
        if numbers in tried:
            continue
        tried.add(numbers)
        if sum(twin.best_reusable(one) is None for one in left) < least or twin.max_share is not None:
            least = min(least, len(left) - most_reused(twin, left))
    return least


@pytest.mark.parametrize("missing", ["own", "covered"])
@pytest.mark.parametrize("diversity", [{}, {"l": 2}, {"max_share": 0.5}, {"max_share": 0.5, "l": 2}])
def test_a_flush_suppresses_as_few_as_can_be(diversity, missing, monkeypatch):
    for seed in range(60):
        draw = random.Random(seed)
        k, deadline = draw.choice([2, 3]), draw.choice([4, 6, 8])
        rows = records(draw, draw.choice([7, 9, 14]), missing=draw.choice([0.0, 0.3]), people=draw.choice([3, 5, 90]))
        expected: list[int] = []
        flush = LeastLossTwin.flush

        def spy(twin, flush=flush, expected=expected):
            expected.append(fewest_suppressed(twin))
            return flush(twin)

        monkeypatch.setattr(LeastLossTwin, "flush", spy)
        settings = {"timed": False, "labels": 1, "candidates": 0, "k": k, "deadline": deadline, "reuse": 9, **diversity}
        settings["missing"] = missing
        _, got, _, decisions = both(rows, **settings)
        monkeypatch.setattr(LeastLossTwin, "flush", flush)
        assert len(got) == len(decisions)
        suppressed = sum(verdict == "suppressed" and delay < deadline for _, verdict, _, delay, *_ in got)
        assert suppressed == expected[0], seed
