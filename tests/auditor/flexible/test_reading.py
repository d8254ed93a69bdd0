"""Policies that cannot be audited are refused; evidence comes in parts; what is too much is said."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from shoal.auditor import audit
from shoal.auditor.flexible import candidates as flexible_candidates
from shoal.errors import PolicyError
from tests.auditor.flexible.naive import RELEASE, TRACE, TRUTH, Run, candidates, policy, records, table


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"k": 0}, "k: must be"),
        ({"k_s": 1}, "k_s"),
        ({"k_s": "three"}, "k_s"),
        ({"p_sparse": 1.5}, "p_sparse"),
        ({"p_sparse": True}, "p_sparse"),
        ({"sparse": ["colour"]}, "sparse"),
        ({"window": 0}, "window"),
        ({"quasi": {}}, "quasi"),
        ({"quasi": {"device": {"kind": "guess"}}}, "quasi-identifier device"),
        ({"quasi": {"device": {"kind": "ontology"}}}, "ontology of device"),
        ({"density": {"hour": {"day": 3}}}, "density.hour"),
        ({"density": {"place": 3}}, "density.place"),
        ({"density": {"place": {"centre": 0}}}, "centre"),
        ({"density": 3}, "density"),
        ({"density_from_data": 3}, "density_from_data"),
        ({"density_from_data": {"hour": {"classes": [{"fewer_than": 3, "k": 9}]}}}, "density_from_data.hour"),
        ({"density_from_data": {"device": {"classes": [{"fewer_than": 3, "k": 9}]}}}, "density_from_data.device"),
        ({"density_from_data": {"place": {"classes": []}}}, "classes"),
        ({"density_from_data": {"place": {"classes": [{"fewer_than": 3}]}}}, "k"),
        ({"density_from_data": {"place": {"level": 0, "classes": [{"fewer_than": 3, "k": 9}]}}}, "level"),
    ],
)
def test_a_policy_that_cannot_be_read(tmp_path, rules, message):
    with pytest.raises(PolicyError, match=message):
        audit(table([], RELEASE), policy=policy(tmp_path, **rules))


def test_defaults(tmp_path):
    promised = policy(tmp_path)
    del promised["anonymize"]["k"]
    metrics = audit(table([], RELEASE), table([], TRUTH), policy=promised).metrics
    assert metrics["k"] == 6


def test_evidence_in_parts(tmp_path):
    run = Run(tmp_path, records(200))
    kept = {b"shoal": json.dumps(run.claims).encode()}
    half = len(run.release) // 2
    parts = [
        SimpleNamespace(
            rows=table(run.release[part], RELEASE),
            trace=table(run.trace[part], TRACE).replace_schema_metadata(kept),
        )
        for part in (slice(0, half), slice(half, None))
    ]
    report = audit(parts, table(run.truth, TRUTH), parts, run.promised)
    assert report.ok, report.text()
    assert report.not_checked == ()


@pytest.mark.parametrize("claims", [b"no JSON", b"[1, 2]", b'{"k": "many", "k_s": null, "sparse": "all"}'])
def test_claims_that_say_nothing(tmp_path, claims):
    run = Run(tmp_path, records(200))
    trace = table(run.trace, TRACE).replace_schema_metadata({b"shoal": claims})
    assert audit(table(run.release, RELEASE), table(run.truth, TRUTH), trace, run.promised).ok


def test_k_s_is_taken_from_the_trace_without_the_truth(tmp_path):
    run = Run(tmp_path, records(300, seed=1))
    run.claims = {"sparse": ["device"], "k": run.k, "k_s": 30}
    found = run.audit(truth=False)
    assert found.metrics["k_s"] == run.k
    assert "below-k-s" in {finding.code for finding in found.violations}


def test_a_crowd_is_not_counted_further(tmp_path, monkeypatch):
    run = Run(tmp_path, records(200))
    counted = run.audit().metrics["candidates_knowing_normal"]
    monkeypatch.setattr(flexible_candidates, "_ENOUGH", 3)
    rough = run.audit().metrics["candidates_knowing_normal"]
    assert run.k <= rough["least"] <= counted["least"]
    assert rough["median"] <= counted["median"]


def test_few_at_once(tmp_path, monkeypatch):
    run = Run(tmp_path, records(120))
    monkeypatch.setattr(flexible_candidates, "_AT_ONCE", 7)
    assert run.audit().metrics["candidates_knowing_all"]["least"] == min(candidates(run, ("device", "place", "hour")))


def test_too_many_ranges(tmp_path, monkeypatch):
    run = Run(tmp_path, records(200))
    monkeypatch.setattr(flexible_candidates, "_MOST_COVERED", 2)
    report = run.audit()
    assert report.ok
    assert report.metrics["candidates_knowing_all"] is None
    assert any("overlapping ranges" in sentence for sentence in report.not_checked)


def test_everything_is_sparse(tmp_path):
    run = Run(tmp_path, records(200), sparse=["device", "place", "hour"], p_sparse=0.5)
    run.claims["sparse"] = ["device", "place", "hour"]
    report = run.audit()
    assert report.ok, report.text()
    assert report.metrics["candidates_knowing_normal"]["least"] == report.metrics["released_people"]
