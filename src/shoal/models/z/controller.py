"""The controller of a z that follows the stream: chosen at every epoch's start from what earlier epochs needed.

Once an epoch is over, what it would have shown of people is known exactly for every z (see windows.py). The z it
`needed` is the smallest from which the target holds over a stretch. Several simple forecasters predict what the next
epoch will need; each is corrected upwards by its worst recent error. The controller follows the one that would have
released most with that correction. Last, it avoids a z near which a recent epoch missed the target, because the share
does not rise steadily with z: where the crowd of a value is close to z, the few people who show it stand out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, isnan, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.models.z.target import NOTHING, KTarget
from shoal.models.z.windows import SetCurve

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FORECASTERS: Final = ("last", "rising", "most of 3", "most of 8", "a day ago", "a day ago or last", "most of a day")
_TRIED: Final = 100
"""Epochs whose forecasts are compared."""
_REMEMBERED: Final = 25
"""Recent epochs in which a z must have met the target."""
_STRETCH: Final = 1.25
"""A z is enough for an epoch if every z up to this multiple of it is."""
_NEAR: Final = 1.05
"""A z within this factor of a bad z is too near."""
_FEW: Final = 30
"""With fewer people shown than this, one of them decides whether the target is met: release nothing instead."""
_THIN_EPOCHS: Final = 3
"""Recent epochs in which a z must not have shown fewer people than that."""
_SLACK: Final = 0.8
"""Crowds vary by about their square root: this many square roots are added to a forecast."""
_LEAST_SLACK: Final = 0.05
_SHOCK: Final = 1.5
"""An error this many times the next worst, among many epochs, is a shock: nothing can be learnt from it."""
_SHOCKED_AMONG: Final = 50
_STEEPEST: Final = 2.0
_LONGEST_DAY: Final = 288
_DAY_NS: Final = 86_400_000_000_000
_NO_EPOCH: Final = np.iinfo(np.int64).min


def _edges() -> Ints:
    found = [1]
    while (following := found[-1] + max(1, found[-1] // 50)) < NOTHING:
        found.append(following)
    return np.array(found, dtype=np.int64)


EDGES: Final = _edges()
"""Every z falls into the bin of the last edge up to it; bins are single numbers up to 100, then 2% wide."""


@dataclass(frozen=True, slots=True)
class EpochProfile:
    """An epoch that is over: what would have been shown of people at every z."""

    epoch: int
    people: int
    curve: SetCurve
    peaks: Ints
    """The largest crowd behind each (person, value) pair, ascending."""

    def released(self, z: int) -> int:
        """The number of pairs that a z would have released."""
        return len(self.peaks) - int(np.searchsorted(self.peaks, z))


@dataclass(frozen=True, slots=True)
class EpochOutcome:
    """The result of the z in force in an epoch."""

    epoch: int
    z: int
    people: int
    shown: int
    anonymous: int
    is_met: bool


def missed_bins(curve: SetCurve, target: KTarget) -> Bools:
    """Which bins contain a z that misses the target."""
    return _bins_with(curve, curve.anonymous < target.p * curve.shown)


def thin_bins(curve: SetCurve) -> Bools:
    """Which bins contain a z that shows few people or nobody: next time it may show one."""
    found = _bins_with(curve, curve.shown < _FEW)
    found[int(_bins(curve.thresholds.max(initial=0))) :] = True
    return found


def _bins_with(curve: SetCurve, marks: Bools) -> Bools:
    before = np.concatenate(([0], curve.thresholds[:-1]))[marks] + 1
    changes = np.zeros(len(EDGES) + 1, dtype=np.int64)
    np.add.at(changes, np.searchsorted(EDGES, before, side="right") - 1, 1)
    np.add.at(changes, np.searchsorted(EDGES, curve.thresholds[marks], side="right"), -1)
    found: Bools = np.cumsum(changes)[:-1] > 0
    return found


def needed(missed: Bools, least: int) -> int:
    """The smallest z from which the target is met over a stretch of bins."""
    good = ~_any_between(missed, np.arange(len(EDGES)), _bins(EDGES * _STRETCH))
    good[: int(np.searchsorted(EDGES, least))] = False
    # above all crowds nothing is shown and every bin is good, so there is one unless crowds fill the whole range
    return int(EDGES[np.argmax(good)]) if good.any() else NOTHING


def _bins(z: Any) -> Ints:
    found: Ints = np.searchsorted(EDGES, np.maximum(z, 1), side="right") - 1
    return found


def _any_between(marks: Bools, first: Ints, last: Ints) -> Bools:
    sums = np.concatenate(([0], np.cumsum(marks)))
    found: Bools = sums[last + 1] > sums[first]
    return found


@dataclass(slots=True)
class _History:
    """Recent epochs, oldest first; rows of errors and gains belong to the last needs."""

    needs: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    bad: Bools = field(default_factory=lambda: np.empty((0, len(EDGES)), dtype=np.bool_))
    """Bins in which the target was missed although many people were shown: the crowds cause it, so it recurs."""
    thin: Bools = field(default_factory=lambda: np.empty((0, len(EDGES)), dtype=np.bool_))
    people: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    errors: Floats = field(default_factory=lambda: np.empty((0, len(FORECASTERS))))
    """Need divided by forecast; NaN where there was no forecast."""
    gains: Ints = field(default_factory=lambda: np.empty((0, len(FORECASTERS) + 1), dtype=np.int64))
    """Pairs that each forecaster would have released (-1: it made no proposal), and all pairs."""


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
            self._learn(profile)
            self._was_met, self._last_epoch = is_met, profile.epoch
        return outcome

    def open(self, epoch: int) -> int:
        """Choose the z of an epoch that begins."""
        if self._last_epoch is not None and epoch - self._last_epoch > self.patience:
            self.forget()  # the history is too old
        self.z = self._choose() if len(self._history.needs) else self.target.first
        return self.z

    # ---- learning

    def _learn(self, profile: EpochProfile) -> None:
        history = self._history
        self._fill_gap(profile.epoch)
        missed, thin = missed_bins(profile.curve, self.target), thin_bins(profile.curve)
        need = needed(missed, self.target.least)
        if len(history.needs):
            forecasts = self._forecasts()
            history.errors = np.vstack((history.errors, need / forecasts))[-_TRIED:]
            released = [profile.released(int(z)) if z else -1 for z in self._proposals(forecasts)]
            history.gains = np.vstack((history.gains, [*released, len(profile.peaks)]))[-_TRIED:]
        history.needs = np.append(history.needs, need)[-(self.patience + 2) :]
        history.bad = np.vstack((history.bad, missed & ~thin))[-_REMEMBERED:]
        history.thin = np.vstack((history.thin, thin))[-_THIN_EPOCHS:]
        history.people = np.append(history.people, profile.people)[-_REMEMBERED:]

    def _fill_gap(self, epoch: int) -> None:
        """Give epochs without an event the need of the epoch before, so that a day ago stays a day ago."""
        if self._last_epoch is not None:
            missing = min(epoch - self._last_epoch - 1, self.patience)
            needs = self._history.needs
            self._history.needs = np.append(needs, np.full(missing, needs[-1]))[-(self.patience + 2) :]

    # ---- choosing

    def _choose(self) -> int:
        proposals = self._proposals(self._forecasts())
        z = int(proposals[self._favourite(proposals)])
        needs = self._history.needs
        if not self._was_met and len(needs) > 1:
            # crowds that outgrow the forecast fill up over a whole window: the first epoch shows half of it
            steepness = min(max(needs[-1] / needs[-2], _STRETCH), _STEEPEST)
            z = max(z, min(ceil(needs[-1] * steepness), NOTHING))
        return z

    def _forecasts(self) -> Floats:
        """The need of the next epoch by each forecaster; NaN where its history is too short."""
        needs, day = self._history.needs.astype(np.float64), self._day
        found = np.full(len(FORECASTERS), np.nan)
        found[0] = needs[-1]
        if len(needs) > 1:
            found[1] = needs[-1] * min(max(needs[-1] / needs[-2], 1.0), _STEEPEST)
        for place, epochs in ((2, 3), (3, 8)):
            if len(needs) >= epochs:
                found[place] = needs[-epochs:].max()
        if day is not None and len(needs) > day:
            found[4] = needs[-day] * (needs[-1] / needs[-day - 1])
            found[5] = max(found[4], needs[-1])
            found[6] = needs[-day:].max()
        return found

    def _proposals(self, forecasts: Floats) -> Ints:
        """The corrected z of each forecaster; 0 where it makes no proposal."""
        wrong = self._recently_wrong()
        found = np.zeros(len(FORECASTERS), dtype=np.int64)
        for number, forecast in enumerate(forecasts.tolist()):
            errors = self._history.errors[:, number]
            errors = np.sort(errors[~np.isnan(errors)])
            if not isnan(forecast) and (number == 0 or len(errors) > 1):
                found[number] = _settled(self._corrected(forecast, errors), wrong)
        return found

    def _corrected(self, forecast: float, errors: Floats) -> int:
        worst = max(float(errors[-1]), 1.0) if len(errors) else 1.0
        if len(errors) >= _SHOCKED_AMONG and errors[-1] > _SHOCK * errors[-2]:
            worst = max(float(errors[-2]), 1.0)
        unknown = 1 + 0.5 / (len(errors) + 0.5)
        slack = 1 + max(_SLACK / sqrt(forecast), _LEAST_SLACK)
        return max(self.target.least, min(ceil(forecast * worst * unknown * slack), NOTHING))

    def _recently_wrong(self) -> Bools:
        """Bins near a recent miss or near few people shown, shifted by the change in the number of people."""
        history = self._history
        people = np.maximum(history.people, 1).astype(np.float64)  # an epoch with only nulls has nobody
        # where people go, as in the evening, as many may go again: then z is higher among those who stay
        decline = min(max(people[-2] / people[-1], 1.0), _STEEPEST) if len(people) > 1 else 1.0
        marks = [(bad, many, _NEAR) for bad, many in zip(history.bad, people, strict=True)]
        recent = people[-len(history.thin) :]
        marks += [(thin, many, _NEAR * decline) for thin, many in zip(history.thin, recent, strict=True)]
        wrong = np.zeros(len(EDGES), dtype=np.bool_)
        for is_wrong, many, above in marks:
            shifted = EDGES * (many / people[-1])
            wrong |= _any_between(is_wrong, _bins(shifted / _NEAR), _bins(shifted * above))
        return wrong

    def _favourite(self, proposals: Ints) -> int:
        """The forecaster that would have released most."""
        gains = self._history.gains
        best, favourite = 0.0, 0
        for number in np.flatnonzero(proposals).tolist():
            has_proposal = gains[:, number] >= 0
            if has_proposal.sum() >= 3:
                share = float(gains[has_proposal, number].sum()) / max(int(gains[has_proposal, -1].sum()), 1)
                best, favourite = max((best, -favourite), (share, -number))
                favourite = -favourite
        return favourite

    # ---- state

    def dump(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, as arrays."""
        history = self._history
        last = _NO_EPOCH if self._last_epoch is None else self._last_epoch
        return {
            "chosen": np.array([self.z, last, self._was_met], dtype=np.int64),
            "needs": history.needs,
            "bad": np.packbits(history.bad, axis=1).reshape(-1),
            "thin": np.packbits(history.thin, axis=1).reshape(-1),
            "people": history.people,
            "errors": history.errors.reshape(-1),
            "gains": history.gains.reshape(-1),
        }

    def load(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over what dump returned."""
        self.z, last, was_met = (int(mark) for mark in arrays["chosen"])
        self._last_epoch, self._was_met = None if last == _NO_EPOCH else last, bool(was_met)
        self._history = _History(
            arrays["needs"].copy(), _unpacked(arrays["bad"]), _unpacked(arrays["thin"]), arrays["people"].copy(),
            arrays["errors"].reshape(-1, len(FORECASTERS)).copy(),
            arrays["gains"].reshape(-1, len(FORECASTERS) + 1).copy(),
        )  # fmt: skip


def _unpacked(packed: npt.NDArray[Any]) -> Bools:
    rows = packed.reshape(-1, (len(EDGES) + 7) // 8)
    return np.unpackbits(rows, axis=1, count=len(EDGES)).astype(np.bool_)


def _settled(z: int, wrong: Bools) -> int:
    """The smallest z from this one on that is not near a z that missed the target."""
    here = int(_bins(z))
    good = np.flatnonzero(~wrong[here:])
    if not len(good):
        return NOTHING
    return z if good[0] == 0 else int(EDGES[here + good[0]])
