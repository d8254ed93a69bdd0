"""K-VARP: tuples that carry the same attributes first, else the most similar partitions with them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.reference.tuples import Held, TupleTwin, distance, people

Partition = list[Held]


@dataclass
class KVarpTwin(TupleTwin):
    """The order of merging is worked out once, against the expiring tuple.

    R-likeness and size count tuples, not people. If diversity cannot be reached within the partition (or the union)
    no further partition is added: there is no new cluster.
    """

    missing: str = "covered"
    likeness: float = 0.2

    def candidates(self, first: Held) -> list[Held] | None:
        partitions = self.partitions()
        union = partitions.pop(first.carried)
        if len(people(union)) >= self.k:
            return union
        if len(people(self.held.values())) < self.k:
            return None
        for other in sorted(partitions.values(), key=lambda partition: self.rank(first, partition)):
            if len(people(union)) < self.k:
                union = union + other
        return union

    def partitions(self) -> dict[frozenset[int], Partition]:
        """Held tuples by the attributes they carry, oldest first."""
        made: dict[frozenset[int], Partition] = {}
        for one in self.held.values():
            made.setdefault(one.carried, []).append(one)
        return made

    def rank(self, first: Held, partition: Partition) -> tuple[float, ...]:
        """Least is merged first."""
        alike = sum(distance(self.attributes, first, one) <= self.likeness for one in partition)
        return -jaccard(first, partition), -alike, -len(partition), partition[0].number


def jaccard(first: Held, partition: Partition) -> float:
    ours, theirs = first.carried, partition[0].carried
    return len(ours & theirs) / len(ours | theirs)
