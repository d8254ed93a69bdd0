"""What if: recent records, decided again with other settings, by methods of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.decode.base import Decoded
from shoal.errors import PolicyError, ShoalError
from shoal.methods.registry import METHODS
from shoal.methods.settings import Duration
from shoal.policy import Policy
from shoal.serve.measured.class_sizes import ClassSizes
from shoal.serve.measured.value_crowds import ValueCrowds
from shoal.serve.recent import RecentRows, Step
from shoal.serve.trial_settings import trial_settings
from shoal.times import column_ns

_ROWS: Final = 20_000
_MOST_ROWS: Final = 100_000
"""Of a sample that long deadlines need."""
_DEADLINES: Final = 3
"""How many deadlines a sample should cover, so that most of its rows are decided before its end."""
_AT_ONCE: Final = 1_000
"""Rows between two pauses, in which other threads go on."""

Outcome = dict[str, float | int | None]


def check_trial(policy: Policy, given: object) -> dict[str, float]:
    """The settings of a trial; PolicyError in one sentence."""
    known = {one["key"]: one for one in trial_settings(policy)}
    if not known:
        raise PolicyError("this policy has no setting that can be tried here")
    if not isinstance(given, Mapping) or not given:
        raise PolicyError(f"name a setting to try: {', '.join(known)}")
    for key, value in given.items():
        if key not in known:
            raise PolicyError(f"only these settings can be tried: {', '.join(known)}")
        bounds = known[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise PolicyError(f"{key}: must be a number")
        if not bounds["least"] <= value <= bounds["most"]:
            raise PolicyError(f"{key}: must be from {bounds['least']:g} to {bounds['most']:g}")
        if bounds["step"] == 1 and value != int(value):
            raise PolicyError(f"{key}: must be a whole number")
    return dict(given)


def run_trial(policy: Policy, recent: RecentRows, changed: Mapping[str, float]) -> dict[str, Any]:
    """Decide a sample of the recent records with the settings in force and with changed ones.

    Both begin without earlier records, so that they can be compared with each other. A sample that is shorter than
    three deadlines ends as a stream ends: its pending rows are decided with what is there (`ends`).
    """
    begun = time.monotonic()
    wait = _longest_wait(policy, changed)
    sample = _sample(policy, recent.steps(), wait)
    covers = _length(policy, sample)
    ends = wait is not None and covers is not None and covers < _DEADLINES * wait
    found = {
        "settings": dict(changed),
        "now": _decide(policy, sample, {}, ends=ends),
        "then": _decide(policy, sample, changed, ends=ends),
        "rows": sum(batch.num_rows for batch in sample),
    }
    if ends:
        found |= {"covers": round(covers or 0, 1), "unit": policy.anonymize.delay_unit}
    return {**found, "seconds": round(time.monotonic() - begun, 2)}


def _longest_wait(policy: Policy, changed: Mapping[str, float]) -> float | None:
    """The longer of both deadlines, in seconds or rows; None for a method without one."""
    deadline = getattr(policy.anonymize, "deadline", None)
    if deadline is None:
        return None
    own = int(deadline) / 1e9 if isinstance(deadline, Duration) else int(deadline)
    return max(own, changed.get("deadline", 0))


def _length(policy: Policy, batches: list[pa.RecordBatch]) -> float | None:
    """How long a sample is, in the unit of the deadline: seconds between its earliest and latest record, or rows."""
    if policy.anonymize.delay_unit != "seconds":
        return float(sum(batch.num_rows for batch in batches))
    time = policy.stream.time
    if not batches or time is None:
        return None
    moments, is_usable = (np.concatenate(part) for part in zip(*(_moments(one, time) for one in batches), strict=True))
    known = moments[is_usable]
    return float(known.max() - known.min()) / 1e9 if len(known) else None


def _moments(batch: pa.RecordBatch, time: str) -> Any:
    return column_ns(batch.column(time))


def _sample(policy: Policy, steps: list[Step], wait: float | None = None) -> list[pa.RecordBatch]:
    """The newest records; for one attribute of z-anonymity all records of some values, as far as they are kept."""
    batches = [step.batch for step in steps if step.batch is not None and step.batch.num_rows]
    rows = sum(batch.num_rows for batch in batches)
    method: Any = policy.anonymize
    if METHODS[method.METHOD].family == "z" and len(method.columns) == 1 and not policy.hierarchies:
        (name,) = method.columns
        share = min(1.0, _ROWS / max(rows, 1))
        return [part for batch in batches if (part := _of_some_values(batch, name, share)).num_rows]
    for most in range(_ROWS, _MOST_ROWS + 1, _ROWS):
        found = _newest(batches, most)
        covers = _length(policy, found)
        if most >= rows or wait is None or covers is None or covers >= _DEADLINES * wait:
            break
    return found


def _newest(batches: list[pa.RecordBatch], rows: int) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    left = rows
    for batch in reversed(batches):
        if left <= 0:
            break
        found.append(batch.slice(max(0, batch.num_rows - left)))
        left -= batch.num_rows
    return found[::-1]


def _of_some_values(batch: pa.RecordBatch, name: str, share: float) -> pa.RecordBatch:
    """The records with values whose hash falls into a share."""
    if share >= 1:
        return batch
    encoded = batch.column(name).dictionary_encode()
    is_chosen = np.array([hash(("trial", one)) % 10_000 < 10_000 * share for one in encoded.dictionary.to_pylist()])
    codes = encoded.indices.fill_null(0).to_numpy()
    kept = is_chosen[codes] if len(is_chosen) else np.ones(batch.num_rows, np.bool_)
    return batch.filter(pa.array(kept))


def _decide(policy: Policy, sample: list[pa.RecordBatch], changed: Mapping[str, float], *, ends: bool) -> Outcome:
    entry = METHODS[policy.anonymize.METHOD]
    parameters = {**policy.parameters(), **_parameters(policy, changed)}
    try:
        method = entry.load()(**parameters, key=os.urandom(32))
    except ShoalError as error:
        raise PolicyError(f"these settings cannot be combined: {error}") from None
    steps: list[Step] = []
    for batch in sample:
        for start in range(0, batch.num_rows, _AT_ONCE):
            piece, first = batch.slice(start, _AT_ONCE), method.counts["pushed"]
            steps.append(Step(len(steps), first, Decoded(piece, (), {}), method.push_batch(piece)))
            time.sleep(0)
    counts, metrics = method.counts, method.metrics
    last = method.flush()  # also because the method would warn of pending rows when it is deleted
    if ends:
        steps.append(Step(len(steps), counts["pushed"], None, last))
        counts, metrics = method.counts, method.metrics
    part = ValueCrowds(policy) if entry.family == "z" else ClassSizes(policy)
    decided = max(counts["pushed"], 1)
    return {
        "published": round(counts["released"] / decided, 4),
        "suppressed": round(counts["suppressed"] / decided, 4),
        "pending": round(counts["pending"] / decided, 4),
        "loss": _rounded(metrics.get("loss")),
        "smallest_class": part.smallest(steps),
        "delay": _rounded(metrics.get("delay")),
    }


def _parameters(policy: Policy, changed: Mapping[str, float]) -> dict[str, Any]:
    """Settings of the page as those of the method: spans of time are given in seconds."""
    is_timed = policy.anonymize.delay_unit == "seconds"
    return {key: f"{value:g}s" if key == "deadline" and is_timed else int(value) for key, value in changed.items()}


def _rounded(value: Any) -> float | None:
    return None if value is None else round(float(value), 4)
