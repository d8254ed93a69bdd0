"""Correct flexible releases are acquitted, with everything on the table checked."""

from __future__ import annotations

import json
import statistics
from decimal import Decimal

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import shoal
from shoal.cli.app import app
from tests.auditor.flexible.naive import (
    DENSITY,
    RELEASE,
    TRACE,
    TRUTH,
    Run,
    candidates,
    records,
    table,
)

WAYS = [
    {},
    {"density": DENSITY},
    {"cells": (1, {20: 8, 40: 6})},
    {"p_sparse": 0.5},
    {"p_sparse": 0.04},
    {"k": 2},
    {"k": 7, "p_sparse": 0.3},
    {"window": 30},
    {"sparse": "auto"},
    {"root": True},
]


@pytest.mark.parametrize("how", WAYS, ids=lambda how: ",".join(how) or "plain")
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_found(tmp_path, how, seed):
    run = Run(tmp_path, records(250, seed=seed, missing=0.1 * (seed % 2)), **how)
    report = run.audit()
    assert report.violations == (), report.text()
    assert report.warnings == ()
    assert report.not_checked == ()
    assert report.metrics["k_s"] == run.k_s
    pending = 250 - len(run.release)
    assert report.metrics["verdicts"] == {"in": 250, "released": 250 - pending, "dead": 0, "pending": pending}
    for truth_given, trace_given in ((False, True), (True, False), (False, False)):
        partly = run.audit(truth=truth_given, trace=trace_given)
        assert partly.findings == (), partly.text()
        assert partly.not_checked


def test_candidates_are_counted_for_both_adversaries(tmp_path):
    run = Run(tmp_path, records(200, seed=3, missing=0.1))
    metrics = run.audit().metrics
    for name, columns in (("all", ("device", "place", "hour")), ("normal", ("place", "hour"))):
        counts, found = sorted(candidates(run, columns)), metrics[f"candidates_knowing_{name}"]
        assert found["least"] == counts[0]
        assert found["median"] == statistics.median_low(counts)
        assert found["people_with_fewer"] == 0
        assert found["highest_risk"] == 1 / counts[0]
    assert metrics["candidates_knowing_all"]["promised_risk"] == 1 / run.k_s
    assert metrics["candidates_knowing_normal"]["promised_risk"] == 1 / run.k


def test_records_that_cannot_be_used(tmp_path):
    truth = records(250, missing=0.1)
    for place, (name, value) in {
        3: ("maid", None), 5: ("maid", ""), 7: ("hour", 65), 20: ("device", "G 9"), 21: ("place", "centre"),
    }.items():  # fmt: skip
        truth[place][name] = value
    for unknown, dead in (("refuse", 5), ("accept", 3)):
        run = Run(tmp_path, truth, unknown=unknown)
        report = run.audit()
        assert report.violations == (), report.text()
        assert report.metrics["verdicts"]["dead"] == dead
        assert run.k_s == report.metrics["k_s"]  # dead records do not count in the window


@pytest.mark.parametrize(
    "how", [{}, {"density": DENSITY}, {"cells": (1, {45: 8, 60: 6})}, {"p_sparse": 0.5}, {"root": True}]
)
def test_values_that_are_not_listed(tmp_path, how):
    """They are published as `unknown`, and each counts for itself where rare values are counted."""
    truth = records(400, seed=4)
    for number, record in enumerate(truth):
        if number % 5 == 0:
            record["device"] = f"device {number % 3}"
        if number % 7 == 0:
            record["place"] = "nowhere"
    run = Run(tmp_path, truth, **how)
    labels = {row["device"] for row in run.release}
    assert "unknown" in labels
    assert not any(label.startswith("device ") for label in labels)
    assert {row["place"] for row in run.release} >= {"unknown"}
    report = run.audit()
    assert (report.violations, report.warnings) == ((), ()), report.text()
    assert report.metrics["k_s"] == run.k_s
    for name, columns in (("all", ("device", "place", "hour")), ("normal", ("place", "hour"))):
        assert report.metrics[f"candidates_knowing_{name}"]["least"] == min(candidates(run, columns))


def test_nothing_at_all(tmp_path):
    run = Run(tmp_path, [])
    for given in ({}, {"truth": False}, {"trace": False}, {"truth": False, "trace": False}):
        report = run.audit(**given)
        assert report.findings == ()
        assert report.metrics["groups"]["smallest"] is None


def test_loss_over_the_ontology(tmp_path):
    truth = [{"maid": f"m{n}", "device": device, "place": "a", "hour": None, "net": "lte", "mbps": 1.0}
             for n, device in enumerate(["G 1", "G 2", "S 9", "o 1"])]  # fmt: skip
    run = Run(tmp_path, truth, k=2, publishes=False, p_sparse=0.5, root=True)
    for number, (label, place) in enumerate([("G 1", "a"), ("Galaxy", "a"), ("Samsung", "a"), ("Asia", "*")]):
        run.release.append({"device": label, "place": place, "hour": None, "net": "lte", "mbps": 1.0})
        run.trace.append({"row": number, "verdict": "released", "group": number, "delay": 0, "k": 2, "k_s": 2})
    report = run.audit()
    assert {found.code for found in report.violations} == {"below-k", "below-k-s"}
    device = (0 + 2 / 7 + 3 / 7 + 1) / 4
    assert report.metrics["loss_by_column"] == pytest.approx({"device": device, "place": 0.25, "hour": None})
    assert report.metrics["loss"]["all"] == pytest.approx((device + 0.25) / 3)


def test_sparse_is_worked_out(tmp_path):
    run = Run(tmp_path, records(250), sparse="auto", window=60)
    devices = sorted({record["device"] for record in run.truth})
    (tmp_path / "list.csv").write_text("model,kind\n" + "".join(f"{device},x\n" for device in devices))
    silent = {"kind": "table", "path": str(tmp_path / "list.csv"), "value": "model", "properties": ["kind"]}
    run.promised["anonymize"]["quasi"]["device"] = {"kind": "ontology", "ontology": silent}
    people: dict[str, set[str]] = {}
    for record in run.truth[:60]:
        people.setdefault(record["device"], set()).add(record["maid"])
    share = sum(len(people[record["device"]]) < run.k for record in run.truth[:60]) / 60
    for threshold, found in ((share - 0.01, "device"), (share, "device"), (share + 0.01, None)):
        run.promised["anonymize"]["threshold"] = threshold
        assert run.audit(trace=False).metrics["sparse"] == found
    tree = {"kind": "nested", "tree": {"*": {"x": devices}}}
    run.promised["anonymize"] |= {"threshold": 0.01}
    run.promised["anonymize"]["quasi"]["device"] = {"kind": "categorical", "hierarchy": tree}
    assert run.audit(trace=False).metrics["sparse"] is None


def test_what_the_run_said_of_itself_is_not_there(tmp_path):
    run = Run(tmp_path)
    run.claims = None
    assert not run.audit().not_checked  # every row says it
    trace = table(run.trace, TRACE).drop_columns(["k_s"])
    report = shoal.audit(table(run.release, RELEASE), table(run.truth, TRUTH), trace, run.promised)
    assert any("does not record" in sentence for sentence in report.not_checked)


def test_moments_on_hours(tmp_path):
    run = Run(tmp_path, publishes=False, truth=[], k=2, p_sparse=0.5)
    del run.promised["anonymize"]["quasi"]["hour"], run.promised["anonymize"]["sensitive"]
    run.promised["anonymize"]["quasi"]["at"] = {"kind": "numeric", "low": "2026-01-01", "high": "2027-01-01"}
    moment = pa.timestamp("us")
    truth = pa.table({
        "maid": ["a", "b"], "device": ["G 1"] * 2, "place": ["a"] * 2, "mbps": [1.0, 2.0],
        "at": pa.array([1767261600_000_000 + 5, 1767261600_000_000 + 3_599_000_000], moment),
    })  # fmt: skip

    def release(begin, end):
        ends = [pa.array([(1767261600 + at) * 1_000_000] * 2, moment) for at in (begin, end)]
        return pa.table({"device": ["G 1"] * 2, "place": ["a"] * 2,
                         "at": pa.StructArray.from_arrays(ends, ["lo", "hi"]), "mbps": [1.0, 2.0]})  # fmt: skip

    trace = pa.table({"row": [0, 1], "verdict": ["released"] * 2, "group": [0, 0]})
    assert shoal.audit(release(0, 3600), truth, trace, run.promised).ok
    assert shoal.audit(release(-2 * 3600, 2 * 3600), truth, trace, run.promised).ok
    codes = [found.code for found in shoal.audit(release(0, 4000), truth, trace, run.promised).violations]
    assert codes == ["not-a-cell"]


def test_widths_of_time_end_with_the_domain(tmp_path):
    """In two days and a half there is a cell of two days: doubled from a day, not from a week that is too long."""
    run = Run(tmp_path, publishes=False, truth=[], k=2, p_sparse=0.5)
    del run.promised["anonymize"]["quasi"]["hour"], run.promised["anonymize"]["sensitive"]
    run.promised["anonymize"]["quasi"]["at"] = {"kind": "numeric", "low": "2026-01-01", "high": "2026-01-03T12:00:00"}
    start, moment = 1767225600, pa.timestamp("us")
    ends = [pa.array([(start + at) * 1_000_000] * 2, moment) for at in (0, 2 * 86_400)]
    at = pa.array([(start + 5) * 1_000_000] * 2, moment)
    same = {"device": ["G 1"] * 2, "place": ["a"] * 2, "mbps": [1.0, 2.0]}
    release = pa.table({**same, "at": pa.StructArray.from_arrays(ends, ["lo", "hi"])})
    trace = pa.table({"row": [0, 1], "verdict": ["released"] * 2, "group": [0, 0]})
    report = shoal.audit(release, pa.table({"maid": ["a", "b"], **same, "at": at}), trace, run.promised)
    assert report.ok, report.text()


@pytest.mark.parametrize(("kind", "high"), [(pa.decimal128(4, 1), 0.7), (pa.int64(), 10.5)])
def test_numbers_at_the_end_of_the_domain(kind, high):
    """A decimal is what it says; whole numbers end below an end that is none."""
    last = Decimal(str(high)) if pa.types.is_decimal(kind) else 10
    grid, bound = (0.1, pa.float64()) if pa.types.is_decimal(kind) else (7, kind)
    truth = pa.table({"maid": ["a", "b"], "x": pa.array([last] * 2, kind)})
    begin = 0.6 if pa.types.is_decimal(kind) else 7
    ends = [pa.array([end] * 2, bound) for end in (begin, high if bound == pa.float64() else 10)]
    trace = pa.table({"row": [0, 1], "verdict": ["released"] * 2, "group": [0, 0]})
    promised = {"kind": "numeric", "low": 0, "high": high, "grid": grid}
    policy = {"stream": {"person": "maid"}, "anonymize": {"method": "flexible-k", "k": 2, "quasi": {"x": promised}}}
    report = shoal.audit(pa.table({"x": pa.StructArray.from_arrays(ends, ["lo", "hi"])}), truth, trace, policy)
    assert report.ok, report.text()


def test_the_command(tmp_path, capsys):
    run = Run(tmp_path, records(250))
    policy, stream = run.promised["anonymize"], run.promised["stream"]
    lines = [
        "[stream]", f"person = '{stream['person']}'", "carry = ['mbps']", "[anonymize]", "method = 'flexible-k'",
        "k = 4", "sparse = ['device']", "window = 100", "sensitive = ['net']",
        "[anonymize.quasi.device]", "kind = 'ontology'", "ontology = { kind = 'rdf', path = 'devices.ttl' }",
        "[anonymize.quasi.place]", "kind = 'categorical'", "hierarchy = { kind = 'nested', path = 'places.json' }",
        "[anonymize.quasi.hour]", "kind = 'numeric'", "low = 0", "high = 64", "grid = 4",
    ]  # fmt: skip
    (tmp_path / "policy.toml").write_text("\n".join(lines))
    (tmp_path / "places.json").write_text(json.dumps(policy["quasi"]["place"]["hierarchy"]["tree"]))
    shown = [{**row, "hour": f"[{row['hour']['lo']}, {row['hour']['hi']}]"} for row in run.release]
    csv.write_csv(pa.Table.from_pylist(shown).select(RELEASE.names), tmp_path / "released.csv")
    csv.write_csv(table(run.truth, TRUTH), tmp_path / "truth.csv")
    trace = table(run.trace, TRACE).replace_schema_metadata({b"shoal": json.dumps(run.claims).encode()})
    parquet.write_table(trace, tmp_path / "trace.parquet")
    given = ["--policy", str(tmp_path / "policy.toml"), "--truth", str(tmp_path / "truth.csv")]
    command = ["audit", str(tmp_path / "released.csv"), *given, "--trace", str(tmp_path / "trace.parquet")]
    assert app(command, result_action="return_value") == 0
    text = capsys.readouterr().out
    assert "audit of flexible-k: promise kept" in text
    assert "candidates knowing all: least" in text
    parquet.write_table(trace.replace_schema_metadata({b"shoal": b'{"k": 3, "k_s": 1}'}), tmp_path / "trace.parquet")
    assert app([*command, "--json"], result_action="return_value") == 1
    found = json.loads(capsys.readouterr().out)
    assert {finding["code"] for finding in found["findings"]} >= {"k-lowered", "k-s-lowered"}
    assert found["metrics"]["candidates_knowing_normal"]["promised_risk"] == 0.25
