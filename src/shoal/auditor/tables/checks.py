"""The checks of a plain table. Each gets one row for every class, and counts the rows of classes that break a bound."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Answer, Check, check
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation
from shoal.auditor.tables.promise import TablePromise

_ROUNDING: Final = 1e-9
"""Measures are sums of fractions; a bound is broken only beyond their rounding."""
_TABLE: Final = ("table",)


def promised(checks: Iterable[Check], promise: TablePromise) -> list[Check]:
    """The checks whose bounds are promised."""
    return [one for one in checks if all(getattr(promise, key) is not None for key in one.needs)]


@check(
    "no-rows", "The table has no row.", families=_TABLE, by="none", severity=Severity.WARNING,
    advice="Nothing was checked, because there is nothing. Check that this is the file you mean.",
)  # fmt: skip
def no_rows(_: Relation, rows: int) -> int:
    """Whether there is no row."""
    return int(rows == 0)


# ---- how many people a class has


@check(
    "below-k", "Rows are in classes of fewer than k.", families=_TABLE, by="class", needs=("k",),
    advice="Someone who knows these people's quasi-identifiers finds them among fewer than k: generalize more.",
)  # fmt: skip
def below_k(classes: Relation, promise: TablePromise) -> Answer:
    """Rows of classes with fewer than k people."""
    few = classes["people"] < promise.k
    return _rows(classes, few, f"Rows are in classes of fewer than {promise.k} {promise.unit}; generalize or remove them.")


@check(
    "below-k-knowing-m", "Combinations of m values are shared by fewer than k.", families=_TABLE, by="class",
    needs=("k", "m"),
    advice="Someone who knows only m of the quasi-identifiers finds these people among fewer than k: generalize more.",
)  # fmt: skip
def below_k_knowing_m(groups: Relation, promise: TablePromise) -> Answer:
    """Combinations of m values that fewer than k people share."""
    sentence = (
        f"Combinations of {promise.m} values are shared by fewer than {promise.k} {promise.unit}; "
        "generalize or remove them."
    )
    return Answer(groups["people"] < promise.k, sentence=sentence)


# ---- sensitive values


@check(
    "below-l", "Rows are in classes with fewer than l different values.", families=_TABLE, by="class", needs=("l",),
    advice="Whoever finds the class of a person is left with fewer than l values: merge classes or remove rows.",
)  # fmt: skip
def below_l(classes: Relation, promise: TablePromise, column: str) -> Answer:
    """Rows of classes with fewer than l different values."""
    words = f"with fewer than {promise.l} different values"
    return _rows(classes, classes["l"] < promise.l, _about(column, words))


@check(
    "below-entropy-l", "Rows are in classes whose values are less even than entropy_l.", families=_TABLE, by="class",
    needs=("entropy_l",),
    advice="One value is so frequent in these classes that a guess is often right: merge classes or remove rows.",
)  # fmt: skip
def below_entropy_l(classes: Relation, promise: TablePromise, column: str) -> Answer:
    """Rows of classes whose entropy is too small."""
    uneven = ~(classes["entropy_l"] >= _bound(promise.entropy_l) * (1 - _ROUNDING))
    return _rows(classes, uneven, _about(column, f"whose values are less even than entropy_l = {promise.entropy_l}"))


@check(
    "below-recursive-l", "Rows are in classes whose most frequent value is too frequent for (c, l).",
    families=_TABLE, by="class", needs=("recursive_l",),
    advice="The most frequent value outweighs the rarer ones, so a guess is often right: merge classes or remove rows.",
)  # fmt: skip
def below_recursive_l(classes: Relation, promise: TablePromise, column: str) -> Answer:
    """Rows of classes whose most frequent value is not rarer than c times the tail."""
    c, least = promise.recursive_l or (0.0, 0)
    words = f"whose most frequent value is not rarer than {c} times all values from number {least} on, by frequency"
    frequent = ~(classes["recursive_c"] <= c * (1 - _ROUNDING))  # it must be smaller than c
    return _rows(classes, frequent, _about(column, words))


@check(
    "above-alpha", "Rows are in classes in which one value has a larger share than alpha.", families=_TABLE,
    by="class", needs=("alpha",),
    advice="A guess of the most frequent value is right more often than alpha: merge classes or remove rows.",
)  # fmt: skip
def above_alpha(classes: Relation, promise: TablePromise, column: str) -> Answer:
    """Rows of classes in which one value is too frequent."""
    words = f"in which one value has a larger share than alpha = {promise.alpha}"
    return _rows(classes, _above(classes["alpha"], promise.alpha), _about(column, words))


@check(
    "above-t", "Rows are in classes whose values are further from those of the table than t.", families=_TABLE,
    by="class", needs=("t",),
    advice="The class of a person tells more about the value than the whole table does: merge classes or remove rows.",
)  # fmt: skip
def above_t(classes: Relation, promise: TablePromise, column: str) -> Answer:
    """Rows of classes that are too far from the table."""
    words = f"whose values are further from those of the table than t = {promise.t}"
    return _rows(classes, _above(classes["t"], promise.t), _about(column, words))


@check(
    "above-beta", "Rows are in classes in which a value is more likely than beta allows.", families=_TABLE,
    by="class", needs=("beta",),
    advice="A value is far more likely in the class of a person than in the table: merge classes or remove rows.",
)  # fmt: skip
def above_beta(classes: Relation, promise: TablePromise, column: str) -> Answer:
    """Rows of classes in which a value became too likely."""
    words = f"in which a value is more likely than beta = {promise.beta} allows"
    return _rows(classes, _above(classes["beta"], promise.beta), _about(column, words))


# ---- the table and the population it was drawn from


@check(
    "not-in-population", "Rows are in classes that have fewer rows in the population: it is not everyone who could be "
    "in the table, or its values are spelt or generalized in another way.",
    families=_TABLE, by="class", needs=("population",),
    advice="Presence cannot be measured for these rows: give a population that contains the table, spelt alike.",
)  # fmt: skip
def not_in_population(classes: Relation, _: TablePromise) -> int:
    """Rows of the table in classes with fewer rows in the population."""
    more = classes["table"] > classes["population"]
    return int((classes["table"] * classes["classes"])[more].sum())


@check(
    "outside-presence", "People of the population are in the table with a probability outside the promise.",
    families=_TABLE, by="class", needs=("presence",),
    advice="Someone who knows that a person could be in the table learns whether the person is: publish another sample.",
)  # fmt: skip
def outside_presence(classes: Relation, promise: TablePromise) -> Answer:
    """People of the population in classes of which too small or too large a share is in the table."""
    low, high = promise.presence or (0.0, 0.0)
    there = classes["population"]
    share = classes["table"] / np.maximum(there, 1)
    outside = (there > 0) & ~((share >= low) & (share <= high))
    sentence = f"People of the population are in the table with a probability outside {low} to {high}."
    return Answer(count=int((there * classes["classes"])[outside].sum()), sentence=sentence)


DIVERSITY: Final = (below_l, below_entropy_l, below_recursive_l, above_alpha)
CLOSENESS: Final = (above_t, above_beta)
PRESENCE: Final = (not_in_population, outside_presence)


def _rows(classes: Relation, broken: Bools, sentence: str) -> Answer:
    return Answer(count=int(classes["rows"][broken].sum()), sentence=sentence)


def _about(column: str, words: str) -> str:
    return f"Column {column}: rows are in classes {words}."


def _above(found: Any, bound: float | None) -> Bools:
    return np.asarray(~(found <= _bound(bound) * (1 + _ROUNDING) + _ROUNDING))


def _bound(bound: float | None) -> float:
    return 0.0 if bound is None else bound
