"""Measure exposure by epoch: how many people share a released set of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.counting import people_of
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.report.released_sets import group_sets
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import ZPromise

_LEVELS: Final = (2, 3, 4)
_WORST: Final = 10
_Test = Callable[[Ints], Bools]


@dataclass(frozen=True, slots=True)
class _Shown:
    """One entry for every person shown in an epoch."""

    epoch: Ints
    """Number of the epoch, counted from 0 over the epochs that occur."""
    size: Ints
    """How many people of the epoch were shown with exactly the same set."""
    is_empty: Bools


def describe_epochs(aligned: Aligned, promise: ZPromise, counted: Bools) -> dict[str, Any]:
    """Return the shares of people by how many others have the same released set in the epoch.

    Over (a) all people of the truth, those without a released row sharing the empty set; (b) people active in
    the epoch, the same way; (c) people with a released row. Within an epoch a pseudonym is a person.
    """
    readable = aligned.shown_readable & (aligned.shown_person >= 0)
    active_epoch = aligned.time[counted] // promise.rotation_ns
    shown_epoch = aligned.shown_time[readable] // promise.rotation_ns
    starts, epochs = np.unique(np.concatenate([active_epoch, shown_epoch]), return_inverse=True)
    if not len(starts):
        return {}
    active = people_of(epochs[: len(active_epoch)], aligned.person[counted], len(starts))
    shown = _shown(aligned, readable, epochs[len(active_epoch) :])
    everyone = len(np.unique(aligned.person[counted])) or None
    return {
        "count": len(starts),
        "shares": _shares(shown, active if everyone else None, everyone),
        "worst": _worst(shown, starts * (promise.rotation_ns / 1e9), active if everyone else None),
    }


def sizes_by_epoch(aligned: Aligned, promise: ZPromise, k: int) -> tuple[Ints, Ints]:
    """Return, for every epoch with a released row, the people shown and those who share their set with k - 1 others."""
    readable = aligned.shown_readable & (aligned.shown_person >= 0)
    epochs = np.unique(aligned.shown_time[readable] // promise.rotation_ns, return_inverse=True)[1]
    shown = _shown(aligned, readable, epochs)
    return np.bincount(shown.epoch), np.bincount(shown.epoch, weights=shown.size >= k).astype(np.int64)


def _shown(aligned: Aligned, readable: Bools, epoch: Ints) -> _Shown:
    """Group the pseudonyms of every epoch by their sets of values, which are numbered without overlap."""
    items, offset = [], 0
    for values in aligned.values.values():
        shown = values.shown[readable]
        items.append(np.where(shown >= 0, shown + offset, -1))
        offset += int(shown.max(initial=-1)) + 1
    groups = group_sets(epoch, aligned.shown_person[readable], items)
    of_person = np.repeat(np.arange(len(groups.people)), groups.people)
    return _Shown(groups.epoch[of_person], groups.people[of_person], groups.length[of_person] == 0)


def _shares(shown: _Shown, active: Ints | None, everyone: int | None) -> dict[str, dict[str, float | None]]:
    tests: dict[str, _Test] = {"1 (unique)": lambda size: np.equal(size, 1)}
    tests |= {f"{level} or more": partial(np.less_equal, level) for level in _LEVELS}
    everywhere = None if active is None or everyone is None else np.full(len(active), everyone)
    return {
        name: {
            "all": _with_silent(shown, everywhere, test),
            "active": _with_silent(shown, active, test),
            "shown": _ratio(int(test(shown.size).sum()), len(shown.size)),
        }
        for name, test in tests.items()
    }


def _with_silent(shown: _Shown, population: Ints | None, test: _Test) -> float | None:
    """Return the share of people who pass the test; people without a released value share the empty set."""
    if population is None:
        return None
    visible = ~shown.is_empty
    silent = np.maximum(population - np.bincount(shown.epoch[visible], minlength=len(population)), 0)
    hits = int(test(shown.size[visible]).sum()) + int(silent[test(silent)].sum())
    return _ratio(hits, int(population.sum()))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _worst(shown: _Shown, starts: npt.NDArray[np.float64], active: Ints | None) -> list[dict[str, Any]]:
    people = np.bincount(shown.epoch, minlength=len(starts))
    unique = np.bincount(shown.epoch[shown.size == 1], minlength=len(starts))
    share = np.divide(unique, people, out=np.zeros(len(starts)), where=people > 0)
    ranked = [number for number in np.lexsort((-unique, -share))[:_WORST] if unique[number]]
    return [
        {
            "start_s": float(starts[number]),
            "active": None if active is None else int(active[number]),
            "shown": int(people[number]),
            "unique_share": float(share[number]),
        }
        for number in ranked
    ]
