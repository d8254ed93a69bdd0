"""l, entropy l and t of every class, and of every cluster whenever a row was published by it.

A missing value protects nobody: only known values count towards l and entropy l, and t holds on the known values and on
all. A class without a known value reveals none. What is measured of a row's class or cluster is a column of the row,
NaN if there is nothing to measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Answer, Check, Found, Function, check, look
from shoal.auditor.counting import numbered
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.texts import kept
from shoal.auditor.tuples.diversity.distances import (
    References,
    Sets,
    away,
    distinct,
    effective,
    gather,
    growing,
    growth_sizes,
    known_sets,
    refer,
)
from shoal.auditor.tuples.diversity.sensitive import Sensitive
from shoal.auditor.tuples.groups import in_order
from shoal.auditor.tuples.promise import TuplePromise

_ROUNDING: Final = 1e-7
_NOTHING: Final = 2.0**-52
"""Smaller distances are what is left of sums in another order."""
_MOST_ENTRIES: Final = 200_000_000
_MOST_OF_ONE: Final = 4_000_000
"""More entries than this, of all clusters or of one, are not made."""
_ENTRIES_AT_ONCE: Final = 1_000_000
_MEASURES: Final = {"l": np.fmin, "entropy_l": np.fmin, "t": np.fmax}
"""By measure, which of two is worse."""
TOO_MANY: Final = "too many values"
_ADVICE: Final = "Whoever finds a person's class learns too much of the value: publish larger classes."


# ---- classes


def class_shape(columns: Sequence[Sensitive]) -> Shape:
    """The columns that `with_class_measures` adds."""
    return {_of_class(column, measure): float for column in columns for measure in (*_MEASURES, "declared t")}


def _of_class(column: Sensitive, measure: str) -> str:
    return f"{column.name}: {measure} of the class"


def count_values(columns: Sequence[Sensitive], rows: Relation) -> dict[str, dict[str | None, int]]:
    """Count how often each value is in checked rows."""
    judged, found = kept(rows, rows["judged"]), {}
    for column in columns:
        number_of, (codes,) = column.numbers(judged[column.column])
        times = np.bincount(codes, minlength=len(number_of)).tolist()
        found[column.name] = {meant: times[number] for meant, number in number_of.items() if times[number]}
    return found


def with_class_measures(columns: Sequence[Sensitive], rows: Relation) -> Relation:
    """Measure the class of every row: against all rows as pycanon does, and against what the policy declares."""
    judged = np.flatnonzero(rows["judged"])
    classes, own = numbered(rows["class"][judged])
    measured: dict[str, Floats] = {}
    for column in columns:
        further = (*column.overall, *column.declared)
        number_of, (codes,) = column.numbers(rows[column.column], further=further)
        sets, only = gather(own, codes[judged], len(classes)), np.zeros(len(classes), np.int64)
        overall, declared = (_table(number_of, shares) for shares in (column.overall, column.declared))
        of_class = _measures(column, sets, overall, only)
        of_class["declared t"] = _measures(column, sets, declared, only)["t"]
        for name, values in of_class.items():
            measured[_of_class(column, name)] = np.full(len(rows), np.nan)
            measured[_of_class(column, name)][judged] = values[own]
    return rows.having(**measured)


def _table(number_of: Mapping[str | None, int], shares: Mapping[str | None, float]) -> References:
    """One reference for all sets."""
    value = np.array([number_of[meant] for meant in shares], np.int64)
    weight = np.array(list(shares.values()), np.float64)
    return refer(np.zeros(len(value), np.int64), value, weight, count=1, width=len(number_of))


def _measures(column: Sensitive, sets: Sets, references: References, of_set: Ints) -> dict[str, Floats]:
    """Measure sets; l and entropy l only of known values, t only where there is a reference."""
    known = known_sets(sets)
    reveals, there = known.sizes > 0, (sets.sizes > 0) & (np.diff(references.begin)[of_set] > 0)
    apart = np.full(sets.count, np.nan)
    if there.any():
        apart = np.where(there, away(sets, references, of_set, is_ordered=column.is_ordered), np.nan)
    distinct_ones, evenness = (np.where(reveals, measure(known), np.nan) for measure in (distinct, effective))
    return {"l": distinct_ones, "entropy_l": evenness, "t": apart}


def measure_classes(columns: Sequence[Sensitive], rows: Relation) -> Found:
    """Find the worst class of every column, unless no class reveals a value."""
    found = Found()
    for column in columns:
        worst = {name: rows[_of_class(column, name)] for name in _MEASURES}
        _keep_worst(found, column.name, worst)
        found.findings += no_known_value(rows.only("judged"), column, worst["l"])
    return found


@check(
    "no-known-value",
    "Rows are in classes without a known value; they reveal none of it.",
    advice="Nothing to do; l and entropy l do not count these classes.",
    families=("tuples",),
    by="class",
    severity=Severity.INFO,
)
def no_known_value(rows: Relation, column: Sensitive, known: Floats) -> Answer:
    """Count checked rows of classes that have no known value of a column, of which nothing was measured."""
    sentence = f"Column {column.name!r}: rows are in classes without a known value; they reveal none of it."
    return Answer(rows["judged"] & np.isnan(known), sentence=sentence)


def _keep_worst(found: Found, name: str, measured: Mapping[str, Floats]) -> None:
    for measure, values in measured.items():
        known = values[~np.isnan(values)]
        kept, worst = (found.most, np.max) if measure == "t" else (found.least, np.min)
        figure = float(worst(known)) if len(known) else None
        kept[f"{measure} {name}"] = 0.0 if figure is not None and figure < _NOTHING else figure


def worst_of(found: Found, columns: Sequence[Sensitive]) -> dict[str, dict[str, Any]]:
    """The worst measures by name and column; none of a column whose classes reveal nothing."""
    there = [column.name for column in columns if found.least.get(f"l {column.name}") is not None]
    kept = {"l": found.least, "entropy_l": found.least, "t": found.most}
    worst = {measure: {name: kept[measure][f"{measure} {name}"] for name in there} for measure in _MEASURES}
    worst["l"] = {name: int(value) for name, value in worst["l"].items() if value is not None}
    return worst


# ---- clusters


@dataclass(frozen=True, slots=True)
class Grown:
    """The growth of clusters: for released rows the cluster and how often it had been reused."""

    row: Ints
    cluster: Ints
    step: Ints
    count: int
    """How many clusters there are."""


def read_growth(cluster: Ints, formed: Bools, event: Ints | None, count: int) -> Grown:
    """Number the steps in which clusters grew: the event that formed a cluster, then every event that reused it.

    If events are not known, every reused row is its own step.
    """
    rows = np.flatnonzero(cluster >= 0)
    own = cluster[rows]
    order = np.lexsort((np.arange(len(rows)) if event is None else event[rows], own))
    if event is None:
        later = ~formed[rows][order]
    else:
        later = np.append(False, np.diff(event[rows][order]) != 0)[: len(rows)]
    total = np.cumsum(later.astype(np.int64))
    start = np.searchsorted(own[order], own[order])
    step = np.empty(len(rows), np.int64)
    step[order] = total - total[start] + (later[start] if event is None else 0)
    return Grown(rows, own, step, count)


@dataclass(frozen=True, slots=True)
class Promised:
    """What the rows of clusters are compared with."""

    columns: tuple[Sensitive, ...]
    promise: TuplePromise
    has_events: bool
    references: bool
    """Whether the trace records what t is measured against."""
    is_checked: bool
    """Whether something is promised."""


def look_at_diversity(promised: Promised, rows: Relation) -> Found:
    """Measure clusters as they grew, and check the worst of a row's class and cluster, each row once.

    References of the trace are rows too: with a cluster, but without a number.
    """
    recorded = rows.take(rows["row"] < 0)
    rows = in_order(kept(rows, rows["row"] >= 0))
    worst = {measure: np.full(len(rows), np.nan) for measure in _MEASURES}
    number = np.full(len(rows), -1, np.int64)
    grouped = np.flatnonzero(rows["group"] >= 0)
    names, number[grouped] = numbered(rows["group"][grouped])
    event = rows["event"] if promised.has_events else None
    grown, found = read_growth(number, rows["formed"], event, len(names)), Found()
    missing = np.zeros(len(names), np.bool_)
    for column in promised.columns:
        of_column = _of_cluster(column, recorded, names, rows, promised)
        missing |= promised.references & (np.diff(of_column.references.begin) == 0)
        _measure_ends(found, column, of_column, rows, number)
        if not promised.is_checked:
            continue
        for measure, values in _as_they_grew(of_column, grown, found).items():
            of_row = np.append(values, np.nan)[number]  # number -1 picks the last
            name = "declared t" if measure == "t" else measure
            pair = _MEASURES[measure](of_row, rows[_of_class(column, name)])
            worst[measure] = _MEASURES[measure](worst[measure], pair)
    rows = rows.having(**worst)
    found.sums["in clusters"] = int((rows["judged"] & (number >= 0)).sum())
    if promised.is_checked:
        found.findings = look(rows, (below_l, below_entropy_l, above_t), promised.promise)
    if promised.references:
        formed = np.zeros(len(names), np.bool_)
        formed[number[rows["formed"]]] = True
        found.findings += no_reference(rows, missing & formed)
    return found


@dataclass(frozen=True, slots=True)
class _OfColumn:
    """A sensitive column of some rows, and what t of its clusters is measured against."""

    column: Sensitive
    codes: Ints
    references: References
    overall: References
    is_declared: bool

    def of_set(self, cluster: Ints) -> Ints:
        """The reference of each set."""
        return np.zeros_like(cluster) if self.is_declared else cluster


def _of_cluster(column: Sensitive, recorded: Relation, names: Ints, rows: Relation, promised: Promised) -> _OfColumn:
    """Number the values of a column, and find the references of its clusters."""
    if promised.references:
        own = recorded.take(recorded.codes("reference column") == recorded["reference column"].of(column.name))
        number_of, (codes, values) = column.numbers(rows[column.column], own["reference value"], further=column.overall)
        cluster = np.searchsorted(np.sort(names), own["group"])
        order = np.argsort(names)
        known = np.isin(own["group"], names)
        references = refer(
            order[cluster[known]], values[known], np.maximum(own["reference count"][known], 0).astype(np.float64),
            count=len(names), width=len(number_of),
        )  # fmt: skip
        return _OfColumn(column, codes, references, _table(number_of, column.overall), is_declared=False)
    further = (*column.overall, *column.declared)
    number_of, (codes,) = column.numbers(rows[column.column], further=further)
    overall, declared = (_table(number_of, shares) for shares in (column.overall, column.declared))
    return _OfColumn(column, codes, declared, overall, is_declared=True)


def _measure_ends(found: Found, column: Sensitive, of_column: _OfColumn, rows: Relation, number: Ints) -> None:
    """Find the worst cluster when all its rows were published."""
    inside = np.flatnonzero(rows["judged"] & (number >= 0))
    clusters, own = numbered(number[inside])
    sets = gather(own, of_column.codes[inside], len(clusters))
    measured = _measures(column, sets, of_column.overall, np.zeros(len(clusters), np.int64))
    _keep_worst(found, column.name, measured)


def _as_they_grew(of_column: _OfColumn, grown: Grown, found: Found) -> dict[str, Floats]:
    """The worst measures of every cluster after any step of its growth; NaN for none."""
    worst = {measure: np.full(grown.count, np.nan) for measure in _MEASURES}
    for sets, cluster in _growing_sets(of_column.codes[grown.row], grown, found):
        of_set = of_column.of_set(cluster)
        for measure, values in _measures(of_column.column, sets, of_column.references, of_set).items():
            _MEASURES[measure].at(worst[measure], cluster, values)
    return worst


def _growing_sets(value: Ints, grown: Grown, found: Found) -> Iterator[tuple[Sets, Ints]]:
    """Yield the sets of clusters after every step, some clusters at a time, and the cluster of every set."""
    if not len(grown.row):
        return
    sizes = growth_sizes(grown.cluster, value, grown.step, grown.count)
    if sizes.sum() > _MOST_ENTRIES or sizes.max() > _MOST_OF_ONE:
        found.sums[TOO_MANY] = 1
        yield gather(grown.cluster, value, grown.count), np.arange(grown.count)
        return
    chunk = np.cumsum(sizes) // _ENTRIES_AT_ONCE
    order = np.argsort(grown.cluster, kind="stable")
    for number in np.unique(chunk).tolist():
        first, after = np.searchsorted(chunk, [number, number + 1]).tolist()
        rows = order[slice(*np.searchsorted(grown.cluster[order], [first, after]).tolist())]
        sets, own = growing(grown.cluster[rows] - first, value[rows], grown.step[rows], after - first)
        yield sets, own + first


def _check(code: str, sentence: str, *needs: str) -> Callable[[Function], Check]:
    return check(code, sentence, advice=_ADVICE, families=("tuples",), by="group", needs=needs)


@_check("below-l", "A class or cluster has fewer different sensitive values than promised.", "l")
def below_l(rows: Relation, promise: TuplePromise) -> Bools | int:
    """Mark rows whose class or cluster has fewer than l known values."""
    return 0 if promise.diversity.l is None else rows["l"] < promise.diversity.l


@_check("below-entropy-l", "The sensitive values of a class or cluster are less even than promised.", "entropy_l")
def below_entropy_l(rows: Relation, promise: TuplePromise) -> Bools | int:
    """Mark rows whose class or cluster has values that are less even than l equally frequent ones."""
    wanted = promise.diversity.entropy_l
    return 0 if wanted is None else rows["entropy_l"] < wanted * (1 - _ROUNDING)


@_check("above-t", "The sensitive values of a class or cluster are further from the reference than promised.", "t")
def above_t(rows: Relation, promise: TuplePromise) -> Bools | int:
    """Mark rows whose class or cluster is further than t from the reference."""
    return 0 if promise.diversity.t is None else rows["t"] > promise.diversity.t + _ROUNDING


@check(
    "wrong-reference",
    "The trace does not record the reference of t.",
    advice="The evidence is damaged: run the method again and keep the trace as it was written.",
    families=("tuples",),
    by="group",
    needs=("trace", "t"),
)
def no_reference(_: Relation, clusters: Bools) -> int:
    """Count clusters without a reference for some sensitive column."""
    return int(clusters.sum())
