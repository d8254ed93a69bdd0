"""Find the stretch of the release over which k holds.

A row that reuses an earlier cluster may be published alone, so k holds over a history, not over every short stretch.
In released rows, a row's decision ends with the last row of the same event with equal published values. In arrivals it
ends with the last such row of the same new cluster (a reused row's decision is the row itself).
A row's history is the shortest stretch of the release that ends where its decision ends and has rows of at least k
different people, all published like the row. The release's history is the longest history of any row: every stretch at
least that long that ends with a decision shows each row of the decision among k people. It is in released rows and
in arrivals (event time if deadlines are durations): a stretch of a arrivals has the rows decided at most a
arrivals before the decision, those of the decision included, so that it is 0 if k people are published together.

The promise is at most the age up to which clusters are reused (0 if rows are published in groups).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.checks import Found, check
from shoal.auditor.counting import numbered
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.rows.texts import kept
from shoal.auditor.tuples.groups import in_order
from shoal.auditor.tuples.promise import TuplePromise

_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Times:
    """What is known of when rows were decided (``decided`` at the earliest, ``decided_by`` at the latest)."""

    are_known: bool
    are_clear: bool
    has_events: bool


class History:
    """Counts people in stretches of the release, for one measure of length."""

    def __init__(self, of_row: Ints, person: Ints, decision: Ints, place: Ints, until: Ints | None = None) -> None:
        """Take the rows in release order, or in the order in which they were decided.

        Parameters
        ----------
        of_row, person
            The class and the person of every row.
        decision
            The same number for rows published together.
        place
            The position of a row: its number, or when it was decided. Never decreases within a class.
        until
            The largest possible position, if it is not known exactly; ``place`` is the smallest then.
        """
        classes = numbered(of_row)[1]
        self._order = np.argsort(classes, kind="stable")
        self._own = classes[self._order]
        moments, self._rank = np.unique(place[self._order], return_inverse=True)
        # Differences, since the numbers themselves may be anywhere within 64 bits.
        self._since = (moments - moments[:1]).astype(np.uint64)
        self._until = self._since[self._rank]
        if until is not None:
            latest = np.maximum(until, place)[self._order]  # a clock that is not clear may end before it begins
            self._until = (latest - moments[:1]).astype(np.uint64)
        self._stamp = self._own * (len(moments) + 1) + self._rank
        pair = numbered(self._own * (int(person.max(initial=0)) + 1) + person[self._order])[1]
        self._following = _next_place(pair)
        self._ends = _is_last(self._own, decision[self._order])

    @property
    def span(self) -> int:
        """The longest possible stretch."""
        return int(self._since.max(initial=0))

    def failing(self, length: int, k: int) -> Bools:
        """Mark rows that end a decision although the stretch of this length up to them has fewer than k people."""
        failing = np.empty(len(self._order), np.bool_)
        failing[self._order] = self._fails(length, k)
        return failing

    def shortest(self, k: int) -> int | None:
        """Return the smallest length with which no decision fails; None if there is none."""
        if self._fails(self.span, k).any():
            return None
        low, high = -1, self.span  # low fails, high does not
        if not self._fails(0, k).any():
            return 0
        while high - low > 1:
            middle = (low + high) // 2
            if self._fails(middle, k).any():
                low = middle
            else:
                high = middle
        return high

    def _fails(self, length: int, k: int) -> Bools:
        """Count for every row the people published like it from ``place - length`` on, up to the row itself.

        A row counts for its person from its own position until the person's next row of the class, or until it leaves
        the stretch: +1 at the start, -1 at the end, and a running sum gives all counts at once.
        """
        last = self._until + np.minimum(np.uint64(length), np.iinfo(np.uint64).max - self._until)
        outlived = np.searchsorted(self._since, last, side="right")
        limit = self._own * (len(self._since) + 1) + outlived
        end = np.minimum(np.searchsorted(self._stamp, limit), self._following)
        change = 1 - np.bincount(end, minlength=len(self._own) + 1)
        return self._ends & (np.cumsum(change)[:-1] < k)


def _next_place(pair: Ints) -> Ints:
    order = np.argsort(pair, kind="stable")
    following = np.full(len(pair), len(pair), np.int64)
    same = pair[order[1:]] == pair[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    return following


def _is_last(own: Ints, decision: Ints) -> Bools:
    """Mark the last row of every decision within every class."""
    last = np.zeros(len(own), np.bool_)
    if len(own):
        pair = own * (int(decision.max()) + 1) + decision
        last[len(pair) - 1 - np.unique(pair[::-1], return_index=True)[1]] = True
    return last


@check(
    "below-k-in-history",
    "Fewer than k people of a row's class were published within the age of reuse up to the row.",
    advice="Whoever saw the rows as they came saw fewer than k people: publish in groups, or shorten reuse.",
    families=("tuples",),
    by="class",
    needs=("truth", "trace"),
)
def below_k_in_history(rows: Relation, history: History, promise: TuplePromise) -> Bools:
    """Mark rows of classes with enough people that had too few when the row was published."""
    few = history.failing(0 if promise.groups else promise.reuse, promise.k)
    found: Bools = few & (rows["people"] >= promise.k)  # the others are reported already
    return found


def look_at_history(promise: TuplePromise, times: Times, rows: Relation) -> Found:
    """Measure the history of k of all classes in released rows and in time, and check it against the age of reuse."""
    rows, found = in_order(kept(rows, rows["judged"] & (rows.codes("person") >= 0))), Found()
    decision = numbered(rows["group"])[1]
    alone = ~rows["formed"]
    decision[alone] = len(rows) + np.flatnonzero(alone)
    event = numbered(rows["event"])[1] if times.has_events else decision
    person = rows.codes("person")
    _note(found, "rows", History(rows["class"], person, event, place=rows["row"]).shortest(promise.k))
    if not times.are_known:
        return found
    least, most = rows["decided"], rows["decided_by"]
    # A row may precede the cluster it reuses if one event published both: count by time. If times are not clear, rows
    # of one event are checked together, since their order is not known; of one time, those of the earlier event first.
    order = np.lexsort((alone if times.are_clear else rows["event"], least))
    rows, decision = rows.take(order), (decision if times.are_clear else event)[order]
    person, least, most = rows.codes("person"), least[order], most[order]
    history = History(rows["class"], person, decision, place=least, until=most)
    if times.are_clear:
        _note(found, "time", history.shortest(promise.k))
    found.findings = below_k_in_history(rows, history, promise)
    return found


def _note(found: Found, name: str, length: int | None) -> None:
    """Keep the longest history, and whether one has no end."""
    found.most[name] = length
    found.sums[f"endless {name}"] = int(length is None)


def note_history(found: Found, times: Times, promise: TuplePromise, notes: Notes) -> None:
    """Note the longest history of all classes; None if k people never share some row."""
    unit, size = ("seconds", _SECOND) if promise.is_timed else ("arrivals", 1)
    rows, time = (None if found.sums.get(f"endless {name}") else found.most.get(name) or 0 for name in ("rows", "time"))
    metric: dict[str, float | None] = {"rows": None if rows is None else rows + 1}
    if times.are_known and times.are_clear:
        metric[unit] = None if time is None else time / size
    notes.metrics["shortest_history"] = metric
