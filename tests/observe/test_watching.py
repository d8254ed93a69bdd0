"""Metrics, health and logs say what the run counted, and when it stopped taking turns."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from shoal.errors import PolicyError
from shoal.observe.counts import Commit, RunSummary
from shoal.observe.json_log import JsonLog
from shoal.observe.metrics import MetricsObserver
from shoal.observe.observer import Observer, Observers
from shoal.observe.serving import HealthObserver, serving

SUMMARY = RunSummary(
    rows_in=100, released=70, suppressed=10, dead=5, dead_by_reason={"late": 3, "null-person": 2}, state_bytes=4096,
    metrics={"loss": 0.25, "delay": 2.0, "max_delay": 9.0, "outcomes": [1]}, guarantee="3-anonymity",
)  # fmt: skip
COMMIT = Commit(
    summary=SUMMARY, pending=15, checkpoint_bytes=777, seconds=0.5, lag=42, event_time_ns=990 * 10**9,
    promised_delay=10.0,
)  # fmt: skip


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def samples(metrics: MetricsObserver) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(metrics.page().decode())
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_metrics_are_the_counts_of_the_run() -> None:
    clock = Clock()
    metrics = MetricsObserver(clock=clock)
    metrics.progress(RunSummary(rows_in=7, released=3))
    before = samples(metrics)
    assert before[("shoal_records_in_total",)] == 7
    assert before[("shoal_records_total", "released")] == 3
    assert ("shoal_pending",) not in before
    metrics.committed(lambda: COMMIT)
    metrics.warn("look here")
    clock.now += 30
    found = samples(metrics)
    expected = {
        ("shoal_records_in_total",): 100, ("shoal_records_total", "released"): 70,
        ("shoal_records_total", "suppressed"): 10, ("shoal_records_total", "dead"): 5,
        ("shoal_refused_total", "late"): 3, ("shoal_refused_total", "null-person"): 2,
        ("shoal_warnings_total",): 1, ("shoal_started_seconds",): 1000, ("shoal_pending",): 15,
        ("shoal_state_bytes",): 4096, ("shoal_checkpoint_age_seconds",): 30, ("shoal_checkpoint_bytes",): 777,
        ("shoal_checkpoint_seconds",): 0.5, ("shoal_source_lag",): 42, ("shoal_event_time_lag_seconds",): 40,
        ("shoal_delay", "seconds", "mean"): 2, ("shoal_delay", "seconds", "longest"): 9,
        ("shoal_delay", "seconds", "promised"): 10, ("shoal_method", "loss"): 0.25,
        ("shoal_promise_info", "3-anonymity"): 1,
    }  # fmt: skip
    assert found == expected


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_health_follows_the_turns_of_the_run() -> None:
    clock = Clock()
    health = HealthObserver(clock=clock, silent_seconds=60)
    with serving("0", health, lambda: b"page") as port:
        assert get(port, "/metrics") == (200, "page")
        assert get(port, "/readyz") == (503, "starting\n")
        clock.now += 1000  # compiling
        assert get(port, "/healthz") == (200, "ok\n")
        health.turn()
        assert get(port, "/readyz?verbose") == (200, "ok\n")
        clock.now += 59
        assert get(port, "/healthz")[0] == 200
        clock.now += 2
        assert get(port, "/healthz") == (503, "no turn for 61 seconds\n")
        health.turn()
        assert get(port, "/healthz")[0] == 200
        assert get(port, "/other")[0] == 404
        with pytest.raises(PolicyError, match="choose another port"), serving(f"127.0.0.1:{port}", health, bytes):
            pass
    with pytest.raises(urllib.error.URLError):
        get(port, "/metrics")


@pytest.mark.parametrize("address", ["", "x", "host:", "host:99999", ":-1"])
def test_an_address_needs_a_port(address: str) -> None:
    with pytest.raises(PolicyError, match="must be a port"), serving(address, HealthObserver(), bytes):
        pass


def test_the_log_has_one_object_per_line() -> None:
    out, clock = io.StringIO(), Clock()
    log = JsonLog(out, clock=clock)
    log.compiling()
    log.progress(SUMMARY)  # too early
    clock.now += 10
    log.progress(SUMMARY)
    log.progress(SUMMARY)
    log.step("too early")
    clock.now += 10
    log.step("Spark stage 3: 1 of 2 tasks")
    log.committed(lambda: COMMIT)
    log.z_set("2026-01-01T00:00:00Z", 5)
    log.resumed(12)
    log.warn("careful")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    events = ["compiling", "progress", "step", "committed", "z set", "resumed", "warning"]
    assert [line["event"] for line in lines] == events
    assert lines[0]["time"] == "1970-01-01T00:16:40.000Z"
    assert lines[1] | {"rows_in": 100, "released": 70, "suppressed": 10, "dead": 5} == lines[1]
    assert lines[2]["message"] == "Spark stage 3: 1 of 2 tasks"
    assert (lines[3]["pending"], lines[3]["lag"]) == (15, 42)
    assert lines[-1]["level"] == "warning"


def test_a_quiet_log_has_warnings_only() -> None:
    out = io.StringIO()
    log = JsonLog(out, quiet=True)
    log.committed(lambda: COMMIT)
    log.warn("careful")
    assert len(out.getvalue().splitlines()) == 1


def test_every_observer_hears_every_event() -> None:
    heard: list[str] = []

    class Listening(Observer):
        def __getattribute__(self, name: str) -> object:
            heard.append(name)
            return lambda *_: None

    events = [name for name in vars(Observer) if not name.startswith("_")]
    both = Observers(Listening(), Listening())
    for name in events:
        event = getattr(both, name)
        event(*[None] * (event.__code__.co_argcount - 1))
    assert heard == [name for name in events for _ in range(2)]
