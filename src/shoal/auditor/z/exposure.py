"""Measure exposure by epoch: how many people share a released set of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.counting import dense
from shoal.auditor.reading.columns import Bools, Ints
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
    active = _people(epochs[: len(active_epoch)], aligned.person[counted], len(starts))
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


def _people(epoch: Ints, person: Ints, count: int) -> Ints:
    if not len(epoch):
        return np.zeros(count, np.int64)
    first = np.unique(dense(epoch, person), return_index=True)[1]
    return np.bincount(epoch[first], minlength=count)


def _shown(aligned: Aligned, readable: Bools, epoch: Ints) -> _Shown:
    """Collect the set of values of every (epoch, pseudonym)."""
    if not len(epoch):
        return _Shown(epoch, epoch, epoch.astype(np.bool_))
    someone = dense(epoch, aligned.shown_person[readable])
    first = np.unique(someone, return_index=True)[1]
    sets = _sets(someone, _items(aligned, readable), len(first))
    group = _numbered(zip(epoch[first].tolist(), sets, strict=True))
    return _Shown(epoch[first], np.bincount(group)[group], np.array([not held for held in sets]))


def _items(aligned: Aligned, readable: Bools) -> list[Ints]:
    """Number the values of all attributes without overlap."""
    items, offset = [], 0
    for values in aligned.values.values():
        shown = values.shown[readable]
        items.append(np.where(shown >= 0, shown + offset, -1))
        offset += int(shown.max(initial=-1)) + 1
    return items


def _sets(someone: Ints, items: list[Ints], count: int) -> list[bytes]:
    owner, item = np.concatenate([someone] * len(items)), np.concatenate(items)
    owner, item = owner[item >= 0], item[item >= 0]
    if not len(item):
        return [b""] * count
    once = np.unique(owner * (int(item.max()) + 1) + item)
    owner, item = np.divmod(once, int(item.max()) + 1)
    bounds = np.searchsorted(owner, np.arange(count + 1))
    return [item[start:end].tobytes() for start, end in pairwise(bounds)]


def _numbered(keys: Any) -> Ints:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def _shares(shown: _Shown, active: Ints | None, everyone: int | None) -> dict[str, dict[str, float | None]]:
    tests = {"1 (unique)": _exactly_one} | {f"{level} or more": _at_least(level) for level in _LEVELS}
    everywhere = None if active is None or everyone is None else np.full(len(active), everyone)
    return {
        name: {
            "all": _with_silent(shown, everywhere, test),
            "active": _with_silent(shown, active, test),
            "shown": _ratio(int(test(shown.size).sum()), len(shown.size)),
        }
        for name, test in tests.items()
    }


def _exactly_one(size: Ints) -> Bools:
    return np.equal(size, 1)


def _at_least(level: int) -> _Test:
    return lambda size: np.greater_equal(size, level)


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
