"""Infer a sensitive value: from a class, from all rows that fit, from several rows of a person, with a classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.attacks.classes import People, RowEvidence, chunks, fitting, raw_codes
from shoal.auditor.attacks.naive_bayes import Bayes
from shoal.auditor.attacks.outcome import OUTSIDE, Attack, Question, Rate
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats

_LARGEST: Final = 40_000_000
"""Cells of a table of classes by sensitive values."""
_ROWS: Final = {"1 row": 1, "several rows": 3, "10 rows": 10, "30 rows": 30}
"""How many rows of a person the intersection uses, by the name of the attack."""
_STABLE: Final = 0.9
"""The share of people with several rows who must have the same value in all, for a value to be a person's."""
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
    known = "the person's true " + ", ".join(attribute.name for attribute in evidence.members.attributes)
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
    outside = None
    if evidence.outsiders is not None and name in evidence.outsiders.sensitive:
        values, _, texts = evidence.outsiders.sensitive[name]
        number = {text: place + 1 for place, text in enumerate(names)}
        translate = np.array([*(number.get(text, -1) for text in texts), 0], np.int64)  # code -1 picks the last
        outside = translate[values]
    return SensitiveColumn(name, true + 1, width, counts, outside)


def _run(evidence: RowEvidence, column: SensitiveColumn, attacks: list[Attack]) -> Iterator[Attack]:
    homogeneous, mode, fits, classifier, *several = attacks
    raw = _raw(evidence.members, column)
    yield _homogeneous(evidence, column, homogeneous, raw)
    yield _class_mode(evidence, column, mode, raw)
    yield _rows_that_fit(evidence, column, fits, raw)
    yield _classifier(evidence, column, classifier, raw)
    yield from _several_rows(evidence, column, several, raw)


def _raw(people: People, column: SensitiveColumn) -> float:
    """On the raw data: the most common value of the records with exactly the target's quasi-identifiers."""
    usable = np.flatnonzero(people.records.usable)
    codes = raw_codes(people)[usable]
    group = np.unique(codes, axis=0, return_inverse=True)[1]
    place = np.full(len(people.person), -1, np.int64)
    place[usable] = np.arange(len(usable))
    cells, counts = np.unique(group * column.width + column.true[usable], return_counts=True)
    best = np.zeros(int(group.max(initial=0)) + 1, np.int64)
    order = np.argsort(counts, kind="stable")
    best[cells[order] // column.width] = cells[order] % column.width
    at = place[people.targets]
    return float(np.mean(best[group[at]] == column.true[people.targets])) if len(at) else 0.0


def _of_targets(evidence: RowEvidence) -> Ints | None:
    """The class of every target; None if not known."""
    return None if evidence.class_of is None else evidence.class_of[evidence.members.targets]


def share_right(scores: Floats, true: Ints) -> Floats:
    """Return the chance that the best guess is right; equally good guesses share it."""
    best = scores >= scores.max(axis=1, keepdims=True) * (1 - 1e-12)
    return np.where(best[np.arange(len(true)), true], 1 / best.sum(axis=1), 0.0)


def _homogeneous(evidence: RowEvidence, column: SensitiveColumn, attack: Attack, raw: float) -> Attack:
    mine = _of_targets(evidence)
    if mine is None:
        return attack.not_applicable("it needs the trace, to know which row is whose")
    is_one = column.counts.max(axis=1) == evidence.released.rows
    return replace(attack, success=Rate.of(is_one[mine]), guess=0.0, raw=raw)


def _class_mode(evidence: RowEvidence, column: SensitiveColumn, attack: Attack, raw: float) -> Attack:
    mine = _of_targets(evidence)
    if mine is None:
        return attack.not_applicable("it needs the trace, to know which row is whose")
    true = column.true[evidence.members.targets]
    found = share_right(column.counts[mine], true)
    return replace(attack, success=Rate.of(found), guess=column.prior(true), raw=raw)


def row_scores(evidence: RowEvidence, people: People, column: SensitiveColumn, rows: Ints) -> Floats:
    """Add up the rows that fit, by value; a row counts by how few different people it could be of."""
    narrow = np.exp(evidence.released.volume.min(initial=0.0) - evidence.released.volume)
    weighted = column.counts * narrow[:, None]
    found = [
        fitting(people, evidence.released, part).astype(np.float64) @ weighted
        for part in chunks(rows, len(evidence.released.rows))
    ]
    return np.concatenate([np.zeros((0, column.width)), *found])


def _rows_that_fit(evidence: RowEvidence, column: SensitiveColumn, attack: Attack, raw: float) -> Attack:
    people = evidence.members
    true, scores = column.true[people.targets], row_scores(evidence, people, column, people.targets)
    control, what = _control(
        evidence, column, lambda outsiders: row_scores(evidence, outsiders, column, outsiders.targets)
    )
    mine = _of_targets(evidence)
    if control is None and mine is not None:
        narrow = np.exp(evidence.released.volume.min(initial=0.0) - evidence.released.volume)
        without = scores.copy()
        without[np.arange(len(true)), true] -= narrow[mine]
        control, what = float(share_right(np.maximum(without, 0), true).mean()), _OWN_OUT
    return replace(
        attack, success=Rate.of(share_right(scores, true)), guess=column.prior(true), raw=raw, control=control,
        control_is=what,
    )  # fmt: skip


def _control(
    evidence: RowEvidence, column: SensitiveColumn, scores: Callable[[People], Floats]
) -> tuple[float | None, str]:
    outsiders = evidence.outsiders
    if outsiders is None or column.outside is None or not len(outsiders.targets):
        return None, ""
    true = column.outside[outsiders.targets]
    found = np.zeros(len(true))
    listed: Bools = true >= 0  # a value that the release does not have is never guessed
    found[listed] = share_right(scores(outsiders)[listed], true[listed])
    return float(found.mean()), OUTSIDE


def _classifier(evidence: RowEvidence, column: SensitiveColumn, attack: Attack, raw: float) -> Attack:
    people, released = evidence.members, evidence.released
    model = Bayes.trained(people.attributes, released.first, column.counts)
    true = column.true[people.targets]
    success = Rate.of(share_right(np.exp(calm(model.scores(people.attributes, people.targets))), true))
    control, what = _control(
        evidence, column, lambda outsiders: np.exp(calm(model.scores(outsiders.attributes, outsiders.targets)))
    )
    mine = _of_targets(evidence)
    if control is None and mine is not None:
        without = model.scores(people.attributes, people.targets, without=(mine, true))
        control, what = float(share_right(np.exp(calm(without)), true).mean()), _OWN_OUT
    return replace(attack, success=success, guess=column.prior(true), raw=raw, control=control, control_is=what)


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
    prior = np.log(column.counts.sum(axis=0) / max(column.counts.sum(), 1) + 1e-9)
    total = np.repeat(prior[None, :], len(start), axis=0)
    for turn in range(rows):
        has = size > turn
        at = order[start[has] + turn]
        if evidence.class_of is None:
            scores = row_scores(evidence, evidence.members, column, at)
        else:
            scores = column.counts[evidence.class_of[at]]
        total[has] += np.log(scores / np.maximum(scores.sum(axis=1, keepdims=True), 1e-300) + 1e-9) - prior
    return np.exp(calm(total))
