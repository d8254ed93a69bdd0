"""Link a record to its row by time: when it arrived and when rows were published; and rows of one person over time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.auditor.attacks.classes import RowEvidence, fitting
from shoal.auditor.attacks.outcome import NEEDS_TRACE, Attack, Question, Rate
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Labels, Spans


def attack_arrivals(evidence: RowEvidence) -> list[Attack]:
    """Try the attackers who know when the target's record arrived, and those who compare two halves of the release."""
    return [_arrival(evidence, knows_values=False), _arrival(evidence, knows_values=True), _two_windows(evidence)]


def _arrival(evidence: RowEvidence, *, knows_values: bool) -> Attack:
    also = " and the person's true quasi-identifiers" if knows_values else ""
    attack = Attack(
        "arrival and values" if knows_values else "arrival", Question.LINKING,
        "The row picked among those published when the record was due is the person's.",
        f"when the record arrived, and watches when rows are published{also}",
    )  # fmt: skip
    deadline = getattr(evidence.promise, "deadline", None)
    if deadline is None:
        return attack.not_applicable("the method has no deadline")
    if evidence.event is None or evidence.record_of is None:
        return attack.not_applicable("it needs the trace with its events")
    if not (np.diff(evidence.event) >= 0).all():
        return attack.not_applicable("rows are not in the order of their events")
    due, latest = _due(evidence, deadline)
    found = np.zeros(len(evidence.members.targets))
    person = np.append(evidence.members.person, -1)[evidence.record_of]
    targets, blind = evidence.members.targets, np.zeros(len(evidence.members.targets))
    for place, target in enumerate(targets.tolist()):
        begin = np.searchsorted(evidence.event, target)
        end = np.searchsorted(evidence.event, latest[place], side="right")
        last = np.searchsorted(evidence.event, due[place])
        rows = np.arange(last if last < end else begin, end)  # rows published when it was due include it, if any are
        blind[place] = 1 / max(end - begin, 1)
        if knows_values and len(rows):
            classes, turn = np.unique(evidence.released.of_row[rows], return_inverse=True)
            fits = fitting(evidence.members, np.array([target]), evidence.released.first[classes])[0]
            rows = rows[fits[turn]]
            if len(rows):
                volume = evidence.released.volume[evidence.released.of_row[rows]]
                rows = rows[volume <= volume.min() + 1e-9]
        found[place] = (person[rows] == evidence.members.person[target]).sum() / max(len(rows), 1)
    return replace(attack, success=Rate.of(found), guess=float(blind.mean()) if len(blind) else None, raw=1.0)


def _due(evidence: RowEvidence, deadline: int) -> tuple[Ints, Ints]:
    """Return from which event to which each target's row may be due: events are numbers of arrivals."""
    targets, records = evidence.members.targets, evidence.members.records
    if not evidence.promise.is_timed or records.time is None:
        return targets + deadline, targets + deadline
    clock = np.maximum.accumulate(np.where(records.usable, records.time, np.iinfo(np.int64).min))
    moment = clock[targets] + deadline
    due = np.searchsorted(clock, moment)  # the first arrival that lets the deadline pass
    return due, np.minimum(np.searchsorted(clock, moment, side="right"), len(clock) - 1)


def _two_windows(evidence: RowEvidence) -> Attack:
    attack = Attack(
        "two windows", Question.LINKING,
        "The row of the second half of the release that overlaps a person's row of the first half most is theirs.",
        "which row of the first half is the person's",
    )  # fmt: skip
    if evidence.record_of is None:
        return attack.not_applicable(NEEDS_TRACE)
    person = np.append(evidence.members.person, -1)[evidence.record_of]
    half = len(person) // 2
    both = np.intersect1d(person[:half], person[half:])
    both = evidence.random.permutation(both[both >= 0])[: min(len(evidence.members.targets), 300)]
    if not len(both):
        return attack.not_applicable("no person has rows in both halves")
    classes, turn = np.unique(evidence.released.of_row[half:], return_inverse=True)
    second, rows = person[half:], np.bincount(turn)
    found, blind, raw = np.zeros(len(both)), np.zeros(len(both)), np.zeros(len(both))
    values = _values(evidence)
    for place, one in enumerate(both.tolist()):
        mine = int(np.flatnonzero(person[:half] == one)[0])
        score = _overlap(evidence, evidence.released.of_row[mine], classes)
        best = score >= score.max() - 1e-9
        own = np.bincount(turn[second == one], minlength=len(classes))
        found[place] = own[best].sum() / rows[best].sum()
        blind[place] = (second == one).mean()
        near = np.abs(values[evidence.record_of[half:]] - values[evidence.record_of[mine]]).sum(axis=1)
        closest = near <= near.min() + 1e-12
        raw[place] = (second[closest] == one).mean()
    return replace(attack, success=Rate.of(found), guess=float(blind.mean()), raw=float(raw.mean()))


def _overlap(evidence: RowEvidence, mine: int, classes: Ints) -> Floats:
    """Return how well classes match one: for ranges the shared part of both, for labels equality and breadth."""
    score = np.zeros(len(classes))
    first = evidence.released.first
    for attribute in evidence.members.attributes:
        one, others = first[mine], first[classes]
        if isinstance(attribute, Spans):
            shared = np.minimum(attribute.high[one], attribute.high[others]) - np.maximum(
                attribute.low[one], attribute.low[others]
            )
            whole = np.maximum(attribute.high[one], attribute.high[others]) - np.minimum(
                attribute.low[one], attribute.low[others]
            )
            part = np.where(whole > 0, np.maximum(shared, 0) / np.where(whole > 0, whole, 1), 1.0)
            score += np.nan_to_num(part, nan=0.0)
        else:
            score += (attribute.code[others] == attribute.code[one]) * (1 - attribute.loss[one] + 1e-3)
    return score


def _values(evidence: RowEvidence) -> Floats:
    """The true values as numbers from 0 to 1; labels are numbered, and any two are as far apart as two numbers are."""
    columns = []
    for attribute in evidence.members.attributes:
        if isinstance(attribute, Spans):
            value = np.nan_to_num(attribute.true_value, nan=0.0)
            columns.append((value - value.min(initial=0)) / (np.ptp(value) or 1.0) if len(value) else value)
        else:
            assert isinstance(attribute, Labels)
            columns.append(attribute.true_code.astype(np.float64) * 10)
    return np.stack(columns, axis=1)
