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
from shoal.policy import Policy
from shoal.serve.measured.class_sizes import ClassSizes
from shoal.serve.measured.value_crowds import ValueCrowds
from shoal.serve.recent import RecentRows, Step
from shoal.serve.trial_settings import trial_settings

_ROWS: Final = 20_000
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

    Both begin without earlier records, so that they can be compared with each other.
    """
    begun = time.monotonic()
    sample = _sample(policy, recent.steps())
    found = {
        "settings": dict(changed),
        "now": _decide(policy, sample, {}),
        "then": _decide(policy, sample, changed),
        "rows": sum(batch.num_rows for batch in sample),
    }
    return {**found, "seconds": round(time.monotonic() - begun, 2)}


def _sample(policy: Policy, steps: list[Step]) -> list[pa.RecordBatch]:
    """The newest records; for one attribute of z-anonymity all records of some values, as far as they are kept."""
    batches = [step.batch for step in steps if step.batch is not None and step.batch.num_rows]
    rows = sum(batch.num_rows for batch in batches)
    method: Any = policy.anonymize
    if METHODS[method.METHOD].family == "z" and len(method.columns) == 1 and not policy.hierarchies:
        (name,) = method.columns
        share = min(1.0, _ROWS / max(rows, 1))
        return [part for batch in batches if (part := _of_some_values(batch, name, share)).num_rows]
    found: list[pa.RecordBatch] = []
    left = _ROWS
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


def _decide(policy: Policy, sample: list[pa.RecordBatch], changed: Mapping[str, float]) -> Outcome:
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
    method.flush()  # else the method would warn of pending rows when it is deleted
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
