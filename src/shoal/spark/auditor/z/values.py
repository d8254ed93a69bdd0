"""Values, pseudonyms and people of events on Spark: all rows of one meet in one task."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import Paths, dense, shared_codes
from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.trace import note_lost
from shoal.auditor.z.aligned import Aligned, Values
from shoal.auditor.z.crowds import check_exactly, note_held_back
from shoal.auditor.z.promise import Attribute
from shoal.auditor.z.pseudonyms import has_several
from shoal.auditor.z.trace import Decisions
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.packing import unpacked
from shoal.spark.auditor.unchanged import judge_values
from shoal.spark.auditor.z.records import Plan


@dataclass(frozen=True, slots=True)
class OfValues:
    """What was found about the values of a bin."""

    findings: list[Finding]
    smallest: dict[str, int | None]


@dataclass(frozen=True, slots=True)
class OfPseudonyms:
    """What was found about the pseudonyms of a bin, or about its people."""

    findings: list[Finding]
    count: int


@dataclass(frozen=True, slots=True)
class JudgeValues:
    """Judges the values, the pseudonyms or the people of a bin."""

    plan: Plan

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        yield from judge_values(kinds, min(attribute.z for attribute in self.plan.promise.attributes))
        for data in kinds.get("later", ()):
            yield Message(number, "people", data)
        if kinds.get("undecided"):
            yield result(OfPseudonyms(self._undecided(kinds["undecided"]), 0))
        for attribute in self.plan.promise.attributes:
            parts = kinds.get(f"value {attribute.name}", ())
            if parts:
                yield result(_judge_value(attribute, _table(parts, "entry")))
        if "pseudonyms" in kinds:
            yield result(_judge_pseudonyms(_table(kinds["pseudonyms"], "position"), kinds.get("identifiers", ())))
        if "people" in kinds and number >= 2 * self.plan.bins:
            yield result(_judge_people(_table(kinds["people"], "position")))

    def _undecided(self, parts: Sequence[bytes]) -> list[Finding]:
        """Distinguish records still pending (or not read yet) when the trace ends from lost ones."""
        found = [pickle.loads(data) for data in parts]
        rows, time, usable = (np.concatenate([part[at] for part in found]) for at in range(3))
        overtaken: Bools = ~usable
        last = max((part[3] for part in found if part[3] is not None), default=None)
        if last is not None:
            overtaken |= (time < last[1]) | ((time == last[1]) & (rows < last[2]))
        notes = Notes()
        pending = note_lost(overtaken, rows, np.array([self.plan.trace.last]), notes)
        if pending and not self.plan.promise.lateness_ns:
            sentence = "Nothing may be pending, but the trace ends before the input does."
            notes.warning("trace-ends-early", sentence, count=pending)
        return notes.findings


def _table(parts: Sequence[bytes], by: str) -> dict[str, Any]:
    """The columns of several parts, sorted by one of them."""
    table = pa.Table.from_batches([unpacked(data) for data in parts]).sort_by(by)
    return {
        name: table[name] if pa.types.is_large_string(table[name].type) else table[name].to_numpy()
        for name in table.column_names
    }


def _judge_value(attribute: Attribute, rows: dict[str, Any]) -> OfValues:
    texts, (known, published) = shared_codes(rows["value"], rows["shown"])
    notes, start, time = Notes(), rows["start"], rows["time"]
    order = np.lexsort((np.arange(len(time)), time, start))
    if not attribute.generalizes:  # the order of different values is of no matter for their crowds
        by_value = np.argsort(known, kind="stable")
        same = (known[by_value][1:] == known[by_value][:-1]) & (start[by_value][1:] == start[by_value][:-1])
        back = int((same & (np.diff(time[by_value]) < 0)).sum())
        sentence = "Records were not decided in the order of time (equal times in order of arrival)."
        notes.violation("decision-order", sentence, count=back)
    else:
        back = int((np.diff(time)[np.diff(start) == 0] < 0).any())
    if back:
        rows = {name: _picked(column, order) for name, column in rows.items()}
        known, published, start, time = known[order], published[order], rows["start"], rows["time"]
    is_shown = rows["position"] >= 0
    shown_at = np.where(is_shown, np.cumsum(is_shown) - 1, -1)
    notes.numbers = rows["position"][is_shown]
    values = Values(known, published[is_shown], Paths(texts, attribute.hierarchy), texts)
    aligned = _aligned(attribute.name, values, time, dense(rows["person"]), int(is_shown.sum()))
    decisions = Decisions(np.arange(len(time)), start, shown_at, None, {attribute.name: rows["z"]})
    note_held_back(len(check_exactly(aligned, attribute, decisions, notes)), notes)
    findings = [_in_order(finding) for finding in notes.findings]
    return OfValues(findings, dict(notes.metrics["smallest_crowd"]))


def _in_order(finding: Finding) -> Finding:
    return Finding(finding.code, finding.severity, finding.count, finding.sentence, tuple(sorted(finding.rows)))


def _picked(column: Any, order: Ints) -> Any:
    return column[order] if isinstance(column, np.ndarray) else column.take(pa.array(order))


def _aligned(name: str, values: Values, time: Ints, person: Ints, shown: int) -> Aligned:
    """Accepted records of some values, as if they were all."""
    zeros = np.zeros(shown, np.int64)
    return Aligned(
        time=time, usable=np.ones(len(time), np.bool_), person=person, carry=np.zeros(len(time), np.int64),
        shown_time=zeros, shown_readable=np.ones(shown, np.bool_), shown_person=zeros, shown_carry=zeros,
        persons=[], values={name: values},
    )  # fmt: skip


def _judge_pseudonyms(rows: dict[str, Any], identifiers: Sequence[bytes]) -> OfPseudonyms:
    notes = Notes(numbers=rows["position"])
    known = [unpacked(data).column("hash").to_numpy() for data in identifiers]
    raw = np.isin(rows["pseudonym"], np.concatenate(known)) if known else np.zeros(len(rows["position"]), np.bool_)
    notes.violation("raw-identifier", "A released row contains an identifier of the truth.", rows=raw)
    pseudonym = dense(rows["pseudonym"])
    notes.violation(
        "pseudonym-across-epochs",
        "A pseudonym appears in more than one epoch, so that rows of different epochs can be linked.",
        rows=has_several(pseudonym, rows["epoch"], rows["readable"]),
    )
    notes.violation(
        "pseudonym-shared",
        "Two persons share one pseudonym in one epoch.",
        rows=has_several(dense(pseudonym, rows["epoch"]), dense(rows["person"]), rows["known"]),
    )
    return OfPseudonyms(notes.findings, int(pseudonym.max(initial=-1)) + 1)


def _judge_people(rows: dict[str, Any]) -> OfPseudonyms:
    notes = Notes(numbers=rows["position"])
    notes.violation(
        "pseudonym-split",
        "One person has two pseudonyms in one epoch.",
        rows=has_several(dense(rows["person"], rows["epoch"]), dense(rows["pseudonym"]), rows["known"]),
    )
    return OfPseudonyms(notes.findings, 0)
