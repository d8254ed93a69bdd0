"""Values, pseudonyms and people of events on Spark: all rows of one meet in one task."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.counting import Paths, dense, shared_codes
from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.trace import note_lost
from shoal.auditor.z.aligned import Aligned, Values
from shoal.auditor.z.clock import cannot_wait
from shoal.auditor.z.combined import is_overtaken
from shoal.auditor.z.crowds import check_exactly, note_held_back
from shoal.auditor.z.promise import Attribute
from shoal.auditor.z.pseudonyms import has_several
from shoal.auditor.z.trace import Decisions
from shoal.spark.auditor.carried_columns import judge_values
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.hashing import Hashes
from shoal.spark.auditor.packing import sorted_columns, unpacked
from shoal.spark.auditor.z.epochs import judge_epochs
from shoal.spark.auditor.z.order import judge_order
from shoal.spark.auditor.z.plan import Plan
from shoal.spark.auditor.z.sending import hashes_of
from shoal.spark.auditor.z.withheld import send_shown_values


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
    """Judges the values, the pseudonyms, the people, the order or the epochs of a bin."""

    plan: Plan

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        yield from judge_values(kinds, min(attribute.z for attribute in self.plan.promise.attributes))
        for data in kinds.get("later people", ()):
            yield Message(number, "people", data)
        if kinds.get("undecided"):
            yield result(OfPseudonyms(self._undecided(kinds["undecided"]), 0))
        for column, attribute in enumerate(self.plan.promise.attributes):
            parts = kinds.get(f"value {attribute.name}", ())
            if parts:
                yield from _judge_value(self.plan, column, attribute, sorted_columns(parts, "start", "time", "row"))
        if "pseudonyms" in kinds:
            rows = sorted_columns(kinds["pseudonyms"], "position")
            yield result(_judge_pseudonyms(rows, _identifiers(kinds)))
        yield from _find_identifiers(self.plan, kinds)
        if "people" in kinds:
            yield result(_judge_people(sorted_columns(kinds["people"], "position")))
        yield from judge_order(self.plan, kinds)
        yield from judge_epochs(self.plan, number, kinds)

    def _undecided(self, parts: Sequence[bytes]) -> list[Finding]:
        """Distinguish records still pending (or not read yet) when the trace ends from lost ones."""
        found, promise, notes = [pickle.loads(data) for data in parts], self.plan.promise, Notes()
        rows, time, usable = (np.concatenate([part[at] for part in found]) for at in range(3))
        overtaken: Bools = ~usable
        last = max((part[3] for part in found if part[3] is not None), default=None)
        by_time: Bools = np.zeros(len(rows), np.bool_)
        if last is not None and promise.k is None:
            by_time = (time < last[1]) | ((time == last[1]) & (rows < last[2]))
        elif last is not None:  # others wait for the end of their epoch
            epoch = last[1] // promise.rotation_ns
            ended = [
                one for *_, own, one in found if own and (own[0], own[1] // promise.rotation_ns) == (last[0], epoch)
            ]
            by_time = is_overtaken(rows, time // promise.rotation_ns, epoch, max(ended))
        start = -1 if last is None else last[0]
        overtaken |= cannot_wait(rows, by_time, start, self.plan.restarts, self.plan.trace.last)
        pending = note_lost(overtaken, rows, np.array([self.plan.trace.last]), notes)
        if pending and not promise.lateness_ns and promise.k is None:
            sentence = "Nothing may be pending, but the trace ends before the input does."
            notes.warning("trace-ends-early", sentence, count=pending)
        return notes.findings


def _judge_value(plan: Plan, column: int, attribute: Attribute, rows: dict[str, Any]) -> Iterator[Message]:
    """Judge records in the order in which they were, or should have been, decided."""
    texts, (known, published) = shared_codes(rows["value"], rows["shown"])
    time, position = rows["time"], rows["position"]
    is_shown = position >= 0
    positions = np.sort(position[is_shown])
    shown_at = np.where(is_shown, np.searchsorted(positions, position), -1)
    in_release = published[is_shown][np.argsort(position[is_shown])]
    notes = Notes(numbers=positions)
    values = Values(known, in_release, Paths(texts, attribute.hierarchy), texts)
    aligned = _aligned(attribute.name, values, time, dense(rows["person"]), len(positions))
    passed = {attribute.name: rows["passed"]} if "passed" in rows else None
    z = {attribute.name: rows["z"]}
    held = check_exactly(
        aligned, attribute, Decisions(np.arange(len(time)), rows["start"], shown_at, None, z, passed), notes
    )
    if plan.promise.target is None:
        note_held_back(len(held), notes)
    else:
        hashes = hashes_of(texts)
        yield from send_shown_values(plan, column, rows, hashes[known], hashes[published], held)
    yield result(OfValues(notes.findings, dict(notes.metrics["smallest_crowd"])))


def _aligned(name: str, values: Values, time: Ints, person: Ints, shown: int) -> Aligned:
    """Accepted records of some values, as if they were all."""
    zeros = np.zeros(shown, np.int64)
    return Aligned(
        time=time, usable=np.ones(len(time), np.bool_), person=person, carry=np.zeros(len(time), np.int64),
        shown_time=zeros, shown_readable=np.ones(shown, np.bool_), shown_person=zeros, shown_carry=zeros,
        persons=[], values={name: values},
    )  # fmt: skip


def _identifiers(kinds: dict[str, list[bytes]]) -> Hashes:
    """The identifiers of the truth whose texts belong to a bin."""
    parts = [unpacked(data).column("hash").to_numpy() for data in kinds.get("identifiers", ())]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _find_identifiers(plan: Plan, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
    """Send rows with an identifier outside the person column to the last step: another bin may know them too."""
    known = _identifiers(kinds)
    for batch in map(unpacked, kinds.get("texts", ())):
        found = batch.column("position").to_numpy()[np.isin(batch.column("hash").to_numpy(), known)]
        for at in np.unique(found % plan.bins).tolist():
            yield Message(at, "rows with identifiers", pickle.dumps(found[found % plan.bins == at]))


def _judge_pseudonyms(rows: dict[str, Any], identifiers: Hashes) -> OfPseudonyms:
    notes = Notes(numbers=rows["position"])
    raw = np.isin(rows["pseudonym"], identifiers)
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
