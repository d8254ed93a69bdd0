"""Local recoding, the naive way: sets of labels counted in dictionaries, records taken out one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations

Record = dict[int, int]
"""What every item (leaf) of a record is published as."""
MOST_COMPLETED = 16


class NaiveLocalRecoding:
    """The same steps as the kernels, without hashes or arrays."""

    def __init__(
        self, records: Sequence[Record], lift: Sequence[int], leaf_counts: Sequence[int], least: Sequence[int]
    ) -> None:
        self.records = [dict(record) for record in records]
        self.lift, self.leaf_counts, self.least = lift, leaf_counts, least

    def refine(self) -> None:
        while self._refine_all():
            pass

    def _refine_all(self) -> int:
        turns = {label: self._turn(label) for label in self._labels() if self.leaf_counts[label] > 1}
        waiting, moved = list(turns.values()), 0
        while waiting:
            turn = min(waiting)
            waiting.remove(turn)
            new = self._refine_label(turn[-1])
            moved += len(new)
            waiting += [self._turn(label) for label in sorted(new) if self.leaf_counts[label] > 1]
        return moved

    def _labels(self) -> set[int]:
        return {label for record in self.records for label in record.values()}

    def _holders(self, label: int) -> list[int]:
        return [number for number, record in enumerate(self.records) if label in record.values()]

    def _turn(self, label: int) -> tuple[int, int, int]:
        return -self.leaf_counts[label], -len(self._holders(label)), label

    def _refined(self, record: Record, label: int) -> Record:
        return {item: self._below(item, label) if node == label else node for item, node in record.items()}

    def _below(self, item: int, label: int) -> int:
        while self.lift[item] != label:
            item = self.lift[item]
        return item

    def _sets(self, labels: Iterable[int], having: set[int]) -> list[frozenset[int]]:
        own = sorted(set(labels))
        sizes = range(1, len(self.least))
        return [frozenset(some) for size in sizes for some in combinations(own, size) if having & set(some)]

    def _refine_label(self, label: int) -> set[int]:
        refined = self._holders(label)
        after = {number: self._refined(self.records[number], label) for number in refined}
        new = {
            number: self._sets(after[number].values(), set(after[number].values()) - set(self.records[number].values()))
            for number in refined
        }
        old = {number: self._sets(self.records[number].values(), {label}) for number in refined}
        counts = Counter(one for number in refined for one in new[number])
        left: Counter[frozenset[int]] = Counter()

        def take(number: int) -> None:
            refined.remove(number)
            counts.subtract(new[number])
            left.update(old[number])

        def take_all(wanted: int) -> int:
            taken, before = 0, -1
            while taken != before:
                before = taken
                for number in list(refined):
                    if wanted:
                        is_bad = sum(0 < left[one] < self.least[len(one)] for one in old[number]) >= wanted
                    else:
                        is_bad = any(counts[one] < self.least[len(one)] for one in new[number])
                    if is_bad:
                        take(number)
                        taken += 1
            return taken

        wanted = MOST_COMPLETED
        while refined and wanted:
            take_all(0)
            taken = take_all(wanted)
            wanted = MOST_COMPLETED if taken and wanted == 1 else wanted >> 1
        found = {
            after[number][item] for number in refined for item, node in self.records[number].items() if node == label
        }
        for number in refined:
            self.records[number] = after[number]
        return found


def matching(published: Sequence[frozenset[int]], labels: Iterable[int]) -> int:
    """The number of published records that have all these labels."""
    wanted = set(labels)
    return sum(wanted <= record for record in published)
