"""An audit of sets in parts, as on Spark, says what the audit of everything at once says."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

import shoal
from shoal.auditor import AuditReport
from shoal.auditor.checks import CHECKS
from shoal.auditor.sets import counting, records
from tests.auditor.in_parts import audit_in_parts, same_report

TREE = {"any": {"west": ["la", "sf"], "east": ["ny", "dc", "bos"], "south": ["mia", "atl"]}}
LABEL = {"la": "west", "sf": "west", "mia": "south", "atl": "south"}
LABEL_OF = {item: LABEL.get(item, item) for item in ("la", "sf", "ny", "dc", "bos", "mia", "atl")}
PROMISED = {"method": "k^m", "m": 2, "k": 5, "sigma": 1.0, "item": "item", "column": "items"}
HIERARCHY = {"generalize": {"hierarchy": {"kind": "nested", "tree": TREE}}}


@dataclass
class SetEvidence:
    """A release of sets with its truth and trace, to be broken and written."""

    truth: list[dict[str, Any]]
    release: list[list[str]]
    trace: list[dict[str, Any]]
    promised: dict[str, Any]
    blocks: dict[str, list[str]] | None = None
    certificate: dict[str, Any] | None = None
    has_trace: bool = True
    has_truth: bool = True
    column: str = "items"
    more: dict[str, str] = field(default_factory=dict)
    """Another column of the release."""
    graph: str | None = None

    def write(self, folder: Path, files: int = 3) -> dict[str, Any]:
        """Write all parts to files; return the arguments of an audit."""
        released = [{self.column: labels, **self.more} for labels in self.release]
        for name, rows in (("release", released), ("truth", self.truth), ("trace", self.trace)):
            (folder / name).mkdir()
            size = max(-(-len(rows) // files), 1)
            for number in range(files):
                lines = b"".join(orjson.dumps(row) + b"\n" for row in rows[number * size : number * size + size])
                (folder / name / f"part-{number}.jsonl").write_bytes(lines)
        for name in ("blocks", "certificate"):
            if getattr(self, name) is not None:
                (folder / f"release.{name}.json").write_text(json.dumps(getattr(self, name)))
        if self.graph is not None:
            (folder / "graph.csv").write_text(self.graph)
            self.promised = {**self.promised, "generalize": {"graph": str(folder / "graph.csv")}}
        policy = {
            "stream": {"person": "who"}, "source": {"kind": "jsonl", "path": "x"},
            "sink": {"kind": "jsonl", "path": "y"}, "anonymize": self.promised,
        }  # fmt: skip
        trace = str(folder / "trace") if self.has_trace else None
        truth = str(folder / "truth") if self.has_truth else None
        return {"release": str(folder / "release"), "truth": truth, "trace": trace, "policy": policy}


def make_sets(people: int = 240, **promised: Any) -> SetEvidence:
    """People with items in rows of several files; released in another order, with labels above some items."""
    draw = random.Random(5)
    pairs: list[tuple[str | None, str]] = []
    owned: dict[str, list[str]] = {}
    for number in range(people):
        owned[f"p{number}"] = draw.sample(sorted(LABEL_OF), draw.choice([1, 2, 2, 3]))
        pairs += [(f"p{number}", item) for item in owned[f"p{number}"]]
    draw.shuffle(pairs)
    pairs.insert(30, (None, "la"))
    order = list(dict.fromkeys(person for person, _ in pairs if person))
    positions = list(range(people))
    draw.shuffle(positions)
    release: list[list[str]] = [[] for _ in order]
    for person, at in zip(order, positions, strict=True):
        release[at] = sorted({LABEL_OF[item] for item in owned[person]})
    return SetEvidence(
        [{"who": person, "item": item} for person, item in pairs], release,
        [{"row": row, "position": at} for row, at in enumerate(positions)], {**PROMISED, **HIERARCHY, **promised},
    )  # fmt: skip


def bound_certificate(evidence: SetEvidence) -> dict[str, Any]:
    """A certificate that all pairs were counted, bound to the sets."""
    sizes = [{"size": size, "k": 5, "how": "counted", "adversary": "everyone", "sigma": 1.0} for size in (1, 2)]
    content: dict[str, Any] = {"sizes": sizes, "m": 2, "records": len(evidence.release), "statement": "counted"}
    names = sorted({label for labels in evidence.release for label in labels})
    digest = hashlib.sha256(b"shoal set certificate 1\n")
    for part in (content, names):
        text = json.dumps(part, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest.update(f"{text}\n".encode())
    for record in sorted(
        b"".join(rank.to_bytes(4, "little") for rank in sorted(map(names.index, labels))) for labels in evidence.release
    ):
        digest.update(len(record).to_bytes(8, "little") + record)
    return {**content, "binding": digest.hexdigest()}


def judged(evidence: SetEvidence, folder: Path) -> tuple[AuditReport, AuditReport]:
    paths = evidence.write(folder)
    here, there = shoal.audit(**paths), audit_in_parts(**paths)
    same_report(here, there)
    assert there.not_checked == here.not_checked
    assert there.counts_rows == here.counts_rows
    return here, there


def by_blocks(evidence: SetEvidence) -> None:
    evidence.promised = PROMISED
    evidence.blocks = {}
    for item, label in LABEL_OF.items():
        evidence.blocks.setdefault(label, []).append(item)


def without_trace(evidence: SetEvidence) -> None:
    evidence.has_trace = False


def certified(evidence: SetEvidence) -> None:
    evidence.certificate = bound_certificate(evidence)


def share_promised(evidence: SetEvidence) -> None:
    evidence.promised = {**evidence.promised, "sigma": [0.9, 0.8], "adversary": "both", "m": 2}


@pytest.mark.parametrize("also", [None, by_blocks, without_trace, certified, share_promised])
def test_a_sound_release(tmp_path: Path, also: Any) -> None:
    evidence = make_sets()
    if also is not None:
        also(evidence)
    _, there = judged(evidence, tmp_path)
    assert there.findings == (), there.text()
    assert there.metrics["smallest_k"] == 12
    assert there.metrics["records"] == 240
    assert there.metrics["unusable_rows"] == 1
    assert 0 < there.metrics["ncp"] < 0.2


def a_lost_row(evidence: SetEvidence) -> None:
    without_trace(evidence)
    evidence.release.pop(100)


def a_row_twice(evidence: SetEvidence) -> None:
    without_trace(evidence)
    evidence.release.append(evidence.release[100])


def a_row_without_record(evidence: SetEvidence) -> None:
    evidence.release.append(evidence.release[100])


def another_set(evidence: SetEvidence) -> None:
    evidence.release[7] = ["dc", "ny", "west"]


def an_item_next_to_its_label(evidence: SetEvidence) -> None:
    at = next(at for at, labels in enumerate(evidence.release) if "west" in labels)
    evidence.release[at] = [*evidence.release[at], "la"]


def a_rare_pair(evidence: SetEvidence) -> None:
    """Ask for more people than the rarest pair has; its rows are in all files."""
    evidence.promised = {**evidence.promised, "k": 14}


def a_share_too_small(evidence: SetEvidence) -> None:
    evidence.promised = {**evidence.promised, "k": 20, "sigma": 0.95, "adversary": "both"}


def a_record_not_decided(evidence: SetEvidence) -> None:
    evidence.trace[3]["row"] = 200


def a_position_twice(evidence: SetEvidence) -> None:
    evidence.trace[3]["position"] = evidence.trace[200]["position"]


def a_record_held_back(evidence: SetEvidence) -> None:
    evidence.trace[5]["position"] = -1


def a_record_that_does_not_exist(evidence: SetEvidence) -> None:
    evidence.trace[5]["row"] = 9999


def a_label_twice(evidence: SetEvidence) -> None:
    evidence.release[200] = [*evidence.release[200], evidence.release[200][0]]


def an_unknown_label(evidence: SetEvidence) -> None:
    evidence.release[200] = [*evidence.release[200], "moon"]


def another_block(evidence: SetEvidence) -> None:
    by_blocks(evidence)
    assert evidence.blocks is not None
    evidence.blocks["west"] = ["la"]
    evidence.blocks["ny"] = ["ny", "sf"]


def another_certificate(evidence: SetEvidence) -> None:
    certified(evidence)
    evidence.release[0], evidence.release[9] = ["ny"], ["ny", "dc"]


def an_unlinked_trace(evidence: SetEvidence) -> None:
    evidence.trace = [{"row": entry["row"]} for entry in evidence.trace]


def no_rows(evidence: SetEvidence) -> None:
    evidence.release = []


def in_input_order(evidence: SetEvidence) -> None:
    placed = [evidence.release[entry["position"]] for entry in evidence.trace]
    evidence.release = placed
    for row, entry in enumerate(evidence.trace):
        entry["position"] = row


def an_empty_label(evidence: SetEvidence) -> None:
    evidence.release[200] = [*evidence.release[200], " "]


def with_blocks(evidence: SetEvidence) -> None:
    promised = evidence.promised
    by_blocks(evidence)
    evidence.promised = promised


def an_item_in_two_blocks(evidence: SetEvidence) -> None:
    by_blocks(evidence)
    assert evidence.blocks is not None
    evidence.blocks["ny"].append("la")


def an_item_in_no_block(evidence: SetEvidence) -> None:
    with_blocks(evidence)
    assert evidence.blocks is not None
    evidence.blocks["west"].remove("sf")


def an_item_that_does_not_exist(evidence: SetEvidence) -> None:
    with_blocks(evidence)
    assert evidence.blocks is not None
    evidence.blocks["west"].append("moon")


def a_block_of_far_items(evidence: SetEvidence) -> None:
    """A graph in which la and sf, of one block, have another item between them."""
    by_blocks(evidence)
    evidence.graph = "from,to\nla,ny\nny,sf\nsf,dc\ndc,bos\nbos,mia\nmia,atl\n"


def an_item_that_nothing_generalizes(evidence: SetEvidence) -> None:
    evidence.truth.insert(40, {"who": "p1", "item": "moon"})


def an_item_never_published(evidence: SetEvidence) -> None:
    evidence.release = [[label for label in labels if label != "ny"] for labels in evidence.release]


def no_rows_and_no_truth(evidence: SetEvidence) -> None:
    evidence.release, evidence.has_truth, evidence.has_trace = [], False, False


def another_column(evidence: SetEvidence) -> None:
    evidence.column = "labels"


def a_column_more(evidence: SetEvidence) -> None:
    evidence.more = {"name": "ada"}


BROKEN: dict[Callable[[SetEvidence], None], set[str]] = {
    a_lost_row: {"record-missing"},
    a_row_twice: {"record-added"},
    a_row_without_record: {"record-added"},
    another_set: {"not-the-image"},
    an_item_next_to_its_label: {"not-an-antichain", "not-the-image", "below-k", "label-of-no-item"},
    a_rare_pair: {"below-k", "itemset-below-k"},
    a_share_too_small: {"sigma-broken"},
    a_record_not_decided: {"trace-broken", "undecided"},
    a_position_twice: {"trace-broken"},
    a_record_held_back: {"record-missing"},
    a_record_that_does_not_exist: {"trace-broken", "undecided"},
    a_label_twice: {"label-twice"},
    an_unknown_label: {"unknown-label"},
    another_block: {"not-the-image"},
    another_certificate: {"certificate-differs"},
    an_unlinked_trace: {"unchecked-promise"},
    no_rows: {"record-missing"},
    in_input_order: {"in-input-order"},
    an_empty_label: {"unreadable"},
    an_item_in_two_blocks: {"item-in-two-blocks"},
    an_item_in_no_block: {"item-without-label", "blocks-differ"},
    an_item_that_does_not_exist: {"foreign-item", "blocks-differ"},
    a_block_of_far_items: {"not-contiguous"},
    an_item_that_nothing_generalizes: {"unknown-item"},
    an_item_never_published: {"item-without-label", "not-the-image"},
    no_rows_and_no_truth: {"no-rows"},
    another_column: {"missing-column", "extra-column"},
    a_column_more: {"extra-column"},
}
OF_FILES = {"hidden-value", "unexpected-metadata"}
"""Codes of the audit of columns, which `tests.auditor.reading` plants."""


def test_every_code_is_planted() -> None:
    codes = {one.code for one in CHECKS.values() if "sets" in one.families}
    assert codes - OF_FILES <= set.union(*BROKEN.values())


def test_blocks_of_a_graph_that_hang_together(tmp_path: Path) -> None:
    evidence = make_sets()
    by_blocks(evidence)
    evidence.graph = "from,to\nla,sf\nsf,ny\nny,dc\ndc,bos\nbos,mia\nmia,atl\n"
    here, _ = judged(evidence, tmp_path)
    assert here.findings == ()


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_release(tmp_path: Path, broken: Callable[[SetEvidence], None]) -> None:
    evidence = make_sets()
    broken(evidence)
    _, there = judged(evidence, tmp_path)
    assert BROKEN[broken] <= {found.code for found in there.findings}


def damage(evidence: SetEvidence, draw: random.Random) -> None:
    """Change something at random: rows, entries of the trace, or records."""
    kind, rows, entries = draw.choice("rprtue"), evidence.release, evidence.trace
    if kind == "r":
        rows[draw.randrange(len(rows))] = draw.sample(["west", "south", "ny", "dc", "la", "x"], draw.randint(0, 3))
    elif kind == "p":
        draw.choice(entries)["position"] = draw.choice([-1, draw.randrange(len(rows)), 9999])
    elif kind == "t":
        draw.choice(entries)["row"] = draw.choice([-1, None, draw.randrange(len(rows)), 9999])
    elif kind == "u":
        record = {"who": draw.choice([None, "", "new", "p1"]), "item": draw.choice(["la", "moon", None, " "])}
        evidence.truth.insert(draw.randrange(len(evidence.truth)), record)
    else:
        rows.pop(draw.randrange(len(rows)))


@pytest.mark.parametrize("seed", range(12))
def test_random_damage(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    promised: list[dict[str, Any]] = [{}, {"drop_rare": 10}, {"m": 3, "k": [5, 3, 2]}]
    evidence = make_sets(draw.choice([5, 30, 60]), **draw.choice(promised))
    for also in (by_blocks, certified, without_trace):
        if draw.random() < 0.3:
            also(evidence)
    for _ in range(3):
        damage(evidence, draw)
    judged(evidence, tmp_path)


def test_rare_items(tmp_path: Path) -> None:
    evidence = make_sets(drop_rare=70)
    judged(evidence, tmp_path)


def test_what_is_sampled_is_the_same_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "TABLE_BUDGET", 100)
    monkeypatch.setattr(counting, "SORTED_BUDGET", 100)
    here, _ = judged(make_sets(), tmp_path)
    assert here.metrics["released_sets_of_2"]["how"] == "sampled"


def test_what_is_too_much_for_one_machine_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "TABLE_BUDGET", 100)
    monkeypatch.setattr(counting, "SORTED_BUDGET", 100)
    monkeypatch.setattr(records, "GATHERED", 100)
    evidence = make_sets()
    certified(evidence)
    there = audit_in_parts(**evidence.write(tmp_path))
    assert there.metrics["released_sets_of_2"] is None
    assert "rows_below_k_share" not in there.metrics
    assert [sentence for sentence in there.not_checked if "one machine" in sentence] == [
        "Whether the certificate is of these sets was not checked: too many for one machine.",
        *(f"Sets of {size} labels were not counted: too many, also for a sample on one machine." for size in (1, 2)),
        *(f"Sets of {size} items were not counted: too many, also for a sample on one machine." for size in (1, 2)),
    ]


def only_the_trace_shows(evidence: SetEvidence) -> None:
    evidence.promised = PROMISED


def locally(evidence: SetEvidence) -> None:
    """Local recoding: people whose region is shared by many keep their items."""
    evidence.promised = {**evidence.promised, "recoding": "local", "k": 2}
    items: dict[str, set[str]] = {}
    for record in evidence.truth:
        if record["who"] is not None:
            items.setdefault(record["who"], set()).add(record["item"])
    for at, (entry, own) in enumerate(zip(evidence.trace, items.values(), strict=True)):
        evidence.release[entry["position"]] = sorted(own if at % 2 else {LABEL_OF[item] for item in own})


@pytest.mark.parametrize("also", [only_the_trace_shows, locally])
@pytest.mark.parametrize("broken", [None, another_set, a_record_held_back, an_item_next_to_its_label, a_position_twice])
def test_what_the_trace_shows(tmp_path: Path, also: Any, broken: Any) -> None:
    evidence = make_sets()
    also(evidence)
    if broken is not None:
        broken(evidence)
    here, there = judged(evidence, tmp_path)
    assert here.ok == (broken is None)
    assert "risk_after_sets_of_2" in there.metrics


def test_local_recoding_by_blocks(tmp_path: Path) -> None:
    evidence = make_sets()
    locally(evidence)
    evidence.promised = {**PROMISED, "recoding": "local", "k": 2}
    evidence.blocks = {item: [item] for item in LABEL_OF} | {"west": ["la", "sf"], "south": ["mia", "atl"]}
    here, _ = judged(evidence, tmp_path)
    assert here.ok
    assert here.metrics["ncp"] > 0


def test_rows_that_are_records(tmp_path: Path) -> None:
    """Without people every row of the truth is a record; some rows have no item."""
    evidence = make_sets()
    of = {entry["position"]: entry["row"] for entry in evidence.trace}
    evidence.truth = [{"item": evidence.release[at]} for at in sorted(of, key=of.__getitem__)]
    evidence.truth[7]["item"] = None
    evidence.promised = {**PROMISED, "k": 2}
    paths = evidence.write(tmp_path)
    paths["policy"]["stream"] = {}
    here, there = shoal.audit(**paths), audit_in_parts(**paths)
    same_report(here, there)
    assert [found.code for found in here.violations] == ["not-the-image"]


@pytest.mark.parametrize("buckets", [1, 7])
def test_any_number_of_buckets(tmp_path: Path, buckets: int) -> None:
    evidence = make_sets()
    a_rare_pair(evidence)
    paths = evidence.write(tmp_path, files=5)
    same_report(shoal.audit(**paths), audit_in_parts(**paths, buckets=buckets))
