"""What a method offers to people who call it from Python: anonymize, with, audit, repr, and a word about lost rows."""

from __future__ import annotations

import gc
import logging

import pyarrow as pa
import pytest

import shoal
from shoal.methods.shortcuts import PendingRowsWarning

TREE = shoal.Hierarchy.from_nested({"*": {"field": ["corn", "wheat"], "shop": ["bread"]}})
N = 60


def rows(gap: int = 1) -> pa.Table:
    """People with an age, a job and a moment; the person of the last row is missing."""
    moments = pa.array([1_760_000_000 + row * gap for row in range(N)], pa.timestamp("s"))
    return pa.table({
        "id": [f"p{row}" for row in range(N - 1)] + [None],
        "age": [20 + row % 30 for row in range(N)],
        "job": [("corn", "wheat", "bread")[row % 3] for row in range(N)],
        "at": moments,
    })  # fmt: skip


def schema(*, time: str | None = None) -> shoal.Schema:
    quasi = [shoal.Numeric("age", low=0, high=100), shoal.Categorical("job", TREE),
             shoal.Numeric("at", low="2025-01-01", high="2026-01-01", grid="1h")]  # fmt: skip
    return shoal.Schema(person="id", quasi=quasi, time=time)


def methods() -> dict[str, shoal.methods.base.StreamMethod]:
    trees = shoal.Schema(person="id", quasi=[shoal.Categorical("job", TREE)])
    events = {"z": 3, "window": "1h", "person": "id", "time": "at"}
    return {
        "arrivals": shoal.LeastLoss(schema(), k=3, deadline=20, reuse=5),
        "durations": shoal.Fads(schema(time="at"), k=3, deadline="20s", reuse="5s"),
        "flexible": shoal.FlexibleK(trees, None, k=3),
        "events": shoal.ZAnonymity(attribute="job", **events),
        "events in a tree": shoal.ZAnonymity(
            attribute={"job": {"on_private": "generalize", "hierarchy": TREE}}, **events
        ),
        "events by suffix": shoal.ZAnonymity(
            attribute="job", on_private="generalize", hierarchy=shoal.Hierarchy.by_suffix(), **events
        ),
        "events with a target": shoal.ZAnonymity(
            attribute="job", target=shoal.KTarget(k=2, p=0.5, start=3), window="400s", person="id", time="at"
        ),
    }


NAMES = list(methods())


@pytest.mark.parametrize("name", NAMES)
def test_one_call_publishes_all_and_the_method_states_its_promise_to_the_auditor(name: str) -> None:
    method = methods()[name]
    release = method.anonymize(rows())
    assert method.pending == 0
    assert release.rows.num_rows == method.counts["released"] > 0
    report = method.audit(rows(), release)
    assert report.ok, report.text()
    assert report.metrics == shoal.audit(release, rows(), release.trace, method).metrics


@pytest.mark.parametrize("name", NAMES)
def test_the_auditor_convicts_a_release_of_a_method_that_promises_more(name: str) -> None:
    release = methods()[name].anonymize(rows())
    strict = methods()[name].policy
    rules = strict["anonymize"]
    rules |= {"target": {**rules["target"], "start": 99, "floor": 99}} if "target" in rules else {
        "z" if "attribute" in rules else "k": 99
    }  # fmt: skip
    assert not shoal.audit(release, rows(), release.trace, strict).ok


def test_several_releases_are_audited_together() -> None:
    method = methods()["arrivals"]
    parts = [method.push_batch(rows()), method.flush()]
    assert method.audit(rows(), parts).ok
    assert method.audit(rows(), parts).not_checked == ()
    alone = method.audit(rows(), [part.rows for part in parts])
    assert alone.ok
    assert alone.not_checked


def test_rows_only_with_their_trace() -> None:
    method = methods()["arrivals"]
    release = method.anonymize(rows())
    assert method.audit(rows(), release.rows, release.trace).not_checked == ()


def test_leaving_with_pending_rows_warns() -> None:
    with (
        pytest.warns(PendingRowsWarning, match=r"rows of LeastLoss are pending.*flush\(\)"),
        methods()["arrivals"] as m,
    ):
        m.push_batch(rows())


def test_leaving_without_pending_rows_or_with_an_error_does_not_warn() -> None:
    with methods()["arrivals"] as method:
        method.anonymize(rows())
    with pytest.raises(KeyError), methods()["arrivals"] as method:  # noqa: PT012 - the error comes after the rows
        method.push_batch(rows())
        raise KeyError


def lost(caplog: pytest.LogCaptureFixture, *, push: bool = True, flush: bool = False, snapshot: bool = False) -> bool:
    caplog.clear()
    method = methods()["arrivals"]
    if push:
        method.push_batch(rows())
    if flush:
        method.flush()
    if snapshot:
        method.snapshot()
    with caplog.at_level(logging.WARNING, logger="shoal.methods"):
        del method
        gc.collect()
    return "in no release" in caplog.text


def test_a_method_that_is_dropped_with_pending_rows_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOAL_QUIET", raising=False)
    assert lost(caplog)
    assert not lost(caplog, flush=True)
    assert not lost(caplog, snapshot=True)
    assert not lost(caplog, push=False)
    monkeypatch.setenv("SHOAL_QUIET", "1")
    assert not lost(caplog)


def test_reprs_state_the_promise_and_the_counts() -> None:
    method = methods()["arrivals"]
    release = method.anonymize(rows())
    assert repr(release) == f"<Release: {release.rows.num_rows} rows released, 0 suppressed, 1 refused>"
    assert "at least 3 different people" in repr(method)
    assert f"60 rows in, {release.rows.num_rows} released, 0 suppressed, 1 refused, 0 pending>" in repr(method)
    assert "p1" not in repr(method)
    assert repr(shoal.KmAnonymity(k=5, m=2, generalize=TREE)).startswith("<KmAnonymity: k = ")


def test_a_method_with_an_ontology_asks_for_the_policy() -> None:
    phones = shoal.Ontology.from_table([{"job": "corn", "kind": "plant"}], value="job", properties=["kind"])
    method = shoal.FlexibleK(shoal.Schema(person="id", quasi=[shoal.Categorical("job")]), phones, k=3)
    with pytest.raises(shoal.ShoalError, match="give audit\\(\\) the policy's path"):
        _ = method.policy
