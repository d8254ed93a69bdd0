"""Snapshots as `shoal serve` sends them, from a fixed seed: one a second of a run that a reader can follow."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime
from typing import Any

from shoal.serve.measured.verdict import verdict_now

LOSS = {"age": 0.083, "postcode": 0.214, "sex": 0.02, "admission type": 0.127, "ward": 0.31}
START = 1_795_000_000  # 2026-11-18T11:06:40Z


def iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Story:
    """A run of least-loss on an HTTP source; `next()` is a second later."""

    def __init__(self, seed: int = 7, *, places: bool = True) -> None:
        self._random = random.Random(seed)
        self._places = places
        self.number = 0
        self.started = START
        self.totals = {"in": 0, "published": 0, "suppressed": 0, "dead": 0, "pending": 0}
        self.history: list[dict[str, Any]] = []
        self.broken = False
        self.state = "running"

    def next(self) -> dict[str, Any]:
        self.number += 1
        came = round(1800 + 700 * abs(self._random.gauss(0, 0.4)) + (1200 if self.number % 180 < 40 else 0))
        dead = self._random.choice((0, 0, 1, 2, 3))
        suppressed = round(came * 0.012)
        pending = min(1850, self.totals["pending"] + 60)
        published = came - dead - suppressed - (pending - self.totals["pending"])
        for key, value in (("in", came), ("published", published), ("suppressed", suppressed), ("dead", dead)):
            self.totals[key] += value
        self.totals["pending"] = pending
        self.history.append(
            {
                "t": float(START + self.number), "in_per_s": came, "out_per_s": published, "pending": pending,
                "lag": max(0, round(self._random.gauss(40, 30) + (600 if self.number % 180 < 12 else 0))),
                "memory_mb": round(182 + min(self.number, 200) * 0.05 + self._random.random(), 1), "delay": 950.0,
            }
        )  # fmt: skip
        return self.snapshot()

    def snapshot(self) -> dict[str, Any]:
        measured = 4 if self.broken else 7
        dead = self.totals["dead"]
        snapshot: dict[str, Any] = {
            "number": self.number,
            "at": iso(START + self.number),
            "run": {
                "policy": "admissions.toml", "method": "least-loss", "family": "tuples", "source": "http",
                "sink": "released.parquet", "started": iso(self.started), "state": self.state,
                "sentence": "Rows arrive over HTTP and are published within their deadline.",
            },
            "series": self.history[-1],
            "totals": dict(self.totals),
            "promise": [
                {"name": "k", "words": "every published row shares its quasi-identifiers with at least 5 people",
                 "promised": 5, "measured": measured, "holds": not self.broken, "scope": "last window"},
                {"name": "deadline", "words": "no row waits for more than 2,000 records", "bound": "most",
                 "promised": 2000, "measured": 1874, "holds": True, "scope": "last window"},
                {"name": "l", "words": "every class has at least 3 different diagnoses",
                 "promised": 3, "measured": 3, "holds": True, "scope": "last window"},
            ],
            "settings": [
                {"key": "k", "value": 5, "least": 2, "most": 50, "step": 1, "words": "people who must look alike"},
                {"key": "deadline", "value": 2000, "least": 100, "most": 20000, "step": 100, "unit": "records"},
            ],
            "deadline": {"unit": "records", "allowed": 2000, "longest": 1874,
                         "histogram": [[upper, self._bar(upper)] for upper in range(100, 2001, 100)]},
            "loss": [{"column": column, "loss": loss} for column, loss in LOSS.items()],
            "dead_letters": [{"reason": "missing person identifier", "count": dead - dead // 3 - dead // 9},
                             {"reason": "not a time", "count": dead // 3},
                             {"reason": "unknown value of ward", "count": dead // 9}],
            "checkpoints": {"count": 1 + self.number // 10, "age_s": self.number % 10 + 0.4, "bytes": 48_213},
            "places": self._cells() if self._places else None,
        }  # fmt: skip
        return snapshot | {"verdict": verdict_now(snapshot["promise"]).to_dict()}

    def _bar(self, upper: int) -> int:
        height = 0.11 * (upper / 1300) ** 2 if upper < 1400 else (2000 - upper) / 6000
        return round(self.totals["published"] * max(0.004, height))

    def _cells(self) -> list[dict[str, Any]]:
        drawn = random.Random(3)
        west, south, side = 7.60, 45.02, 0.02
        cells = []
        for column, row in itertools.product(range(9), range(7)):
            weight = drawn.random() * (1.2 - abs(column - 4) / 5) * (1.2 - abs(row - 3) / 4)
            if weight > 0.18:
                corner = {"west": west + column * side, "south": south + row * side}
                far = {"east": west + (column + 1) * side, "north": south + (row + 1) * side}
                cells.append(corner | far | {"count": 5 + round(weight * self.totals["published"] / 40)})
        return cells


def what_if(settings: dict[str, float], number: int) -> dict[str, Any]:
    """Return an answer whose `then` gets worse with k and better with time."""
    k, deadline = settings.get("k", 5), settings.get("deadline", 2000)
    suppressed = min(0.9, 0.012 * (k / 5) ** 1.5 * (2000 / deadline) ** 0.5)
    return {
        "id": number, "settings": settings, "rows": 20_000, "seconds": 0.84,
        "now": {"published": 0.983, "suppressed": 0.012, "pending": 0.005,
                "loss": 0.151, "smallest_class": 7, "delay": 950.0},
        "then": {"published": 0.995 - suppressed, "suppressed": suppressed, "pending": 0.005,
                 "loss": min(1, 0.151 * (k / 5) ** 0.6), "smallest_class": k, "delay": deadline * 0.475},
    }  # fmt: skip
