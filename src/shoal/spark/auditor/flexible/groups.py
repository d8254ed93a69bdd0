"""Groups on Spark: all rows with the same normal quasi-identifiers meet in one task, and so do their subgroups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import dense, people_of, shared_codes
from shoal.auditor.findings import Finding, Notes
from shoal.auditor.flexible.groups import Groups, check_groups, read_groups
from shoal.auditor.reading.columns import TEXT
from shoal.auditor.tuples.classes import check_shares
from shoal.auditor.tuples.clusters import check_one_vector
from shoal.spark.auditor.carried_columns import judge_values
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import NO_ROWS
from shoal.spark.auditor.flexible.facts import Plan
from shoal.spark.auditor.join_trace import released_rows
from shoal.spark.auditor.packing import unpacked
from shoal.spark.auditor.people import mark_of, to_people
from shoal.spark.auditor.tuples.classes import in_order, leaked_identifiers


@dataclass(frozen=True, slots=True)
class OfGroups:
    """What was found in the groups of a bin."""

    findings: list[Finding]
    normal: Counter[int]
    """How many groups have each number of people."""
    every: Counter[int]
    rows: int
    below: tuple[int, int]
    """Rows of groups with too few people: by the normal columns, and by all."""
    largest: float
    owned: tuple[int, int]
    """Classes mostly of one person, and their rows."""


@dataclass(frozen=True, slots=True)
class OfOthers:
    """What was found in the groups of the trace, or about pending records."""

    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class JudgeGroups:
    """Judges the groups of a bin, the groups of the trace, unchanged values, or pending records."""

    plan: Plan

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        yield from leaked_identifiers(kinds, self.plan.bins)
        yield from judge_values(kinds, self.plan.promise.k)
        if "pending" in kinds:
            yield self._pending([unpacked(data) for data in kinds["pending"]])
        parts = [unpacked(data) for data in kinds.get("rows", ())]
        if parts:
            yield from self._groups(in_order(parts)) if number < self.plan.bins else self._traced(in_order(parts))

    def _traced(self, batches: Sequence[pa.RecordBatch]) -> Iterator[Message]:
        """Check that rows of one group of the trace are alike."""
        notes = Notes(numbers=_numbers(batches, "position"))
        check_one_vector(self.plan.attributes(released_rows(batches), NO_ROWS), _numbers(batches, "group"), notes)
        yield result(OfOthers(notes.findings))

    def _groups(self, batches: Sequence[pa.RecordBatch]) -> Iterator[Message]:
        plan, release = self.plan, released_rows(batches)
        persons, (person,) = shared_codes(pa.chunked_array([batch.column("\1person") for batch in batches], TEXT))
        notes, attributes = Notes(numbers=_numbers(batches, "position")), plan.attributes(release, NO_ROWS)
        judged, sparse = ~release.broken, plan.calibration.sparse
        known = [attribute for attribute in attributes if attribute.name not in sparse]
        normal = read_groups(known, judged, person, _numbers(batches, "k"))
        # As on one machine: a group needs the largest k of its rows, and all its labels need the K_s of that.
        every = read_groups(attributes, judged, person, normal.needed_by_row())
        every = Groups(every.classes, plan.calibration.k_s(every.needed))
        check_groups(normal, every, notes)
        check_shares(every.classes, person, None, notes, can_cap=False)
        owned = notes.metrics["classes_mostly_of_one_person"]
        yield result(
            OfGroups(
                notes.findings, _sizes(normal), _sizes(every), int(judged.sum()),
                (int(normal.small().sum()), int(every.small().sum())),
                notes.metrics["largest_share_of_one_person"] or 0.0, (owned["classes"], owned["rows"]),
            )
        )  # fmt: skip
        exposed = set(person[normal.small()].tolist())
        people = np.unique(person[person >= 0]).tolist()
        yield from to_people([(mark_of(persons[at]), at in exposed) for at in people], plan.bins)

    @staticmethod
    def _pending(parts: Sequence[pa.RecordBatch]) -> Message:
        """Count pending records with the values of which K people have pending records."""
        alike, person, k = (
            np.concatenate([part.column(name).to_numpy() for part in parts]) for name in ("alike", "person", "k")
        )
        group = dense(alike.view(np.int64))
        people = people_of(group, dense(person.view(np.int64)))
        needed = np.zeros(len(people), np.int64)
        np.maximum.at(needed, group, k)
        notes = Notes()
        notes.warning(
            "held-back",
            "A record is pending although K people with pending records have the same values.",
            count=int((people >= needed)[group].sum()),
        )
        return result(OfOthers(notes.findings))


def _sizes(groups: Groups) -> Counter[int]:
    return Counter(groups.classes.people.tolist())


def _numbers(batches: Sequence[pa.RecordBatch], name: str) -> Any:
    return np.concatenate([batch.column(f"\0{name}").to_numpy() for batch in batches])
