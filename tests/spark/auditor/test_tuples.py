"""The audit of tuples in parts says what the audit on one machine says, of sound and of broken releases.

Parts are audited in this process; `test_on_spark.py` audits some of them on Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.auditor import AuditReport
from tests.auditor.in_parts import audit_in_parts, same_report
from tests.spark.auditor.releases import Evidence, make_evidence

Break = Callable[[Evidence], None]


def both(evidence: Evidence, folder: Path, **how: Any) -> tuple[AuditReport, AuditReport]:
    paths = evidence.write(folder, **how)
    return shoal.audit(**paths), audit_in_parts(**paths)


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_sound_release(tmp_path: Path, kind: str) -> None:
    here, there = both(make_evidence(), tmp_path, kind=kind)
    same_report(here, there)
    assert there.ok
    assert there.metrics["smallest_k"] == 6
    assert there.metrics["verdicts"]["dead"] > 0
    assert 0 < there.metrics["reused_share"] < 0.2
    assert not there.not_checked


@pytest.mark.parametrize("mode", [None, "covered"])
def test_a_sound_release_with_gaps(tmp_path: Path, mode: str | None) -> None:
    evidence = make_evidence()
    with_gaps(evidence)
    if mode is not None:
        rules = {**evidence.policy["anonymize"], "missing": mode}
        evidence.policy = {**evidence.policy, "anonymize": rules}
    here, there = both(evidence, tmp_path)
    same_report(here, there)
    assert there.findings == ()
    assert there.metrics["filled_cells"] == {"cells": 0, "at_root": 0, "columns": {}}


def one_too_few(evidence: Evidence) -> None:
    """Give all rows of a class to three people, of whom the last one is in another file."""
    rows = [at for at, row in enumerate(evidence.release) if row["age"]["lo"] == evidence.release[0]["age"]["lo"]]
    records = [one["row"] for one in evidence.trace if one["verdict"] == "released"]
    for turn, at in enumerate(rows):
        evidence.truth[records[at]]["id"] = f"few{turn % 3}"


def one_row_doubled(evidence: Evidence) -> None:
    evidence.trace[7] = {**evidence.trace[200]}
    evidence.release[7] = {**evidence.release[199]}


def leaked_identifier(evidence: Evidence) -> None:
    evidence.release[40]["note"] = evidence.truth[250]["id"]
    evidence.release[300]["note"] = "nobody"


def identifier_for_a_label(evidence: Evidence) -> None:
    evidence.release[44]["school"] = evidence.truth[300]["id"]


def label_that_does_not_cover(evidence: Evidence) -> None:
    released = [one["row"] for one in evidence.trace if one["verdict"] == "released"]
    evidence.release[90]["school"] = "low" if evidence.truth[released[90]]["school"] in "cd" else "high"


def range_that_does_not_cover(evidence: Evidence) -> None:
    for at in range(120, 126):
        evidence.release[at]["age"] = {"lo": 98, "hi": 99}


def other_work(evidence: Evidence) -> None:
    evidence.release[17]["work"] = "w9"


def one_value_in_a_class(evidence: Evidence) -> None:
    for one, row in zip((one for one in evidence.trace if one["verdict"] == "released"), evidence.release, strict=True):
        if one["group"] == 12:
            row["work"] = evidence.truth[one["row"]]["work"] = "w1"


def record_without_verdict(evidence: Evidence) -> None:
    del evidence.trace[30], evidence.release[30 - sum(one["verdict"] == "dead" for one in evidence.trace[:30])]


def refused_without_cause(evidence: Evidence) -> None:
    evidence.truth[next(one["row"] for one in evidence.trace if one["verdict"] == "dead")]["id"] = "someone"


def nobody_accepted(evidence: Evidence) -> None:
    evidence.truth[77]["id"] = None


def too_late(evidence: Evidence) -> None:
    evidence.policy = {**evidence.policy, "anonymize": {**evidence.policy["anonymize"], "deadline": 4}}


def wrong_carriers(evidence: Evidence) -> None:
    evidence.trace[100]["carriers"] = [5, 5]


def too_old_a_cluster(evidence: Evidence) -> None:
    for one in evidence.trace:
        if one["reused"]:
            one["group"] = max(one["group"] - 20, 0)


def mostly_one_person(evidence: Evidence) -> None:
    evidence.__dict__.update(make_evidence(clusters=30, size=12).__dict__)
    released = [one for one in evidence.trace if one["verdict"] == "released" and one["group"] == 3]
    for one in released[:8]:
        evidence.truth[one["row"]]["id"] = "often"


def in_arrival_order(evidence: Evidence) -> None:
    first = {}
    for one in evidence.trace:
        first.setdefault(one["group"], one)
        if one["group"] is not None and one["row"] < first[one["group"]]["row"]:
            first[one["group"]]["row"], one["row"] = one["row"], first[one["group"]]["row"]
            first[one["group"]]["delay"], one["delay"] = one["delay"], first[one["group"]]["delay"]
    released = (one["row"] for one in evidence.trace if one["verdict"] == "released")
    for row, shown in zip(released, evidence.release, strict=True):
        shown["work"] = evidence.truth[row]["work"]


def events_out_of_order(evidence: Evidence) -> None:
    """Publish a whole cluster after others; the two are in different files."""
    moved = [at for at, one in enumerate(evidence.trace) if one["group"] == 10 and not one["reused"]]
    shown = [at for at, one in enumerate(x for x in evidence.trace if x["verdict"] == "released") if one["group"] == 10]
    shown = shown[: len(moved)]
    for rows, places in ((evidence.trace, moved), (evidence.release, shown)):
        taken = [rows[at] for at in places]
        del rows[places[0] : places[-1] + 1]
        rows += taken


def identifying_shop(evidence: Evidence) -> None:
    released = [one["row"] for one in evidence.trace if one["verdict"] == "released"]
    for at, row in enumerate(released):
        evidence.truth[row]["shop"] = evidence.release[at]["shop"] = f"{evidence.truth[row]['id']}'s" if at % 5 else "x"


def identifying_together(evidence: Evidence) -> None:
    stream = {"person": "id", "carry": ["shop", "till"]}
    evidence.policy = {**evidence.policy, "stream": stream}
    for row in evidence.truth:
        row["till"] = None
    released = [one["row"] for one in evidence.trace if one["verdict"] == "released"]
    for at, row in enumerate(released):
        both = {"shop": f"s{at % 19}", "till": f"t{at // 19}"}
        evidence.truth[row] |= both
        evidence.release[at] |= both


def with_gaps(evidence: Evidence) -> None:
    """Let nobody of every third cluster have a school: neither records nor rows show one."""
    released = (one for one in evidence.trace if one["verdict"] == "released")
    for one, row in zip(released, evidence.release, strict=True):
        if one["group"] % 3 == 0:
            evidence.truth[one["row"]]["school"] = row["school"] = None
            one["carriers"] = [one["carriers"][0], 0]


def pattern_of_few(evidence: Evidence) -> None:
    """Two people of a cluster lack an age and keep that; one of another cluster is shown although it has none."""
    with_gaps(evidence)
    released = [one["row"] for one in evidence.trace if one["verdict"] == "released"]
    for at in (50, 51):
        evidence.truth[released[at]]["age"] = evidence.release[at]["age"] = None
    evidence.truth[released[200]]["age"] = None


def filled_unchanged_values(evidence: Evidence) -> None:
    released = [one["row"] for one in evidence.trace if one["verdict"] == "released"]
    for at, name in ((7, "work"), (150, "shop"), (300, "shop")):
        evidence.truth[released[at]][name] = None


def hidden_values(evidence: Evidence) -> None:
    for one, row in zip((one for one in evidence.trace if one["verdict"] == "released"), evidence.release, strict=True):
        if one["group"] == 12:
            row["school"] = None


BROKEN: dict[Break, set[str]] = {
    one_too_few: {"below-k", "group-below-k"},
    one_row_doubled: {"decided-twice", "lost"},
    leaked_identifier: {"extra-column", "raw-identifier"},
    identifier_for_a_label: {"unknown-label", "raw-identifier", "group-differs", "not-covered"},
    label_that_does_not_cover: {"not-covered", "group-differs"},
    range_that_does_not_cover: {"not-covered"},
    other_work: {"wrong-sensitive"},
    one_value_in_a_class: {"below-l"},
    record_without_verdict: {"lost"},
    refused_without_cause: {"dead-without-cause"},
    nobody_accepted: {"unusable-accepted"},
    too_late: {"late"},
    wrong_carriers: {"wrong-carriers"},
    too_old_a_cluster: {"stale-reuse"},
    mostly_one_person: {"one-person-share"},
    identifying_shop: {"identifying-carry"},
    identifying_together: {"identifying-together"},
    in_arrival_order: {"in-arrival-order"},
    events_out_of_order: {"decision-order", "split-cluster"},
    pattern_of_few: {"below-k", "group-differs", "wrong-nulls", "filled-cells"},
    filled_unchanged_values: {"wrong-sensitive", "wrong-carry", "filled-cells"},
    hidden_values: {"wrong-nulls"},
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_release(tmp_path: Path, broken: Break) -> None:
    evidence = make_evidence()
    broken(evidence)
    here, there = both(evidence, tmp_path)
    assert BROKEN[broken] <= {found.code for found in there.findings}
    same_report(here, there)


def test_a_trace_of_another_length(tmp_path: Path) -> None:
    evidence = make_evidence()
    del evidence.release[-1]
    here, there = both(evidence, tmp_path)
    same_report(here, there)
    assert {found.code for found in there.violations} == {"release-count"}
