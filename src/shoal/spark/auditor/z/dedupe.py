"""The last step: people, rows with identifiers and withheld values, of which several tasks know a part."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.z.pseudonyms import note_identifiers
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.people import count_people
from shoal.spark.auditor.z.plan import Plan
from shoal.spark.auditor.z.withheld import judge_withheld


@dataclass(frozen=True, slots=True)
class OfRows:
    """What was found about some released rows."""

    findings: list[Finding]


@dataclass(frozen=True, slots=True)
class JudgeLast:
    """Judges the people, the rows with identifiers and the withheld values of a bin."""

    plan: Plan

    def __call__(self, number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        yield from count_people(number, kinds)
        if kinds.get("rows with identifiers"):
            yield result(OfRows(_judge_rows(kinds["rows with identifiers"])))
        if kinds.get("withheld"):
            yield result(judge_withheld(self.plan.promise, kinds["withheld"]))


def _judge_rows(parts: Sequence[bytes]) -> list[Finding]:
    """Report rows with an identifier, each once, however many of its columns have one."""
    positions = np.unique(np.concatenate([pickle.loads(data) for data in parts]))
    notes = Notes(numbers=positions)
    note_identifiers(np.ones(len(positions), np.bool_), notes)
    return notes.findings
