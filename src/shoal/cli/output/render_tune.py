"""Print the result of tuning, for people and as JSON."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import orjson

from shoal.cli.output import render as showing
from shoal.models.z.search import FEWEST_EPOCHS, FEWEST_SHOWN, reach_of
from shoal.models.z.tuning import Candidate, Target, WindowTuning
from shoal.pipeline.tune.tune import Tuned
from shoal.schema import format_duration

_WIDTH: Final = 118
_ORIGINS: Final = {
    "model": "the model",
    "replay": "a replay of the used windows",
    "cautious": "a replay of the used windows with half the failures allowed",
}


class ProgressLines:
    """Print progress on standard error, at most one line every few seconds."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._last = time.monotonic()

    def __call__(self, text: str) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._last >= showing._SECONDS_BETWEEN_LINES:  # noqa: SLF001 - the same pace
            self._last = now
            print(f"shoal: {text}", file=sys.stderr)


def print_tuned(tuned: Tuned, written: Sequence[Path]) -> None:
    """Tables and sentences for people."""
    from rich.console import Console

    console = Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH, highlight=False)
    tuning, target = tuned.tuning, tuned.tuning.target
    console.print(f"{len(tuned.events):,} events of {tuned.events.people:,} people", markup=False)
    if tuned.events.unusable:
        console.print(f"  {_unusable(tuned)}", markup=False)
    for window in tuning.windows:
        for line in _estimate_lines(window):
            console.print(line, markup=False, soft_wrap=True)
    if any(window.candidates for window in tuning.windows):
        console.print(_table(tuning.windows, target))
    best = tuning.best
    for window, candidate in (
        [best] if best else [(one, two) for one in tuning.windows[:1] for two in one.candidates[:1]]
    ):
        console.print(_denominators(window, candidate, target))
    for line in [*_verdict(tuned), *(f"written        {path}" for path in written)]:
        console.print(line, markup=False, soft_wrap=True)


def _unusable(tuned: Tuned) -> str:
    events, columns = tuned.events, tuned.columns
    return (
        f"{events.unusable:,} of {len(events) + events.unusable:,} rows are left out: they have no usable "
        f"{columns.person!r}, {columns.time!r} or {columns.attribute!r}"
    )


def _estimate_lines(window: WindowTuning) -> Iterator[str]:
    found = window.estimate
    yield (
        f"window {window.window}: {found.windows:,} windows used, {found.active:,.0f} people active in one, "
        f"{found.values:,} values; the model has {_people(window)}"
    )
    for remark in found.remarks:
        yield f"  {remark}"
    if window.is_interleaved:
        yield (
            "  it follows the time of the day, and no other day is there to check the same hours: the check is on "
            "windows in between, and does not cover days unlike this one"
        )


def _people(window: WindowTuning) -> str:
    found = window.estimate
    if window.phases > 1:
        return f"{window.phases} phases by time, each with its own people"
    if len(found.sizes) == 1:
        return f"{found.people:,} people"
    return f"{found.people:,} people in classes of {', '.join(f'{size:,}' for size in found.sizes)}"


def _table(windows: Sequence[WindowTuning], target: Target) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, title_justify="left",
        title=f"share of people shown who are {target.k}-anonymous; target {target.p:g}, for every z up to 1.1 z",
    )  # fmt: skip
    for name in ("window", "z", "from", "model", "used", "model", "unused", "lowest", "windows", "released", "held"):
        table.add_column(name, justify="left" if name in ("window", "from", "held") else "right")
    for window in windows:
        for one in window.candidates:
            after = one.later
            table.add_row(
                window.window, f"{one.z:,}", one.origin, _share(one.predicted.shown.value),
                _share(one.earlier.over_shown), _share(one.predicted.ahead.value), _share(after.over_shown),
                f"{_share(one.weakest)} at {one.weakest_z}", f"{after.held} of {after.with_shown}",
                _share(after.released), _held(one),
            )  # fmt: skip
    return table


def _held(one: Candidate) -> str:
    return "yes" if one.held else "no" if one.is_enough else "too short"


def _denominators(window: WindowTuning, one: Candidate, target: Target) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, title_justify="left",
        title=f"z = {one.z}, window {window.window}: share of {target.k}-anonymous people, by denominator",
    )  # fmt: skip
    for name in ("over", "predicted", "counted, used", "counted, unused"):
        table.add_column(name, justify="left" if name == "over" else "right")
    predicted, before, after = one.predicted, one.earlier, one.later
    rows = (
        ("(a) everybody seen", predicted.over_all, before.over_all, after.over_all),
        ("(b) people active in the epoch", predicted.over_active, before.over_active, after.over_active),
        ("(c) people with a released row", predicted.shown.value, before.over_shown, after.over_shown),
        ("rows released", predicted.released, before.released, after.released),
    )
    for name, *shares in rows:
        table.add_row(name, *map(_share, shares))
    table.add_row("entropy of a person, nats", f"{predicted.entropy:.2f}", "", "")
    return table


def _share(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _verdict(tuned: Tuned) -> Iterator[str]:
    tuning, target = tuned.tuning, tuned.tuning.target
    for name in tuning.too_short:
        yield f"window {name}: the stream is too short for it"
    for window in tuning.windows:
        yield from _window_verdict(window, target)
    best = tuning.best
    if best is None:
        yield "not reached    no z held on the windows that were not used for choosing it"
        yield "try            another --window, a coarser attribute, a smaller --p; recent data only, if it drifts"
        return
    window, one = best
    yield (
        f"reached        z = {one.z:,}, window {window.window} (from {_ORIGINS[one.origin]}): "
        f"{_share(one.later.over_shown)} of people shown in the unused windows, at least {_share(one.weakest)} for "
        f"every z up to {reach_of(one.z):,}; {one.later.held} of the {one.later.with_shown} windows reach it "
        "by themselves"
    )
    if tuned.events.late_ns:
        yield (
            f"rows are out of order by up to {format_duration(tuned.events.late_ns)}: in the policy, rows "
            "wait that long; sort the file to avoid it"
        )


def _window_verdict(window: WindowTuning, target: Target) -> Iterator[str]:
    by_model = next((one for one in window.candidates if one.origin == "model"), None)
    if by_model is None:
        yield f"window {window.window}: the model finds no z that reaches {target.p:g} and releases enough"
    elif not by_model.is_enough:
        yield (
            f"window {window.window}: too short to check z = {by_model.z:,}: {by_model.later.with_shown} windows that "
            f"show anybody and {by_model.later.shown:,} people in them, {FEWEST_EPOCHS} and {FEWEST_SHOWN} are needed"
        )
    elif not by_model.held:
        yield (
            f"window {window.window}: the model's z = {by_model.z:,} does not hold: its lower bound is "
            f"{_share(by_model.predicted.shown.lower)}, the unused windows have {_share(by_model.weakest)} at "
            f"z = {by_model.weakest_z:,}; the bound holds for the formula, not for the stream"
        )
    if window.best is None and window.hindsight is not None:
        yield (
            f"window {window.window}: in hindsight, z = {window.hindsight:,} would have held on the unused windows; "
            "it is not proposed, because no data is left to check it"
        )


def to_json(tuned: Tuned, written: Sequence[Path]) -> str:
    """Everything for machines."""
    tuning = tuned.tuning
    best = tuning.best
    content = {
        "reached": best is not None,
        "z": best[1].z if best else None,
        "window": best[0].window if best else None,
        "origin": best[1].origin if best else None,
        "target": asdict(tuning.target),
        "events": len(tuned.events),
        "unusable_rows": tuned.events.unusable,
        "people": tuned.events.people,
        "windows": [_window(one) for one in tuning.windows],
        "too_short": list(tuning.too_short),
        "written": [str(path) for path in written],
    }
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


def _window(window: WindowTuning) -> dict[str, Any]:
    found = window.estimate
    kept = ("people", "seen", "active", "exposures", "values", "once", "windows", "idle", "sizes", "remarks")
    return {
        "window": window.window,
        "estimate": {name: getattr(found, name) for name in kept} | {"stationarity": asdict(found.stationarity)},
        "phases": window.phases,
        "is_interleaved": window.is_interleaved,
        "candidates": [_candidate(one) for one in window.candidates],
        "hindsight": window.hindsight,
    }


def _candidate(one: Candidate) -> dict[str, Any]:
    model = one.predicted
    predicted = {
        "over_shown": {"value": model.shown.value, "lower": model.shown.lower, "upper": model.shown.upper,
                       "method": model.shown.method, "confidence": model.shown.confidence},
        "over_shown_later": model.ahead.value, "over_active": model.over_active, "over_all": model.over_all,
        "released": model.released, "entropy": model.entropy,
    }  # fmt: skip
    return {
        "z": one.z, "origin": one.origin, "held": one.held, "is_enough": one.is_enough,
        "weakest_z": one.weakest_z, "weakest": one.weakest, "predicted": predicted,
        "earlier": asdict(one.earlier), "later": asdict(one.later),
    }  # fmt: skip
