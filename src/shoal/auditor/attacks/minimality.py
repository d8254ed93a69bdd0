"""Use that a class is not wider than needed: the row that widened it has the sensitive value that was missing.

A method that adds people beyond k, nearest first, until the class is l-diverse, shows that a value was missing before
the last one was added. An attacker who knows the quasi-identifiers of the class sees which row is furthest out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.classes import RowEvidence
from shoal.auditor.attacks.outcome import NEEDS_TRACE, Attack, Question, Rate
from shoal.auditor.attacks.sensitive_values import SensitiveColumn, no_values, read_column, share_right
from shoal.auditor.counting import dense, people_of
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Attribute, Labels, Spans
from shoal.auditor.tuples.promise import Diversity

_CONTROL: Final = "the same people by the most common value of the rows published together"


def attack_minimality(evidence: RowEvidence) -> list[Attack]:
    """Try to learn the value of the row that lies furthest out, in every class of more than k people."""
    names = list(evidence.members.sensitive) or ["sensitive value"]
    return [_attack_column(evidence, name, f": {name}" if len(names) > 1 else "") for name in names]


def _attack_column(evidence: RowEvidence, name: str, suffix: str) -> Attack:
    attack = Attack(
        f"minimality{suffix}", Question.INFERENCE,
        f"In a class of more than k people, the row furthest out has a {name} without which l would not hold.",
        "k and l, and the quasi-identifiers of everybody in the class",
    )  # fmt: skip
    diversity: Diversity | None = getattr(evidence.promise, "diversity", None)
    if not evidence.members.sensitive:
        return attack.not_applicable(no_values(evidence))
    if diversity is None or (diversity.l is None and diversity.entropy_l is None):
        if diversity is not None and diversity.t is not None:
            return attack.not_applicable("the policy promises t alone; the attack reasons about l and entropy_l")
        return attack.not_applicable("without l, how wide a class is depends on quasi-identifiers only")
    if evidence.record_of is None:
        return attack.not_applicable(NEEDS_TRACE)
    column = read_column(evidence, name)
    if column is None:
        return attack.not_applicable(f"{name} has too many different values")
    chosen = list(_suspects(evidence, column, diversity))
    if not chosen:
        return attack.not_applicable("no class of more than k people has a row to spare that narrows it")
    true = column.true[np.array([one.record for one in chosen])]
    return replace(
        attack, success=Rate.of(share_right(np.stack([one.critical for one in chosen]), true)),
        guess=column.prior(true), raw=1.0, control_is=_CONTROL,
        control=float(share_right(np.stack([one.values for one in chosen]), true).mean()),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Suspect:
    """The row of a class that is furthest out: without it the class is narrowest."""

    record: int
    values: Floats
    """How many rows of the class have each sensitive value."""
    critical: Floats
    """The same, of the values without a row of which the class would not be diverse."""


def _suspects(evidence: RowEvidence, column: SensitiveColumn, diversity: Diversity) -> Iterator[_Suspect]:
    """Return the suspect of classes drawn at random, where a value is critical."""
    people = evidence.members
    scales = [_scale(attribute) for attribute in people.attributes]
    taken = 0
    for records in _widened(evidence):
        values = np.bincount(column.true[records], minlength=column.width).astype(np.float64)
        critical = np.where(_is_critical(values, diversity), values, 0.0)
        if taken == len(people.targets):
            return
        if not critical.any():
            continue
        gain = np.zeros(len(records))
        for attribute, scale in zip(people.attributes, scales, strict=True):
            gain += _narrowed(attribute, records, scale)
        same, rows = np.unique(people.person[records], return_inverse=True, return_counts=True)[1:]
        gain[rows[same] > 1] = 0  # without one row of several, the person is still in the class
        if gain.max(initial=0.0) > 0:
            taken += 1
            yield _Suspect(int(records[gain.argmax()]), values, critical)


def _widened(evidence: RowEvidence) -> Iterator[Ints]:
    """Return the records of each class of more than k people, in random order; rows published at once are one class."""
    assert evidence.record_of is not None
    usable = evidence.members.records.usable
    rows = np.flatnonzero((evidence.record_of >= 0) & usable[evidence.record_of])
    if not len(rows):
        return
    rows = evidence.random.permutation(rows)
    records, of_row = evidence.record_of[rows], evidence.released.of_row[rows]
    group = dense(of_row) if evidence.event is None else dense(of_row, evidence.event[rows])
    wide = people_of(group, evidence.members.person[records]) > evidence.promise.k
    order = np.argsort(group, kind="stable")
    parts = np.split(records[order], np.cumsum(np.bincount(group))[:-1])
    for number in evidence.random.permutation(np.flatnonzero(wide)).tolist():
        yield parts[number]


def _is_critical(values: Floats, diversity: Diversity) -> Bools:
    """Return the values of which no row can be left out: the class would have too few of them, or too uneven ones."""
    present = np.flatnonzero(values)
    without = values[present] - np.eye(len(present))
    fails = np.zeros(len(present), np.bool_)
    if diversity.l is not None:
        fails |= (without > 0).sum(axis=1) < diversity.l
    if diversity.entropy_l is not None:
        share = without / np.maximum(without.sum(axis=1, keepdims=True), 1)
        entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1)
        fails |= np.exp(entropy) < diversity.entropy_l * (1 - 1e-9)
    found = np.zeros(len(values), np.bool_)
    found[present[fails]] = True
    return found


def _scale(attribute: Attribute) -> float:
    """Return the width of all true values, or the length of the longest path."""
    if isinstance(attribute, Spans):
        known = attribute.true_value[np.isfinite(attribute.true_value)]
        return float(known.max() - known.min()) if len(known) else 0.0
    assert isinstance(attribute, Labels)
    return float(attribute.paths.length(attribute.true_code).max(initial=1))


def _narrowed(attribute: Attribute, records: Ints, scale: float) -> Floats:
    """Return by how much a class gets narrower in one attribute if each of its rows is left out."""
    gain = np.zeros(len(records))
    if isinstance(attribute, Spans):
        value = attribute.true_value[records]
        order = np.argsort(value)[: int(np.isfinite(value).sum())]  # NaN sorts last
        if len(order) > 1 and scale > 0:
            gain[order[0]] = (value[order[1]] - value[order[0]]) / scale
            gain[order[-1]] = (value[order[-1]] - value[order[-2]]) / scale
        return gain
    assert isinstance(attribute, Labels)
    carried = np.flatnonzero(attribute.true_code[records] >= 0)
    owner, _, label = attribute.paths.expand(attribute.true_code[records[carried]])
    labels, turn = np.unique(label, return_inverse=True)
    above = np.zeros((len(carried), len(labels)), np.bool_)
    above[owner, turn] = True
    of_all_others = above.sum(axis=0) == len(carried) - 1
    gain[carried] = (~above[:, of_all_others]).sum(axis=1) / scale
    return gain
