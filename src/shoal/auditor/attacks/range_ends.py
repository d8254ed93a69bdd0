"""Use the ends of ranges: each may be one person's exact value, and a predicate with it may single the person out."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.classes import People, RowEvidence, chunks, equal_records, fitting_one
from shoal.auditor.attacks.outcome import NEEDS_TRACE, Attack, Question, Rate
from shoal.auditor.counting import people_of
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Spans

_PREDICATES: Final = 400


def attack_range_ends(evidence: RowEvidence) -> list[Attack]:
    """Try the attackers who use the ends of ranges."""
    return [_predicates(evidence), *_range_ends(evidence)]


def _range_ends(evidence: RowEvidence) -> list[Attack]:
    """Learn a value from an end of the range: if it is of this person alone, and if others may have it, too."""
    knows = "which row is the person's"
    alone = Attack(
        "range end", Question.INFERENCE,
        "An end of a range of the person's row is the exact value of this person and of no other of the class.", knows,
    )  # fmt: skip
    shared = Attack(
        "range end, also shared", Question.INFERENCE,
        "An end of a range of the person's row is the exact value of this person, and perhaps of others.", knows,
    )  # fmt: skip
    spans = [attribute for attribute in evidence.members.attributes if isinstance(attribute, Spans)]
    if not spans or evidence.class_of is None:
        why = NEEDS_TRACE if spans else "no quasi-identifier is published as a range"
        return [attack.not_applicable(why) for attack in (alone, shared)]
    own = evidence.class_of[evidence.members.targets]
    return [
        _at_ends(evidence, spans, own, alone, is_alone=True),
        _at_ends(evidence, spans, own, shared, is_alone=False),
    ]


def _at_ends(evidence: RowEvidence, spans: list[Spans], own: Ints, attack: Attack, *, is_alone: bool) -> Attack:
    people, rows = evidence.members, evidence.released.first[own]
    hit, misses = np.zeros(len(own), np.bool_), np.ones(len(own))
    for span in spans:
        is_range = (span.low[rows] < span.high[rows]) & ~span.at_root[rows]
        for ends in (span.low, span.high):
            is_sharp = is_range & _of_one_person(evidence, span, ends)[own] if is_alone else is_range
            hit |= is_sharp & (span.true_value[people.targets] == ends[rows])
            misses *= 1 - np.where(is_sharp, _share_at(span, people.records.usable, rows, ends[rows]), 0)
    return replace(attack, success=Rate.of(hit), guess=float(np.mean(1 - misses)) if len(own) else None, raw=1.0)


def _of_one_person(evidence: RowEvidence, span: Spans, ends: Floats) -> Bools:
    """Return in which classes a single person has the value at the range's end."""
    assert evidence.record_of is not None
    shown = np.flatnonzero(evidence.record_of >= 0)
    classes, record = evidence.released.of_row[shown], evidence.record_of[shown]
    first = evidence.released.first
    at_end = span.true_value[record] == ends[first][classes]
    found: Bools = people_of(classes[at_end], evidence.members.person[record[at_end]], len(first)) == 1
    return found


def _share_at(span: Spans, usable: Bools, rows: Ints, end: Floats) -> Floats:
    """Return, of everybody's values within the ranges of some rows, the share of those at an end."""
    values = np.sort(span.true_value[usable & ~np.isnan(span.true_value)])
    inside = np.searchsorted(values, span.high[rows], "right") - np.searchsorted(values, span.low[rows], "left")
    at_end = np.searchsorted(values, end, "right") - np.searchsorted(values, end, "left")
    share: Floats = at_end / np.maximum(inside, 1)
    return share


def _predicates(evidence: RowEvidence) -> Attack:
    attack = Attack(
        "predicate", Question.SINGLING_OUT,
        "Exactly one person matches a predicate made from a released row: its ranges and labels, and the end of one "
        "range as an exact value.", "nothing but the release",
    )  # fmt: skip
    people, released, random = evidence.members, evidence.released, evidence.random
    if not people.attributes:
        return attack.not_applicable("no quasi-identifier is known")
    rows = random.integers(evidence.rows, size=_PREDICATES) if evidence.rows else np.zeros(0, np.int64)
    shown = released.first[released.of_row[rows]]
    usable = np.flatnonzero(people.records.usable)
    at_low = random.integers(2, size=len(shown)) == 0
    sharp = _widest(people, shown)
    shuffled = [random.permutation(shown) for _ in people.attributes]
    straight = [shown] * len(people.attributes)
    found = _isolated(people, usable, straight, sharp, at_low)
    blind = _isolated(people, usable, shuffled, sharp, at_low)
    control = None
    if evidence.outsiders is not None:
        outside = evidence.outsiders
        others = np.flatnonzero(outside.records.usable)
        control = float(_isolated(outside, others, straight, sharp, at_low).mean()) if len(shown) else None
    return replace(
        attack, success=Rate.of(found), guess=float(blind.mean()) if len(blind) else None, raw=_unique_share(people),
        control=control, control_is="exactly one person who is not in the data matches" if control is not None else "",
    )  # fmt: skip


def _widest(people: People, shown: Ints) -> Ints:
    """Return, for every row, the attribute whose range is widest, as its place among the attributes; -1 for none."""
    widths = [
        np.where(attribute.low[shown] < attribute.high[shown], attribute.loss[shown], -1.0)
        if isinstance(attribute, Spans) else np.full(len(shown), -1.0)
        for attribute in people.attributes
    ]  # fmt: skip
    table = np.stack(widths, axis=1)
    best = table.argmax(axis=1)
    return np.where(table.max(axis=1) >= 0, best, -1)


def _isolated(people: People, usable: Ints, shown: list[Ints], sharp: Ints, at_low: Bools) -> Bools:
    """Return which predicates match exactly one person; ``shown`` has the rows of each attribute's part."""
    found = np.zeros(len(sharp), np.bool_)
    person = people.person[usable]
    for part in chunks(np.arange(len(sharp)), len(usable)):
        match = np.ones((len(usable), len(part)), np.bool_)
        for place, attribute in enumerate(people.attributes):
            rows = shown[place][part]
            match &= fitting_one(attribute, usable, rows)
            if isinstance(attribute, Spans):
                end = np.where(at_low[part], attribute.low[rows], attribute.high[rows])
                exact = attribute.true_value[usable][:, None] == end[None, :]
                match &= exact | (sharp[part] != place)
        for column in np.flatnonzero(match.any(axis=0)).tolist():
            found[part[column]] = len(np.unique(person[match[:, column]])) == 1
    return found


def _unique_share(people: People) -> float:
    """On the raw data: how many people are the only ones with all values of one of their records."""
    usable = people.records.usable
    group = equal_records(people)[usable]
    return float(np.mean(people_of(group, people.person[usable])[group] == 1)) if len(group) else 0.0
