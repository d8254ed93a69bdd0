"""Local recoding from a policy: run, files next to the release, audit with trace, and planted violations."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.auditor.attacks.released_sets import read_set_evidence
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.policy import read_policy
from shoal.auditor.report.evidence_report import report_evidence
from shoal.errors import PolicyError
from shoal.pipeline import Pipeline
from shoal.pipeline.doctor.doctor import examine
from shoal.policy import parse_policy
from tests.e2e.scene import shoal as command

TREE = {
    "*": {"a": ["a1", "a2", "a3", "a4"], "b": ["b1", "b2", "b3"], "c": {"d": ["c1", "c2"], "e": ["c3", "c4", "c5"]}}
}
LEAVES = ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1", "c2", "c3", "c4", "c5"]
ABOVE = {item: shoal.Hierarchy.from_nested(TREE).path(item) for item in LEAVES}


def people(seed: int, rows: int = 150) -> list[list[str]]:
    draw = Random(seed)
    weights = [draw.choice((0.05, 0.3, 1)) for _ in LEAVES]
    return [sorted(set(draw.choices(LEAVES, weights, k=draw.randint(1, 4)))) for _ in range(rows)]


def policy(*, way: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    generalize = way or {"hierarchy": {"kind": "nested", "tree": TREE}}
    rules = {"method": "k^m-apriori", "item": "items", "k": 3, "m": 2, "recoding": "local", "generalize": generalize}
    return {
        "stream": {}, "anonymize": rules | more, "source": {"kind": "jsonl", "path": "in.jsonl"},
        "sink": {"kind": "jsonl", "path": "out.jsonl"}, "trace": {"path": "trace.parquet"},
    }  # fmt: skip


def run(folder: Path, sets: list[list[str]], content: dict[str, Any]) -> Any:
    (folder / "in.jsonl").write_text("".join(json.dumps({"items": one}) + "\n" for one in sets))
    return Pipeline(parse_policy(content, folder=folder)).run()


def audit(folder: Path, content: dict[str, Any], *, has_trace: bool = True) -> Any:
    trace = folder / "trace.parquet" if has_trace else None
    return shoal.audit(folder / "out.jsonl", policy=content, truth=folder / "in.jsonl", trace=trace)


def released(folder: Path) -> tuple[list[list[str]], dict[str, list[str]]]:
    rows = [json.loads(line)["items"] for line in (folder / "out.jsonl").read_text().splitlines()]
    return rows, json.loads((folder / "out.jsonl.blocks.json").read_text())


def write(folder: Path, rows: list[list[str]]) -> None:
    (folder / "out.jsonl").write_text("".join(json.dumps({"items": row}) + "\n" for row in rows))


def kinds(report: Any) -> set[str]:
    return {finding.code for finding in report.findings}


WAYS = [None, {"balanced": 3}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(6))
def test_a_run_keeps_the_promise_and_the_audit_agrees(tmp_path: Path, seed: int, way: dict[str, Any] | None) -> None:
    sets, content = people(seed), policy(way=way)
    summary = run(tmp_path, sets, content)
    rows, blocks = released(tmp_path)
    positions = pq.read_table(tmp_path / "trace.parquet").to_pydict()["position"]
    for own, at in zip(sets, positions, strict=True):
        label_of = {item: [label for label in rows[at] if item in blocks[label]] for item in own}
        assert all(len(labels) == 1 for labels in label_of.values())
        for size in (1, 2):
            for known in combinations(own, size):
                labels = {label_of[item][0] for item in known}
                assert sum(labels <= set(row) for row in rows) >= 3
    assert all(row == sorted(row) for row in rows)
    report = audit(tmp_path, content)
    assert report.ok, report.findings
    assert report.metrics["records_that_differ"] == 0
    assert report.metrics["smallest_k"] >= 3
    assert report.metrics["risk_after_sets_of_2"]["smallest support"] >= 3
    assert summary.error == pytest.approx(report.metrics["ncp"], rel=0.06)
    assert summary.blocks_before == len({item for own in blocks.values() for item in own})
    certificate = json.loads((tmp_path / "out.jsonl.certificate.json").read_text())
    assert (certificate["recoding"], certificate["settings"]["recoding"]) == ("local", "local")


def test_dropped_items_and_local_recoding_together(tmp_path: Path) -> None:
    sets, content = [*people(1), ["a4"], ["c5", "a4"]], policy(drop_rare=3)
    run(tmp_path, sets, content)
    report = audit(tmp_path, content)
    assert report.ok, report.findings


def test_without_a_trace_only_the_labels_are_counted(tmp_path: Path) -> None:
    content = policy()
    run(tmp_path, people(2), content)
    report = audit(tmp_path, content, has_trace=False)
    assert report.ok
    assert any("the trace is needed" in one for one in report.not_checked)


def planted(folder: Path, content: dict[str, Any], change: Any) -> Any:
    """The audit of a release whose rows were changed."""
    rows, _ = released(folder)
    change(rows)
    write(folder, rows)
    return audit(folder, content)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    run(tmp_path, people(3), policy())
    return tmp_path


def truth_of(folder: Path) -> list[tuple[int, list[str]]]:
    """The row of every record, and its items."""
    positions = pq.read_table(folder / "trace.parquet").to_pydict()["position"]
    sets = [json.loads(line)["items"] for line in (folder / "in.jsonl").read_text().splitlines()]
    return list(zip(positions, sets, strict=True))


def test_a_label_that_is_too_precise_is_found(release: Path) -> None:
    """Records are published as they are: true, but pairs of items belong to fewer than 3 people."""

    def change(rows: list[list[str]]) -> None:
        for at, own in truth_of(release):
            rows[at] = own

    found = kinds(planted(release, policy(), change))
    assert {"below-k", "itemset-below-k", "certificate-differs"} <= found
    assert "not-the-image" not in found


def test_one_record_that_is_more_precise_than_all_others_is_found(release: Path) -> None:
    rows, _ = released(release)
    at, own = next(
        (at, own)
        for at, own in truth_of(release)
        if any(sum(set(pair) <= set(row) for row in rows) < 2 for pair in combinations(own, 2))
    )

    def change(rows: list[list[str]]) -> None:
        rows[at] = own

    assert "below-k" in kinds(planted(release, policy(), change))


def test_a_label_above_another_one_is_found(release: Path) -> None:
    def change(rows: list[list[str]]) -> None:
        row = next(row for row in rows if any(label in LEAVES for label in row))
        row.append(ABOVE[next(label for label in row if label in LEAVES)][1])

    found = kinds(planted(release, policy(), change))
    assert "not-an-antichain" in found


def test_a_label_of_another_item_is_found(release: Path) -> None:
    def change(rows: list[list[str]]) -> None:
        row = next(row for row in rows if len(row) == 1 and row[0] in ABOVE)
        row[0] = next(item for item in LEAVES if item != row[0])

    found = kinds(planted(release, policy(), change))
    assert {"not-the-image", "item-without-label"} <= found


def test_a_lost_label_is_found(release: Path) -> None:
    def change(rows: list[list[str]]) -> None:
        next(row for row in rows if len(row) > 1).pop()

    assert "item-without-label" in kinds(planted(release, policy(), change))


def test_a_global_policy_convicts_a_local_release(release: Path) -> None:
    content = policy(recoding="global")
    found = kinds(audit(release, content))
    assert {"not-an-antichain", "certificate-differs"} <= found


def test_a_certificate_of_global_recoding_is_refused(release: Path) -> None:
    path = release / "out.jsonl.certificate.json"
    content = json.loads(path.read_text())
    del content["recoding"]
    path.write_text(json.dumps(content))
    report = audit(release, policy())
    assert any("recoding" in finding.sentence for finding in report.findings if finding.code == "certificate-differs")


@pytest.mark.parametrize("change", ["lost", "foreign", "overlap"])
def test_wrong_blocks_files_are_found(release: Path, change: str) -> None:
    path = release / "out.jsonl.blocks.json"
    blocks = json.loads(path.read_text())
    label = next(label for label, items in blocks.items() if len(items) > 1)
    if change == "lost":
        blocks.pop(label)
    else:
        blocks[label] = [*blocks[label], "zz"] if change == "foreign" else blocks[label][:-1]
    path.write_text(json.dumps(blocks))
    expected = {"lost": "unknown-label", "foreign": "foreign-item", "overlap": "blocks-differ"}
    assert expected[change] in kinds(audit(release, policy()))


def test_overlapping_blocks_of_a_balanced_tree_are_found(tmp_path: Path) -> None:
    content = policy(way={"balanced": 3})
    run(tmp_path, people(3), content)
    path = tmp_path / "out.jsonl.blocks.json"
    blocks = json.loads(path.read_text())
    large = [label for label, items in blocks.items() if len(items) > 1]
    apart = [(one, other) for one, other in combinations(large, 2) if not set(blocks[one]) & set(blocks[other])]
    one, other = apart[0]
    blocks[one].append(blocks[other][0])
    path.write_text(json.dumps(blocks))
    assert "item-in-two-blocks" in kinds(audit(tmp_path, content))


def test_graphs_and_sampled_sizes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("one,other\na,b\n")
    with pytest.raises(PolicyError, match="not for graph"):
        parse_policy(policy(way={"graph": "edges.csv"}), folder=tmp_path)
    with pytest.raises(PolicyError, match="needs every size counted"):
        parse_policy(policy(method="k^m", sigma=0.99), folder=tmp_path)
    assert parse_policy(policy(method="k^m", sigma=1), folder=tmp_path).anonymize.recoding == "local"


def test_the_default_does_not_change_the_fingerprint(tmp_path: Path) -> None:
    left_out = policy()
    del left_out["anonymize"]["recoding"]
    prints = [
        parse_policy(one, folder=tmp_path).fingerprint() for one in (left_out, policy(recoding="global"), policy())
    ]
    assert prints[0] == prints[1] != prints[2]


def test_attackers_match_every_record_that_may_contain_what_they_know(release: Path) -> None:
    files = {"truth": release / "in.jsonl", "trace": release / "trace.parquet"}
    attacks = shoal.attack(release / "out.jsonl", policy=policy(), **files, targets=500).attacks
    rows, blocks = released(release)
    sets = [json.loads(line)["items"] for line in (release / "in.jsonl").read_text().splitlines()]
    covered = [{item for label in row for item in blocks[label]} for row in rows]
    evidence = read_set_evidence(
        read_policy(policy()), release / "out.jsonl", **files, settings=Settings(None, 500, 1, print)
    )
    code = {item: number for number, item in enumerate(evidence.known.labels)}
    for pair in {pair for one in sets for pair in combinations(one, 2)}:
        by_hand = sum(own.issuperset(pair) for own in covered)
        assert evidence.matching(np.array([code[item] for item in pair])) == by_hand >= 3
    found = {attack.name: attack for attack in attacks}
    assert 0 < found["2 known items"].success.value <= 1 / 3
    assert {name for name, attack in found.items() if attack.why_not} == {
        "5 known items", "whole record", "item behind a label", "minimality",
    }  # fmt: skip


def test_one_item_for_each_person_is_matched_as_by_hand(tmp_path: Path) -> None:
    run(tmp_path, [[item] for item in ("a1", "a1", "a1", "a2", "a3", "b1", "b1", "b1")], policy())
    rows, _ = released(tmp_path)
    assert sorted(rows) == [["a"]] * 5 + [["b1"]] * 3
    (one,) = (attack for attack in shoal.attack(tmp_path / "out.jsonl", policy=policy(), truth=tmp_path / "in.jsonl",
              trace=tmp_path / "trace.parquet").attacks if attack.name == "1 known item")  # fmt: skip
    assert one.success.value == pytest.approx((5 / 5 + 3 / 3) / 8)


def test_the_report_is_written(release: Path) -> None:
    found = report_evidence(
        release / "out.jsonl", release / "in.jsonl", policy(), trace=release / "trace.parquet"
    ).to_dict()
    rows, _ = released(release)
    named = sum(label in LEAVES for row in rows for label in row)
    items = sum(len(json.loads(line)["items"]) for line in (release / "in.jsonl").read_text().splitlines())
    measured = {measure["name"]: measure for measure in found["utility"]}
    assert measured["items with their names"]["value"] == pytest.approx(named / items)
    assert measured["support of frequent pairs"]["why_not"]


def test_spark_refuses(tmp_path: Path) -> None:
    from shoal.spark.sets.run import check_sampler

    with pytest.raises(PolicyError, match="run on one machine"):
        check_sampler(parse_policy(policy(), folder=tmp_path).anonymize)


def test_data_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({"items": people(4)})
    generalize = {"hierarchy": {"kind": "nested", "tree": TREE}}
    made = {way: shoal.anonymize(frame, items="items", k=3, m=2, method="k^m-apriori", recoding=way,
                                 generalize=generalize) for way in ("global", "local")}  # fmt: skip
    assert made["local"].metrics["error"] < made["global"].metrics["error"]
    assert 0 < made["local"].metrics["occurrences_generalized"] < made["global"].metrics["occurrences_generalized"]


@pytest.mark.parametrize(
    ("hierarchy", "has_trace", "words"),
    [
        ({"kind": "nested", "tree": TREE}, False, "the audit cannot check that they are true"),
        ({"kind": "suffix"}, True, "needs a hierarchy that lists its items"),
        ({"kind": "nested", "tree": TREE}, True, None),
    ],
)
def test_the_doctor(tmp_path: Path, hierarchy: dict[str, Any], has_trace: bool, words: str | None) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"items": one}) + "\n" for one in people(5)))
    content = policy(way={"hierarchy": hierarchy})
    if not has_trace:
        del content["trace"]
    found = [one.sentence for one in examine(parse_policy(content, folder=tmp_path)) if one.topic == "recoding"]
    assert (words is None and not found) or (words is not None and words in found[0])


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"items": one}) + "\n" for one in people(5)))
    (tmp_path / "policy.toml").write_text(
        """
[anonymize]
method = "k^m-apriori"
item = "items"
k = 3
m = 2
recoding = "local"

[anonymize.generalize]
balanced = 3

[source]
kind = "jsonl"
path = "in.jsonl"

[sink]
kind = "jsonl"
path = "out.jsonl"

[trace]
path = "trace.parquet"
"""
    )
    ran = command("run", tmp_path / "policy.toml")
    assert "labels of its own precision" in ran.out.decode() + ran.err
    assert "items in at least one record" in ran.out.decode()
    audited = command(
        "audit", tmp_path / "out.jsonl", "--policy", tmp_path / "policy.toml", "--truth", tmp_path / "in.jsonl",
        "--trace", tmp_path / "trace.parquet",
    )  # fmt: skip
    assert audited.code == 0, audited.out.decode() + audited.err
