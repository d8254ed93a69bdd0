"""The auditor at the very edge of what is allowed: one step further is a violation, not two."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.auditor import audit
from shoal.auditor.hierarchies.hierarchy import Flat
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.rows.classes import with_classes
from shoal.auditor.rows.quasi import LabelColumn
from shoal.auditor.rows.rules import LabelRule
from shoal.auditor.tuples.timeline import event_clock
from tests.auditor.tuples.naive import RELEASE, TRACE, TRUTH, Run, policy, records, table


def test_the_clock_starts_anew_only_beyond_the_gap():
    time, person = np.array([900, 910, 5, 7]), np.array([0, 0, 1, 0])
    every = np.ones(4, np.bool_)
    assert event_clock(time, person, every, 904).tolist() == [900, 910, 5, 7]
    assert event_clock(time, person, every, 905).tolist() == [900, 910, 910, 910]


def test_reuse_one_arrival_after_its_age():
    run = Run(records(120, people=50, missing=0.2))
    decided = [entry["row"] + entry["delay"] for entry in run.trace]
    made = {entry["group"]: at for entry, at in zip(run.trace, decided, strict=True) if not entry["reused"]}
    ages = [at - made[entry["group"]] for entry, at in zip(run.trace, decided, strict=True) if entry["reused"]]
    run.promised["anonymize"]["reuse"] = max(ages)
    assert "stale-reuse" not in run.codes()
    run.promised["anonymize"]["reuse"] = max(ages) - 1
    assert "stale-reuse" in run.codes()


@pytest.mark.parametrize(("decided", "lost"), [(11, 0), (12, 1), (13, 2)])
def test_a_record_that_is_due_and_not_decided(decided, lost):
    """Record 0 is due at arrival 12 and record 1 at 13; neither was decided when others left."""
    same = {"age": 5, "tree": "ash", "ill": "gout", "shop": "s", "ts": 0}
    truth = [{"id": f"p{number}", **same} for number in range(14)]
    shown = {"age": {"lo": 5, "hi": 5}, "tree": "ash", "ill": "gout", "shop": "s"}
    trace = [
        {"row": row, "verdict": "released", "group": 0, "delay": decided - row, "k": 3, "reused": False,
         "carriers": [3, 3]}
        for row in (2, 3, 5)
    ]  # fmt: skip
    promised = policy(method="least-loss")
    report = audit(table([shown] * 3, RELEASE), table(truth, TRUTH), table(trace, TRACE), promised)
    assert sum(found.count for found in report.violations if found.code == "lost") == lost


def test_a_row_without_a_person_counts_for_no_class():
    rows = Relation({
        "row": np.arange(6),
        "judged": np.ones(6, np.bool_),
        "person": Texts(np.array([0, 1, -1, 2, -1, 3]), list("abcd")),
        "place: label": Texts(np.array([0, 0, 0, 1, 1, 1]), ["north", "south"]),
    })  # fmt: skip
    place = LabelColumn(LabelRule("place", Flat({"north", "south"}).as_tree(), 1.0))
    assert with_classes([place], rows)["people"].tolist() == [2, 2, 2, 2, 2, 2]


@pytest.mark.parametrize(("name", "bad"), [("id", None), ("age", 101), ("tree", "oak")])
def test_every_reason_to_be_dead_is_looked_into(name, bad):
    truth = records(120)
    good, truth[7][name] = truth[7][name], bad
    run = Run(truth)
    assert run.audit().warnings == ()
    truth[7][name] = good
    assert [found.code for found in run.audit().warnings] == ["dead-without-cause"]


@pytest.mark.parametrize(
    ("kept", "broken", "code"),
    [
        ({"t": 0.25}, {"t": 0.249}, "above-t"),
        ({"entropy_l": 1.754}, {"entropy_l": 1.756}, "below-entropy-l"),  # exp(H(3/4, 1/4)) = 1.7548
        ({"l": 2}, {"l": 3}, "below-l"),
    ],
)
def test_diversity_is_measured_to_the_last_digits(kept, broken, code):
    shown = {"age": {"lo": 5, "hi": 5}, "tree": "ash", "shop": "s"}
    release = table([{**shown, "ill": ill} for ill in ("gout", "gout", "gout", "none")], RELEASE)
    declared = {"reference": {"ill": {"gout": 0.5, "none": 0.5}}}
    for rules, expected in ((kept, []), (broken, [code])):
        given = policy(**rules, **(declared if "t" in rules else {}))
        assert [found.code for found in audit(release, policy=given).violations] == expected


@pytest.mark.parametrize("row", [None, -1, 120])
@pytest.mark.parametrize("truth", [True, False])
def test_an_entry_of_the_trace_on_no_record(row, truth):
    run = Run(records(120))
    run.trace[3]["row"] = row
    is_seen = truth or row != 120  # their number is known from the truth only
    assert ("trace-row" in run.codes(truth=truth)) == is_seen
