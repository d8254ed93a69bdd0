"""Find a person's row by quasi-identifiers: all known, one wrong, one unknown, and by missing values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from shoal.auditor.attacks.classes import Fits, People, RowEvidence, chunks, equal_records, fitting_one, raw_codes
from shoal.auditor.attacks.outcome import NEEDS_TRACE, NO_ROW, Attack, Question, Rate
from shoal.auditor.counting import dense
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Attribute

_WANTS: Final = "The row the attacker picks is the person's."
_ONLY_ONE: Final = "only one quasi-identifier is known"
Fitting = Callable[[Attribute, Ints, Ints], Fits]
"""Says which released rows may be of which records, by one attribute."""


def attack_by_quasi_identifiers(evidence: RowEvidence) -> list[Attack]:
    """Try all attackers who know quasi-identifiers."""
    return [*_knowing_all(evidence), _one_unknown(evidence), _one_wrong(evidence), _missing_values(evidence)]


# ---- counting


def _picked(evidence: RowEvidence, fits: Fitting = fitting_one, *, wrong: int = 0, narrowest: bool = True) -> Floats:
    """Return, for every target, the probability that a row picked among those that fit is theirs.

    Rows fit in all attributes but ``wrong`` ones. Without a trace it is what the attacker believes: that one of the
    rows that fit is the person's.
    """
    released, people, found = evidence.released, evidence.members, []
    for rows in chunks(people.targets, len(released.rows)):
        matches = np.zeros((len(rows), len(released.rows)), np.int8)
        for attribute in people.attributes:
            matches += fits(attribute, rows, released.first)
        good = matches >= len(people.attributes) - wrong
        found.append(_of_narrowest(evidence, rows, good) if narrowest else _of_all(evidence, rows, good))
    return np.concatenate([np.zeros(0), *found])


def _of_all(evidence: RowEvidence, rows: Ints, good: Bools) -> Floats:
    """Pick any of the rows that fit."""
    total = good @ evidence.released.rows.astype(np.float64)
    mine = (total > 0).astype(np.float64)
    if evidence.record_of is not None:
        line, column = np.nonzero(good)
        mine = np.bincount(line, weights=evidence.own_rows(rows[line], column), minlength=len(rows)).astype(np.float64)
    found: Floats = mine / np.maximum(total, 1)
    return found


def _of_narrowest(evidence: RowEvidence, rows: Ints, good: Bools) -> Floats:
    """Pick the fitting class that could be of the fewest different people: there the target is most likely."""
    released = evidence.released
    volume = np.where(good, released.volume, np.inf)
    any_fits = good.any(axis=1)
    if evidence.record_of is not None:
        best = volume.argmin(axis=1)
        return np.where(any_fits, evidence.own_rows(rows, best) / released.rows[best], 0.0)
    likely = np.exp(np.where(good, volume.min(axis=1, initial=np.inf)[:, None] - released.volume, -np.inf))
    weight = likely @ released.rows.astype(np.float64)
    return np.where(any_fits, 1 / np.maximum(weight, 1), 0.0)


def _raw_exact(people: People) -> float:
    """The same on the raw data: rows with exactly the target's values."""
    if not len(people.targets):
        return 0.0
    group, usable = equal_records(people), people.records.usable
    of_person = np.full(len(group), -1, np.int64)
    of_person[usable] = dense(group[usable], people.person[usable])
    own, size = np.bincount(of_person[usable]), np.bincount(group[usable])
    return float(np.mean(own[of_person[people.targets]] / size[group[people.targets]]))


def _raw_near(people: People, known: Ints, unknown: Ints | None = None) -> float:
    """The same if all values but one must be as they are known; one may be ``unknown`` (a column for each target)."""
    codes = raw_codes(people)
    usable = np.flatnonzero(people.records.usable)
    everyone, person = codes[usable], people.person[usable]
    found = []
    for place, row in enumerate(people.targets.tolist()):
        same = (everyone == known[place]).astype(np.int8)
        if unknown is not None:
            same[:, unknown[place]] = 0
        hit = same.sum(axis=1, dtype=np.int8) >= codes.shape[1] - 1
        found.append((person[hit] == people.person[row]).sum() / max(int(hit.sum()), 1))
    return float(np.mean(found)) if found else 0.0


def _rates(attack: Attack, evidence: RowEvidence, found: Floats, raw: float, part: float = 1.0) -> Attack:
    """Give an attack its rates; ``part`` of the targets are in the data, the only ones who can be found blindly."""
    guess = part / max(evidence.members.count, 1)
    return replace(attack, success=Rate.of(found), guess=guess, raw=raw * part, control=0.0, control_is=NO_ROW)


# ---- the attackers


def _named(name: str, knows: str, wants: str = _WANTS) -> Attack:
    return Attack(name, Question.SINGLING_OUT, wants, knows)


def _knowing_all(evidence: RowEvidence) -> list[Attack]:
    known, raw, found = evidence.members.knowledge, _raw_exact(evidence.members), _picked(evidence)
    wants = "A row drawn from all that fit the person is the person's: the share of everybody's rows found this way."
    prosecutor = _named("prosecutor", f"{known}; that the person is in the data")
    marketer = _named("marketer", f"{known}, for everybody", wants)
    journalist = _named("journalist", f"{known}; not whether the person is in the data")
    if evidence.outsiders is None:
        journalist = journalist.not_applicable(
            "it needs people who are not in the data; give them as the control group"
        )
    else:
        everybody = np.concatenate([found, np.zeros(len(evidence.outsiders.targets))])
        journalist = _rates(journalist, evidence, everybody, raw, len(found) / max(len(everybody), 1))
    return [
        _rates(prosecutor, evidence, found, raw),
        _rates(marketer, evidence, _picked(evidence, narrowest=False), raw),
        journalist,
    ]


def _one_unknown(evidence: RowEvidence) -> Attack:
    people = evidence.members
    attack = _named("one unknown", people.knowledge + ", but one of them (at random) is not known")
    if len(people.attributes) < 2:
        return attack.not_applicable(_ONLY_ONE)
    unknown = evidence.random.integers(len(people.attributes), size=len(people.person))
    place = {attribute.name: at for at, attribute in enumerate(people.attributes)}

    def fits(attribute: Attribute, rows: Ints, shown: Ints) -> Fits:
        is_unknown: Bools = unknown[rows] == place[attribute.name]
        return fitting_one(attribute, rows, shown) | is_unknown[:, None]

    raw = _raw_near(people, raw_codes(people)[people.targets], unknown[people.targets])
    return _rates(attack, evidence, _picked(evidence, fits), raw)


def _one_wrong(evidence: RowEvidence) -> Attack:
    people, random = evidence.members, evidence.random
    attack = _named("one wrong", people.knowledge + ", but one of them (at random, not known which) is wrong")
    count = len(people.attributes)
    if count < 2:
        return attack.not_applicable(_ONLY_ONE)
    at = random.integers(count, size=len(people.person))
    source = random.integers(len(people.person), size=len(people.person))
    place = {attribute.name: number for number, attribute in enumerate(people.attributes)}

    def fits(attribute: Attribute, rows: Ints, shown: Ints) -> Fits:
        is_wrong = at[rows] == place[attribute.name]
        return fitting_one(attribute, np.where(is_wrong, source[rows], rows), shown)

    codes, targets = raw_codes(people), people.targets
    known = codes[targets]
    known[np.arange(len(targets)), at[targets]] = codes[source[targets], at[targets]]
    return _rates(attack, evidence, _picked(evidence, fits, wrong=1), _raw_near(people, known))


def _missing_values(evidence: RowEvidence) -> Attack:
    people = evidence.members
    attack = _named(
        "missing values", people.knowledge + ", and which of them are missing from the person's record",
        "The row picked among those that fit and lack exactly the same values is the person's.",
    )  # fmt: skip
    has_gaps = any((~attribute.carried[people.records.usable]).any() for attribute in people.attributes)
    shows_gaps = any((attribute.code < 0).any() for attribute in people.attributes)
    if not has_gaps or not shows_gaps:
        return attack.not_applicable("no value is missing from the " + ("release" if has_gaps else "records"))
    if evidence.record_of is None:
        return attack.not_applicable(NEEDS_TRACE)

    def fits(attribute: Attribute, rows: Ints, shown: Ints) -> Fits:
        same = ~attribute.carried[rows][:, None] == (attribute.code[shown] < 0)[None, :]
        found: Fits = fitting_one(attribute, rows, shown) & same
        return found

    return _rates(attack, evidence, _picked(evidence, fits), _raw_exact(people))
