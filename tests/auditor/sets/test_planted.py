"""Every kind of violation planted in a release of sets, one at a time."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.errors import PolicyError
from tests.auditor.sets.naive import Case, policy, unchecked


class Result:
    """What a run gives back in memory."""

    def __init__(self, records, blocks):
        self.records, self.blocks = records, blocks


def by_blocks(case, blocks=None):
    promised = policy(3, 2, hierarchy=False)
    return audit(Result(case.rows, blocks or case.blocks), list(map(set, case.truth)), policy=promised)


def by_trace(case, positions=None):
    trace = pa.table({"row": range(40), "position": positions or case.positions})
    return audit(case.rows, list(map(set, case.truth)), trace, policy(3, 2, hierarchy=False))


def codes(report):
    return {found.code for found in report.violations}


def row_with(case, *labels):
    return next(number for number, row in enumerate(case.rows) if set(labels) <= row)


def test_the_case_itself_is_clean():
    case = Case()
    for report in (case.audit(), case.audit(truth=False), by_blocks(case), by_trace(case)):
        assert report.findings == ()
    report = case.audit()
    assert unchecked(report) == ()
    assert report.metrics["records"] == report.metrics["released_records"] == 40
    assert report.metrics["records_that_differ"] == 0
    west = sum(label == "west" for record in case.truth for label in map(case.label_of.get, record))
    occurrences = sum(map(len, case.truth))
    assert report.metrics["items_generalized_share"] == pytest.approx(west / occurrences)
    assert report.metrics["ncp"] == pytest.approx(west / occurrences / 2)
    assert by_blocks(case).metrics["ncp"] == pytest.approx(west / occurrences / 2)


def test_a_block_split_for_one_record():
    case = Case()
    at = row_with(case, "west")
    case.rows[at] = (case.rows[at] - {"west"}) | {"la"}
    assert codes(case.audit()) == {"below-k", "not-an-antichain", "not-the-image", "label-of-no-item"}
    assert codes(case.audit(truth=False)) == {"below-k", "not-an-antichain"}
    assert codes(by_blocks(case)) >= {"unknown-label", "not-the-image"}
    assert codes(by_trace(case)) >= {"item-in-two-blocks"}
    found = next(found for found in case.audit().violations if found.code == "not-the-image")
    assert (found.count, found.rows) == (1, (at,))


def test_an_item_leaks_next_to_its_block():
    case = Case()
    at = row_with(case, "west")
    case.rows[at] = case.rows[at] | {"sf"}
    assert "not-an-antichain" in codes(case.audit())
    assert "not-the-image" in codes(case.audit())
    assert {"unknown-label", "not-the-image"} <= codes(by_blocks(case))
    assert {"label-of-no-item", "not-the-image"} & codes(by_trace(case))


def test_a_leak_that_many_share_is_no_antichain_either():
    case = Case(k=1)
    for row, original in zip(case.rows, (case.truth[case.positions.index(at)] for at in range(40)), strict=True):
        if "la" in original:
            row.add("la")
    assert "not-an-antichain" in case.codes(truth=False)


def test_a_record_dropped():
    case = Case()
    case.rows.pop(7)
    assert case.codes() == {"record-missing"}
    assert codes(by_blocks(case)) == {"record-missing"}
    report = by_trace(case)
    assert "trace-broken" in codes(report)


def test_a_record_added():
    case = Case()
    case.rows.append({"west", "ny"})
    assert case.codes() == {"not-the-image", "record-added"}
    assert codes(by_blocks(case)) == {"not-the-image", "record-added"}
    assert codes(by_trace(case)) == {"record-added"}


def test_a_record_changed_for_another_of_the_release():
    case = Case()
    at = row_with(case, "west")
    case.rows[at] = next(row for row in case.rows if row != case.rows[at])
    assert "not-the-image" in case.codes()
    assert "record-missing" not in case.codes()
    assert "not-the-image" in codes(by_trace(case)) | codes(by_blocks(case))


def test_a_rare_pair_left():
    case = Case()
    pair = {"ny", "boston"}
    kept = [row for row in range(40) if not pair <= set(case.truth[row])]
    case.truth = [case.truth[row] for row in kept] + [frozenset(pair)]
    case.rows = [{case.label_of[item] for item in record} for record in reversed(case.truth)]
    report = case.audit()
    assert codes(report) == {"below-k", "itemset-below-k"}
    found = next(found for found in report.violations if found.code == "below-k")
    assert (found.count, found.rows) == (1, (0,))
    assert "ny" not in report.text()
    case.policy = policy(3, 2, sigma=0.5)
    assert case.audit().ok
    assert case.audit().metrics["risk_after_sets_of_2"]["below k"] == 1


def test_a_label_of_nothing():
    case = Case()
    for row in case.rows:
        row.add("atlantis")
    assert {"unknown-label", "label-of-no-item", "not-the-image"} <= case.codes()
    assert "unknown-label" in case.codes(truth=False)
    assert "label-of-no-item" not in codes(by_trace(case))  # it might stand for an item that everybody has


def test_an_item_that_left_under_no_label():
    case = Case(k=1)
    for row in case.rows:
        row.discard("miami")
    assert "item-without-label" in case.codes()
    assert "item-in-two-blocks" in codes(by_trace(case))


def test_an_item_in_two_blocks():
    case = Case()
    assert "item-in-two-blocks" in codes(by_blocks(case, {**case.blocks, "ny": ["ny", "la"]}))


def test_a_label_twice_or_empty_in_a_row():
    rows = [["la", "la"], ["la"], ["la"], ["la", None]]
    assert codes(audit(rows, policy=policy(2, 1))) == {"label-twice", "unreadable"}


def test_a_column_too_many():
    table = pa.table({"items": [["la"], ["la"]], "user": ["ada", "bob"]})
    assert codes(audit(table, policy=policy(2, 1))) == {"extra-column"}
    assert codes(audit(table.select(["user"]), policy=policy(2, 1))) == {"extra-column", "missing-column"}


def test_a_trace_that_names_rows_twice_or_not_at_all():
    case = Case()
    assert "trace-broken" in codes(by_trace(case, [case.positions[1], *case.positions[1:]]))
    assert "trace-broken" in codes(by_trace(case, [99, *case.positions[1:]]))


@pytest.mark.parametrize("nowhere", [-1, None])
def test_a_record_that_the_trace_says_was_dropped_is_missing(nowhere):
    case = Case(k=2)
    at = case.positions[4]
    case.rows.pop(at)
    positions = [place - (place > at) if place != at else nowhere for place in case.positions]
    report = case.audit(trace=pa.table({"row": range(40), "position": positions}))
    assert codes(report) == {"record-missing"}
    assert report.metrics["dropped_records"] == 1
    assert "record-missing" in codes(by_trace(case, positions))


@pytest.mark.parametrize("record", [frozenset(), frozenset({"atlantis"}), frozenset({"west"})])
def test_a_record_without_an_item_of_the_hierarchy_may_be_dropped(record):
    case = Case()
    case.truth.append(record)
    report = case.audit(trace=pa.table({"row": range(41), "position": [*case.positions, -1]}))
    assert report.ok
    assert report.metrics["dropped_records"] == 1
    assert case.audit().ok


def test_sets_leave_without_items_nobody_knows():
    case = Case()
    case.truth.append(frozenset({"la", "atlantis"}))
    assert case.codes() == {"record-missing"}
    case.rows.append({"west"})
    report = case.audit()
    assert report.ok
    assert [found.code for found in report.warnings] == ["unknown-item"]
    case.rows.append({"west"})
    assert case.codes() == {"not-the-image", "record-added"}


def test_empty_records_may_leave_or_not_but_not_more_of_them():
    case = Case()
    case.truth.append(frozenset())
    assert case.audit().ok
    case.rows.append(set())
    assert case.audit().ok
    case.rows.append(set())
    assert case.codes() == {"not-the-image", "record-added"}


def test_fewer_records_than_k():
    assert codes(audit([{"la"}, {"la"}], policy=policy(3, 1))) == {"below-k"}


def test_without_hierarchy_blocks_or_trace_the_report_says_so():
    case = Case(hierarchy=False)
    report = case.audit()
    assert report.ok
    assert any("blocks file" in sentence for sentence in unchecked(report))


def test_nothing_joined_needs_no_blocks():
    truth = [{"a", "b"}, {"a"}, {"b", "a"}]
    report = audit(truth, truth, policy=policy(2, 2, hierarchy=False))
    assert report.ok
    assert report.metrics["records_that_differ"] == 0
    assert codes(audit([{"a"}, {"a"}, {"a"}], truth, policy=policy(2, 2, hierarchy=False))) >= {"not-the-image"}


def test_rows_in_the_order_of_the_input_are_warned_of(tmp_path):
    case = Case()
    (tmp_path / "truth.txt").write_text("".join(" ".join(record) + "\n" for record in case.truth))
    rows = [sorted({case.label_of[item] for item in record}) for record in case.truth]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps({"items": row}) + "\n" for row in rows))
    report = audit(tmp_path / "out.jsonl", tmp_path / "truth.txt", policy=case.policy)
    assert report.ok
    assert [found.code for found in report.warnings] == ["in-input-order"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0}, {"k": [2]}, {"k": True}, {"m": 0}, {"m": None}, {"sigma": 0}, {"sigma": 1.5}, {"sigma": [1, 1, 1]},
        {"adversary": "neighbour"}, {"item": 3}, {"generalize": {"hierarchy": "tree"}},
        {"adversary": ["itemset"]}, {"adversary": {}}, {"generalize": "tree"}, {"generalize": {}},
        {"generalize": {"hierarchy": {"kind": ["csv"]}}}, {"generalize": {"hierarchy": {"kind": {}}}},
        {"generalize": {"hierarchy": {"kind": "flat", "values": 3}}}, {"generalize": {"graph": 3}},
        {"generalize": {"graph": "e.csv", "balanced": 3}},
    ],
)  # fmt: skip
def test_a_wrong_policy_is_refused(wrong):
    promised = {"anonymize": {"method": "k^m", "k": 2, "m": 2, **wrong}}
    with pytest.raises(PolicyError):
        audit([{"a"}], policy=promised)
