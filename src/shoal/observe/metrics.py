"""Measurements of a run for Prometheus: counts, delays, lags and sizes, never a value of a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from numbers import Real
from threading import Lock
from typing import Any, Final

from shoal.errors import PolicyError, how_to_install
from shoal.observe.counts import Commit, RunSummary
from shoal.observe.observer import Observer

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
except ImportError:  # pragma: no cover - the extra is not installed
    raise PolicyError(
        f"--metrics: needs the package prometheus-client: {how_to_install('prometheus-client', 'metrics')}"
    ) from None

_LAG_STEP: Final = 10.0
"""The lag of the last record is rounded to this: exactly, it would be the time of one person's record."""
_NOT_LISTED: Final = frozenset({"delay", "max_delay"})
"""Metrics of methods that have a name of their own here."""


class MetricsObserver(Observer):
    """Remembers the latest counts of a run and gives them to Prometheus."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._counts = RunSummary()
        self._commit: Commit | None = None
        self._committed_at = self._started_at = clock()
        self._warnings = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def progress(self, summary: RunSummary) -> None:
        with self._lock:
            self._counts = summary

    def committed(self, commit: Callable[[], Commit]) -> None:
        known = commit()
        with self._lock:
            self._commit, self._counts, self._committed_at = known, known.summary, self._clock()

    def warn(self, sentence: str) -> None:
        with self._lock:
            self._warnings += 1

    def page(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """All measurements; called by Prometheus' client."""
        with self._lock:
            counts, commit, committed_at = self._counts, self._commit, self._committed_at
            warnings = self._warnings
        records = CounterMetricFamily("shoal_records", "Records by verdict.", labels=["verdict"])
        for verdict in ("released", "suppressed", "dead"):
            records.add_metric([verdict], getattr(counts, verdict))
        yield records
        yield CounterMetricFamily("shoal_records_in", "Records that arrived.", value=counts.rows_in)
        yield CounterMetricFamily("shoal_warnings", "Warnings of this process.", value=warnings)
        yield GaugeMetricFamily("shoal_started_seconds", "When this process started.", value=self._started_at)
        if commit is not None:
            yield from _of_commit(commit, self._clock() - committed_at, self._clock())


def _of_commit(commit: Commit, age: float, now: float) -> Iterator[Any]:
    """What is measured at a commit only, because it costs."""
    summary = commit.summary
    refused = CounterMetricFamily("shoal_refused", "Dead letters by reason.", labels=["reason"])
    for reason, count in summary.dead_by_reason.items():
        refused.add_metric([reason], count)
    yield refused
    yield GaugeMetricFamily("shoal_pending", "Records that are not decided yet.", value=commit.pending)
    yield GaugeMetricFamily("shoal_state_bytes", "Memory of the method's tables.", value=summary.state_bytes)
    yield GaugeMetricFamily("shoal_checkpoint_age_seconds", "Since the last checkpoint.", value=age)
    yield GaugeMetricFamily(
        "shoal_checkpoint_bytes", "Size of the state in the last checkpoint.", value=commit.checkpoint_bytes
    )
    yield GaugeMetricFamily("shoal_checkpoint_seconds", "What the last commit took.", value=commit.seconds)
    if commit.lag is not None:
        yield GaugeMetricFamily("shoal_source_lag", "Records in the source that are not read yet.", value=commit.lag)
    if commit.event_time_ns is not None:
        late = round((now - commit.event_time_ns / 1e9) / _LAG_STEP) * _LAG_STEP
        words = f"From the last record's time to now, to {_LAG_STEP:g} seconds."
        yield GaugeMetricFamily("shoal_event_time_lag_seconds", words, value=late)
    yield from _of_method(commit)


def _of_method(commit: Commit) -> Iterator[Any]:
    summary, unit = commit.summary, commit.summary.delay_unit
    delays = GaugeMetricFamily("shoal_delay", "Delays of released records.", labels=["which", "unit"])
    for which, value in (
        ("mean", summary.metrics.get("delay")),
        ("longest", summary.metrics.get("max_delay")),
        ("promised", commit.promised_delay),
    ):
        if value is not None:
            delays.add_metric([which, unit], value)
    yield delays
    measured = GaugeMetricFamily("shoal_method", "What the method measures, such as its loss.", labels=["name"])
    for name, value in summary.metrics.items():
        if name not in _NOT_LISTED and isinstance(value, Real):
            measured.add_metric([name], float(value))
    yield measured
    yield InfoMetricFamily("shoal_promise", "What is promised of every released row.", {"statement": summary.guarantee})
