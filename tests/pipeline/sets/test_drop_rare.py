"""Rare items may be dropped: exactly those, with the loss counted, and k^m holds for the others."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import InputError, PolicyError
from shoal.pipeline import Pipeline
from shoal.policy import parse_policy
from tests.e2e.scene import shoal as command

TREE = {
    "*": {"a": ["a1", "a2", "a3", "a4"], "b": ["b1", "b2", "b3"], "c": {"d": ["c1", "c2"], "e": ["c3", "c4", "c5"]}}
}
LEAVES = ["a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1", "c2", "c3", "c4", "c5"]


def people(seed: int, rows: int = 60) -> list[list[str]]:
    """Sets in which some items are rare, and some leaves of the tree are never used."""
    draw = Random(seed)
    weights = [draw.choice((0, 0.02, 0.2, 1)) for _ in LEAVES]
    weights[0], weights[5] = 1, 1
    return [sorted(set(draw.choices(LEAVES, weights, k=draw.randint(1, 4)))) for _ in range(rows)]


def policy(*, least: int | None, k: int = 4, m: int = 2, balanced: bool = False) -> dict[str, Any]:
    generalize = {"balanced": 3} if balanced else {"hierarchy": {"kind": "nested", "tree": TREE}}
    rules = {"method": "k^m-apriori", "item": "items", "k": k, "m": m, "generalize": generalize}
    rules |= {"drop_rare": least} if least is not None else {}
    return {
        "stream": {}, "anonymize": rules, "source": {"kind": "jsonl", "path": "in.jsonl"},
        "sink": {"kind": "jsonl", "path": "out.jsonl"}, "trace": {"path": "trace.parquet"},
    }  # fmt: skip


def run(folder: Path, sets: list[list[str]], content: dict[str, Any]) -> Any:
    (folder / "in.jsonl").write_text("".join(json.dumps({"items": one}) + "\n" for one in sets))
    return Pipeline(parse_policy(content, folder=folder)).run()


def audit(folder: Path, content: dict[str, Any], trace: Path | None = None) -> Any:
    return shoal.audit(folder / "out.jsonl", policy=content, truth=folder / "in.jsonl", trace=trace)


def released(folder: Path) -> tuple[list[list[str]], dict[str, list[str]]]:
    rows = [json.loads(line)["items"] for line in (folder / "out.jsonl").read_text().splitlines()]
    return rows, json.loads((folder / "out.jsonl.blocks.json").read_text())


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_against_brute_force(tmp_path: Path, seed: int, balanced: bool) -> None:
    sets, content = people(seed), policy(least=3, balanced=balanced)
    summary = run(tmp_path, sets, content)
    counted = Counter(item for one in sets for item in one)
    rare = {item for item, count in counted.items() if count < 3}
    kept = [[item for item in one if item not in rare] for one in sets]
    rows, blocks = released(tmp_path)
    block_of = {item: label for label, items in blocks.items() for item in items}
    assert set(block_of) == set(counted) - rare, "exactly what enough people have is in a block"
    images = sorted(sorted({block_of[item] for item in one}) for one in kept if one)
    assert sorted(map(sorted, rows)) == images
    for size in (1, 2):
        known = {pair for one in kept for pair in combinations(one, size)}
        for pair in known:
            labels = {block_of[item] for item in pair}
            assert sum(labels <= set(row) for row in rows) >= 4
    lost = sum(counted[item] for item in rare)
    assert (summary.items_dropped, summary.entries_dropped) == (len(rare), lost)
    assert summary.entries_dropped_share == pytest.approx(lost / counted.total())
    assert summary.empty_records == sum(not one for one in kept)
    report = audit(tmp_path, content, tmp_path / "trace.parquet")
    assert report.ok, report.text()
    assert report.metrics["items_dropped"] == len(rare)
    assert report.metrics["items_dropped_share"] == pytest.approx(lost / counted.total())
    assert report.metrics["ncp"] >= lost / counted.total()
    assert shoal.audit(tmp_path / "out.jsonl", policy=content).ok, "also without the truth"


SETS = [*people(3), *[["b1", "a2"]] * 3, ["a4"], ["a4", "b1"]]
"""Also with an item of two people, and one of three."""


@pytest.mark.parametrize("audited", [None, 2, 4])
@pytest.mark.parametrize("has_trace", [False, True])
def test_another_rule_than_the_promised_one_is_found(tmp_path: Path, audited: int | None, has_trace: bool) -> None:
    """Items were dropped that must not be, or published although they are rare."""
    counted = Counter(item for one in SETS for item in one)
    assert {2, 3} <= set(counted.values()), "there are items between the rules"
    run(tmp_path, SETS, policy(least=3))
    report = audit(tmp_path, policy(least=audited), tmp_path / "trace.parquet" if has_trace else None)
    assert not report.ok


def test_a_common_item_that_was_removed_is_found(tmp_path: Path) -> None:
    """Its rows, its blocks and its certificate are made without it."""
    content = policy(least=3)
    run(tmp_path, [[item for item in one if item != "a1"] or ["b1"] for one in SETS], content)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"items": one}) + "\n" for one in SETS))
    found = {one.code for one in audit(tmp_path, content).violations}
    assert "item-without-label" in found


def test_people_who_have_only_rare_items_are_not_published(tmp_path: Path) -> None:
    sets = [["a1"], ["a1"], ["a1"], ["a1", "c5"], ["c5"], ["b3"]]
    summary = run(tmp_path, sets, policy(least=3, k=3))
    rows, blocks = released(tmp_path)
    assert rows == [["a1"]] * 4
    assert blocks == {"a1": ["a1"]}, "neither dropped nor unused items are named"
    assert (summary.items_dropped, summary.entries_dropped, summary.empty_records) == (2, 3, 2)
    assert "Items that fewer than 3 people have are in no record" in summary.statement
    with pytest.raises(InputError, match="lower drop_rare"):
        run(tmp_path, [["a1"], ["b1"]], policy(least=2, k=2))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"drop_rare": 5}, r"\[anonymize\] drop_rare: must be at most k, which is 4"),
        ({"drop_rare": 5, "k": [4, 9]}, r"\[anonymize\] drop_rare: must be at most k, which is 4"),
        ({"drop_rare": 1}, r"\[anonymize\] drop_rare: must be at least 2"),
        ({"drop_rare": 3, "generalize": {"graph": "g.csv"}}, r"\[anonymize\] drop_rare: is not for graph"),
    ],
)
def test_rules_that_are_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    content = policy(least=None)
    (tmp_path / "g.csv").write_text("a,b\na1,b1\n")
    with pytest.raises(PolicyError, match=sentence):
        parse_policy({**content, "anonymize": {**content["anonymize"], **changes}}, folder=tmp_path)


def test_a_frame(tmp_path: Path) -> None:
    rows = pd.DataFrame([(number, item) for number, one in enumerate(SETS) for item in one], columns=["who", "item"])
    found = shoal.anonymize(rows, person="who", items="item", k=4, m=2, method="k^m-apriori", drop_rare=3)
    counted = Counter(rows["item"])
    rare = [item for item, count in counted.items() if count < 3]
    assert found.metrics["items_dropped"] == pytest.approx(len(rare) / len(counted))
    assert found.metrics["occurrences_dropped"] == pytest.approx(sum(counted[item] for item in rare) / counted.total())
    assert not {label for one in found.rows.column(0).to_pylist() for label in one} & set(rare)
    assert "dropped" in repr(found)
    assert found.audit().ok, found.audit().text()
    assert np.isclose(found.audit().metrics["items_dropped_share"], found.metrics["occurrences_dropped"])


def test_the_doctor_and_the_run_say_what_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"items": one}) + "\n" for one in SETS))
    text = (
        '[stream]\n[source]\nkind = "jsonl"\npath = "in.jsonl"\n[anonymize]\nmethod = "k^m-apriori"\nitem = "items"\n'
        'k = 4\nm = 2\n{}\n[anonymize.generalize]\nbalanced = 3\n[sink]\nkind = "jsonl"\npath = "out.jsonl"\n'
    )
    (tmp_path / "policy.toml").write_text(text.format(""))
    assert "drop_rare = 4 would drop them instead" in command("doctor", "policy.toml").out.decode()
    (tmp_path / "policy.toml").write_text(text.format("drop_rare = 3"))
    assert "and are dropped" in command("doctor", "policy.toml").out.decode()
    assert "items that too few people have" in command("run", "policy.toml", "--quiet").out.decode()
