"""Publisher and auditor read the same text in a CSV file, each with its own code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shoal.auditor.reading import Format, read
from shoal.errors import InputError, PolicyError
from shoal.pipeline.building import make_decoder, make_files
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
        batches = [decoded.batch for decoded in decoder.batches()]
    found = {name: [value for batch in batches for value in batch.column(name).to_pylist()] for name in case.columns}
    assert found == case.columns


@pytest.mark.parametrize("case", CSV_CASES.values(), ids=CSV_CASES)
def test_the_auditor(case: Case, tmp_path: Path) -> None:
    path = written(case, tmp_path)
    rows = read(path, name="truth", expected=Format.of_source({"kind": "csv", **case.source}))
    assert {name: rows.text(name).to_pylist() for name in rows.columns} == case.columns


def test_a_release_is_read_to_the_letter(tmp_path: Path) -> None:
    path = written(Case("a\n x\n", {}), tmp_path)
    assert read(path, name="release", expected=Format.of({"kind": "csv"})).text("a").to_pylist() == [" x"]


def test_the_auditor_refuses_what_is_no_truth_value() -> None:
    with pytest.raises(PolicyError, match=r"\[source\] trim: must be true or false"):
        Format.of_source({"kind": "csv", "trim": "no"})


def test_the_auditor_refuses_names_that_are_the_same_without_blanks(tmp_path: Path) -> None:
    path = written(Case("a, a\n1,2\n", {}), tmp_path)
    with pytest.raises(InputError, match="names a column twice"):
        read(path, name="truth", expected=Format.of_source({"kind": "csv"}))
