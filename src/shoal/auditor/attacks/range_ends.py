"""Use the ends of ranges: each may be one person's exact value, and a predicate with it may single the person out."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.classes import People, RowEvidence, fitting_one, raw_codes
from shoal.auditor.attacks.outcome import Attack, Question, Rate
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Spans

_PREDICATES: Final = 400


def attack_range_ends(evidence: RowEvidence) -> list[Attack]:
    """Try the attackers who use the ends of ranges."""
    return [_predicates(evidence), _range_ends(evidence), _shared_ends(evidence)]


def _spans(people: People) -> list[Spans]:
    return [attribute for attribute in people.attributes if isinstance(attribute, Spans)]


def _why_not(spans: list[Spans]) -> str:
    if not spans:
        return "no quasi-identifier is published as a range"
    return "it needs the trace, to know which row is whose"


def _range_ends(evidence: RowEvidence) -> Attack:
    attack = Attack(
        "range end", Question.INFERENCE,
        "An end of a range of the person's row is the exact value of this person and of no other of the class.",
        "which row is the person's",
    )  # fmt: skip
    people = evidence.members
    spans = _spans(people)
    if not spans or evidence.class_of is None:
        return attack.not_applicable(_why_not(spans))
    targets = people.targets
    own = evidence.class_of[targets]
    hit, misses = np.zeros(len(targets), np.bool_), np.ones(len(targets))
    for span in spans:
        for ends in (span.low, span.high):
            end = ends[evidence.released.first]
            is_sharp = _of_one_person(evidence, span, end)[own]
            hit |= is_sharp & (span.true_value[targets] == end[own])
            share = _share_at(span, people.records.usable, evidence.released.first[own], end[own])
            misses *= 1 - np.where(is_sharp, share, 0)
    return replace(attack, success=Rate.of(hit), guess=float(np.mean(1 - misses)) if len(targets) else None, raw=1.0)


def _shared_ends(evidence: RowEvidence) -> Attack:
    """The same where others of the class may have the value, too: the attacker still learns it exactly."""
    attack = Attack(
        "range end, also shared", Question.INFERENCE,
        "An end of a range of the person's row is the exact value of this person, and perhaps of others.",
        "which row is the person's",
    )  # fmt: skip
    people = evidence.members
    spans = _spans(people)
    if not spans or evidence.class_of is None:
        return attack.not_applicable(_why_not(spans))
    targets = people.targets
    rows = evidence.released.first[evidence.class_of[targets]]
    hit, misses = np.zeros(len(targets), np.bool_), np.ones(len(targets))
    for span in spans:
        is_range = (span.low[rows] < span.high[rows]) & ~span.at_root[rows]
        for ends in (span.low, span.high):
            hit |= is_range & (span.true_value[targets] == ends[rows])
            misses *= 1 - np.where(is_range, _share_at(span, people.records.usable, rows, ends[rows]), 0)
    return replace(attack, success=Rate.of(hit), guess=float(np.mean(1 - misses)) if len(targets) else None, raw=1.0)


def _of_one_person(evidence: RowEvidence, span: Spans, end: Floats) -> Bools:
    """Return in which classes a single person has the value at the range's end, if the domain does not end there."""
    assert evidence.record_of is not None
    shown = np.flatnonzero(evidence.record_of >= 0)
    classes, record = evidence.released.of_row[shown], evidence.record_of[shown]
    at_end = span.true_value[record] == end[classes]
    width = int(evidence.members.person.max(initial=0)) + 1
    pairs = np.unique(classes[at_end] * width + evidence.members.person[record[at_end]])
    first = evidence.released.first
    is_range = (span.low[first] < span.high[first]) & ~span.at_root[first]
    found: Bools = (np.bincount(pairs // width, minlength=len(end)) == 1) & is_range
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
    step = max(8_000_000 // max(len(usable), 1), 1)
    for start in range(0, len(sharp), step):
        part = slice(start, start + step)
        match = np.ones((len(usable), len(sharp[part])), np.bool_)
        for place, attribute in enumerate(people.attributes):
            rows = shown[place][part]
            match &= fitting_one(attribute, usable, rows)
            if isinstance(attribute, Spans):
                end = np.where(at_low[part], attribute.low[rows], attribute.high[rows])
                exact = attribute.true_value[usable][:, None] == end[None, :]
                match &= exact | (sharp[part] != place)
        person = people.person[usable]
        for column in np.flatnonzero(match.any(axis=0)).tolist():
            found[start + column] = len(np.unique(person[match[:, column]])) == 1
    return found


def _unique_share(people: People) -> float:
    """On the raw data: how many people are the only ones with all values of one of their records."""
    codes, person = raw_codes(people)[people.records.usable], people.person[people.records.usable]
    group = np.unique(codes, axis=0, return_inverse=True)[1]
    width = int(person.max(initial=0)) + 1
    pairs = np.unique(group * width + person)
    holders = np.bincount(pairs // width)
    return float(np.mean(holders[group] == 1)) if len(group) else 0.0
