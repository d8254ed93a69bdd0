"""Counts that the user of a release needs, given in a file: ranges, values and groups; and how far off they are.

[[count]]
name = "young women"                                # optional
where = { age = { from = 20, to = 30 }, sex = "F" } # a value, a list of values, or a range with both ends included

[[count]]
group_by = ["sex", "job"]                           # one count for every combination that occurs
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from shoal.auditor.attacks.classes import RowEvidence
from shoal.auditor.attacks.naive_bayes import Spread
from shoal.auditor.policy import is_number
from shoal.auditor.reading.columns import Bools
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Labels, Spans
from shoal.auditor.tuples.diversity.sensitive import meaning
from shoal.auditor.utility.measure import Measure
from shoal.errors import InputError, PolicyError

_MOST: Final = 200
"""Counts of a file."""
_MOST_GROUPS: Final = 10_000
_CELLS: Final = 8_000_000
"""Pairs of rows and groups that are in memory at once."""
_FLOOR: Final = 0.005
"""As for random counts: a true count below this share of the records is compared with it."""
_KEYS: Final = frozenset({"name", "where", "group_by"})
_ENDS: Final = frozenset({"from", "to"})


@dataclass(frozen=True, slots=True)
class Count:
    """One count: the records that meet all conditions, as one number or one for each group."""

    name: str
    where: Mapping[str, Any]
    group_by: tuple[str, ...]


def read_workload(given: Any) -> tuple[Count, ...]:
    """Read a workload from a TOML or JSON file, or take its content; PolicyError says which count is wrong."""
    if given is None:
        return ()
    content = _content(Path(given)) if isinstance(given, str | Path) else given
    if not isinstance(content, Mapping) or set(content) != {"count"} or not isinstance(content["count"], list):
        raise PolicyError("workload: give a list of counts under the name count, in TOML [[count]]")
    if not 1 <= len(content["count"]) <= _MOST:
        raise PolicyError(f"workload: give 1 to {_MOST} counts")
    return tuple(_count(one, number) for number, one in enumerate(content["count"], 1))


def _content(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8"
        raise InputError(f"workload: {path} cannot be read ({reason})") from None
    kind = "JSON" if path.suffix.lower() == ".json" else "TOML"
    try:
        return json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except ValueError as error:
        raise PolicyError(f"workload: {path} is not {kind} ({error})") from None


def _count(given: Any, number: int) -> Count:
    where = f"workload, count {number}"
    if not isinstance(given, Mapping) or set(given) - _KEYS:
        raise PolicyError(f"{where}: may have {', '.join(sorted(_KEYS))} only")
    conditions, groups = given.get("where", {}), given.get("group_by", [])
    groups = [groups] if isinstance(groups, str) else groups
    if (
        not isinstance(conditions, Mapping)
        or not isinstance(groups, list | tuple)
        or not all(isinstance(one, str) for one in groups)
    ):
        raise PolicyError(f"{where}: where is a table of conditions by column, group_by a list of columns")
    if not conditions and not groups:
        raise PolicyError(f"{where}: needs where or group_by")
    twice = next((name for name in groups if groups.count(name) > 1 or name in conditions), None)
    if twice is not None:
        raise PolicyError(f"{where}: column {twice} is named twice")
    for column, asked in conditions.items():
        _check(f"{where}, column {column}", asked)
    return Count(str(given.get("name") or f"count {number}"), dict(conditions), tuple(groups))


def _check(where: str, asked: Any) -> None:
    if isinstance(asked, Mapping):
        if not asked or set(asked) - _ENDS:
            raise PolicyError(f"{where}: a range has from, to or both")
        if isinstance(asked.get("from"), bool) or isinstance(asked.get("to"), bool):
            raise PolicyError(f"{where}: ends of a range are numbers or moments")
    elif isinstance(asked, list) and not asked:
        raise PolicyError(f"{where}: the list of values is empty")


# ---- measuring


def measure_workload(evidence: RowEvidence, counts: Sequence[Count]) -> list[Measure]:
    """Return the relative error of every count, and their median."""
    if not counts:
        return []
    columns = _Columns(evidence)
    floor = _FLOOR * max(len(columns.rows), 1)
    found, errors = [], []
    for count in counts:
        true, estimated = columns.both(count)
        error = float(np.mean(np.abs(estimated - true) / np.maximum(true, floor))) if len(true) else 0.0
        errors.append(error)
        what = (
            f"Relative error: {true[0]:,.0f} records, {estimated[0]:,.1f} by the release." if not count.group_by
            else f"Average relative error of the counts of {len(true):,} groups."
        )  # fmt: skip
        found.append(Measure(f"count: {count.name}", what, error, 0.0))
    what = (
        f"Median relative error of the {len(counts)} counts of the given workload; true counts below "
        f"{_FLOOR:.1%} of the records are compared with that."
    )
    return [Measure("workload", what, float(np.median(errors)), 0.0), *found]


class _Columns:
    """Quasi-identifiers and sensitive columns, before and after: a range or label counts evenly for its values."""

    def __init__(self, evidence: RowEvidence) -> None:
        self._evidence = evidence
        self.rows = np.flatnonzero(evidence.members.records.usable)
        self._quasi = {attribute.name: attribute for attribute in evidence.members.attributes}
        self._spreads: dict[str, Spread] = {}

    def both(self, count: Count) -> tuple[Floats, Floats]:
        """Return true counts and those of the release, one for each group."""
        hit, weight = np.ones(len(self.rows)), np.ones(self._evidence.rows)
        for name, asked in count.where.items():
            before, after = self._condition(name, asked, count.name)
            hit, weight = hit * before, weight * after
        if not count.group_by:
            return np.array([hit.sum()]), np.array([weight.sum()])
        return self._groups(count, hit, weight)

    def _groups(self, count: Count, hit: Floats, weight: Floats) -> tuple[Floats, Floats]:
        sides = [self._values(name, count.name) for name in count.group_by]
        size = int(np.prod([share.shape[1] for _, share in sides], dtype=np.float64))
        if size > _MOST_GROUPS:
            raise PolicyError(f"workload, {count.name}: group_by has {size:,} combinations; at most {_MOST_GROUPS:,}")
        place = np.zeros(len(self.rows), np.int64)
        for code, share in sides:
            place = np.where((place < 0) | (code < 0), -1, place * share.shape[1] + code)
        known = place >= 0
        true = np.bincount(place[known], weights=hit[known], minlength=size).astype(np.float64)
        estimated = np.zeros(size)
        step = max(_CELLS // max(size, 1), 1)
        for start in range(0, len(weight), step):
            part = weight[start : start + step, None]
            for _, share in sides:
                part = (part[:, :, None] * share[start : start + step, None, :]).reshape(len(part), -1)
            estimated += part.sum(axis=0)
        occurs = true > 0
        return true[occurs], estimated[occurs]

    def _values(self, name: str, count: str) -> tuple[Any, Floats]:
        """Return the value of every record, and for every released row how much of it each value is."""
        if name in self._evidence.members.sensitive and name not in self._quasi:
            true, shown, names = self._evidence.members.sensitive[name]
            share = np.zeros((len(shown), len(names)))
            known = np.flatnonzero(shown >= 0)
            share[known, shown[known]] = 1.0
            return true[self.rows], share
        attribute = self._quasi.get(name)
        if isinstance(attribute, Labels):
            spread = self._spread(name)
            return spread.bins(attribute, self.rows), spread.share[self._evidence.released.of_row]
        if attribute is None:
            raise self._unknown(name, count)
        raise PolicyError(f"workload, {count}: column {name} has numbers; count ranges of them with where")

    def _condition(self, name: str, asked: Any, count: str) -> tuple[Any, Floats]:
        where = f"workload, {count}, column {name}"
        attribute = self._quasi.get(name)
        if isinstance(attribute, Spans):
            return self._range(attribute, asked, where)
        if isinstance(asked, Mapping):
            raise PolicyError(f"{where}: has no numbers; give a value or a list of values")
        texts = {_plain(one) for one in (asked if isinstance(asked, list) else [asked])}
        code, share = self._values(name, count)
        names = self._spread(name).names if attribute is not None else self._evidence.members.sensitive[name][2]
        wanted: Bools = np.array([_plain(one) in texts for one in names], np.bool_)
        return np.append(wanted, False)[code].astype(np.float64), share @ wanted.astype(np.float64)

    def _range(self, span: Spans, asked: Any, where: str) -> tuple[Any, Floats]:
        if isinstance(asked, list):
            raise PolicyError(f"{where}: has numbers; give one number, or a range with from and to")
        ends = asked if isinstance(asked, Mapping) else {"from": asked, "to": asked}
        first, last = (_number(ends.get(side), span, where) for side in ("from", "to"))
        first, last = -np.inf if first is None else first, np.inf if last is None else last
        if first > last:
            raise PolicyError(f"{where}: the range ends before it begins")
        value = span.true_value[self.rows]
        before = ((value >= first) & (value <= last)).astype(np.float64)
        released = self._evidence.released
        low, high = (end[released.first] for end in (span.low, span.high))
        whole = np.concatenate([low, high])
        step = float((whole[np.isfinite(whole)] == np.rint(whole[np.isfinite(whole)])).all() and not span.are_moments)
        inside = np.minimum(high + step, last + step) - np.maximum(low, first)
        width = high + step - low
        share = np.where(
            width > 0, np.clip(inside, 0, None) / np.where(width > 0, width, 1.0), (low >= first) & (low <= last)
        )
        share = np.nan_to_num(share, nan=float(before.mean()) if len(before) else 0.0)  # a missing range says nothing
        return before, share[released.of_row]

    def _spread(self, name: str) -> Spread:
        if name not in self._spreads:
            self._spreads[name] = Spread(self._quasi[name], self._evidence.released.first)
        return self._spreads[name]

    def _unknown(self, name: str, count: str) -> PolicyError:
        known = [*self._quasi, *self._evidence.members.sensitive]
        return PolicyError(f"workload, {count}: no column {name}; choose from {', '.join(known)}")


def _plain(value: Any) -> str | None:
    return meaning(str(value).lower() if isinstance(value, bool) else _spelt(value))


def _spelt(value: Any) -> str:
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _number(end: Any, span: Spans, where: str) -> float | None:
    if end is None:
        return None
    if is_number(end) and not span.are_moments:
        return float(end)
    found = meaning(_spelt(end))
    if not span.are_moments or found is None or found[0] != "@":
        kind = "moments, such as 2026-01-31" if span.are_moments else "numbers"
        raise PolicyError(f"{where}: ends of a range are {kind}")
    return int(found[1:]) / 1000
