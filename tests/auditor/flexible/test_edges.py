"""Edges of what is fixed before the first release, of rounds of grouping, and of the grid."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shoal.auditor.flexible.trace import Arrivals, count_arrivals, decided, last_of
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.trace import DEAD, RELEASED
from tests.auditor.flexible.naive import HOURS, Run, records


@pytest.mark.parametrize(
    ("usable", "last_pending", "seen"), [(10, 0, 10), (11, 0, 10), (11, 10, 10), (11, 11, 11), (9, 0, 0), (9, 1, 9)]
)
def test_records_that_a_round_of_grouping_saw(usable: int, last_pending: int, seen: int) -> None:
    assert Arrivals(usable, None, last_pending).seen(10) == seen


def test_a_crowd_that_is_a_whole_window(tmp_path: Path) -> None:
    crowd = {"device": "G 1", "place": "a", "hour": 3, "net": "lte", "mbps": 1.0}
    run = Run(tmp_path, [{**crowd, "maid": f"m{n}"} for n in range(4)], publishes=False, window=4)
    assert [(found.code, found.count) for found in run.audit().warnings] == [("held-back", 4)]
    run.promised["anonymize"]["window"] = 5
    assert run.audit().warnings == ()


def test_a_domain_of_one_cell_may_be_published(tmp_path: Path) -> None:
    run = Run(tmp_path, records(200, seed=2))
    for row in run.release:
        row["hour"] = row["hour"] and {"lo": 0, "hi": HOURS}
    assert "whole-domain" in run.codes()
    run.promised["anonymize"]["quasi"]["hour"]["grid"] = HOURS
    assert "whole-domain" not in run.codes()


def test_a_share_that_is_not_exact_in_binary(tmp_path: Path) -> None:
    run = Run(tmp_path, records(50), k=100, p_sparse=0.07)
    assert 0.07 * 100 > 7
    assert run.audit().metrics["k_s"] == 7


def test_a_record_that_is_decided_twice_came_with_its_first_entry() -> None:
    entries = Relation({
        "entry": np.arange(4), "record": np.array([2, 0, 2, 9]),
        "verdict": np.array([RELEASED, DEAD, RELEASED, RELEASED]),
        "delay": np.array([5, -1, 0, 0]), "group": np.zeros(4, np.int64), "reason": Texts(np.full(4, -1), []),
    })  # fmt: skip
    known = Relation({"record": np.arange(4), "usable": np.array([False, True, True, True])})
    rows = decided(entries, known)
    order = np.lexsort((rows["entry"], rows["record"]))
    rows = rows.take(order)
    assert rows["record"].tolist() == [0, 1, 2, 2, 3, 9]
    assert rows["entry"].tolist() == [1, -1, 0, 2, -1, 3]
    assert rows["is_first"].tolist() == [True, True, True, False, True, True]
    assert rows["exists"].tolist() == [True] * 5 + [False]
    found = count_arrivals([rows.take(np.arange(3)), rows.take(np.arange(3, 6))])
    assert (found.usable, found.before_first, found.last_pending) == (3, 2, 2)
    assert last_of([0, 1, 3, 4], [rows]) == [-1, 1, 3, -1]
