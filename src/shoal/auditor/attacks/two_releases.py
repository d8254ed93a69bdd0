"""Intersect two releases of the same people: what each hides in a class, both together may show."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.classes import RowEvidence
from shoal.auditor.attacks.outcome import Attack, Question, Rate
from shoal.auditor.attacks.sensitive_values import (
    calm,
    log_likelihood,
    no_values,
    read_column,
    row_scores,
    share_right,
)
from shoal.auditor.reading.numbers import Floats

_CONTROL: Final = "the better of the two releases alone"


def attack_two_releases(first: RowEvidence, second: RowEvidence) -> list[Attack]:
    """Try to learn the sensitive values of people who are in both releases."""
    if not first.members.sensitive:
        return [two_releases().not_applicable(no_values(first))]
    several = len(first.members.sensitive) > 1
    second = replace(second, members=replace(second.members, targets=first.members.targets))
    return [
        _intersected(two_releases(name, f": {name}" if several else ""), first, second, name)
        for name in first.members.sensitive
    ]


def two_releases(name: str = "sensitive value", suffix: str = "") -> Attack:
    """Describe the attack on one sensitive column."""
    return Attack(
        f"two releases{suffix}", Question.LINKING,
        f"The {name} that is likeliest in the rows that fit in both releases is the person's.",
        "the person's true quasi-identifiers, that the person is in both releases, and the other release",
    )  # fmt: skip


def _intersected(attack: Attack, first: RowEvidence, second: RowEvidence, name: str) -> Attack:
    columns = read_column(first, name), read_column(second, name) if name in second.members.sensitive else None
    if columns[0] is None or columns[1] is None:
        return attack.not_applicable(f"{name} is not in both releases, or has too many different values")
    targets = first.members.targets
    true = columns[0].true[targets]
    one = row_scores(first, first.members, columns[0], targets)
    other = _in_order_of(first, second, name, row_scores(second, second.members, columns[1], targets))
    prior = columns[0].log_prior
    both = log_likelihood(one, prior) + log_likelihood(other, prior) - prior
    alone = max(float(share_right(scores, true).mean()) for scores in (one, other)) if len(true) else 0.0
    return replace(
        attack, success=Rate.of(share_right(np.exp(calm(both)), true)), guess=columns[0].prior(true), raw=1.0,
        control=alone, control_is=_CONTROL,
    )  # fmt: skip


def _in_order_of(first: RowEvidence, second: RowEvidence, name: str, scores: Floats) -> Floats:
    """Return scores of the second release's values in the order of the first's; the first column is null."""
    names, others = first.members.sensitive[name][2], second.members.sensitive[name][2]
    place = {text: at + 1 for at, text in enumerate(others)}
    padded = np.column_stack([scores, np.zeros(len(scores))])  # the last column: values that only the first has
    order = np.array([0, *(place.get(text, scores.shape[1]) for text in names)])
    found: Floats = padded[:, order]
    return found
