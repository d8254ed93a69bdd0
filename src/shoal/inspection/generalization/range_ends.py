"""A grid for each numeric quasi-identifier, chosen by how many people the ends of ranges would give away.

An end is often the value of the person who has the least or the most of a class. A value counts as found if a guess
from an end is right to the natural step of the column, such as a year of age. The guess may be any fixed number of
steps inside the range, whichever finds most: moving all ends, or half-open ranges, hide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.inspection.columns.arrays import Floats, Integers, floats
from shoal.inspection.columns.facts import Facts
from shoal.inspection.generalization.domains import tidy

Groups = Sequence[Integers]
_SAMPLE: Final = 5_000
_DAY: Final = 86_400.0
MOST_FOUND: Final = 0.08
"""The share of people whose value the ends may give away, where the data allow it."""
_FEWEST_CELLS: Final = 8
_MOST_OFFSETS: Final = 20
_ROUNDING: Final = 1e-9
_MOST_WIDER: Final = 1.25
_MOST_COST: Final = 0.02
"""How much wider ranges may become: by a factor, and by a share of the domain."""
_STEPS: Final = (1, 2, 5)
_DAYS: Final = (1, 2, 7, 14, 30, 90, 180, 365)


class Grid(NamedTuple):
    """A grid in the unit of the column, and the share of people whose value its ends give away."""

    step: float
    found: float


class _Tried(NamedTuple):
    step: float
    found: float
    width: float


def choose_grids(rules: dict[str, Any], facts: Mapping[str, Facts], k: int) -> dict[str, str]:
    """Set the grids of numeric quasi-identifiers; return what the ends of each give away, in words."""
    columns = {name: column for name in rules if (column := _column(rules[name], facts[name])) is not None}
    if not columns:
        return {}
    every = {name: columns[name] if name in columns else _codes(facts[name]) for name in rules}
    groups = _groups(list(every.values()), k)
    words = {}
    for name, values in columns.items():
        rule = rules[name]
        is_moment = isinstance(rule["low"], str)
        natural = _DAY if is_moment else natural_step(values)
        grid = _best(values, groups, rule, natural)
        _set(rule, grid.step, is_moment=is_moment)
        words[name] = f"a guess from the ends of its range is right for about {grid.found:.0%} of the people"
    return words


def natural_step(values: Floats) -> float:
    """The smallest distance at which values of this kind lie: 1 for ages, 100 for rounded wages, 0.01 for metres."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 1.0
    for digits in range(7):
        scaled = known * 10.0**digits
        if np.abs(scaled - np.rint(scaled)).max() < 1e-6 * max(1.0, float(np.abs(scaled).max()) * 1e-6):
            tens = next((tens for tens in (1000, 100, 10) if not digits and not (known % tens).any()), 1)
            return tens / 10.0**digits
    return 1e-6


def _column(rule: Mapping[str, Any], one: Facts) -> Floats | None:
    """The sample of a numeric column, moments in seconds; None for other columns, and times of day."""
    if rule.get("kind") != "numeric":
        return None
    if isinstance(rule["low"], str):
        seconds = _seconds(one)
        known = seconds[np.isfinite(seconds)]
        return seconds if rule["grid"] == "1d" and bool((known % _DAY == 0).all()) else None
    return _spread(floats(one.values))


def _seconds(one: Facts) -> Floats:
    return _spread(floats(one.values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())) / 1e6)


def _codes(one: Facts) -> Floats:
    values = one.values
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    return _spread(floats(encoded.indices))


def _spread(values: Floats) -> Floats:
    return values[:: max(1, -(-len(values) // _SAMPLE))]


def _groups(columns: list[Floats], k: int) -> Groups:
    """Rows that are alike, k or a few more in each: split at the median of the widest column while possible."""
    table = np.stack([_ranked(column) for column in columns])
    open_groups, done = [np.arange(table.shape[1])], []
    while open_groups:
        group = open_groups.pop()
        parts = _split(table[:, group], k) if len(group) >= 2 * k else None
        if parts is None:
            done.append(group)
        else:
            open_groups += [group[part] for part in parts]
    return done


def _ranked(column: Floats) -> Floats:
    """Values as shares of their range; a missing one is at the end."""
    known = column[np.isfinite(column)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    return np.nan_to_num((column - low) / (high - low or 1.0), nan=1.0)


def _split(part: Floats, k: int) -> tuple[Any, Any] | None:
    for place in np.argsort(-np.ptp(part, axis=1), kind="stable"):
        values = part[place]
        for cut in (np.median(values), values.min()):
            below = values <= cut
            if k <= below.sum() <= len(values) - k:
                return np.flatnonzero(below), np.flatnonzero(~below)
    return None


def _best(values: Floats, groups: Groups, rule: Mapping[str, Any], natural: float) -> Grid:
    """The finest grid whose ends give away few people; else the one that gives away fewest at nearly the same width."""
    is_moment = isinstance(rule["low"], str)
    low, high = (_second(rule[end]) if is_moment else float(rule[end]) for end in ("low", "high"))
    first = _DAY if is_moment else float(rule["grid"])
    tried = [_try(values, groups, low, high, step, natural) for step in _candidates(first, high - low, is_moment)]
    near = [one for one in tried if one.width <= tried[0].width * _MOST_WIDER + _MOST_COST]
    good = [one for one in near if one.found < MOST_FOUND]
    best = good[0] if good else min(near, key=lambda one: one.found)
    return Grid(best.step, best.found)


def _candidates(first: float, span: float, is_moment: bool) -> list[float]:  # noqa: FBT001
    if is_moment:
        steps = [days * _DAY for days in _DAYS]
    else:
        power = 10.0 ** math.floor(math.log10(first) + 1e-9)
        steps = [float(f"{power * 10**more * digit:.12g}") for more in range(3) for digit in _STEPS]
    return [first, *(step for step in steps if step > first and span / step >= _FEWEST_CELLS)]


def _try(values: Floats, groups: Groups, low: float, high: float, step: float, natural: float) -> _Tried:
    own = np.concatenate([values[group] for group in groups])
    start = np.cumsum([0, *(len(group) for group in groups[:-1])])
    least = np.fmin.reduceat(own, start)
    most = np.fmax.reduceat(own, start)
    size = [len(group) for group in groups]
    begin = np.repeat(np.maximum(low, low + np.floor((least - low) / step + _ROUNDING) * step), size)
    end = np.repeat(np.minimum(high, low + np.ceil((most - low) / step - _ROUNDING) * step), size)
    known = np.isfinite(own)
    is_range = known & (begin < end) & ((begin > low) | (end < high))
    inside = (np.rint((own - begin) / natural), np.rint((end - own) / natural))
    offsets = range(min(int(step / natural), _MOST_OFFSETS) + 1)
    found = max(int((is_range & ((inside[0] == offset) | (inside[1] == offset))).sum()) for offset in offsets)
    people = max(int(known.sum()), 1)
    return _Tried(step, found / people, float((end - begin)[known].sum() / (high - low) / people))


def _second(text: str) -> float:
    return float(np.datetime64(text, "s").astype(np.int64))


def _set(rule: dict[str, Any], step: float, *, is_moment: bool) -> None:
    """Set the grid, and move the ends of the domain out to multiples of it."""
    if is_moment:
        rule["grid"] = f"{round(step / _DAY)}d"
        return
    low, high = math.floor(rule["low"] / step + 1e-9), math.ceil(rule["high"] / step - 1e-9)
    rule |= {"low": tidy(low * step), "high": tidy(high * step), "grid": tidy(step)}
