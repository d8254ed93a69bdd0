"""The checks of a plain table. Each gets one row for every class, and counts the rows of classes that break a bound."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Check, check
from shoal.auditor.findings import Finding, Severity
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation
from shoal.auditor.tables.promise import TablePromise

_ROUNDING: Final = 1e-9
"""Measures are sums of fractions; a bound is broken only beyond their rounding."""
_of_classes: Final = partial(check, families=("table",), by="class")
_MERGE: Final = "Merge classes by generalizing more, or remove these rows."


def look_at(
    classes: Relation, checks: Iterable[Check], promise: TablePromise, column: str | None = None
) -> Iterator[Finding]:
    """What the checks whose bounds are promised find; sentences name the column and have the bounds."""
    for one in checks:
        bounds = {key: getattr(promise, key) for key in one.needs}
        for found in one(classes, promise) if None not in bounds.values() else ():
            words = found.sentence if promise.person is not None else found.sentence.replace("k people", "k rows")
            for key, bound in bounds.items():
                if bound is not True:
                    words = re.sub(rf"\b{key}\b", str(bound) if isinstance(bound, int) else f"{key} = {bound}", words)
            named = f"Column {column}: {words[0].lower()}{words[1:]}" if column is not None else words
            yield replace(found, sentence=named)


@check(
    "no-rows", "The table has no row.", families=("table",), by="none", severity=Severity.WARNING,
    advice="There was nothing to check: make sure that this is the file you mean.",
)  # fmt: skip
def no_rows(_: Relation, rows: int) -> int:
    """Whether there is no row."""
    return int(rows == 0)


@_of_classes(
    "below-k", "Rows are in classes of fewer than k people.",
    needs=("k",),
    advice="Anyone who knows a person's quasi-identifiers finds the person among fewer than k: generalize more, or "
    "remove these rows.",
)  # fmt: skip
def below_k(classes: Relation, promise: TablePromise) -> int:
    """Rows of classes with fewer than k people."""
    return _rows(classes, classes["people"] < promise.k)


@_of_classes(
    "below-k-knowing-m", "Combinations of m values are shared by fewer than k people.", needs=("k", "m"),
    advice="Anyone who knows m of a person's quasi-identifiers finds the person among fewer than k: generalize more.",
)  # fmt: skip
def below_k_knowing_m(groups: Relation, promise: TablePromise) -> Bools:
    """Combinations of m values that fewer than k people share."""
    return np.asarray(groups["people"] < promise.k)


@_of_classes(
    "below-l", "Rows are in classes with fewer than l different values.", needs=("l",),
    advice=f"Whoever finds the class of a person is left with fewer than l values. {_MERGE}",
)  # fmt: skip
def below_l(classes: Relation, promise: TablePromise) -> int:
    """Rows of classes with fewer than l different values."""
    return _rows(classes, classes["l"] < promise.l)


@_of_classes(
    "below-entropy-l", "Rows are in classes whose values are less even than entropy_l.", needs=("entropy_l",),
    advice=f"Some values are so frequent in these classes that a guess is often right. {_MERGE}",
)  # fmt: skip
def below_entropy_l(classes: Relation, promise: TablePromise) -> int:
    """Rows of classes whose entropy is too small."""
    return _rows(classes, ~(classes["entropy_l"] >= (promise.entropy_l or 0) * (1 - _ROUNDING)))


@_of_classes(
    "below-recursive-l",
    "Rows are in classes whose most frequent value outweighs the rarer ones by more than recursive_l allows.",
    needs=("recursive_l",), advice=f"It is not rarer than c times all values from the l-th most frequent on. {_MERGE}",
)  # fmt: skip
def below_recursive_l(classes: Relation, promise: TablePromise) -> int:
    """Rows of classes whose most frequent value is too frequent: c must be larger than their ratio."""
    c, _ = promise.recursive_l or (0.0, 0)
    return _rows(classes, ~(classes["recursive_c"] <= c * (1 - _ROUNDING)))


@_of_classes(
    "above-alpha", "Rows are in classes in which one value has a larger share than alpha.", needs=("alpha",),
    advice=f"A guess of the most frequent value is right more often than alpha. {_MERGE}",
)  # fmt: skip
def above_alpha(classes: Relation, promise: TablePromise) -> int:
    """Rows of classes in which one value is too frequent."""
    return _rows(classes, _above(classes["alpha"], promise.alpha))


@_of_classes(
    "above-t", "Rows are in classes whose values are further from those of the table than t.", needs=("t",),
    advice=f"The class of a person tells more about the value than the whole table does. {_MERGE}",
)  # fmt: skip
def above_t(classes: Relation, promise: TablePromise) -> int:
    """Rows of classes that are too far from the table."""
    return _rows(classes, _above(classes["t"], promise.t))


@_of_classes(
    "above-beta", "Rows are in classes in which a value is more likely than beta allows.", needs=("beta",),
    advice=f"A value is far more likely in the class of a person than in the table. {_MERGE}",
)  # fmt: skip
def above_beta(classes: Relation, promise: TablePromise) -> int:
    """Rows of classes in which a value became too likely."""
    return _rows(classes, _above(classes["beta"], promise.beta))


@_of_classes(
    "not-in-population", "Rows are in classes that have fewer rows in the population.", needs=("population",),
    advice="The population is not everyone who could be in the table, or its values are spelt or generalized in "
    "another way: give one that contains the table, in the same form.",
)  # fmt: skip
def not_in_population(classes: Relation, _: TablePromise) -> int:
    """Rows of the table in classes with fewer rows in the population."""
    more = classes["table"] > classes["population"]
    return int((classes["table"] * classes["classes"])[more].sum())


@_of_classes(
    "outside-presence", "People of the population are in the table with a probability outside presence.",
    needs=("presence",),
    advice="Anyone who knows that a person could be in the table learns whether the person is: publish another sample.",
)  # fmt: skip
def outside_presence(classes: Relation, promise: TablePromise) -> int:
    """People of the population in classes of which too small or too large a share is in the table."""
    (low, high), there = promise.presence or (0.0, 0.0), classes["population"]
    share = classes["table"] / np.maximum(there, 1)
    outside = (there > 0) & ~((share >= low) & (share <= high))
    return int((there * classes["classes"])[outside].sum())


DIVERSITY: Final = (below_l, below_entropy_l, below_recursive_l, above_alpha)
CLOSENESS: Final = (above_t, above_beta)
PRESENCE: Final = (not_in_population, outside_presence)


def _rows(classes: Relation, broken: Any) -> int:
    return int(classes["rows"][broken].sum())


def _above(found: Any, bound: float | None) -> Any:
    return ~(found <= (bound or 0) * (1 + _ROUNDING) + _ROUNDING)
