"""Find a person's row by quasi-identifiers: all known, one wrong, one unknown, and by missing values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.attacks.classes import Fits, People, RowEvidence, chunks, fitting_one, raw_codes
from shoal.auditor.attacks.outcome import NO_ROW, Attack, Question, Rate
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Attribute

_WANTS: Final = "The row the attacker picks is the person's."
Matches = npt.NDArray[np.int8]
"""How many attributes of a class fit a target: one line per target, one column per class."""


def attack_by_quasi_identifiers(evidence: RowEvidence) -> list[Attack]:
    """Try all attackers who know quasi-identifiers."""
    return [
        _prosecutor(evidence), _marketer(evidence), _journalist(evidence), _one_unknown(evidence),
        _one_wrong(evidence), _missing_values(evidence),
    ]  # fmt: skip


def _named(name: str, knows: str, wants: str = _WANTS) -> Attack:
    return Attack(name, Question.SINGLING_OUT, wants, knows)


# ---- counting


def _picked(
    evidence: RowEvidence,
    enough: Callable[[Matches], Bools],
    fits: Callable[[Attribute, Ints], Fits],
    *,
    narrowest: bool = False,
) -> Floats:
    """Return, for every target, the probability that a row picked among those that fit is theirs.

    Without a trace it is what the attacker believes: that one of the rows that fit is the person's.
    """
    released, people, found = evidence.released, evidence.members, []
    for rows in chunks(people.targets, len(released.rows)):
        matches: Matches = np.zeros((len(rows), len(released.rows)), np.int8)
        for attribute in people.attributes:
            matches += fits(attribute, rows)
        good = enough(matches)
        if narrowest:
            found.append(_of_narrowest(evidence, rows, good))
            continue
        total = good @ released.rows.astype(np.float64)
        mine = (total > 0).astype(np.float64)
        if evidence.record_of is not None:
            line, column = np.nonzero(good)
            own = evidence.own_rows(rows[line], column).astype(np.float64)
            mine = np.bincount(line, weights=own, minlength=len(rows)).astype(np.float64)
        found.append(mine / np.maximum(total, 1))
    return np.concatenate([np.zeros(0), *found])


def _of_narrowest(evidence: RowEvidence, rows: Ints, good: Bools) -> Floats:
    """Pick the fitting class that could be of the fewest different people: there the target is most likely."""
    released = evidence.released
    volume = np.where(good, released.volume, np.inf)
    best = volume.argmin(axis=1)
    any_fits = good.any(axis=1)
    if evidence.record_of is not None:
        own = evidence.own_rows(rows, best)
        return np.where(any_fits, own / released.rows[best], 0.0)
    likely = np.exp(np.where(good, volume.min(axis=1, initial=np.inf)[:, None] - released.volume, -np.inf))
    weight = likely @ released.rows.astype(np.float64)
    return np.where(any_fits, 1 / np.maximum(weight, 1), 0.0)


def _all_fit(evidence: RowEvidence) -> Callable[[Matches], Bools]:
    needed = len(evidence.members.attributes)
    return lambda matches: matches == needed


def _true_values(evidence: RowEvidence) -> Callable[[Attribute, Ints], Fits]:
    return lambda attribute, rows: fitting_one(attribute, rows, evidence.released.first)


def _guess(evidence: RowEvidence) -> float:
    """The chance to pick a person's row blindly."""
    people = len(np.unique(evidence.members.person[evidence.members.records.usable]))
    return 1 / max(people, 1)


def _raw_exact(people: People) -> float:
    """The same on the raw data: rows with exactly the target's values."""
    codes = raw_codes(people)[people.records.usable]
    person = people.person[people.records.usable]
    _, group, size = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    width = int(person.max(initial=0)) + 1
    _, turn, own = np.unique(group * width + person, return_inverse=True, return_counts=True)
    place = np.full(len(people.person), -1, np.int64)
    place[people.records.usable] = np.arange(len(group))
    at = place[people.targets]
    return float(np.mean(own[turn[at]] / size[group[at]])) if len(at) else 0.0


def _raw_near(people: People, skipped: Ints | None, wrong: npt.NDArray[np.int64] | None) -> float:
    """The same on the raw data with one attribute unknown (``skipped``) or wrong (``wrong``: the known values)."""
    codes = raw_codes(people)
    usable = np.flatnonzero(people.records.usable)
    everyone, person = codes[usable], people.person[usable]
    needed = codes.shape[1] - 1
    found = []
    for place, row in enumerate(people.targets.tolist()):
        known = codes[row] if wrong is None else wrong[place]
        same = (everyone == known).astype(np.int8)
        if skipped is not None:
            same[:, skipped[place]] = 0
        hit = same.sum(axis=1, dtype=np.int8) >= needed
        found.append((person[hit] == people.person[row]).sum() / max(int(hit.sum()), 1))
    return float(np.mean(found)) if found else 0.0


def _rates(attack: Attack, evidence: RowEvidence, found: Floats, raw: float) -> Attack:
    return replace(
        attack, success=Rate.of(found), guess=_guess(evidence), raw=raw, control=0.0, control_is=NO_ROW
    )  # fmt: skip


# ---- the attackers


def _knowledge(evidence: RowEvidence) -> str:
    return "the person's true " + ", ".join(attribute.name for attribute in evidence.members.attributes)


def _prosecutor(evidence: RowEvidence) -> Attack:
    attack = _named("prosecutor", _knowledge(evidence) + "; that the person is in the data")
    found = _picked(evidence, _all_fit(evidence), _true_values(evidence), narrowest=True)
    return _rates(attack, evidence, found, _raw_exact(evidence.members))


def _marketer(evidence: RowEvidence) -> Attack:
    wants = "A row drawn from all that fit the person is the person's: the share of everybody's rows found this way."
    attack = _named("marketer", _knowledge(evidence) + ", for everybody", wants)
    found = _picked(evidence, _all_fit(evidence), _true_values(evidence))
    return _rates(attack, evidence, found, _raw_exact(evidence.members))


def _journalist(evidence: RowEvidence) -> Attack:
    attack = _named("journalist", _knowledge(evidence) + "; not whether the person is in the data")
    if evidence.outsiders is None:
        return attack.not_applicable("it needs people who are not in the data; give them as the control group")
    inside = _picked(evidence, _all_fit(evidence), _true_values(evidence), narrowest=True)
    everybody = np.concatenate([inside, np.zeros(len(evidence.outsiders.targets))])
    part = len(inside) / max(len(everybody), 1)
    attack = _rates(attack, evidence, everybody, _raw_exact(evidence.members) * part)
    return replace(attack, guess=_guess(evidence) * part)


def _one_unknown(evidence: RowEvidence) -> Attack:
    attack = _named("one unknown", _knowledge(evidence) + ", but one of them (at random) is not known")
    people = evidence.members
    if len(people.attributes) < 2:
        return attack.not_applicable("only one quasi-identifier is known")
    unknown = evidence.random.integers(len(people.attributes), size=len(people.person))
    place = {attribute.name: at for at, attribute in enumerate(people.attributes)}

    def fits(attribute: Attribute, rows: Ints) -> Fits:
        is_unknown: Bools = unknown[rows] == place[attribute.name]
        return fitting_one(attribute, rows, evidence.released.first) | is_unknown[:, None]

    found = _picked(evidence, _all_fit(evidence), fits, narrowest=True)
    return _rates(attack, evidence, found, _raw_near(people, unknown[people.targets], None))


def _one_wrong(evidence: RowEvidence) -> Attack:
    attack = _named("one wrong", _knowledge(evidence) + ", but one of them (at random, not known which) is wrong")
    people, random = evidence.members, evidence.random
    count = len(people.attributes)
    if count < 2:
        return attack.not_applicable("only one quasi-identifier is known")
    at = random.integers(count, size=len(people.person))
    source = random.integers(len(people.person), size=len(people.person))
    place = {attribute.name: number for number, attribute in enumerate(people.attributes)}

    def fits(attribute: Attribute, rows: Ints) -> Fits:
        wrong = at[rows] == place[attribute.name]
        return fitting_one(attribute, np.where(wrong, source[rows], rows), evidence.released.first)

    def enough(matches: Matches) -> Bools:  # all but at most one attribute fit
        found: Bools = matches >= count - 1
        return found

    found = _picked(evidence, enough, fits, narrowest=True)
    codes, targets = raw_codes(people), people.targets
    known = codes[targets]
    known[np.arange(len(targets)), at[targets]] = codes[source[targets], at[targets]]
    return _rates(attack, evidence, found, _raw_near(people, None, known))


def _missing_values(evidence: RowEvidence) -> Attack:
    attack = _named(
        "missing values", _knowledge(evidence) + ", and which of them are missing from the person's record",
        "The row picked among those that fit and lack exactly the same values is the person's.",
    )  # fmt: skip
    people = evidence.members
    has_gaps = any((~attribute.carried[people.records.usable]).any() for attribute in people.attributes)
    shows_gaps = any((attribute.code < 0).any() for attribute in people.attributes)
    if not has_gaps or not shows_gaps:
        return attack.not_applicable("no value is missing from the " + ("release" if has_gaps else "records"))
    if evidence.record_of is None:
        return attack.not_applicable("it needs the trace, to know which row is whose")

    def fits(attribute: Attribute, rows: Ints) -> Fits:
        first = evidence.released.first
        same = ~attribute.carried[rows][:, None] == (attribute.code[first] < 0)[None, :]
        found: Fits = fitting_one(attribute, rows, first) & same
        return found

    found = _picked(evidence, _all_fit(evidence), fits, narrowest=True)
    return _rates(attack, evidence, found, _raw_exact(people))
