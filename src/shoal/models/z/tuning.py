"""Choose z from a part of a stream, by model and by replay, and check it on windows that were not used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, PolicyError
from shoal.models.z.estimate import Estimate, estimate_events
from shoal.models.z.events import Events
from shoal.models.z.probability import Probability
from shoal.models.z.rhythm import ZRhythm
from shoal.models.z.search import FEWEST_EPOCHS, Measured, ModelCurve, Replay, reach_of
from shoal.models.z.split import Check, Split, split_windows

Origin = Literal["model", "replay", "cautious"]
"""Where a z comes from: the model; a replay of the earlier part; the same with half the allowed failures."""
Progress = Callable[[str], None]

Floats = npt.NDArray[np.float64]

_POINTS: Final = 48
_LADDER: Final = (600, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_NAMES: Final = ("10min", "1h", "6h", "1d", "7d", "30d")
_MOST_WINDOWS: Final = 3
_FEWEST_WINDOWS: Final = 12
_FEWEST_ACTIVE: Final = 20


@dataclass(frozen=True, slots=True)
class Target:
    """What to tune for, and how."""

    k: int
    p: float
    """The share of k-anonymous people among those with a released row."""
    holdout: float = 0.3
    """The share of rows, the latest ones, that is kept for checking."""
    classes: int = 3
    """Classes of people in the model, by activity."""
    least_released: float = 0.01
    """A z that releases a smaller share of rows is useless."""
    check: Check = "auto"
    """Which windows are kept for checking: the latest, windows in between, or what fits the stream."""

    def __post_init__(self) -> None:
        problems = []
        if not 2 <= self.k <= 10**6:
            problems.append("k: must be a whole number of at least 2")
        if not 0 < self.p <= 1:
            problems.append("p: must be a share above 0, up to 1")
        if not 0.05 <= self.holdout <= 0.9:
            problems.append("holdout: must be a number from 0.05 to 0.9")
        if not 0 <= self.least_released < 1:
            problems.append("release: must be a number from 0, below 1")
        if self.check not in ("auto", "latest", "between"):
            problems.append('check: must be "auto", "latest" or "between"')
        if problems:
            raise PolicyError(problems)


@dataclass(frozen=True, slots=True)
class Prediction:
    """The model's prediction for one z, from the earlier part."""

    z: int
    shown: Probability
    """Over people with a released row in the used windows: (c), with bounds."""
    ahead: Probability
    """The same for the unused windows, of which only the times of the day are known."""
    over_all: float
    """Over everybody seen: (a)."""
    over_active: float
    """Over people who are active: (b)."""
    released: float
    entropy: float
    """Entropy of what one person publishes within a window, in nats."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A z, and its result on the later part."""

    z: int
    origin: Origin
    predicted: Prediction
    earlier: Measured
    later: Measured
    weakest_z: int
    weakest: float
    """The lowest share (c) of the later part for any z' up to 1.1 z, and that z'."""
    is_enough: bool
    """Whether the later part has enough data."""
    held: bool
    """Whether the target was reached there, for every such z'."""


@dataclass(frozen=True, slots=True)
class WindowTuning:
    """The results for one window."""

    window: str
    window_ns: int
    estimate: Estimate
    phases: int
    """The number of models, by time of the day; 1 where windows are alike."""
    is_interleaved: bool
    """Whether windows in between were kept back for the check, not the latest ones."""
    candidates: tuple[Candidate, ...]
    curve: tuple[tuple[Prediction, Measured, Measured], ...]
    """For each z: the prediction, the counts in the earlier part, the counts in the later part."""
    hindsight: int | None
    """The smallest z that held on the later part. It is not proposed: no data is left to check it."""

    @property
    def best(self) -> Candidate | None:
        """The smallest z that held."""
        return min((one for one in self.candidates if one.held), key=lambda one: one.z, default=None)


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of tuning; windows that release most come first."""

    target: Target
    windows: tuple[WindowTuning, ...]
    too_short: tuple[str, ...]
    """Windows for which the stream is too short."""

    @property
    def best(self) -> tuple[WindowTuning, Candidate] | None:
        """The (z, window) that reached the target on unused data and released most in the earlier part."""
        found = [(window, window.best) for window in self.windows if window.best is not None]
        return (found[0][0], found[0][1]) if found and found[0][1] is not None else None


def tune(
    events: Events, windows: Sequence[tuple[str, int]], target: Target, *, progress: Progress = lambda text: None
) -> Tuning:
    """Find z for each window (its name and its length in nanoseconds) and check it."""
    found, too_short = [], []
    for name, length in windows:
        split = split_windows(events, length, target.holdout, target.check)
        if split is None:
            too_short.append(name)
            continue
        found.append(_tune_window(name, length, events, split, target, _prefixed(progress, name)))
    if not found:
        raise InputError(
            f"window {', '.join(too_short)}: the stream is too short to have windows on both sides of the split; "
            "take more data or a shorter window"
        )
    found.sort(key=_rank, reverse=True)
    return Tuning(target, tuple(found), tuple(too_short))


def _prefixed(progress: Progress, name: str) -> Progress:
    return lambda text: progress(f"window {name}: {text}")


def _rank(tuning: WindowTuning) -> tuple[bool, float]:
    """Windows that reached the target first; among them the one that released most of the earlier part."""
    best = tuning.best
    return best is not None, best.earlier.released if best is not None else 0.0


def likely_windows(events: Events, holdout: float) -> list[tuple[str, int]]:
    """Windows worth trying: long enough that many people are active, short enough that there are many of them."""
    found = []
    for name, seconds in zip(_NAMES, _LADDER, strict=True):
        length = seconds * 10**9
        epochs = np.unique(events.times // length, return_inverse=True)[1]
        count = int(epochs[-1]) + 1 if len(epochs) else 0
        pairs = len(np.unique(epochs * (int(events.persons.max(initial=0)) + 1) + events.persons))
        if count * (1 - holdout) >= _FEWEST_WINDOWS and pairs / max(count, 1) >= _FEWEST_ACTIVE:
            found.append((name, length))
    return found[-_MOST_WINDOWS:] or [("1h", 3600 * 10**9)]


def _tune_window(
    name: str, length: int, events: Events, split: Split, target: Target, progress: Progress
) -> WindowTuning:
    progress("estimating")
    used = events.within(split.used, length)
    estimate = estimate_events(
        used, length, classes=target.classes, skipped=len(split.unused) if split.is_interleaved else 0
    )
    model = ZRhythm.of_events(used, length, estimate, classes=target.classes)
    model_curve = ModelCurve(model, target.k)
    # the window is empty at the start of a stream, so the first epoch is skipped if possible
    before = Replay(events, length, target.k, epochs=split.used[1:] if len(split.used) > FEWEST_EPOCHS else split.used)
    after = Replay(events, length, target.k, epochs=split.unused)
    first = target.k
    last = model_curve.last_z(first, target.least_released)
    by_model = model_curve.smallest(target.p, first=first, last=last, progress=progress)
    checker = _Checker(model_curve, model.weights_for(split.unused), before, after, target)
    candidates = checker.candidates(by_model)
    progress("drawing the curve")
    hindsight = after.smallest(target.p, first=first, least_released=target.least_released)
    highest = max([last, first, reach_of(hindsight or 0), *(reach_of(one.z) for one in candidates)])
    curve = [
        (checker.predict(z), before.at(z, target.p), after.at(z, target.p)) for z in _points(first, highest, candidates)
    ]
    return WindowTuning(
        name, length, estimate, len(model.phases), split.is_interleaved, candidates, tuple(curve), hindsight
    )


@dataclass(frozen=True, slots=True)
class _Checker:
    model_curve: ModelCurve
    ahead: Floats
    """How much each phase of the model counts in the unused windows."""
    before: Replay
    after: Replay
    target: Target

    def candidates(self, by_model: int | None) -> tuple[Candidate, ...]:
        """Check at most three z on the later part: every further one makes a pass by chance likelier."""
        p, first, least = self.target.p, self.target.k, self.target.least_released
        found = {by_model: self.candidate(by_model, "model")} if by_model is not None else {}
        by_replay = self.before.smallest(p, first=first, least_released=least)
        if by_replay is not None and by_replay not in found:
            found[by_replay] = self.candidate(by_replay, "replay")
        if not any(one.held for one in found.values()):
            cautious = self.before.smallest((1 + p) / 2, first=first, least_released=least)
            if cautious is not None and cautious not in found:
                found[cautious] = self.candidate(cautious, "cautious")
        return tuple(found.values())

    def candidate(self, z: int, origin: Origin) -> Candidate:
        weakest_z, weakest = self.after.weakest(z)
        p = self.target.p
        is_enough = self.after.is_enough(z)
        return Candidate(
            z, origin, self.predict(z), self.before.at(z, p), self.after.at(z, p), weakest_z, weakest,
            is_enough=is_enough, held=weakest >= p and is_enough,
        )  # fmt: skip

    def predict(self, z: int) -> Prediction:
        model = self.model_curve.model
        shown = self.model_curve.best(z)
        ahead = shown
        if len(model.phases) > 1:
            ahead = model.p_shown_k_anonymous(z, self.target.k, weights=self.ahead, width=1e-3, samples=8000)
        alone = model.shown(z) * (1 - shown.value)
        estimate = model.estimated
        assert estimate is not None, "the model was estimated"
        return Prediction(
            z, shown, ahead, max(0.0, 1 - alone / max(self.after.people, 1)), max(0.0, 1 - alone / self.before.typical),
            model.released_share(z), model.entropy(z),
        )  # fmt: skip


def _points(first: int, last: int, candidates: Sequence[Candidate]) -> list[int]:
    """The z of the curve: evenly spaced by logarithm, and the candidates."""
    spread = np.geomspace(first, max(last, first), _POINTS)
    return sorted({*np.rint(spread).astype(int).tolist(), *(one.z for one in candidates)})
