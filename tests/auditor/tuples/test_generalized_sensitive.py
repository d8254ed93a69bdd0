"""A sensitive column that is published generalized: exact values differ in every class, and none is published."""

from __future__ import annotations

import copy
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.auditor.report.evidence_report import report_evidence

L = 3


def wages(rows=300):
    rng = np.random.default_rng(7)
    wage = np.round(np.exp(rng.normal(10, 0.4, rows)), -3)
    wage[rng.random(rows) < 0.2] = np.nan
    return pa.table({
        "id": list(range(rows)), "age": rng.integers(18, 80, rows), "wage": pa.array(wage, from_pandas=True),
        "job": rng.choice(["cook", "nurse", "clerk"], rows), "ill": rng.choice(["flu", "cold", "none"], rows),
    })  # fmt: skip


JOBS = {"kind": "flat", "values": ["cook", "nurse", "clerk"], "root": "*"}
POLICY = {
    "stream": {"person": "id"},
    "anonymize": {
        "method": "least-loss", "k": 4, "deadline": 150, "reuse": 20, "l": L, "sensitive": ["wage"],
        "quasi": {
            "age": {"kind": "numeric", "low": 0, "high": 100, "grid": 5},
            "wage": {"kind": "numeric", "low": 0, "high": 100_000, "grid": 10_000, "outside": "clamp"},
            "job": {"kind": "categorical", "hierarchy": JOBS},
        },
    },
}  # fmt: skip


def policy(method="least-loss", **more):
    made = copy.deepcopy(POLICY)
    made["anonymize"] |= {"method": method, **more}
    return {**made, "anonymize": {key: value for key, value in made["anonymize"].items() if value is not None}}


def values_by_class(result):
    """The exact values behind each published combination, counted without shoal."""
    trace = result.trace.to_pylist()
    rows = [one["row"] for one in trace if one["verdict"] == "released"]
    truth = result.truth.column("wage").to_pylist()
    classes = defaultdict(set)
    for row, shown in zip(rows, result.rows.to_pylist(), strict=True):
        classes[repr({name: value for name, value in shown.items() if name != "ill"})].add(truth[row])
    return [{value for value in own if value is not None} for own in classes.values()]


@pytest.mark.parametrize("method", ["least-loss", "fads", "k-varp", "castle"])
def test_exact_values_differ_in_every_class_and_are_not_published(method):
    result = shoal.anonymize(wages(), policy=policy(method))
    assert result.rows.column_names == ["age", "wage", "job"]
    assert all(set(one["wage"]) == {"lo", "hi"} for one in result.rows.to_pylist() if one["wage"] is not None)
    found = values_by_class(result)
    assert result.counts["released"] > 100
    assert min(len(own) for own in found if own) >= L
    report = result.audit()
    assert report.ok
    assert report.metrics["l"] == {"wage": min(len(own) for own in found if own)}


def test_the_auditor_finds_a_class_without_different_values():
    careless = shoal.anonymize(wages(), policy=policy(l=None))
    assert min(len(own) for own in values_by_class(careless) if own) < L
    report = shoal.audit(careless.rows, truth=careless.truth, trace=careless.trace, policy=policy())
    assert {finding.code for finding in report.violations} == {"below-l"}
    assert not report.ok


@pytest.mark.parametrize(("given", "why"), [({"trace": None}, "no trace"), ({"truth": None}, "no truth")])
def test_what_cannot_be_checked_is_said(given, why):
    result = shoal.anonymize(wages(), policy=policy())
    report = shoal.audit(result.rows, **{"truth": result.truth, "trace": result.trace, **given}, policy=policy())
    assert report.ok
    assert f"Diversity of 'wage', published generalized, was not checked: {why}." in report.not_checked


def test_a_trace_that_does_not_fit_links_no_values():
    result = shoal.anonymize(wages(), policy=policy())
    report = shoal.audit(result.rows, truth=result.truth, trace=result.trace.slice(5), policy=policy())
    assert not report.ok
    assert "Diversity of 'wage', published generalized, was not checked: the trace does not fit the release." in (
        report.not_checked
    )


@pytest.mark.parametrize("types", [{}, {"wage": "float64"}])
@pytest.mark.parametrize("word", ["nan", "-NaN", "nan(1)"])
def test_a_number_that_is_none_is_no_known_value(word, types, tmp_path):
    """{5, nan} is one known value: a run reads NaN as missing."""
    wage = {"kind": "numeric", "low": 0, "high": 100, "grid": 10}
    rules = {"method": "least-loss", "k": 8, "deadline": 20, "reuse": 0, "missing": "covered", "sensitive": ["wage"]}
    made = {
        "stream": {"person": "id"}, "source": {"kind": "csv", "path": "in.csv", "types": types},
        "anonymize": {**rules, "quasi": {"wage": wage}}, "sink": {"kind": "parquet", "path": "out.parquet"},
    }  # fmt: skip
    numbers = pa.table({"id": [f"p{row}" for row in range(8)], "wage": [5.0, None] * 4})
    result = shoal.anonymize(numbers, policy=made)
    (tmp_path / "in.csv").write_text("id,wage\n" + "".join(f"p{row},{word if row % 2 else 5}\n" for row in range(8)))
    found = {}
    for wanted in (1, 2):
        made["anonymize"]["l"] = wanted
        found[wanted] = shoal.audit(result.rows, truth=str(tmp_path / "in.csv"), trace=result.trace, policy=made)
    assert found[1].metrics["l"] == {"wage": 1}
    assert found[1].ok
    assert {finding.code for finding in found[2].violations} == {"below-l"}


def test_gaps_of_a_generalized_column_are_written_in_one_way(tmp_path):
    """Only in text that is published unchanged is "" a value; among ranges it would mark rows."""
    result = shoal.anonymize(wages(), policy=policy())
    lines = [",".join(_cell(value) for value in row.values()) for row in result.rows.to_pylist()]
    marked = [at for at, line in enumerate(lines) if ",," in line][:3]
    path = tmp_path / "out.csv"
    path.write_text("age,wage,job\n" + "\n".join(lines) + "\n")
    assert shoal.audit(str(path), truth=result.truth, trace=result.trace, policy=policy()).ok
    for at in marked:
        lines[at] = lines[at].replace(",,", ',"",')
    path.write_text("age,wage,job\n" + "\n".join(lines) + "\n")
    report = shoal.audit(str(path), truth=result.truth, trace=result.trace, policy=policy())
    assert {finding.code for finding in report.violations} == {"layout"}


def _cell(value):
    return "" if value is None else value if isinstance(value, str) else f'"[{value["lo"]}, {value["hi"]}]"'


@pytest.mark.parametrize(("level", "sentence"), [
    (L, "Sensitive values of wage are the exact ones; rows show ranges or labels of them only."),
    (None, "Nothing is promised about sensitive values: rows that look alike may all have the same one."),
])  # fmt: skip
def test_the_page_says_what_is_promised_of_it(level, sentence):
    result = shoal.anonymize(wages(), policy=policy(l=level))
    assert sentence in report_evidence(result.rows, result.truth, policy(l=level), trace=result.trace).html()


def test_attackers_of_values_say_that_there_is_none_to_infer():
    result = shoal.anonymize(wages(), policy=policy())
    reasons = {one.why_not for one in shoal.attack(result.rows, result.truth, policy(), trace=result.trace).attacks}
    assert (
        "sensitive values are published generalized only (wage); a row shows which range or label to guess from"
    ) in reasons
    assert "the policy names no sensitive column that is released" not in reasons


def test_both_kinds_of_sensitive_columns_together():
    result = shoal.anonymize(wages(), policy=policy(sensitive=["wage", "ill"], l=2))
    assert result.rows.column_names == ["age", "wage", "job", "ill"]
    report = result.audit()
    assert report.ok
    assert set(report.metrics["l"]) == {"wage", "ill"}


def test_it_continues_from_a_snapshot():
    """What is pending keeps its exact values, although they are not published."""
    from shoal.crypto.keys import as_secret
    from shoal.pipeline.wiring import make_anonymizer
    from shoal.policy import parse_policy

    places = {"source": {"kind": "parquet", "path": "a"}, "sink": {"kind": "parquet", "path": "b"}}
    key = bytes(range(32))
    table = wages().to_batches()[0]

    def made():
        return make_anonymizer(parse_policy({**places, **policy()}), as_secret(key))

    whole, cut = made(), made()
    expected = [whole.push_batch(table).rows, whole.flush().rows]
    first = cut.push_batch(table.slice(0, 170)).rows
    again = shoal.restore(cut.snapshot(), key=key)
    rest = [again.push_batch(table.slice(170)).rows, again.flush().rows]
    assert pa.Table.from_batches([first, *rest]).to_pylist() == pa.Table.from_batches(expected).to_pylist()
