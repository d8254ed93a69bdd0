"""The dashboard for Grafana asks for measurements that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

from shoal.observe.counts import Commit, RunSummary
from shoal.observe.metrics import MetricsObserver

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "shoal.json"


def test_every_measurement_of_the_dashboard_is_served() -> None:
    observer = MetricsObserver()
    summary = RunSummary(
        rows_in=9, dead_by_reason={"late": 1}, metrics={"loss": 0.5, "delay": 1.0, "max_delay": 2.0}, guarantee="words"
    )
    observer.committed(lambda: Commit(summary, 1, 2, 3.0, 4, 5, 6.0))
    served = set(re.findall(r"^(shoal_\w+)", observer.page().decode(), re.MULTILINE))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    asked = [name for panel in panels for one in panel["targets"] for name in re.findall(r"shoal_\w+", one["expr"])]
    assert len(asked) >= len(panels)
    assert set(asked) <= served
    boxes = [panel["gridPos"] for panel in panels]
    assert all(box["x"] + box["w"] <= 24 for box in boxes)
