"""Publisher and auditor read the same text in a CSV file, each with its own code."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.auditor.findings import Notes
from shoal.auditor.policy import read_policy
from shoal.auditor.reading.batches import read_batches
from shoal.auditor.reading.files import read
from shoal.auditor.reading.header import column_names
from shoal.auditor.reading.paths import Format
from shoal.auditor.sets.evidence import read_truth, sets_here
from shoal.auditor.sets.promise import read_set_promise
from shoal.decode.columns import trimmed
from shoal.decode.header_names import unique_names
from shoal.errors import InputError, PolicyError
from shoal.methods.arrow_input import with_gaps
from shoal.pipeline.sets.people import set_reader
from shoal.pipeline.wiring import make_decoder, make_files
from shoal.policy import parse_policy
from tests.auditor.csv_cases import CSV_CASES, Case

REST = {
    "stream": {"person": "p", "time": "t"},
    "anonymize": {"method": "z-anonymity", "attribute": "a", "z": 2, "window": "1h"},
    "sink": {"kind": "csv", "path": "out.csv"},
}


def written(case: Case, folder: Path) -> Path:
    path = folder / "in.csv"
    path.write_text(case.data, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("case", CSV_CASES.values(), ids=CSV_CASES)
def test_the_publisher(case: Case, tmp_path: Path) -> None:
    written(case, tmp_path)
    keys = {key: value for key, value in case.source.items() if key != "header"}
    policy = parse_policy({**REST, "source": {"kind": "csv", "path": "in.csv", **keys}}, folder=tmp_path)
    policy = replace(policy, source=policy.source.model_copy(update={"header": case.source.get("header")}))
    with make_decoder(policy, make_files(policy)[0], tuple(case.columns)) as decoder:
        batches = [with_gaps(decoded.batch, decoded.places) for decoded in decoder.batches()]
    found = {name: [value for batch in batches for value in batch.column(name).to_pylist()] for name in case.columns}
    assert found == case.columns


@pytest.mark.parametrize("case", CSV_CASES.values(), ids=CSV_CASES)
def test_the_auditor(case: Case, tmp_path: Path) -> None:
    path = written(case, tmp_path)
    rows = read(path, name="truth", expected=Format.of_source({"kind": "csv", **case.source}))
    assert {name: rows.text(name).to_pylist() for name in rows.columns} == case.columns


@pytest.mark.parametrize(("trim", "expected"), [(True, [["a", "b"], ["a", "b"]]), (False, [["a ", " b"], ["b", " a"]])])
def test_items_of_a_joined_text(tmp_path: Path, *, trim: bool, expected: list[list[str]]) -> None:
    written(Case("items\na | b\nb| a\n", {}), tmp_path)
    policy = {
        "source": {"kind": "csv", "path": "in.csv", "separator": "|", "trim": trim},
        "anonymize": {"method": "k^m", "item": "items", "k": 2, "m": 1, "generalize": {"balanced": 2}},
        "sink": {"kind": "jsonl", "path": "out.jsonl"},
    }
    known = read_policy(policy)
    with sets_here(known, {"release": [{"any"}], "truth": tmp_path / "in.csv"}) as here:
        sets = read_truth(here, known, read_set_promise(known), Notes()).gathered
    found = [{sets.labels[label] for label in sets.items[start:end]} for start, end in pairwise(sets.offsets)]
    assert found == [set(record) for record in expected]
    checked = parse_policy(policy, folder=tmp_path)
    reader = set_reader(checked, lambda letter, record: None)
    for batches in reader.files(make_files(checked)):
        list(batches)
    records = reader.result().records
    ends = zip(records.starts, records.starts[1:], strict=False)
    owned = [{records.labels[item] for item in records.codes[start:end]} for start, end in ends]
    assert owned == found


@given(st.lists(st.none() | st.text(alphabet=st.sampled_from("ab \t\x1c\x85\u00a0\u2003\u200b\u3000é")), max_size=6))
@example(["x", " "])
@example(["\u3000é\u00a0"])
@example([None])
def test_blanks_are_what_python_strips(texts: list[str | None]) -> None:
    """An empty field is null before it is trimmed, so empty texts need not become so."""
    found = trimmed(pa.array(texts, pa.string())).to_pylist()
    assert [text or None for text in found] == [(text or "").strip() or None for text in texts]


def test_a_release_is_read_to_the_letter(tmp_path: Path) -> None:
    path = written(Case("a\n x\n", {}), tmp_path)
    assert read(path, name="release", expected=Format.of({"kind": "csv"})).text("a").to_pylist() == [" x"]


def test_the_auditor_refuses_invalid_truth_values() -> None:
    with pytest.raises(PolicyError, match=r"\[source\] trim: must be true or false"):
        Format.of_source({"kind": "csv", "trim": "no"})


def test_a_release_that_repeats_a_name_is_refused(tmp_path: Path) -> None:
    path = written(Case("a,a\n1,2\n", {}), tmp_path)
    release = replace(Format.of({"kind": "csv"}), names_once=True)
    with pytest.raises(InputError, match=r"in\.csv: the header names a column twice"):
        read(path, name="release", expected=release)
    written(Case("a,,\n1,2,3\n", {}), tmp_path)
    assert read(path, name="release", expected=release).columns == ["a", "column2", "column3"]


@pytest.mark.parametrize("case", CSV_CASES.values(), ids=CSV_CASES)
def test_the_auditor_of_tables(case: Case, tmp_path: Path) -> None:
    """It finds the same columns; it keeps the blanks of values and ignores those of names."""
    if case.source.get("trim") is False:
        return
    path = written(case, tmp_path)
    form = Format.of_source({"kind": "csv", **case.source})
    names = tuple(case.columns)
    batches = list(read_batches(path, names, name="table", expected=form))
    words = {"", *case.source.get("nulls", ())}
    found = {name: [text for batch in batches for text in batch[name].to_pylist()] for name in names}
    found = {name: [None if (text or "").strip() in words else text.strip() for text in texts]
             for name, texts in found.items()}  # fmt: skip
    assert found == case.columns


@given(st.lists(st.sampled_from(["", " ", "a", "b", "a_2", "a_3", "column1", "column2", "column2_2", "1"]), max_size=8))
@example(["a", "a", "a_2", ""])
def test_both_name_columns_alike(cells: list[str]) -> None:
    names = list(unique_names(cells))
    assert column_names(cells, Format(), "table") == names
    assert len(set(names)) == len(cells)
    for place, (cell, name) in enumerate(zip(cells, names, strict=True)):
        base = cell if cell.strip() else f"column{place + 1}"
        assert name == base or name.rpartition("_")[0] == base
        if cell.strip() and cell not in cells[:place]:
            assert name == cell
