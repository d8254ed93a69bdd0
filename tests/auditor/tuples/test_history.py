"""People in stretches of a release whose times are not clear: nothing that was published later may count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from shoal.auditor.relation import Relation, Texts
from shoal.auditor.tuples.history import History, Times, look_at_history

PROMISE: Any = SimpleNamespace(k=2, reuse=10, groups=False)


def found(rows: dict[str, Any]) -> list[tuple[int, ...]]:
    """The rows with too few people in the ten seconds up to them, in a trace with damaged times."""
    count = len(rows["row"])
    rest = {"class": np.zeros(count, np.int64), "people": np.full(count, 9), "event": np.full(count, -1)}
    names = [f"person {at}" for at in range(count)]
    columns = {name: np.array(values) for name, values in rows.items()}
    relation = Relation({
        **rest, **columns, "judged": np.ones(count, np.bool_), "person": Texts(np.arange(count), names)
    })  # fmt: skip
    times = Times(are_known=True, are_clear=False, has_events="event" in rows)
    return [one.rows for one in look_at_history(PROMISE, times, relation).findings]


@pytest.mark.parametrize(("reused_at", "expected"), [(5, []), (50, [(2,)])])
def test_a_reused_row_before_a_later_cluster_of_its_class(reused_at: int, expected: list[tuple[int, ...]]) -> None:
    decided = [0, 0, reused_at, 100, 100]
    rows = {"row": [0, 1, 2, 3, 4], "group": [1, 1, 1, 2, 2], "formed": [True, True, False, True, True]}
    assert found({**rows, "decided": decided, "decided_by": decided}) == expected


def test_the_order_of_events_of_one_time_does_not_depend_on_other_classes() -> None:
    rows = {"row": [0, 1, 2], "class": [0, 1, 1], "event": [7, 9, 7], "people": [1, 9, 9], "group": [1, 1, 2]}
    rows = {**rows, "formed": [True] * 3, "decided": [0] * 3, "decided_by": [0] * 3}
    assert found(rows) == found({name: own[1:] for name, own in rows.items()}) == [(2,)]


def test_a_latest_time_before_the_earliest_one_ends_a_stretch() -> None:
    own, place = np.zeros(2, np.int64), np.array([100, 200])
    history = History(own, np.array([0, 1]), np.array([0, 1]), place, until=np.array([50, 200]))
    assert history.failing(10, 2).tolist() == [True, True]
