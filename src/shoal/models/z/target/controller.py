"""The controller of a z that follows the stream: chosen at every epoch's start from what earlier epochs needed.

Every epoch that is over gives a lesson: the z it needed and more (see epoch_needs.py). Several simple forecasters
predict what the next epoch will need, most of them from how much happens: a need per event of the busiest window,
averaged over recent epochs, times the events to expect (see traffic.py). Each forecast is raised by what the
forecaster recently fell short. The controller follows the forecaster that needs least of that and overshoots
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

from shoal.models.z.target.epoch_needs import (
    EDGES,
    EpochProfile,
    Lesson,
    any_between,
    bins_of,
    lesson_of,
    unpack_bins,
)
from shoal.models.z.target.target import NOTHING, KTarget
from shoal.models.z.target.traffic import Traffic

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
_SIMILAR: Final = 2.0
"""Only epochs whose need is within this factor of the forecast tell which z are bad."""
_THIN_EPOCHS: Final = 2
"""Recent epochs in which a z must not have shown too few people; nor in the one a day ago."""
_DEVIATIONS: Final = 2.75
"""Standard deviations by which a forecast is raised."""
_RARELY: Final = 0.995
"""A forecast is raised at least by the shortfall that this share of recent forecasts did not exceed."""
_PRIOR: Final = 0.06
"""The deviation assumed before the first forecast; it counts like one epoch."""
_FEWEST_ERRORS: Final = 4
"""Forecasts by which all but the simplest forecasters are judged before they are followed."""
_STAND_IN: Final = FORECASTERS.index("trend, not falling")
"""Its errors are used for epochs in which another forecaster had no forecast yet."""
_SHOCK: Final = 1.5
"""The worst error is left out if it is larger than the second worst by this factor."""
_SHOCKED_AMONG: Final = 50
"""Errors that must be known before one of them is left out."""
_HALF: Final = 48
"""After this many epochs an error counts half."""
_SLACK: Final = 0.04
"""The share by which every forecast is raised in addition."""
_CROWD: Final = 100.0
"""Below this need, errors grow as the square root of a crowd shrinks, and an epoch counts less in averages."""
_MOST_RAISED: Final = 1.5
"""The logarithm of the largest factor by which a forecast is raised."""
_AVERAGED: Final = 6
"""Epochs over which the need per event is averaged, each counting less than the next by a factor."""
_FADING: Final = 0.7
_STEEPEST: Final = 2.0
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
    """Recent epochs, oldest first; the last rows of all fields but `errors` and `shown` are those of the last epoch."""

    traffic: Traffic
    needs: Ints = field(default_factory=_no_ints)
    errors: Floats = field(default_factory=lambda: np.empty((0, len(FORECASTERS))))
    """log(need / forecast), smaller for small crowds; NaN where there was no forecast."""
    shown: Ints = field(default_factory=_no_ints)
    """People shown at the need, for each row of errors: an error weighs as much as the people it concerns."""
    bad: Bools = field(default_factory=_no_bins)
    thin: Bools = field(default_factory=_no_bins)


class ZController:
    """Chooses z epoch by epoch; it depends only on the epochs passed to close()."""

    def __init__(self, target: KTarget, *, rotation_ns: int, window_ns: int) -> None:
        self.target = target
        self._rotation_ns, self._window_ns = rotation_ns, window_ns
        whole, rest = divmod(_DAY_NS, rotation_ns)
        self._day = whole if rest == 0 and 1 < whole <= _LONGEST_DAY else None
        self.patience = max(self._day or 0, _REMEMBERED)
        """After more epochs of silence than this, the history is too old."""
        self.forget()

    def forget(self) -> None:
        """Start over with an empty history."""
        self.z = self.target.first
        self._history = _History(self._no_traffic())
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
        history, need = self._history, lesson.need
        self._fill_gap(lesson.epoch)
        if len(history.needs):
            forecasts = self._forecasts()
            errors = np.log(need / forecasts) * np.sqrt(np.minimum(forecasts / _CROWD, 1))
            history.errors = np.vstack((history.errors, errors))[-_TRIED:]
            history.shown = np.append(history.shown, lesson.shown)[-_TRIED:]
        self._note(need, lesson.bad, lesson.thin)
        history.traffic.add(lesson.quarters)

    def _fill_gap(self, epoch: int) -> None:
        """Give epochs without an event the need of the epoch before, so that a day ago stays a day ago."""
        if self._last_epoch is not None and epoch > self._last_epoch + 1:
            missing, unmarked = min(epoch - self._last_epoch - 1, self.patience), np.zeros(len(EDGES), dtype=np.bool_)
            self._history.traffic.add_unknown(missing)
            for _ in range(missing):
                self._note(int(self._history.needs[-1]), unmarked, unmarked)

    def _note(self, need: int, bad: Bools, thin: Bools) -> None:
        history = self._history
        history.needs = np.append(history.needs, need)[-self._kept :]
        history.bad = np.vstack((history.bad, bad))[-_REMEMBERED:]
        history.thin = np.vstack((history.thin, thin))[-max(_THIN_EPOCHS, self._day or 0) :]

    @property
    def _kept(self) -> int:
        return self.patience + 2

    def _no_traffic(self) -> Traffic:
        return Traffic(window_ns=self._window_ns, rotation_ns=self._rotation_ns, kept=self._kept)

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
        traffic, day, needs = self._history.traffic, self._day, self._history.needs.astype(float)
        found = np.full(len(FORECASTERS), np.nan)
        recent = needs[-_AVERAGED:]
        weights = _FADING ** np.arange(len(recent))[::-1] * np.minimum(recent, _CROWD)
        per_event = exp(float(np.average(np.log(recent / traffic.busiest[-len(recent) :]), weights=weights)))
        ahead = traffic.by_trend()
        found[0] = needs[-1]
        found[1] = per_event * traffic.busiest_with(ahead)
        found[2] = per_event * traffic.busiest_with(traffic.not_falling(ahead))
        if len(needs) >= 3:
            found[3] = needs[-3:].max()
        if day is not None and len(needs) > day:
            ahead = traffic.by_day(day)
            found[4] = per_event * traffic.busiest_with(ahead)
            found[5] = per_event * traffic.busiest_with(traffic.not_falling(ahead))
            found[6] = needs[-day:].max()
        clipped: Floats = np.clip(found, 1, NOTHING)
        return clipped

    def _proposal(self, number: int, forecast: float) -> tuple[float, int, float]:
        """The cost of following a forecaster, the z it proposes, and its forecast."""
        history = self._history
        has_error = ~np.isnan(history.errors[:, number])
        if isnan(forecast) or (number > _STAND_IN and has_error.sum() < _FEWEST_ERRORS):
            return np.inf, NOTHING, 1.0
        own = history.errors[:, number]
        errors = np.where(has_error, own, history.errors[:, _STAND_IN])
        weights = 0.5 ** (np.arange(len(errors))[::-1] / _HALF)
        weights *= (history.shown + 1) / (history.shown.max(initial=0) + 1)
        short, over = _without_shock(np.maximum(errors, 0)), np.maximum(-own[has_error], 0)
        deviation = sqrt((float(weights @ (short * short)) + _PRIOR**2) / (float(weights.sum()) + 1))
        raised = max(_DEVIATIONS * deviation, _quantile(short, weights, _RARELY))
        factor = exp(min(raised / sqrt(min(forecast / _CROWD, 1)), _MOST_RAISED)) * (1 + _SLACK)
        z = max(self.target.least, min(ceil(forecast * factor), NOTHING))
        total = float(weights[has_error].sum()) + 1
        return raised + (float(weights[has_error] @ over) + _PRIOR) / total, z, forecast

    def _recently_wrong(self, forecast: float) -> Bools:
        """Bins near a recent miss or near few people shown, shifted by the change of the need."""
        history, needs = self._history, self._history.needs.tolist()
        bad = [(history.bad[at], needs[at]) for at in range(-len(history.bad), 0)]
        marks = [(row, need) for row, need in bad if 1 / _SIMILAR <= need / forecast <= _SIMILAR]
        recent = [*range(-min(_THIN_EPOCHS, len(history.thin)), 0)]
        if self._day is not None and len(history.thin) >= self._day:
            recent.append(-self._day)
        marks += [(history.thin[at], needs[at]) for at in recent]
        wrong = np.zeros(len(EDGES), dtype=np.bool_)
        for is_wrong, need in marks:
            shifted = EDGES * (need / forecast)
            wrong |= any_between(is_wrong, bins_of(shifted / _NEAR), bins_of(shifted * _NEAR))
        return wrong

    # ---- state

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays."""
        history = self._history
        last = _NO_EPOCH if self._last_epoch is None else self._last_epoch
        return {
            "chosen": np.array([self.z, last, self._was_met], dtype=np.int64),
            "needs": history.needs,
            "errors": history.errors.reshape(-1),
            "shown": history.shown,
            "bad": np.packbits(history.bad, axis=1).reshape(-1),
            "thin": np.packbits(history.thin, axis=1).reshape(-1),
            **history.traffic.dump(),
        }

    def load(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what dump returned."""
        self.z, last, was_met = (int(mark) for mark in arrays["chosen"])
        self._last_epoch, self._was_met = None if last == _NO_EPOCH else last, bool(was_met)
        traffic = self._no_traffic()
        traffic.load(arrays)
        self._history = _History(
            traffic, arrays["needs"].copy(), arrays["errors"].reshape(-1, len(FORECASTERS)).copy(),
            arrays["shown"].copy(), unpack_bins(arrays["bad"]), unpack_bins(arrays["thin"]),
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
