"""The files that tuning writes: the curve as a table, and a policy to run."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from shoal.crypto.safe_open import write_file
from shoal.errors import OutputError
from shoal.inspection.toml_text import toml
from shoal.models.z.tuning import Candidate, WindowTuning
from shoal.pipeline.tune.tune import Tuned

_MARK: Final = "# Written by shoal tune."
CURVE: Final = "curve.csv"
POLICY: Final = "policy.toml"
PICTURE: Final = "curve.png"
_DAY: Final = 86_400 * 10**9
_KEPT: Final = (
    "compression", "delimiter", "header", "nulls", "encoding", "decimal", "dates", "trim",
    "max_record_bytes", "types",
)  # fmt: skip


def require_room(folder: Path) -> None:
    """Refuse a folder with a policy that shoal tune did not write: it must not be lost."""
    policy = folder / POLICY
    if policy.exists() and not _is_ours(policy):
        raise OutputError(f"{policy}: exists and was not written by shoal tune; choose another folder with --out")


def _is_ours(policy: Path) -> bool:
    try:
        return policy.read_text(encoding="utf-8").startswith(_MARK)
    except (OSError, UnicodeDecodeError):
        return False


def write_files(tuned: Tuned, folder: Path) -> list[Path]:
    """Write the curve and, if a z was found, a policy; remove the policy of an older run."""
    require_room(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / CURVE]
        write_file(written[0], curve_text(tuned), private=True)  # measured on private input
        policy = folder / POLICY
        policy.unlink(missing_ok=True)
        best = tuned.tuning.best
        if best is not None:
            write_file(policy, policy_text(tuned, *best, folder))
            written.append(policy)
    except OSError as error:
        place = error.filename or folder
        raise OutputError(f"{place}: cannot be written ({error.strerror}); choose another folder with --out") from None
    return written


def curve_text(tuned: Tuned) -> str:
    """A row for each window and z that was drawn."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(
        ["window", "z", "p_lower", "p", "p_upper", "later_p_predicted", "released", "entropy", "p_all", "p_active",
         "earlier_p", "earlier_released", "later_p", "later_p_all", "later_p_active", "later_released"]
    )  # fmt: skip
    for window in tuned.tuning.windows:
        for model, before, after in window.curve:
            numbers = (
                model.shown.lower, model.shown.value, model.shown.upper, model.ahead.value, model.released,
                model.entropy, model.over_all, model.over_active, before.over_shown, before.released,
                after.over_shown, after.over_all, after.over_active, after.released,
            )  # fmt: skip
            rows.writerow([window.window, model.z, *("" if one is None else f"{one:.6f}" for one in numbers)])
    return out.getvalue()


def policy_text(tuned: Tuned, window: WindowTuning, candidate: Candidate, folder: Path) -> str:
    """A policy that runs z-anonymity with what was found, over the same input."""
    target = tuned.tuning.target
    lines = [
        _MARK,
        f"# z = {candidate.z} and window {window.window}: over people with a released row, the share who are "
        f"{target.k}-anonymous",
        f"# reached {target.p:g} over the {candidate.later.epochs} windows, taken together, that were not used for "
        f"choosing it: {candidate.weakest:.4f} or more for every z from {candidate.z} to {candidate.z * 11 // 10}; "
        f"on its own in {candidate.later.held} of the {candidate.later.with_shown} that show anybody.",
        "# That is a measurement, not a guarantee for other data.",
        "", "[stream]", f"person = {toml(tuned.columns.person)}", f"time = {toml(tuned.columns.time)}",
        *_time_unit(tuned), *_carried(tuned),
        "", "[source]", *_source(tuned, folder),
        "", "[anonymize]", 'method = "z-anonymity"', f"attribute = {toml(tuned.columns.attribute)}",
        f"z = {candidate.z}", f"window = {toml(window.window)}", *_kept_rules(tuned), *_clock(tuned),
        "", "[sink]", 'kind = "parquet"', 'path = "released.parquet"', "", "[trace]", 'path = "trace.parquet"',
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _time_unit(tuned: Tuned) -> Iterator[str]:
    if tuned.policy.stream.time_unit is not None:
        yield f"time_unit = {toml(tuned.policy.stream.time_unit)}"


def _carried(tuned: Tuned) -> Iterator[str]:
    if tuned.hints is not None and tuned.hints.stream.carry:
        yield f"carry = {toml(tuned.hints.stream.carry)}"


def _kept_rules(tuned: Tuned) -> Iterator[str]:
    """Other settings of the given policy, as far as they fit a fixed z."""
    rules = tuned.z_rules
    if rules is None:
        return
    if rules.on_private == "blank":
        yield 'on_private = "blank"'
    if rules.combine is not None:
        yield f'combine = "{rules.combine}"'
        yield f"k = {rules.k}"
    for name in ("lateness", "max_gap"):
        if name in rules.model_fields_set:
            yield f"{name} = {toml(getattr(rules, name).given)}"


def _clock(tuned: Tuned) -> Iterator[str]:
    """Lateness and max_gap for a stream that is out of order or pauses for more than a day; a policy has its own."""
    if tuned.z_rules is not None:
        return
    events = tuned.events
    if events.late_ns:
        yield f'lateness = "{math.ceil(events.late_ns / 1e9)}s"  # the longest delay of a row'
    gap = int(np.diff(events.times).max(initial=0))
    if gap > _DAY:
        yield f'max_gap = "{math.ceil(gap / 1e9) + 1}s"  # the longest pause of the stream'


def _source(tuned: Tuned, folder: Path) -> Iterator[str]:
    source = tuned.policy.file_source
    paths = [place.text if place.is_standard else os.path.relpath(place.path, folder) for place in source.path]
    yield f"kind = {toml(source.kind)}"
    yield f"path = {toml(paths[0] if len(paths) == 1 else paths)}"
    for key in _KEPT:
        if key in source.model_fields_set and getattr(source, key) not in (None, (), {}):
            yield f"{key} = {toml(getattr(source, key))}"
