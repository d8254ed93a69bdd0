"""The model of a stream whose people follow the time of day: every phase has people and rates of its own.

At night fewer people expose other values than in the evening. One average window fits neither. So windows at the same
time of the day (or of the week) form a phase with a model of its own, and shares are averaged over the people shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.kernels.z.binomials import tails_of_each
from shoal.models.z import classes as z_classes
from shoal.models.z.estimate import (
    FEWEST_EXPOSURES,
    Estimate,
    Exposures,
    estimate_events,
    exposures,
    people_and_rates,
)
from shoal.models.z.events import Events, read_events
from shoal.models.z.model import ZModel
from shoal.models.z.probability import Probability
from shoal.schema import duration_ns

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_DAY_NS: Final = 86_400 * 10**9
_WEEK_NS: Final = 7 * _DAY_NS
_MOST_PHASES: Final = 48
_FEWEST_WINDOWS: Final = 4
_SURE: Final = 4.0
"""Standard errors by which crowds must vary more than by chance."""
_MOST_USERS: Final = 1e9
_LARGE: Final = 5.0
"""Crowds below this mean are left out of that comparison: their distribution is far from normal."""


def period_of(window_ns: int, times: Ints) -> int | None:
    """The period that windows of this length can follow: a day, a week if the stream has two, or None."""
    if 2 * window_ns <= _DAY_NS:
        return _DAY_NS
    long_enough = len(times) > 0 and int(times[-1]) - int(times[0]) >= 2 * _WEEK_NS
    return _WEEK_NS if 2 * window_ns <= _WEEK_NS and long_enough else None


def varies(found: Exposures) -> bool:
    """Whether the crowds of values vary from window to window more than by chance."""
    places = np.unique(found.windows, return_inverse=True)[1].reshape(-1)
    count = int(places[-1]) + 1
    if count < _FEWEST_WINDOWS:
        return False
    means = np.bincount(found.values, minlength=len(found.codes)) / count
    kept = np.flatnonzero(means >= _LARGE)
    if not len(kept):
        return False
    place_of = np.full(len(means), -1)
    place_of[kept] = np.arange(len(kept))
    value = place_of[found.values]
    crowds = np.zeros((count, len(kept)))
    np.add.at(crowds, (places[value >= 0], value[value >= 0]), 1.0)
    # people who come back make crowds vary less than a Poisson count, never more
    freedom = (count - 1) * len(kept)
    dispersion = float(((crowds - means[kept]) ** 2 / means[kept]).sum()) / freedom
    return bool(dispersion > 1 + _SURE * (2 / freedom) ** 0.5)


@dataclass(frozen=True, slots=True)
class Phase:
    """Windows at about the same time of the day, and their model."""

    windows: Ints
    """Their numbers: the time divided by the length of a window."""
    model: ZModel


class ZRhythm:
    """The model of z-anonymity for a stream that follows the time of day.

    Parameters
    ----------
    phases
        At least one; all with the same window.
    period_ns
        The length of the rhythm; None without one.

    Examples
    --------
    >>> night = Phase(np.arange(8), ZModel(users=100, rates=[0.02, 0.01], window=10))
    >>> day = Phase(np.arange(8, 24), ZModel(users=1000, rates=[0.2, 0.1], window=10))
    >>> model = ZRhythm([night, day])
    >>> round(model.released_share(50), 3), round(model.shown(50))
    (0.995, 633)
    """

    def __init__(
        self, phases: Sequence[Phase], period_ns: int | None = None, estimated: Estimate | None = None
    ) -> None:
        if not phases:
            raise PolicyError("phases: give at least one")
        self.phases, self._period_ns = tuple(phases), period_ns
        self.estimated = estimated
        """The estimate over all windows together; None where the model was not estimated."""
        self._weights = np.array([len(phase.windows) for phase in phases], dtype=np.float64)
        self._passing: tuple[int, list[Floats]] = (0, [])

    @classmethod
    def estimate(
        cls,
        stream: Any,
        *,
        person: str | None = None,
        time: str | None = None,
        attribute: str | None = None,
        window: float | str,
        classes: int = 3,
    ) -> Self:
        """Estimate people and rates by the time of day from a stream; parameters as for :meth:`ZModel.estimate`."""
        events = read_events(stream, person=person, time=time, attribute=attribute)
        length = duration_ns(window, name="window")
        return cls.of_events(events, length, estimate_events(events, length, classes=classes), classes=classes)

    @classmethod
    def of_events(cls, events: Events, window_ns: int, estimate: Estimate, *, classes: int) -> Self:
        """Estimate a model for every phase, or one for all windows where they are alike.

        Parameters
        ----------
        estimate
            The estimate over all windows of these events.
        """
        found, period = exposures(events, window_ns), period_of(window_ns, events.times)
        groups = _groups(found, period) if varies(found) else [np.unique(found.windows)]
        if len(groups) == 1:
            return cls([Phase(groups[0], ZModel.of_estimate(estimate, window_ns))], period, estimate)
        phases = []
        for windows in groups:
            sizes, rates, _, _ = people_and_rates(found.of(windows), classes)
            listed = [{"users": size, "rates": own} for size, own in zip(sizes, rates, strict=True)]
            phases.append(Phase(windows, ZModel(classes=listed, window=window_ns / 1e9)))
        return cls(phases, period, estimate)

    @property
    def users(self) -> int:
        """The most people of any phase."""
        return max(phase.model.users for phase in self.phases)

    @property
    def is_single_class(self) -> bool:
        """Whether all people of a phase are alike, so that bounds are proven."""
        return all(len(phase.model.sizes) == 1 for phase in self.phases)

    def weights_for(self, windows: Ints) -> Floats:
        """How much each phase counts in other windows: by the nearest known times of the day on both sides."""
        if self._period_ns is None or len(self.phases) == 1:
            return self._weights
        length = round(self.phases[0].model.window * 1e9)
        known = np.concatenate([phase.windows for phase in self.phases])
        owner = np.repeat(np.arange(len(self.phases)), [len(phase.windows) for phase in self.phases])
        times, place = np.unique(known * length % self._period_ns, return_inverse=True)
        found = np.zeros(len(self.phases))
        for time in (np.asarray(windows) * length % self._period_ns).tolist():
            for at, share in _around(times, time, self._period_ns):
                own = owner[place == at]
                np.add.at(found, own, share / len(own))
        return found

    # ---- what is shown

    def _passes(self, z: int) -> list[Floats]:
        """For each phase the probability that an exposure of each class and value is released."""
        if self._passing[0] != z:  # callers ask several questions about one z
            self._passing = z, [_passes(phase.model, z, exact=len(self.phases) == 1) for phase in self.phases]
        return self._passing[1]

    def _publish(self, z: int) -> list[tuple[Ints, Floats]]:
        """For each phase the people of each class, and the probability that one of them publishes each value."""
        return [
            (np.array(phase.model.sizes), np.atleast_2d(phase.model.p_exposed()) * passes)
            for phase, passes in zip(self.phases, self._passes(z), strict=True)
        ]

    def _shown(self, z: int) -> Floats:
        """The number of people shown in a window of each phase."""
        return np.array([float(sizes @ z_classes.shown_chance(published)) for sizes, published in self._publish(z)])

    def shown(self, z: int, weights: Floats | None = None) -> float:
        """The number of people of whom anything is released in a window, on average over windows."""
        weights = self._weights if weights is None else weights
        return float(weights @ self._shown(z) / weights.sum())

    def released_share(self, z: int) -> float:
        """The share of exposures that are released."""
        released = total = 0.0
        for weight, phase, passes in zip(self._weights, self.phases, self._passes(z), strict=True):
            often = np.atleast_2d(phase.model.rates) * np.array(phase.model.sizes)[:, None] * weight
            total += float(often.sum())
            released += float((often * passes).sum())
        return released / total if total else 0.0

    def entropy(self, z: int) -> float:
        """The entropy of what one person publishes in a window, in nats, averaged over people and windows."""
        people = self._weights * [phase.model.users for phase in self.phases]
        each = [z_classes.entropy(published, sizes) for sizes, published in self._publish(z)]
        return float(people @ each / people.sum())

    def p_shown_k_anonymous(
        self, z: int, k: int, *, weights: Floats | None = None, width: float = 1e-4, samples: int = 100_000
    ) -> Probability:
        """The probability that a person of whom something is released is k-anonymous, with bounds.

        Parameters
        ----------
        weights
            How many windows of each phase are counted; by default as many as it was estimated from.
        width, samples
            As for :meth:`ZModel.p_shown_k_anonymous`: `width` with one class, `samples` with several.
        """
        if len(self.phases) == 1:
            options: dict[str, Any] = {"width": width} if self.is_single_class else {"samples": samples}
            return self.phases[0].model.p_shown_k_anonymous(z, k, **options)
        weights = self._weights if weights is None else weights
        if self.is_single_class:
            if not weights @ self._shown(z):
                return z_classes.none_shown("lattice")
            found = [phase.model.p_shown_k_anonymous(z, k, width=width) for phase in self.phases]
            return z_classes.averaged(found, weights * self._shown(z))
        parts = [
            (float(weight), published, sizes)
            for weight, (sizes, published) in zip(weights, self._publish(z), strict=True)
        ]
        return z_classes.sampled_shown(parts, k, samples=samples, seed=0, confidence=0.999)


def _passes(model: ZModel, z: int, *, exact: bool) -> Floats:
    if exact or len(model.sizes) == 1:
        return np.atleast_2d(model.p_passes(z))
    # The number of others is a sum of binomial counts. A single binomial count with the same mean and variance is
    # close enough for an estimated model, and much faster.
    exposed, sizes = model.p_exposed(), np.array(model.sizes)[:, None]
    mean = (sizes * exposed).sum(axis=0) - exposed
    spread = (sizes * exposed * (1 - exposed)).sum(axis=0) - exposed * (1 - exposed)
    trials = mean * mean / np.maximum(mean - spread, 1e-12)
    trials = np.clip(np.rint(trials), np.maximum(np.ceil(mean), 1.0), _MOST_USERS)
    found = np.empty(exposed.size)
    tails_of_each(float(z - 1), trials.reshape(-1), (mean / trials).reshape(-1), found)
    return found.reshape(exposed.shape)


def _groups(found: Exposures, period_ns: int | None) -> list[Ints]:
    """Windows in groups with enough exposures each: by the time of the day, then by date."""
    windows, counts = np.unique(found.windows, return_counts=True)
    time = windows * found.window_ns % period_ns if period_ns else np.zeros(len(windows), dtype=np.int64)
    order = np.lexsort((windows, time))
    least = max(FEWEST_EXPOSURES, counts.sum() / _MOST_PHASES)
    groups: list[list[int]] = [[]]
    total = 0
    for window, count in zip(windows[order].tolist(), counts[order].tolist(), strict=True):
        if total >= least:
            groups.append([])
            total = 0
        groups[-1].append(window)
        total += count
    if len(groups) > 1 and total < least:
        groups[-2] += groups.pop()
    return [np.array(group, dtype=np.int64) for group in groups]


def _around(times: Ints, time: int, period_ns: int) -> list[tuple[int, float]]:
    """The nearest known times before and after a time of the day, and how much each counts."""
    after = int(np.searchsorted(times, time))
    if after < len(times) and times[after] == time:
        return [(after, 1.0)]
    before, after = (after - 1) % len(times), after % len(times)
    back, ahead = (time - int(times[before])) % period_ns, (int(times[after]) - time) % period_ns
    if before == after:
        return [(before, 1.0)]
    return [(before, ahead / (back + ahead)), (after, back / (back + ahead))]
