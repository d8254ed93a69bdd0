"""Sets in every form: list columns, joined labels, plain lines, (person, item) rows."""

from __future__ import annotations

import gzip
import json
import random

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from shoal.auditor import audit
from shoal.cli.app import main
from shoal.errors import InputError, PolicyError
from tests.auditor.sets.naive import TREE, Case, unchecked


@pytest.fixture
def case():
    return Case(hierarchy=True)


def as_rows(truth):
    """One row for every (person, item), in any order, with repeats and a row without a person."""
    rows = [(f"person {number:02}", item) for number, record in enumerate(truth) for item in sorted(record)]
    rows += rows[:20]
    random.Random(2).shuffle(rows)
    persons, items = zip(*rows, ("", "la"), strict=True)
    return pa.table({"user": persons, "items": items})


def joined(rows, separator):
    return [separator.join(sorted(row)) for row in rows]


def write_release(case, path):
    lists = [sorted(row) for row in case.rows]
    if path.suffix == ".parquet":
        parquet.write_table(pa.table({"items": lists}), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps({"items": row}) + "\n" for row in lists))
    elif path.suffix == ".csv":
        csv.write_csv(pa.table({"items": joined(case.rows, " ")}), path)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress("\n".join(joined(case.rows, " ")).encode()))
    else:
        path.write_text("\n".join(joined(case.rows, "\t")) + "\n")
    return path


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl", "out.csv", "out.txt", "out.dat.gz"])
def test_releases_in_every_format(case, tmp_path, name):
    case.rows[0] ^= {"miami"}
    expected = case.audit().to_dict()
    found = audit(write_release(case, tmp_path / name), list(map(set, case.truth)), policy=case.policy)
    assert found.to_dict() == expected
    assert not found.ok


def test_a_truth_of_rows_of_persons(case):
    case.policy["stream"] = {"person": "user"}
    report = audit(case.rows, as_rows(case.truth), policy=case.policy)
    assert report.ok
    assert report.metrics["records"] == 40
    assert report.metrics["unusable_rows"] == 1
    pairs = [(number, item) for number, record in enumerate(case.truth) for item in record]
    assert audit(case.rows, pairs, policy=case.policy).metrics["records"] == 40
    with pytest.raises(InputError, match="user"):
        audit(case.rows, as_rows(case.truth).rename_columns(["who", "items"]), policy=case.policy)


def test_the_days_of_a_person_are_one_set(case):
    case.policy["stream"] = {"person": "user"}
    halves = [(number, part) for number, record in enumerate(case.truth) for part in _halves(sorted(record))]
    table = pa.table({"user": [number for number, _ in halves], "items": [part for _, part in halves]})
    assert audit(case.rows, table, policy=case.policy).ok


def _halves(items):
    return items[:1], items[1:]


def test_the_trace_counts_persons_in_order_of_appearance(case):
    case.policy["stream"] = {"person": "user"}
    order = random.Random(3).sample(range(40), 40)
    table = pa.table({"user": [str(number) for number in order], "items": [sorted(case.truth[n]) for n in order]})
    trace = pa.table({"row": range(40), "position": [case.positions[number] for number in order]})
    assert audit(case.rows, table, trace, case.policy).ok
    assert not audit(case.rows, table, trace.set_column(1, "position", [case.positions]), case.policy).ok


@pytest.mark.parametrize("separator", [" ", "\t", ",", "; "])
def test_truths_of_lines(case, tmp_path, separator):
    path = tmp_path / "truth.dat"
    path.write_text("\r\n".join(joined(case.truth, separator)) + "\r\n")
    case.policy["source"] = {"kind": "lines"}
    if separator.strip():
        case.policy["source"]["separator"] = separator
    assert audit(case.rows, path, policy=case.policy).ok


def test_lines_named_csv_are_lines_if_the_policy_says_so(case, tmp_path):
    path = tmp_path / "groceries.csv"
    path.write_text("\n".join(joined(case.truth, ",")))
    case.policy["source"] = {"kind": "lines", "separator": ","}
    assert audit(case.rows, path, policy=case.policy).ok


def test_arrow_columns(case):
    for kind in (pa.list_(pa.string()), pa.large_list(pa.dictionary(pa.int32(), pa.string()))):
        shown = pa.array([sorted(row) for row in case.rows], pa.list_(pa.string())).cast(kind)
        assert audit(shown, pa.chunked_array([shown.slice(0, 0)]), policy=case.policy).metrics["records"] == 0
        table = pa.table({"items": pa.chunked_array([shown.slice(0, 7), shown.slice(7)])})
        assert audit(table, list(map(set, case.truth)), policy=case.policy).ok


def test_items_that_are_numbers():
    truth = pa.table({"user": [1, 1, 2, 2], "site": [7, 8, 8, 7]})
    promised = {"stream": {"person": "user"}, "anonymize": {"method": "k^m", "item": "site", "k": 2, "m": 2}}
    assert audit(pa.table({"items": [[7, 8], [7, 8]]}), truth, policy=promised).findings == ()
    assert audit([["7", "8"], ["8"]], truth, policy=promised).violations


def test_the_column_of_the_truth_may_be_the_column_of_the_release():
    promised = {"anonymize": {"method": "k^m-apriori", "item": "site", "k": 2, "m": 2}}
    assert audit(pa.table({"site": [["a"], ["a"]]}), policy=promised).findings == ()


def test_an_empty_release(case):
    report = audit(pa.table({"items": pa.array([], pa.list_(pa.string()))}), policy=case.policy)
    assert report.ok
    assert not audit([set()], [{"la"}], policy=case.policy).ok


def test_blocks_beside_the_release(case, tmp_path):
    del case.policy["anonymize"]["generalize"]
    out = write_release(case, tmp_path / "out.parquet")
    truth = list(map(set, case.truth))
    assert unchecked(audit(out, truth, policy=case.policy))
    (tmp_path / "out.parquet.blocks.json").write_text(json.dumps(case.blocks))
    report = audit(out, truth, policy=case.policy)
    assert (report.findings, unchecked(report)) == ((), ())
    (tmp_path / "out.parquet.blocks.json").write_text("[1]")
    with pytest.raises(InputError, match="blocks"):
        audit(out, truth, policy=case.policy)
    (tmp_path / "out.parquet.blocks.json").unlink()
    table = pa.table({"label": list(case.blocks), "items": list(case.blocks.values())})
    parquet.write_table(table, tmp_path / "out.parquet.blocks.parquet")
    assert unchecked(audit(out, truth, policy=case.policy)) == ()


def test_a_folder_of_parts_and_its_blocks(case, tmp_path):
    del case.policy["anonymize"]["generalize"]
    folder = tmp_path / "released"
    folder.mkdir()
    lists = [sorted(row) for row in case.rows]
    parquet.write_table(pa.table({"items": lists[:15]}), folder / "part-0.parquet")
    parquet.write_table(pa.table({"items": lists[15:]}), folder / "part-1.parquet")
    (tmp_path / "released.blocks.json").write_text(json.dumps(case.blocks))
    report = audit(f"{folder}/", list(map(set, case.truth)), policy=case.policy)
    assert report.findings == ()
    assert unchecked(report) == ()


def test_joined_labels_tell_their_items_with_the_trace():
    case = Case(hierarchy=False)
    for row in case.rows:
        if "west" in row:
            row.remove("west")
            row.add("la +2")
    trace = pa.table({"row": range(40), "position": case.positions})
    report = audit(case.rows, list(map(set, case.truth)), trace, case.policy)
    assert report.findings == ()
    assert unchecked(report) == ()
    assert report.metrics["records_that_differ"] == 0


def test_items_the_trace_cannot_place_are_told_of():
    truth = [{"a", "b"}] * 3 + [{"c"}] * 3
    trace = pa.table({"row": range(6), "position": range(6)})
    promised = {"anonymize": {"method": "k^m", "k": 3, "m": 2}}
    report = audit([{"x", "y"}] * 3 + [{"z"}] * 3, truth, trace, promised)
    assert report.ok
    assert "2 items" in unchecked(report)[0]


def test_broken_lines_of_a_release(case, tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text('{"items": ["la"]}\n{"items": ["la"\n{"items": ["la"]}\n')
    report = audit(path, policy=case.policy)
    assert [(found.code, found.rows) for found in report.violations] == [("unreadable", (1,)), ("below-k", (0, 2))]


def test_a_wrong_separator_is_refused(case):
    case.policy["source"] = {"separator": ""}
    with pytest.raises(PolicyError, match="separator"):
        audit(case.rows, list(map(set, case.truth)), policy=case.policy)


def test_the_command(case, tmp_path, capsys, monkeypatch):
    out = write_release(case, tmp_path / "out.parquet")
    (tmp_path / "truth.txt").write_text("\n".join(joined(case.truth, " ")))
    (tmp_path / "tree.json").write_text(json.dumps(TREE))
    tree = 'generalize = {hierarchy = {kind = "nested", path = "tree.json"}}'
    for k, code in ((3, 0), (30, 1)):
        (tmp_path / "policy.toml").write_text(f'[anonymize]\nmethod = "k^m"\nk = {k}\nm = 2\n{tree}\n')
        asked = [str(out), "--truth", str(tmp_path / "truth.txt"), "--policy", str(tmp_path / "policy.toml"), "--json"]
        monkeypatch.setattr("sys.argv", ["shoal", "audit", *asked])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == code
        assert json.loads(capsys.readouterr().out)["ok"] == (code == 0)


def test_pairs_of_many_records_are_counted():
    rng = random.Random(9)
    truth = [{str(int(3340 * rng.random() ** 2)) for _ in range(rng.choice((1, 2, 3, 5, 12)))} for _ in range(77_512)]
    promised = {"anonymize": {"method": "k^m", "k": 5, "m": 2, "sigma": 0.01}}
    report = audit(truth, truth, policy=promised)
    assert report.metrics["risk_after_sets_of_2"]["how"] == "counted"


@pytest.mark.parametrize(
    "row",
    [
        '{"items": ["la", 1.5]}', '{"items": [["la"]]}', '{"items": {"la": 1}}', '{"items": true}',
        '{"items": ["secret"], "items": ["la"]}',
    ],
)  # fmt: skip
def test_a_released_row_that_is_no_set_of_labels(case, tmp_path, row):
    """Passed over, it would hide what it holds: also without the truth it is a row that cannot be read."""
    out = write_release(case, tmp_path / "out.jsonl")
    assert audit(out, policy=case.policy).ok
    out.write_text(row + "\n" + out.read_text())
    (found,) = [one for one in audit(out, policy=case.policy).violations if one.code == "unreadable"]
    assert (found.count, found.rows) == (1, (0,))


@pytest.mark.parametrize("lists", [True, False])
def test_rows_that_no_run_can_read_make_nobody(case, tmp_path, lists):
    """A person of whom no row can be read is no record, so none that the trace should have."""
    rows = [
        {"user": f"p{number}", "items": items}
        for number, record in enumerate(case.truth)
        for items in ([sorted(record)] if lists else sorted(record))
    ]
    for number, bad in enumerate([[[1.5]], [[True, "la"]], ["la"], [{"la": 1}]] if lists else [[True], [1.5]]):
        rows.insert(number, {"user": f"new {number}", "items": bad[0]})
    rows.append({"user": ["p0"], "items": rows[-1]["items"]})
    truth = tmp_path / "in.jsonl"
    truth.write_text("".join(json.dumps(row) + "\n" for row in rows))
    case.policy["stream"] = {"person": "user"}
    trace = pa.table({"row": range(40), "position": case.positions})
    report = audit(case.rows, truth, trace, policy=case.policy)
    assert report.findings == ()
    assert report.metrics["unusable_rows"] == (5 if lists else 3)


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv"])
def test_a_policy_may_call_a_file_as_it_likes(case, tmp_path, name):
    out, other = write_release(case, tmp_path / name), tmp_path / {"out.jsonl": "x.csv", "out.csv": "x.jsonl"}[name]
    out.rename(other)
    case.policy["sink"] = {"kind": name.split(".")[1], "path": other.name, "separator": " "}
    assert audit(other, list(map(set, case.truth)), policy=case.policy).ok
