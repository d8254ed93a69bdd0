"""How many people were behind published values: for z-anonymity.

All events of some values are remembered for one window: those whose hash falls into a share that shrinks until they
fit. For these values the people are counted again, exactly, at the time of every published row.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.release import DEAD
from shoal.policy import Policy
from shoal.serve.recent import Step, newest
from shoal.times import column_ns

_MOST_EVENTS: Final = 200_000
_MOST_CHECKED: Final = 300
_ROWS: Final = 20_000
_PAIR: Final = 2

_MEASUREMENTS: Final = 30
"""The fewest people of this many measurements, about a minute, are reported."""

Ints = npt.NDArray[np.int64]


class ValueCrowds:
    """Counts people behind published values, for every attribute of a policy."""

    def __init__(self, policy: Policy) -> None:
        method: Any = policy.anonymize
        self._person, self._time = policy.stream.person, policy.stream.time
        self._names = list(method.columns)
        names = [f".{name}" for name in self._names] if method.is_table else [""]
        self._columns = {
            name: _Column(name, f"z{end}", rule.z, int(rule.window))
            for (name, rule), end in zip(method.columns.items(), names, strict=True)
        }
        target = method.k_target
        self._k = target.k if target is not None else method.k or _PAIR
        self._share = target.p if target is not None else 1.0 if method.combine is not None else None

    def measure(self, steps: list[Step], fresh: list[Step], *, has_gap: bool) -> list[dict[str, Any]]:
        """The promise of z for every attribute, and how many people are hidden by what is published of them."""
        for column in self._columns.values():
            if has_gap:
                column.begin_again()
            column.add(fresh, self._person, self._time)
        several = len(self._columns) > 1
        return [*(column.entry(several=several) for column in self._columns.values()), self._hidden(steps)]

    def smallest(self, steps: list[Step]) -> int | None:
        """The fewest people behind a published value; None if no value can be judged."""
        found = [entry["measured"] for entry in self.measure(steps, steps, has_gap=False)[:-1]]
        return min((one for one in found if one is not None), default=None)

    def _hidden(self, steps: list[Step]) -> dict[str, Any]:
        """The share of people whose published values are those of k - 1 others."""
        sets: dict[Any, set[Any]] = {}
        for step in newest(steps, _ROWS):
            rows = step.release.rows
            if self._person in rows.schema.names:
                columns = [rows.column(name).to_pylist() for name in self._names if name in rows.schema.names]
                for person, *values in zip(rows.column(self._person).to_pylist(), *columns, strict=True):
                    sets.setdefault(person, set()).add(tuple(values))
        kinds = Counter(frozenset(one) for one in sets.values())
        hidden = sum(count for count in kinds.values() if count >= self._k)
        share = round(hidden / len(sets), 4) if sets else None
        others = "one other person" if self._k == _PAIR else f"{self._k - 1} other people"
        words = f"share of people whose published values are those of at least {others}"
        return {"name": "people", "words": words, "promised": self._share, "measured": share, "holds": None,
                "bound": "least", "scope": "recent rows"}  # fmt: skip


def _margin(found: tuple[int, int]) -> int:
    return found[0] - found[1]


class _Column:
    """The events of some values of one attribute."""

    def __init__(self, name: str, threshold: str, z: int | None, window: int) -> None:
        self._name, self._threshold, self._window = name, threshold, window
        self._mask = 0
        """A value is remembered if these bits of its hash are 0."""
        self._events = np.empty((0, 4), np.int64)
        """Number, time, person and value (hashes)."""
        self._new: list[Ints] = []
        self._since: int | None = None
        """Counts are complete for windows that begin at this time; None: from the start."""
        self._worst: tuple[int, int] | None = None
        """Of the current measurement: the fewest people compared with the z in force, and that z."""
        self._recent: deque[tuple[int, int]] = deque(maxlen=_MEASUREMENTS)
        self._in_force = z

    def begin_again(self) -> None:
        """Some steps were missed: counts are complete one window later."""
        self._events, self._new = self._events[:0], []
        self._since = np.iinfo(np.int64).max

    def add(self, steps: list[Step], person: str | None, time: str | None) -> None:
        """Remember the events of steps, then count behind the rows that they published."""
        for step in steps:
            batch = step.batch
            if batch is not None and batch.num_rows and {person, time, self._name} <= set(batch.schema.names):
                self._remember(step, batch, str(person), str(time))
        self._shrink()
        self._check(steps)

    def _remember(self, step: Step, batch: pa.RecordBatch, person: str, time: str) -> None:
        encoded = batch.column(self._name).dictionary_encode()
        hashes = np.array([hash(value) for value in encoded.dictionary.to_pylist()], np.int64)
        codes = encoded.indices.fill_null(0).to_numpy()
        values = hashes[codes] if len(hashes) else np.zeros(batch.num_rows, np.int64)
        times, usable = column_ns(batch.column(time))
        numbers = step.numbers
        trace = step.release.trace
        dead = trace.column("row").to_numpy()[np.asarray(trace.column("verdict").cast(pa.string())) == DEAD]
        kept = usable & np.asarray(encoded.indices.is_valid()) & ((values & self._mask) == 0) & ~np.isin(numbers, dead)
        if self._since == np.iinfo(np.int64).max and usable.any():
            self._since = int(times[usable].max())
        places = np.flatnonzero(kept)
        persons = [hash(one) for one in batch.column(person).take(pa.array(places)).to_pylist()]
        new = np.stack([numbers[places], times[places], np.array(persons, np.int64), values[places]], axis=1)
        self._new.append(new.reshape(-1, 4))

    def _shrink(self) -> None:
        """Forget events that no window contains any more; then halve the share of values until they fit."""
        self._events, self._new = np.concatenate([self._events, *self._new]), []
        if len(self._events) <= _MOST_EVENTS:
            return
        newest_time = int(self._events[:, 1].max())
        self._events = self._events[self._events[:, 1] >= newest_time - 2 * self._window]
        while len(self._events) > _MOST_EVENTS:
            self._mask = 2 * self._mask + 1
            self._events = self._events[(self._events[:, 3] & self._mask) == 0]

    def _check(self, steps: list[Step]) -> None:
        """Count the people behind published rows: one row of each of the rarest values."""
        shown = [found for step in steps if (found := step.shown()) is not None and found[0].num_rows]
        if not shown or self._name not in shown[0][0].schema.names:
            return
        rows, trace = (pa.Table.from_batches(parts) for parts in zip(*shown, strict=True))
        thresholds = trace.column(self._threshold).fill_null(0).to_numpy()
        self._in_force = int(thresholds[-1])
        encoded = rows.column(self._name).combine_chunks().dictionary_encode()
        hashes = [hash(value) for value in encoded.dictionary.to_pylist()]
        codes, first = np.unique(encoded.indices.fill_null(-1).to_numpy(), return_index=True)
        numbers, order = trace.column("row").to_numpy(), np.argsort(self._events[:, 3], kind="stable")
        ordered = self._events[order]
        crowds = []
        for code, place in zip(codes.tolist(), first.tolist(), strict=True):
            if code < 0 or hashes[code] & self._mask:
                continue
            begin, end = (int(np.searchsorted(ordered[:, 3], hashes[code], side=side)) for side in ("left", "right"))
            crowds.append((end - begin, begin, end, int(numbers[place]), int(thresholds[place])))
        for _, begin, end, number, z in sorted(crowds)[:_MOST_CHECKED]:
            count = self._people(ordered[begin:end], number, z)
            if count is not None:
                self._worst = min(self._worst, (count, z), key=_margin) if self._worst is not None else (count, z)

    def _people(self, events: Ints, number: int, z: int) -> int | None:
        """People with the value in the window that ends with a record; None if that is not known."""
        own = events[events[:, 0] == number]
        if not len(own):  # generalized, or its events are not remembered
            return None
        time = int(own[0, 1])
        is_before = (events[:, 1] < time) | ((events[:, 1] == time) & (events[:, 0] <= number))
        inside = events[is_before & (events[:, 1] >= time - self._window)]
        count = len(np.unique(inside[:, 2]))
        is_complete = self._since is None or time - self._window >= self._since
        return count if is_complete or count >= z else None

    def entry(self, *, several: bool) -> dict[str, Any]:
        """The promise, and the fewest people behind a value in the last measurements; ends a measurement."""
        if self._worst is not None:
            self._recent.append(self._worst)
            self._worst = None
        count, z = min(self._recent, key=_margin, default=(None, self._in_force))
        name = f"z of {self._name}" if several else "z"
        words = f"every published {self._name} was shown by at least this many people within the window"
        holds = None if count is None or z is None else count >= z
        return {"name": name, "words": words, "promised": z, "measured": count, "holds": holds,
                "bound": "least", "scope": "values that are counted again"}  # fmt: skip
