"""Images of records on Spark: the labels of their items, against the released sets."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import surplus
from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import Ints
from shoal.auditor.sets.records import Sets, collect
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.sets.reading import Plan, counts_of
from shoal.spark.auditor.sets.records import Kept, Records, known
from shoal.spark.auditor.sets.tallies import send_tallies, sum_tallies
from shoal.spark.auditor.shares import Share

_DIGEST: Final = 16


def digests(sets: Sets) -> list[bytes]:
    """A digest of each set; equal sets have equal digests."""
    data, width = np.ascontiguousarray(sets.items).tobytes(), sets.items.itemsize
    return [
        blake2b(data[start * width : end * width], digest_size=_DIGEST).digest()
        for start, end in pairwise(sets.offsets.tolist())
    ]


@dataclass(frozen=True, slots=True)
class CheckRecords:
    """Counts the itemsets of a range of records; sends the images of records to where released sets are."""

    records: Records
    in_order: bool
    """Whether records and released rows are as many: then their order is compared."""

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        records, plan = self.records, self.records.plan
        kept = Kept.of(number, kinds, records)
        counts = counts_of(kept.truth).records
        yield result(OfRecords(kept.findings, kept.dropped, counts, kept.longest, kept.with_items))
        yield from send_tallies(kept.before, "before", records.sizes, third(plan))
        if records.label_of is None:
            return
        yield from send_tallies(known(kept.truth, records.label_of), "after", records.sizes, third(plan))
        label = records.label_of[kept.truth.items]
        image = collect(kept.truth.owners, label, len(kept.truth), records.labels, label >= 0)
        made = digests(image)
        empty = kept.truth.sizes == 0
        if kept.position is None:
            yield from _to_digests(made, "expected", empty, plan)
        else:
            assert kept.shown is not None
            yield from _to_positions(kept.position, made, "expected", plan, 0)
            yield from _to_positions(kept.shown, [b""] * len(kept.shown), "named", plan, 0)
        if self.in_order:
            yield from _to_positions(kept.number, made, "in order", plan, plan.bins)


@dataclass(frozen=True, slots=True)
class OfRecords:
    """What was found in a range of records."""

    findings: tuple[Finding, ...]
    dropped: int
    records: Ints
    """How many of the kept records have each item."""
    longest: int
    """The items of the longest record that may be released."""
    with_items: int
    """Records with an item that may be released."""


def third(plan: Plan) -> range:
    """The bins of sets that are counted: after those of released rows and those of their order."""
    return range(2 * plan.bins, 3 * plan.bins)


@dataclass(frozen=True, slots=True)
class SendReleased:
    """Sends the digests of released sets to where the images of records are."""

    records: Records
    in_order: bool

    def __call__(self, share: Share) -> Iterator[Message]:
        plan = self.records.plan
        if self.records.label_of is None:
            return
        numbers, sets = plan.released_sets(share)
        made = digests(sets)
        if self.records.has_trace:
            yield from _to_positions(numbers, made, "shown", plan, 0)
        else:
            yield from _to_digests(made, "shown", numbers, plan)
        if self.in_order:
            yield from _to_positions(numbers, made, "shown", plan, plan.bins)


def _to_positions(numbers: Ints, made: list[bytes], kind: str, plan: Plan, first: int) -> Iterator[Message]:
    size = max(-(-plan.released // plan.bins), 1)
    of = np.minimum(numbers // size, plan.bins - 1)
    for number in np.unique(of).tolist():
        own = np.flatnonzero(of == number)
        data = numbers[own], [made[at] for at in own.tolist()]
        yield Message(first + int(number), kind, pickle.dumps(data))


def _to_digests(made: list[bytes], kind: str, facts: Any, plan: Plan) -> Iterator[Message]:
    of = np.array([int.from_bytes(digest[:4]) % plan.bins for digest in made], np.int64)
    for number in np.unique(of).tolist():
        own = np.flatnonzero(of == number)
        yield Message(int(number), kind, pickle.dumps((facts[own], [made[at] for at in own.tolist()])))


@dataclass(frozen=True, slots=True)
class Compared:
    """What was found in released rows: which are not the image of an original, and which no record explains."""

    wrong: Ints
    added: Ints
    lost: int
    """Records whose image was not released, or less often."""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """Whether released rows are in the order of the truth; a few different sets."""

    is_same: bool
    sets: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class CompareRows:
    """Compares the images of records with released sets."""

    records: Records

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        bins = self.records.plan.bins
        if number >= 2 * bins:
            yield from sum_tallies(kinds)
        elif number >= bins:
            yield result(_order(kinds))
        elif self.records.has_trace:
            yield result(_by_position(kinds))
        else:
            yield result(_as_multisets(kinds))


def _opened(kinds: dict[str, list[bytes]], kind: str, facts: Any = np.int64) -> tuple[Any, list[bytes]]:
    parts = [pickle.loads(data) for data in kinds.get(kind, ())]
    return np.concatenate([np.zeros(0, facts), *(part[0] for part in parts)]), [
        one for part in parts for one in part[1]
    ]


def _order(kinds: dict[str, list[bytes]]) -> Order:
    numbers, expected = _opened(kinds, "in order")
    positions, shown = _opened(kinds, "shown")
    wanted, there = (
        dict(zip(numbers.tolist(), expected, strict=True)),
        dict(zip(positions.tolist(), shown, strict=True)),
    )
    return Order(wanted == there, frozenset(sorted(set(shown))[:2]))


def _by_position(kinds: dict[str, list[bytes]]) -> Compared:
    positions, shown = _opened(kinds, "shown")
    there = dict(zip(positions.tolist(), shown, strict=True))
    wanted, expected = _opened(kinds, "expected")
    wrong = {at for at, digest in zip(wanted.tolist(), expected, strict=True) if there[at] != digest}
    added = there.keys() - set(wanted.tolist())
    named, _ = _opened(kinds, "named")
    notes = Notes()
    sentence = "The trace names a record or a released row twice."
    notes.violation("trace-broken", sentence, count=len(named) - len(np.unique(named)))
    return Compared(np.array(sorted(wrong), np.int64), np.array(sorted(added), np.int64), 0, tuple(notes.findings))


def _as_multisets(kinds: dict[str, list[bytes]]) -> Compared:
    """As `check_as_multisets` of one machine: equal sets meet in one bin."""
    empty, wanted = _opened(kinds, "expected", np.bool_)
    positions, released = _opened(kinds, "shown")
    order = np.argsort(positions)
    positions, released = positions[order], [released[at] for at in order.tolist()]
    number: dict[bytes, int] = {}
    expected, shown = (
        np.array([number.setdefault(digest, len(number)) for digest in made], np.int64) for made in (wanted, released)
    )
    absent, extra = surplus(expected[~empty], shown)
    unexplained = np.flatnonzero(absent | extra)
    none, more = surplus(expected[empty], shown[unexplained])
    missing, rarer = surplus(shown, expected[~empty])
    return Compared(positions[unexplained[none | more]], positions[:0], int((missing | rarer).sum()))
