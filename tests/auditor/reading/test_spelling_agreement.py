"""Publisher and auditor read the same numbers, dates and gaps in a CSV file, and refuse the same records."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.auditor.evidence import source_format
from shoal.auditor.policy import Policy
from shoal.auditor.reading.files import read
from shoal.auditor.reading.numbers import read_numbers
from shoal.decode.spellings import DATE_FORMS
from shoal.errors import PolicyError
from shoal.methods.arrow_input import with_gaps
from shoal.pipeline.wiring import make_decoder, make_files
from shoal.policy import parse_policy
from tests.reference.effort import tries

COLUMNS = ["p", "n", "w", "d", "s"]
"""A person, a number, a whole number, a moment, a text."""
QUASI = {
    "n": {"kind": "numeric", "low": -1e9, "high": 1e9, "outside": "clamp"},
    "d": {"kind": "numeric", "low": "1900-01-01", "high": "2100-01-01", "outside": "clamp"},
}


def policy_of(**source: Any) -> dict[str, Any]:
    types = {"w": "int64", "d": "timestamp"}
    return {
        "stream": {"person": "p", "carry": ["w", "s"]},
        "source": {"kind": "csv", "path": "in.csv", "types": types, **source},
        "anonymize": {"method": "least-loss", "k": 2, "deadline": 5, "reuse": 1, "quasi": QUASI},
        "sink": {"kind": "csv", "path": "out.csv"},
    }


def text_of(rows: list[tuple[str, str, str, str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=";", lineterminator="\n")
    writer.writerows([COLUMNS, *((f"p{number}", *row) for number, row in enumerate(rows))])
    return out.getvalue()


def published(policy: dict[str, Any], folder: Path) -> tuple[list[bool], dict[str, list[Any]]]:
    """Which records the publisher refuses, and what it reads."""
    checked = parse_policy(policy, folder=folder)
    with make_decoder(checked, make_files(checked)[0], tuple(COLUMNS)) as decoder:
        (part,) = decoder.batches()
    refused = {one.row for one in part.refused}
    whole = with_gaps(part.batch, part.places)
    count = whole.num_rows
    return [row in refused for row in range(count)], {name: whole.column(name).to_pylist() for name in COLUMNS}


def agree(rows: list[tuple[str, str, str, str]], folder: Path, **source: Any) -> list[bool]:
    """Compare both; return which records are refused."""
    policy = policy_of(delimiter=";", **source)
    (folder / "in.csv").write_text(text_of(rows), encoding=source.get("encoding", "utf-8"), errors="replace")
    refused, given = published(policy, folder)
    truth = read(folder / "in.csv", name="truth", expected=source_format(Policy(policy, folder)))
    numbers, whole = (read_numbers(truth.pieces(name)) for name in ("n", "w"))
    assert (truth.broken | numbers.unreadable).tolist() == refused
    moments, has_moment = truth.moments("d")
    texts = truth.text("s").to_pylist()
    for row in np.flatnonzero(~np.array(refused)).tolist():
        for name, found in (("n", numbers.value[row]), ("w", whole.value[row])):
            assert given[name][row] == (None if np.isnan(found) else found) or np.isnan(given[name][row])
        moment = given["d"][row]
        assert has_moment[row] == (moment is not None)
        assert moment is None or moments[row] // 1000 == round(moment.timestamp() * 1e6)
        assert texts[row] == given["s"][row]
    return refused


NUMBERS = st.sampled_from(
    [
        "1",
        "-7",
        "7,5",
        "7.5",
        "1.234,5",
        "1.234",
        "12.345.678",
        "1,2,3",
        "1e3",
        "2,5e2",
        "k. A.",
        "x",
        "",
        "-999",
        "0",
        "nan",
        "-nan(ind)",
        "+Infinity",
        "-infinity",
        "nan(1)",
    ]
)
WHOLE = st.sampled_from(["1", "-7", "7.5", "7,0", "1.234", "k. A.", "", "9", "12345678901234567890", "x"])
DATES = st.sampled_from(
    ["31.12.2020", "3.4.2020", "31.02.2020", "12/31/2020", "1/2/2020", "2020-05-06", "20200506", "31.12.9999", "",
     "3.4.2020 12:30", "3.4.2020 12:30T", "03-04-2020", "2020/3/4", "3.4.20", "x"]
)  # fmt: skip
TEXTS = st.sampled_from(["größer", "naïve", "k. A.", "9", "", "1,5", "31.12.9999"])


@given(
    rows=st.lists(st.tuples(NUMBERS, WHOLE, DATES, TEXTS), min_size=1, max_size=8),
    decimal=st.sampled_from([".", ","]),
    form=st.none() | st.sampled_from(DATE_FORMS),
    encoding=st.sampled_from(["utf-8", "latin-1", "cp1252"]),
    nulls=st.sampled_from([[], ["k. A."], {"n": ["-999", "k. A."], "d": ["31.12.9999"], "s": ["9"]}]),
)
@tries(60)
@example(rows=[("1.234", "1.234", "", "")], decimal=",", form=None, encoding="utf-8", nulls=[])
@example(rows=[("nan", "1", "3.4.2020 12:30T", "")], decimal=".", form="DD.MM.YYYY", encoding="utf-8", nulls=[])
@example(
    rows=[("-nan(ind)", "1", "", ""), ("+Infinity", "1", "", ""), ("-infinity", "1", "", "")],
    decimal=",",
    form=None,
    encoding="utf-8",
    nulls=[],
)
@example(rows=[("7.5", "9", "31.02.2020", "9")], decimal=",", form="DD.MM.YYYY", encoding="latin-1", nulls={"w": ["9"]})
def test_both_read_and_refuse_alike(tmp_path_factory, rows, decimal, form, encoding, nulls) -> None:
    folder = tmp_path_factory.mktemp("alike")
    dates = {} if form is None else {"dates": {"d": form}}
    agree(rows, folder, decimal=decimal, encoding=encoding, nulls=nulls, **dates)


def test_what_a_german_file_means(tmp_path: Path) -> None:
    rows = [("1.234,5", "1.234", "3.4.2020 12:30", "größer"), ("7,5", "7", "31.12.9999", "k. A.")]
    refused = agree(rows, tmp_path, decimal=",", encoding="latin-1", dates={"d": "DD.MM.YYYY"},
                    nulls={"d": ["31.12.9999"], "s": ["k. A."]})  # fmt: skip
    assert refused == [False, False]
    _, given = published(policy_of(delimiter=";", decimal=",", encoding="latin-1", dates={"d": "DD.MM.YYYY"},
                                   nulls={"d": ["31.12.9999"], "s": ["k. A."]}), tmp_path)  # fmt: skip
    assert (given["n"], given["w"], given["s"]) == ([1234.5, 7.5], [1234, 7], ["größer", None])
    assert [moment and moment.isoformat() for moment in given["d"]] == ["2020-04-03T12:30:00+00:00", None]


@pytest.mark.parametrize("cell", ["7.5", "x", "12345678901234567890"])
def test_a_value_of_another_type_is_a_cause(cell: str, tmp_path: Path) -> None:
    """The auditor knows the types of the policy: the record of such a value may be refused."""
    assert agree([("1", cell, "", ""), ("1", "7", "", "")], tmp_path) == [True, False]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"encoding": "utf-16"}, r"\[source\] encoding: must be one of"),
        ({"dates": {"d": "DD.MM"}}, r"\[source\] dates: give a form such as"),
    ],
)
def test_the_auditor_names_what_it_cannot_read(source: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("p,n,w,d,s\na,1,1,3.4.2020,x\n")
    policy = Policy(policy_of(**source), tmp_path)
    with pytest.raises(PolicyError, match=message):
        read(tmp_path / "in.csv", name="truth", expected=source_format(policy))
