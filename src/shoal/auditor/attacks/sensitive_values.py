"""Infer a sensitive value: from a class, from all rows that fit, from several rows of a person, with a classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.attacks.classes import People, RowEvidence, chunks, equal_records, fitting
from shoal.auditor.attacks.naive_bayes import Bayes
from shoal.auditor.attacks.outcome import NEEDS_TRACE, OUTSIDE, Attack, Question, Rate
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

_LARGEST: Final = 40_000_000
"""Cells of a table of classes by sensitive values."""
_ROWS: Final = {"1 row": 1, "several rows": 3, "10 rows": 10, "30 rows": 30}
"""How many rows of a person the intersection uses, by the name of the attack."""
_STABLE: Final = 0.9
"""The share of people with several rows who must have the same value in all, for a value to be a person's."""
_TINY: Final = 1e-9
_OWN_OUT: Final = "the same without the person's own row"


@dataclass(frozen=True, slots=True)
class SensitiveColumn:
    """One sensitive column."""

    name: str
    true: Ints
    width: int
    """How many different values there are, counting null as one."""
    counts: npt.NDArray[np.float64]
    """Rows of every class (line) with every value (column)."""
    outside: Ints | None
    """The values of people who are not in the data, by the same numbers."""

    def prior(self, true: Ints) -> float:
        """Return how often the most common value is right about people with these values."""
        return float((true == self.counts.sum(axis=0).argmax()).mean()) if len(true) else 0.0

    @property
    def log_prior(self) -> Floats:
        """How common each value is, as a logarithm."""
        found: Floats = np.log(self.counts.sum(axis=0) / max(self.counts.sum(), 1) + _TINY)
        return found


def attack_sensitive_values(evidence: RowEvidence) -> list[Attack]:
    """Try all attackers who want a sensitive value."""
    if not evidence.members.sensitive:
        why = no_values(evidence)
        return [attack.not_applicable(why) for attack in _attacks(evidence, "sensitive value", "")]
    several = len(evidence.members.sensitive) > 1
    found = []
    for name in evidence.members.sensitive:
        suffix = f": {name}" if several else ""
        column = read_column(evidence, name)
        if column is None:
            why = f"{name} has too many different values"
            found += [attack.not_applicable(why) for attack in _attacks(evidence, name, suffix)]
        else:
            found += list(_run(evidence, column, _attacks(evidence, name, suffix)))
    return found


def no_values(evidence: RowEvidence) -> str:
    """Return why there is no sensitive value to infer."""
    generalized = getattr(evidence.promise, "generalized", ())
    if not generalized:
        return "the policy names no sensitive column that is released"
    names = ", ".join(generalized)
    return f"sensitive values are published generalized only ({names}); a row shows which range or label to guess from"


def _attacks(evidence: RowEvidence, name: str, suffix: str) -> list[Attack]:
    known = evidence.members.knowledge
    return [
        Attack(f"homogeneous class{suffix}", Question.INFERENCE, f"All rows of the person's class have one {name}.",
               "which class the person's row is in"),
        Attack(f"class mode{suffix}", Question.INFERENCE, f"The most common {name} of the class is the person's.",
               "which class the person's row is in"),
        Attack(f"rows that fit{suffix}", Question.INFERENCE,
               f"The likeliest {name} among all rows that fit, narrow ones first, is the person's.", known),
        Attack(f"classifier{suffix}", Question.INFERENCE,
               f"The {name} that a naive Bayes classifier, trained on the release, predicts is the person's.", known),
        *(
            Attack(f"{which}{suffix}", Question.LINKING,
                   f"The {name} that best fits the classes of {words} of a person with several is the person's.",
                   f"which classes these rows are in (without a trace: {known}, of these records)")
            for which, words in zip(_ROWS, ("a row", "up to 3 rows", "10 rows", "30 rows"), strict=True)
        ),
    ]  # fmt: skip


def read_column(evidence: RowEvidence, name: str) -> SensitiveColumn | None:
    """Count the values of every class; None if there are too many."""
    true, shown, names = evidence.members.sensitive[name]
    width = len(names) + 1
    classes = len(evidence.released.rows)
    if width * classes > _LARGEST:
        return None
    cells = evidence.released.of_row * width + shown + 1
    counts = np.bincount(cells, minlength=width * classes).reshape(classes, width).astype(np.float64)
    outside = None if evidence.outsiders is None else evidence.outsiders.values_of(name, names)
    return SensitiveColumn(name, true + 1, width, counts, outside)


def _run(evidence: RowEvidence, column: SensitiveColumn, attacks: list[Attack]) -> Iterator[Attack]:
    homogeneous, mode, fits, classifier, *several = attacks
    raw = _raw(evidence.members, column)
    yield from _by_class(evidence, column, homogeneous, mode, raw)
    yield _rows_that_fit(evidence, column, fits, raw)
    yield _classifier(evidence, column, classifier, raw)
    yield from _several_rows(evidence, column, several, raw)


def _raw(people: People, column: SensitiveColumn) -> float:
    """On the raw data: the most common value of the records with exactly the target's quasi-identifiers."""
    group = equal_records(people)
    usable = group >= 0
    cells, counts = np.unique(group[usable] * column.width + column.true[usable], return_counts=True)
    best = np.zeros(int(group.max(initial=0)) + 1, np.int64)
    order = np.argsort(counts, kind="stable")
    best[cells[order] // column.width] = cells[order] % column.width  # the last, most common one stays
    at = people.targets
    return float(np.mean(best[group[at]] == column.true[at])) if len(at) else 0.0


def share_right(scores: Floats, true: Ints) -> Floats:
    """Return the chance that the best guess is right; equally good guesses share it."""
    best = scores >= scores.max(axis=1, keepdims=True) * (1 - 1e-12)
    return np.where(best[np.arange(len(true)), true], 1 / best.sum(axis=1), 0.0)


def _by_class(
    evidence: RowEvidence, column: SensitiveColumn, homogeneous: Attack, mode: Attack, raw: float
) -> Iterator[Attack]:
    if evidence.class_of is None:
        yield from (attack.not_applicable(NEEDS_TRACE) for attack in (homogeneous, mode))
        return
    mine, true = evidence.class_of[evidence.members.targets], column.true[evidence.members.targets]
    has_one_value = column.counts.max(axis=1) == evidence.released.rows
    yield replace(homogeneous, success=Rate.of(has_one_value[mine]), guess=0.0, raw=raw)
    found = share_right(column.counts[mine], true)
    yield replace(mode, success=Rate.of(found), guess=column.prior(true), raw=raw)


def row_scores(evidence: RowEvidence, people: People, column: SensitiveColumn, rows: Ints) -> Floats:
    """Add up the rows that fit, by value; a row counts by how few different people it could be of."""
    weighted = column.counts * _weight(evidence)[:, None]
    shown = evidence.released.first
    found = [fitting(people, part, shown).astype(np.float64) @ weighted for part in chunks(rows, len(shown))]
    return np.concatenate([np.zeros((0, column.width)), *found])


def _weight(evidence: RowEvidence) -> Floats:
    """How much a row of each class counts; 1 in the class that could be of the fewest people."""
    volume = evidence.released.volume
    found: Floats = np.exp(volume.min(initial=0.0) - volume)
    return found


def _rows_that_fit(evidence: RowEvidence, column: SensitiveColumn, attack: Attack, raw: float) -> Attack:
    def scores(people: People) -> Floats:
        return row_scores(evidence, people, column, people.targets)

    def without(own: Floats, mine: Ints, true: Ints) -> Floats:
        rest = own.copy()
        rest[np.arange(len(true)), true] -= _weight(evidence)[mine]
        return np.maximum(rest, 0)

    return _scored(evidence, column, replace(attack, raw=raw), scores, without)


def _classifier(evidence: RowEvidence, column: SensitiveColumn, attack: Attack, raw: float) -> Attack:
    members = evidence.members
    model = Bayes.trained(members.attributes, evidence.released.first, column.counts)

    def scores(people: People) -> Floats:
        return np.exp(calm(model.scores(people.attributes, people.targets)))

    def without(_: Floats, mine: Ints, true: Ints) -> Floats:
        return np.exp(calm(model.scores(members.attributes, members.targets, without=(mine, true))))

    return _scored(evidence, column, replace(attack, raw=raw), scores, without)


def _scored(
    evidence: RowEvidence, column: SensitiveColumn, attack: Attack, scores: Callable[[People], Floats],
    without: Callable[[Floats, Ints, Ints], Floats],
) -> Attack:  # fmt: skip
    """Guess the value with the best score; the control is outsiders, else scores without the person's own row."""
    people, outsiders = evidence.members, evidence.outsiders
    own, true = scores(people), column.true[people.targets]
    control, what = None, ""
    if outsiders is not None and column.outside is not None and len(outsiders.targets):
        theirs = column.outside[outsiders.targets]
        is_known: Bools = theirs >= 0  # a value that the release does not have is never guessed
        right = share_right(scores(outsiders)[is_known], theirs[is_known])
        control, what = float(right.sum() / len(theirs)), OUTSIDE
    elif evidence.class_of is not None:
        mine = evidence.class_of[people.targets]
        control, what = float(share_right(without(own, mine, true), true).mean()), _OWN_OUT
    return replace(
        attack, success=Rate.of(share_right(own, true)), guess=column.prior(true), control=control, control_is=what
    )


def calm(scores: Floats) -> Floats:
    """Shift log scores so that the best of every line is 0."""
    shifted: Floats = scores - scores.max(axis=1, keepdims=True)
    return shifted


def _several_rows(
    evidence: RowEvidence, column: SensitiveColumn, attacks: list[Attack], raw: float
) -> Iterator[Attack]:
    """Intersect the classes of 1, 3, 10 and 30 rows of people whose value is the same in all of their rows."""
    people = evidence.members
    order, start, size = evidence.rows_by_person()
    several = size >= 2
    if not several.any():
        yield from (attack.not_applicable("no person has more than one released row") for attack in attacks)
        return
    value = column.true[order]
    low, high = np.minimum.reduceat(value, start), np.maximum.reduceat(value, start)
    if (low == high)[several].mean() < _STABLE:
        yield from (attack.not_applicable(f"{column.name} differs between the rows of a person") for attack in attacks)
        return
    drawn = evidence.random.permutation(np.flatnonzero(several & (low == high)))
    for attack, rows in zip(attacks, _ROWS.values(), strict=True):
        # people with 2 rows are attacked by these two; only then is nobody with several rows left out
        chosen = drawn[size[drawn] >= (rows if rows > 3 else 2)][: max(len(people.targets), 1)]
        if len(chosen):
            found = share_right(
                _scores_of_rows(evidence, column, order, start[chosen], size[chosen], rows), low[chosen]
            )
            yield replace(attack, success=Rate.of(found), guess=column.prior(low[chosen]), raw=raw)
        else:
            yield attack.not_applicable(f"no person has {rows} released rows")


def _scores_of_rows(
    evidence: RowEvidence, column: SensitiveColumn, order: Ints, start: Ints, size: Ints, rows: int
) -> Floats:
    """How likely each value is after the first rows of some people."""
    prior = column.log_prior
    total = np.repeat(prior[None, :], len(start), axis=0)
    for turn in range(rows):
        has = size > turn
        at = order[start[has] + turn]
        if evidence.class_of is None:
            scores = row_scores(evidence, evidence.members, column, at)
        else:
            scores = column.counts[evidence.class_of[at]]
        total[has] += log_likelihood(scores, prior) - prior
    return np.exp(calm(total))


def log_likelihood(scores: Floats, prior: Floats) -> Floats:
    """Return log likelihoods of values; where no row fits, nothing is learnt."""
    total = scores.sum(axis=1, keepdims=True)
    found: Floats = np.where(total > 0, np.log(scores / np.maximum(total, 1e-300) + _TINY), prior)
    return found
