"""Classes and clusters on Spark: all rows of one meet in one task, which judges them as one machine does."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Finding, Notes, Severity
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import Attribute
from shoal.auditor.trace import RELEASED
from shoal.auditor.tuples.classes import Classes, check_classes, check_shares, read_classes, share_sentence
from shoal.auditor.tuples.clusters import Link, check_clusters, check_one_vector, compare_carriers, read_clusters
from shoal.auditor.tuples.deadlines import Timeline, check_reuse
from shoal.auditor.tuples.diversity.diversity import check_diversity, measure_diversity, read_growth
from shoal.auditor.tuples.diversity.sensitive import SensitiveFacts, read_sensitive
from shoal.auditor.tuples.events import FirstRows, check_together, first_rows
from shoal.auditor.tuples.history import check_history
from shoal.auditor.tuples.trace import Decisions
from shoal.spark.auditor.carried_columns import judge_values
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.facts import NO_ROWS
from shoal.spark.auditor.join_trace import released_rows
from shoal.spark.auditor.packing import unpacked
from shoal.spark.auditor.people import count_people, mark_of, to_people
from shoal.spark.auditor.tuples.sending import Plan

_WORST: Final = ("l", "entropy_l", "t")
LEAKED: Final = "A released row contains an identifier of the truth."


@dataclass(frozen=True, slots=True)
class OfClasses:
    """What was found in the classes of a bin."""

    findings: list[Finding]
    metrics: Mapping[str, Any]
    classes: int
    rows: int
    below: int
    smallest: int | None
    unique: int
    nulls: Counter[int]
    """How many rows have each pattern of nulls."""


@dataclass(frozen=True, slots=True)
class OfClusters:
    """What was found in the clusters of a bin."""

    findings: list[Finding]
    worst: Mapping[str, Any]
    clusters: int
    grouped: int
    reused: int
    first_rows: FirstRows


@dataclass(frozen=True, slots=True)
class JudgeClasses:
    """Judges the classes of a bin, or the clusters of one."""

    plan: Plan
    sensitive: Mapping[str, SensitiveFacts]

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        yield from leaked_identifiers(kinds, self.plan.classes)
        yield from judge_values(kinds, self.plan.promise.k)
        parts = kinds.get("rows", ())
        if not parts:
            return
        rows = _Rows.of([unpacked(data) for data in parts], self.plan)
        yield from self._classes(rows) if number < self.plan.classes else self._clusters(rows)

    def _classes(self, rows: _Rows) -> Iterator[Message]:
        promise, notes = self.plan.promise, Notes(numbers=rows.position)
        judged = np.ones(len(rows.position), np.bool_)
        classes = read_classes(rows.attributes, judged, rows.person)
        check_classes(classes, promise, notes)
        check_shares(classes, rows.person, promise.max_share, notes)
        yield from self._diversity(rows, classes, None, notes)
        timeline = None if promise.is_timed else rows.timeline
        check_history(rows.decisions, timeline, rows.link, rows.person, classes, promise, notes)
        small = classes.people < promise.k
        below = classes.marked(small)
        bits = sum(
            ((one.code < 0).astype(np.int64) << at for at, one in enumerate(rows.attributes)), np.zeros(1, np.int64)
        )
        yield result(
            OfClasses(
                notes.findings, notes.metrics, len(classes.rows), len(judged), int(below.sum()),
                int(classes.people.min()), int((classes.rows == 1).sum()), Counter(bits.tolist()),
            )
        )  # fmt: skip
        exposed = set(rows.person[below].tolist())
        people = np.unique(rows.person[rows.person >= 0]).tolist()
        yield from to_people([(mark_of(rows.persons[at]), at in exposed) for at in people], self.plan.classes)

    def _clusters(self, rows: _Rows) -> Iterator[Message]:
        promise, notes = self.plan.promise, Notes(numbers=rows.position)
        check_one_vector(rows.attributes, rows.link.group, notes, record_nulls=promise.keeps_record_nulls)
        clusters = read_clusters(rows.attributes, rows.link, rows.person, with_carriers=True)
        check_clusters(clusters, rows.link, promise, notes)
        if rows.carriers is not None:
            compare_carriers(rows.carriers, clusters, notes)
        check_together(rows.decisions, notes, rows.displaced)
        if self.plan.has_events:  # else rows of one event, which are in a secret order, would seem to come one by one
            check_reuse(rows.decisions, None if promise.is_timed else rows.timeline, promise, notes)
        number = np.where(rows.release.broken, -1, clusters.number)
        count = len(clusters.people)
        size = np.bincount(number[number >= 0], minlength=count)
        if self.plan.has_events:
            grown = read_growth(clusters.number, rows.link.formed, rows.decisions.event, count)
            yield from self._diversity(rows, Classes(number, size, size, are_people=False), grown, notes)
        grouped = clusters.number >= 0
        yield result(
            OfClusters(
                notes.findings, {name: notes.metrics[name] for name in _WORST if name in notes.metrics},
                int((clusters.people > 0).sum()), int(grouped.sum()), int((grouped & ~rows.link.formed).sum()),
                first_rows(rows.decisions),
            )
        )  # fmt: skip

    def _diversity(self, rows: _Rows, classes: Classes, grown: Any, notes: Notes) -> Iterator[Message]:
        promise = self.plan.promise
        if not promise.sensitive:
            return
        sensitive = read_sensitive(promise, rows.release, NO_ROWS, None, self.sensitive)
        overall = {name: facts.shown for name, facts in self.sensitive.items()}
        measure_diversity(sensitive, classes, None, notes, overall)
        marks = _Marks()
        of_classes = classes if grown is None else replace(classes, of_row=np.full(len(classes.of_row), -1))
        check_diversity(sensitive, of_classes, grown, None, promise, marks)
        for code, sentence, marked in marks.found:
            yield from _marked(code, sentence, rows.position[marked], self.plan.classes)
        for sentence in marks.not_checked:
            notes.skip(sentence)


@dataclass(slots=True)
class _Marks(Notes):
    """Keeps which rows break a promise: a row may break it in its class and in its cluster, and counts once."""

    found: list[tuple[str, str, Bools]] = field(default_factory=list)

    def violation(
        self, code: str, sentence: str, *, rows: npt.NDArray[np.bool_] | None = None, count: int | None = None
    ) -> None:
        """Keep the rows."""
        if rows is not None and rows.any():
            self.found.append((code, sentence, rows))


def leaked_identifiers(kinds: dict[str, list[bytes]], bins: int) -> Iterator[Message]:
    """Compare texts that must not be released with identifiers, which meet here; send rows that have one on."""
    known = [pickle.loads(data) for data in kinds.get("identifiers", ())]
    for data in kinds.get("suspects", ()):
        hashes, positions = pickle.loads(data)
        found = positions[np.isin(hashes, np.concatenate(known))] if known else positions[:0]
        yield from _marked("raw-identifier", LEAKED, found, bins)


def _marked(code: str, sentence: str, positions: Ints, bins: int) -> Iterator[Message]:
    """Send rows to where they are counted once."""
    of = positions % bins
    for number in np.unique(of).tolist():
        yield Message(int(number), "marks", pickle.dumps((code, sentence, positions[of == number])))


def count_once(number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
    """Count people and marked rows of a bin."""
    yield from count_people(number, kinds)
    yield from count_marks(kinds)


def with_share(finding: Finding, largest: float, *, can_cap: bool = True) -> Finding:
    """A finding about the share of one person, with the largest share of all bins."""
    is_share = finding.code == "one-person-share"
    return replace(finding, sentence=share_sentence(largest, can_cap=can_cap)) if is_share else finding


def count_marks(kinds: dict[str, list[bytes]]) -> Iterator[Message]:
    """Count every marked row once."""
    found: dict[tuple[str, str], list[Ints]] = {}
    for data in kinds.get("marks", ()):
        code, sentence, positions = pickle.loads(data)
        found.setdefault((code, sentence), []).append(positions)
    for (code, sentence), parts in found.items():
        rows = np.unique(np.concatenate(parts))
        yield result(Finding(code, Severity.VIOLATION, len(rows), sentence, tuple(rows[:10].tolist())))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Released rows of a bin, with what is known of each."""

    release: Rows
    attributes: tuple[Attribute, ...]
    position: Ints
    person: Ints
    """Numbers from 0; -1 for none."""
    persons: list[str]
    link: Link
    decisions: Decisions
    timeline: Timeline
    displaced: Bools
    carriers: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch], plan: Plan) -> _Rows:
        """Open rows."""
        batches = in_order(batches)
        numbers = {
            name[1:]: np.concatenate([batch.column(name).to_numpy() for batch in batches])
            for name in batches[0].schema.names
            if name.startswith("\0") and name != "\0broken"
        }
        release = released_rows(batches)
        attributes = tuple(
            replace(attribute, carried=numbers[f"carried{at}"] > 0)
            for at, attribute in enumerate(plan.attributes(release, NO_ROWS))
        )
        persons, (person,) = shared_codes(pa.chunked_array([batch.column("\1person") for batch in batches], TEXT))
        count = len(person)
        every = np.ones(count, np.bool_)
        link = Link(
            row=np.arange(count), group=numbers["group"], is_root=~every, formed=numbers["formed"] > 0, known=every
        )
        decisions = Decisions(
            row=numbers["row"], verdict=np.full(count, RELEASED), exists=every, first=numbers["first"] > 0,
            is_shown=every, is_linked=True, group=numbers["group"], delay=numbers["delay"],
            reused=numbers["reused"] > 0, event=numbers["event"] if plan.has_events else None,
        )  # fmt: skip
        decided = numbers["decided"]
        timeline = Timeline(decided, decided, decided, decided, decided, is_clear=True)
        carriers = None
        if "\1carriers" in batches[0].schema.names:
            flat = [batch.column("\1carriers").flatten().to_numpy(zero_copy_only=False) for batch in batches]
            carriers = np.concatenate(flat).reshape(count, -1)
        return cls(
            release, attributes, numbers["position"], person, persons, link, decisions, timeline,
            numbers["displaced"] > 0, carriers,
        )  # fmt: skip


def in_order(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Released rows in release order: batches are cut where their rows do not follow one another."""
    batches = sorted(batches, key=lambda part: part.column("\0position")[0].as_py())
    positions = np.concatenate([batch.column("\0position").to_numpy() for batch in batches])
    if (np.diff(positions) > 0).all():
        return batches
    schemas = {batch.schema.serialize().to_pybytes(): batch.schema for batch in batches}
    if len(schemas) == 1:
        table = pa.Table.from_batches(batches).sort_by("\0position").combine_chunks()
        found: list[pa.RecordBatch] = table.to_batches()
        return found
    single = [batch.slice(at, 1) for batch in batches for at in range(batch.num_rows)]
    return sorted(single, key=lambda part: part.column("\0position")[0].as_py())
