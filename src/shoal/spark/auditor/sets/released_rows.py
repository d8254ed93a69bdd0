"""Released rows on Spark: their labels, sets below k in them, and how they compare with the images of records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.auditor.findings import ROWS_NAMED, Finding, Notes, Severity
from shoal.auditor.reading.columns import Ints
from shoal.auditor.sets.blocks import Blocks, check_blocks, own_labels
from shoal.auditor.sets.certificate import sorted_records
from shoal.auditor.sets.partition import Partition, check_antichain, from_blocks, from_hierarchy, from_names
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.records import Sets
from shoal.auditor.sets.reporting import labels_sentence
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.sets.images import Compared, Order
from shoal.spark.auditor.sets.reading import Plan
from shoal.spark.auditor.sets.tallies import Chances, chances_of
from shoal.spark.auditor.shares import Share


def no_records(plan: Plan) -> Sets:
    """The labels of the release, and no record: for checks of labels."""
    return Sets(np.zeros(1, np.int64), np.zeros(0, np.int64), plan.labels)


def items_of(plan: Plan, records: Ints) -> Sets:
    """One record with all items that some record has: for checks of items."""
    used = np.flatnonzero(records)
    return Sets(np.array([0, len(used)]), used, plan.items)


def check_labels(
    promise: SetPromise, blocks: Blocks | None, items: Sequence[str], records: Ints | None, release: Sets, notes: Notes
) -> None:
    """Check labels against hierarchy and blocks; ``records`` counts the records of each item, None without a truth."""
    generalization = promise.generalization
    if generalization.hierarchy is not None:
        check_antichain(release, generalization.hierarchy, own_labels(blocks, generalization), notes)
    if blocks is not None:
        seen = None if records is None else {items[at] for at in np.flatnonzero(records).tolist()}
        check_blocks(blocks, release, generalization, seen, notes, has_all=promise.drop_rare is None)


def find_partition(
    promise: SetPromise, blocks: Blocks | None, truth: Sets, release: Sets, notes: Notes
) -> Partition | None:
    """Which label stands for which item; None if only the trace would show it."""
    generalization = promise.generalization
    if generalization.hierarchy is not None and (generalization.tree is not None or blocks is None):
        return from_hierarchy(truth, release, generalization.hierarchy, notes)
    return from_names(truth, release) if blocks is None else from_blocks(truth, release, blocks, notes)


def report_rows(found: Sequence[Compared], notes: Notes, *, has_trace: bool) -> None:
    """Report released rows that are no image of a record, and records that are not released."""
    wrong, added = (np.sort(np.concatenate([part_of(part) for part in found])) for part_of in (_wrong, _added))
    what = "its" if has_trace else "an"
    _note_rows("not-the-image", f"A released set is not the image of {what} original.", wrong, notes)
    notes.metrics["records_that_differ"] = len(wrong)
    if has_trace:
        _note_rows("record-added", "Rows were released that the trace has no record for.", added, notes)
        return
    lost = sum(part.lost for part in found)
    notes.violation("record-missing", "Records of the truth were not released.", count=max(lost - len(wrong), 0))
    notes.violation("record-added", "More records were released than the truth has.", count=max(len(wrong) - lost, 0))
    notes.metrics["records_that_differ"] = max(lost, len(wrong))


def _wrong(part: Compared) -> Ints:
    return part.wrong


def _added(part: Compared) -> Ints:
    return part.added


def _note_rows(code: str, sentence: str, rows: Ints, notes: Notes) -> None:
    if len(rows):
        named = tuple(rows[:ROWS_NAMED].tolist())
        notes.findings.append(Finding(code, Severity.VIOLATION, len(rows), sentence, named))


def report_order(found: Sequence[Order], notes: Notes) -> None:
    """Warn if rows are in the order of the truth."""
    several = len(frozenset[bytes]().union(*(part.sets for part in found))) > 1
    if several and all(part.is_same for part in found):
        notes.warning("in-input-order", "The released rows are in the order of the input; shuffle them.", count=1)


@dataclass(frozen=True, slots=True)
class SortRecords:
    """Sorts the sets of a file as bytes."""

    plan: Plan
    names: tuple[str, ...]

    def __call__(self, share: Share) -> Iterator[Message]:
        yield result(sorted_records(self.plan.released_sets(share)[1], self.names))


@dataclass(frozen=True, slots=True)
class OfRows:
    """What was found in the rows of a file."""

    findings: tuple[Finding, ...]
    chances: tuple[Chances, ...]
    below: int
    """Rows with a set below k."""


@dataclass(frozen=True, slots=True)
class FindRows:
    """Finds the rows of a file that contain a set below k, or a label that must not be there."""

    plan: Plan
    promise: SetPromise
    blocks: Blocks | None
    seen: Ints | None
    kept: Ints | None
    below: dict[int, Ints]

    def __call__(self, share: Share) -> Iterator[Message]:
        numbers, sets = self.plan.released_sets(share)
        notes, found = Notes(numbers=numbers), []
        marked = np.zeros(len(sets), np.bool_)
        for size, below in self.below.items():
            chances, hits = chances_of(sets, "released", size, below)
            found.append(chances)
            marked |= hits > 0
            if self.promise.sigma[size - 1] == 1:
                notes.violation("below-k", labels_sentence(size, self.promise), rows=hits > 0)
        check_labels(self.promise, self.blocks, self.plan.items, self.seen, sets, notes)
        if self.kept is not None:
            find_partition(self.promise, self.blocks, items_of(self.plan, self.kept), sets, notes)
        of_rows = tuple(one for one in notes.findings if one.rows)
        yield result(OfRows(of_rows, tuple(found), int(marked.sum())))
