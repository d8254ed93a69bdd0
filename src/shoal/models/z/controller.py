"""The controller of a z that follows the stream: chosen at every epoch's start from what earlier epochs needed.

Every epoch that is over gives a lesson: the z it needed and more (see epoch_needs.py). Several simple forecasters
predict what the next epoch will need, most of them from how much happens: a need per event, averaged over recent
epochs, times the events to expect by the trend within the last epoch or by the day before. Each forecast is raised by
what the forecaster recently fell short. The controller follows the forecaster that needs least of that and overshoots
least. Last, it avoids a z near which a recent epoch missed the target, because the share does not rise steadily with
z: where the crowd of a value is close to z, the few people who show it stand out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, exp, isnan, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.epoch_needs import (
    EDGES,
    QUARTERS,
    EpochProfile,
    Lesson,
    any_between,
    bins_of,
    lesson_of,
    unpack_bins,
)
from shoal.models.z.target import NOTHING, KTarget

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FORECASTERS: Final = (
    "last", "trend", "trend, not falling", "most of 3", "a day ago", "a day ago, not falling", "most of a day",
)  # fmt: skip
_TRIED: Final = 100
"""Epochs whose forecasts are compared."""
_REMEMBERED: Final = 25
"""Recent epochs in which a z must have met the target."""
_STRETCH: Final = 1.25
"""The least by which z rises after an epoch that missed the target."""
_NEAR: Final = 1.05
"""A z within this factor of a bad z is too near."""
_THIN_EPOCHS: Final = 2
"""Recent epochs in which a z must not have shown too few people."""
_DEVIATIONS: Final = 3.0
"""Standard deviations by which a forecast is raised."""
_RARELY: Final = 0.995
"""And at least by the shortfall that this share of recent forecasts stayed below."""
_PRIOR: Final = 0.06
"""The deviation assumed before the first forecast; it counts like one epoch."""
_FEWEST_ERRORS: Final = 12
"""Forecasts by which all but the simplest forecasters are judged before they are followed."""
_SHOCK: Final = 1.5
_SHOCKED_AMONG: Final = 50
_HALF: Final = 48
"""After this many epochs an error counts half."""
_SLACK: Final = 0.04
_CROWD: Final = 100.0
"""Below this need, errors grow as the square root of a crowd shrinks."""
_MOST_RAISED: Final = 1.5
_AVERAGED: Final = 6
"""Epochs over which the need per event is averaged, each counting less than the next by a factor."""
_FADING: Final = 0.7
_FEWEST_EVENTS: Final = 50
_SLOWEST, _STEEPEST, _STEEPEST_TREND = 0.5, 2.0, 2.5
_LONGEST_DAY: Final = 288
_DAY_NS: Final = 86_400_000_000_000
_NO_EPOCH: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class EpochOutcome:
    """The result of the z in force in an epoch."""

    epoch: int
    z: int
    people: int
    shown: int
    anonymous: int
    is_met: bool


def _no_ints() -> Ints:
    return np.empty(0, dtype=np.int64)


def _no_bins() -> Bools:
    return np.empty((0, len(EDGES)), dtype=np.bool_)


@dataclass(slots=True)
class _History:
    """Recent epochs, oldest first."""

    needs: Ints = field(default_factory=_no_ints)
    events: Ints = field(default_factory=_no_ints)
    quarters: Ints = field(default_factory=lambda: np.ones(QUARTERS, dtype=np.int64))
    """Events in the quarters of the last epoch."""
    errors: Floats = field(default_factory=lambda: np.empty((0, len(FORECASTERS))))
    """log(need / forecast), smaller for small crowds; NaN where there was no forecast."""
    shown: Ints = field(default_factory=_no_ints)
    """People shown at the need, for each row of errors: an error weighs as much as the people it concerns."""
    bad: Bools = field(default_factory=_no_bins)
    thin: Bools = field(default_factory=_no_bins)
    marked: Ints = field(default_factory=_no_ints)
    """The need of the epoch of each row of bad (and of thin, its last rows)."""


class ZController:
    """Chooses z epoch by epoch; it depends only on the epochs passed to close()."""

    def __init__(self, target: KTarget, *, rotation_ns: int) -> None:
        self.target = target
        whole, rest = divmod(_DAY_NS, rotation_ns)
        self._day = whole if rest == 0 and 1 < whole <= _LONGEST_DAY else None
        self.patience = max(self._day or 0, _REMEMBERED)
        """After more epochs of silence than this, the history is too old."""
        self.forget()

    def forget(self) -> None:
        """Start over with an empty history."""
        self.z = self.target.first
        self._history = _History()
        self._last_epoch: int | None = None
        self._was_met = True

    def close(self, profile: EpochProfile, *, counts: bool) -> EpochOutcome:
        """Record an epoch that is over; `counts` unless its crowds were still filling up."""
        shown, anonymous = profile.curve.at(self.z)
        is_met = self.target.is_met(shown, anonymous)
        outcome = EpochOutcome(profile.epoch, self.z, profile.people, shown, anonymous, is_met)
        if counts:
            self._learn(lesson_of(profile, self.target))
            self._was_met, self._last_epoch = is_met, profile.epoch
        return outcome

    def open(self, epoch: int) -> int:
        """Choose the z of an epoch that begins."""
        if self._last_epoch is not None and epoch - self._last_epoch > self.patience:
            self.forget()  # the history is too old
        self.z = self._choose() if len(self._history.needs) else self.target.first
        return self.z

    @property
    def is_empty(self) -> bool:
        """Whether nothing was learnt yet."""
        return not len(self._history.needs)

    # ---- learning

    def adopt(self, lessons: tuple[Lesson, ...], epoch: int) -> None:
        """Begin with what an earlier stream taught, as if it had ended just before an epoch.

        Its epochs keep their time of day: the one closest to the time before the epoch comes last, and those after it
        count as the day before.
        """
        day = self._day or 1
        last = min(range(len(lessons)), key=lambda at: ((epoch - 1 - lessons[at].epoch) % day, -at))
        ordered = [*lessons[last + 1 :], *lessons[: last + 1]]
        steps = [(later.epoch - one.epoch) if later.epoch > one.epoch else (later.epoch - one.epoch) % day or day
                 for one, later in pairwise(ordered)]  # fmt: skip
        ends = epoch - 1 - (epoch - 1 - lessons[last].epoch) % day
        numbers = ends - np.cumsum([0, *reversed(steps)])[::-1]
        for number, lesson in zip(numbers.tolist(), ordered, strict=True):
            self._learn(replace(lesson, epoch=number))
            self._last_epoch = number

    def _learn(self, lesson: Lesson) -> None:
        history, kept, need = self._history, self.patience + 2, lesson.need
        self._fill_gap(lesson.epoch)
        if len(history.needs):
            forecasts = self._forecasts()
            errors = np.log(need / forecasts) * np.sqrt(np.minimum(forecasts / _CROWD, 1))
            history.errors = np.vstack((history.errors, errors))[-_TRIED:]
            history.shown = np.append(history.shown, lesson.shown)[-_TRIED:]
        history.needs = np.append(history.needs, need)[-kept:]
        history.events = np.append(history.events, lesson.events)[-kept:]
        history.quarters = lesson.quarters.copy()
        history.bad = np.vstack((history.bad, lesson.bad))[-_REMEMBERED:]
        history.thin = np.vstack((history.thin, lesson.thin))[-_THIN_EPOCHS:]
        history.marked = np.append(history.marked, need)[-_REMEMBERED:]

    def _fill_gap(self, epoch: int) -> None:
        """Give epochs without an event the need of the epoch before, so that a day ago stays a day ago."""
        if self._last_epoch is not None and epoch > self._last_epoch + 1:
            history, missing = self._history, min(epoch - self._last_epoch - 1, self.patience)
            history.needs = np.append(history.needs, np.full(missing, history.needs[-1]))[-(self.patience + 2) :]
            history.events = np.append(history.events, np.full(missing, history.events[-1]))[-(self.patience + 2) :]
            history.quarters = np.ones(QUARTERS, dtype=np.int64)

    # ---- choosing

    def _choose(self) -> int:
        forecasts = self._forecasts()
        proposals = [self._proposal(number, forecast) for number, forecast in enumerate(forecasts.tolist())]
        _, z, forecast = min(proposals)
        z = _settled(z, self._recently_wrong(forecast))
        needs = self._history.needs
        if not self._was_met and len(needs) > 1:
            # crowds that outgrow the forecast fill up over a whole window: the first epoch shows half of it
            steepness = min(max(needs[-1] / needs[-2], _STRETCH), _STEEPEST)
            z = max(z, min(ceil(needs[-1] * steepness), NOTHING))
        return z

    def _forecasts(self) -> Floats:
        """The need of the next epoch by each forecaster; NaN where its history is too short."""
        needs, events, day = self._history.needs.astype(float), self._history.events.astype(float), self._day
        found = np.full(len(FORECASTERS), np.nan)
        weights = _FADING ** np.arange(min(_AVERAGED, len(needs)))[::-1]
        per_event = exp(float(np.average(np.log(needs / events)[-_AVERAGED:], weights=weights)))
        ahead = events[-1] * self._trend()
        found[0] = needs[-1]
        found[1], found[2] = per_event * ahead, per_event * max(ahead, events[-1])
        if len(needs) >= 3:
            found[3] = needs[-3:].max()
        if day is not None and len(needs) > day:
            ahead = events[-day] * (events[-1] / events[-day - 1])
            found[4], found[5] = per_event * ahead, per_event * max(ahead, events[-1])
            found[6] = needs[-day:].max()
        clipped: Floats = np.clip(found, 1, NOTHING)
        return clipped

    def _trend(self) -> float:
        """Events to come, as a multiple of those of the last epoch, if the line through its quarters goes on."""
        quarters = self._history.quarters
        mean = float(quarters.mean())
        if quarters.sum() < _FEWEST_EVENTS:
            return 1.0
        places = np.arange(QUARTERS) - (QUARTERS - 1) / 2
        slope = float(places @ quarters) / float(places @ places)
        return min(max((mean + QUARTERS * slope) / mean, _SLOWEST), _STEEPEST_TREND)

    def _proposal(self, number: int, forecast: float) -> tuple[float, int, float]:
        """The cost of following a forecaster, the z it proposes, and its forecast."""
        history = self._history
        has_error = ~np.isnan(history.errors[:, number])
        if isnan(forecast) or (number > 2 and has_error.sum() < _FEWEST_ERRORS):
            return np.inf, NOTHING, 1.0
        errors = history.errors[has_error, number]
        weights = 0.5 ** (np.arange(len(errors))[::-1] / _HALF)
        weights *= (history.shown[has_error] + 1) / (history.shown.max(initial=0) + 1)
        total = float(weights.sum()) + 1
        short, over = _without_shock(np.maximum(errors, 0)), np.maximum(-errors, 0)
        deviation = sqrt((float(weights @ (short * short)) + _PRIOR**2) / total)
        raised = max(_DEVIATIONS * deviation, _quantile(short, weights, _RARELY))
        factor = exp(min(raised / sqrt(min(forecast / _CROWD, 1)), _MOST_RAISED)) * (1 + _SLACK)
        z = max(self.target.least, min(ceil(forecast * factor), NOTHING))
        return raised + (float(weights @ over) + _PRIOR) / total, z, forecast

    def _recently_wrong(self, forecast: float) -> Bools:
        """Bins near a recent miss or near few people shown, shifted by the change of the need."""
        history = self._history
        marks = [(bad, need, _NEAR) for bad, need in zip(history.bad, history.marked.tolist(), strict=True)]
        recent = history.marked[-len(history.thin) :].tolist()
        marks += [(thin, need, _NEAR * self._decline()) for thin, need in zip(history.thin, recent, strict=True)]
        wrong = np.zeros(len(EDGES), dtype=np.bool_)
        for is_wrong, need, above in marks:
            shifted = EDGES * (need / forecast)
            wrong |= any_between(is_wrong, bins_of(shifted / _NEAR), bins_of(shifted * above))
        return wrong

    def _decline(self) -> float:
        """How much less is to be expected where people go, as in the evening: then few are shown."""
        events = self._history.events
        before = events[-2] / events[-1] if len(events) > 1 else 1.0
        return float(min(max(before, 1 / self._trend(), 1.0), _STEEPEST))

    # ---- state

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays."""
        history = self._history
        last = _NO_EPOCH if self._last_epoch is None else self._last_epoch
        return {
            "chosen": np.array([self.z, last, self._was_met], dtype=np.int64),
            "needs": history.needs,
            "events": history.events,
            "quarters": history.quarters,
            "errors": history.errors.reshape(-1),
            "shown": history.shown,
            "bad": np.packbits(history.bad, axis=1).reshape(-1),
            "thin": np.packbits(history.thin, axis=1).reshape(-1),
            "marked": history.marked,
        }

    def load(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what dump returned."""
        self.z, last, was_met = (int(mark) for mark in arrays["chosen"])
        self._last_epoch, self._was_met = None if last == _NO_EPOCH else last, bool(was_met)
        self._history = _History(
            arrays["needs"].copy(), arrays["events"].copy(), arrays["quarters"].copy(),
            arrays["errors"].reshape(-1, len(FORECASTERS)).copy(), arrays["shown"].copy(),
            unpack_bins(arrays["bad"]), unpack_bins(arrays["thin"]), arrays["marked"].copy(),
        )  # fmt: skip


def _without_shock(short: Floats) -> Floats:
    """Nothing can be learnt from one shortfall that is far larger than all others of many epochs."""
    if len(short) >= _SHOCKED_AMONG:
        second, worst = np.partition(short, -2)[-2:]
        if worst > _SHOCK * second:
            short = np.minimum(short, second)
    return short


def _quantile(values: Floats, weights: Floats, share: float) -> float:
    """The smallest value that at least this share of the weight does not exceed; 0 without values."""
    if not len(values):
        return 0.0
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(reached, share * reached[-1])), len(values) - 1)]])


def _settled(z: int, wrong: Bools) -> int:
    """The smallest z from this one on that is not near a z that missed the target."""
    here = int(bins_of(z))
    good = np.flatnonzero(~wrong[here:])
    if not len(good):
        return NOTHING
    return z if good[0] == 0 else int(EDGES[here + good[0]])
