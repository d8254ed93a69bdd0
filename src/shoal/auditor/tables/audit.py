"""The audit of a plain table of any tool: classes of equal quasi-identifiers, and the models of the field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Found, all_found, look
from shoal.auditor.engine import Place
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.batches import read_batches
from shoal.auditor.reading.files import Reader
from shoal.auditor.reading.memory import current
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.tables import checks
from shoal.auditor.tables.classes import count_values
from shoal.auditor.tables.coding import Codes, exact, person
from shoal.auditor.tables.in_batches import WORK, InBatches
from shoal.auditor.tables.measures import closeness, diversity
from shoal.auditor.tables.promise import TablePromise, read_promise
from shoal.auditor.tables.values import Values

TABLE, POPULATION = "table", "population"
_LEAST: Final = ("l", "entropy_l")
"""Figures of a sensitive column whose worst class has the smallest one."""
_MOST: Final = ("t", "recursive_c", "alpha", "beta")


@contextmanager
def open_tables(policy: Policy, inputs: Mapping[str, Any]) -> Iterator[InBatches]:
    """A table and its population in this process: rows are read once, in batches."""
    formats, names = formats_of_tables(policy), _columns(policy)
    batches = {role: partial(_batches, what, names[role], role, formats[role]) for role, what in inputs.items()}
    with TemporaryDirectory(prefix="shoal-audit-", ignore_cleanup_errors=True) as folder:
        yield InBatches(batches=batches, folder=Path(folder), allowed=current().left // WORK)


def formats_of_tables(policy: Policy) -> dict[str, Format]:
    """The formats of the files of a table and its population."""
    return dict.fromkeys((TABLE, POPULATION), Format.of(policy.section("sink")))


def reader_of_tables(policy: Policy, role: str) -> Reader:
    """What reads a file of a role into memory."""
    return partial(read_columns, _columns(policy)[role])


def _columns(policy: Policy) -> dict[str, tuple[str, ...]]:
    """The columns that are read, by role."""
    promise = read_promise(policy)
    return {TABLE: promise.columns, POPULATION: promise.quasi}


def read_columns(names: tuple[str, ...], what: Any, *, name: str, expected: Format) -> Rows:
    """Read some columns of a file; InputError if a row cannot be read."""
    return Rows(tuple(part for rows in _batches(what, names, name, expected) for part in rows.parts), name)


def _batches(what: Any, names: tuple[str, ...], role: str, expected: Format) -> Iterator[Rows]:
    for columns in read_batches(what, names, name=role, expected=expected):
        yield Rows(((columns, np.zeros(len(columns[names[0]]), np.bool_)),), role)


def audit_tables(place: Place, policy: Policy) -> AuditReport:
    """Check a table, wherever its rows are."""
    promise = read_promise(policy)
    table = _read(place, TABLE, promise.columns, promise.person)
    values = [*_values(place, table, promise)]
    found = all_found(place.divide(table, promise.quasi, partial(look_at_classes, promise=promise, values=values)))
    if promise.person is not None:
        found.add(_count_people(place, table, promise))
    if promise.m is not None:
        found.add(_look_at_combinations(place, table, promise))
    if promise.population:
        found.add(_look_at_presence(place, table, promise))
    notes = Notes(counts_rows=promise.person is None)
    if not promise.is_promised:
        notes.skip("Nothing is promised about this table, so nothing is broken: name what must hold, such as k.")
    notes.findings = [*look(Relation(), [checks.no_rows], found.sums.get("rows", 0)), *found.findings]
    _note_sizes(found, promise, notes)
    _note_sensitive(found, values, notes)
    return notes.report("table")


# ---- rows as numbers


def count_classes(place: Place, role: str, promise: TablePromise) -> Found:
    """Count the rows, the people and the classes of what has a role."""
    table = _read(place, role, promise.columns, promise.person)
    found = all_found(place.divide(table, promise.quasi, partial(look_at_classes, promise=promise)))
    if promise.person is not None:
        found.add(_count_people(place, table, promise))
    return found


def _read(place: Place, role: str, names: Sequence[str], of_people: str | None = None) -> Any:
    codes = {name: Codes(name, person if name == of_people else exact) for name in names}

    def coded(rows: Rows, _: int) -> Relation:
        return Relation({name: codes[name].encode([part[name] for part, _ in rows.parts]) for name in names})

    return place.read(role, coded, dict.fromkeys(names, str))


def _shown(rows: Relation, promise: TablePromise) -> Relation:
    """The rows that are not suppressed."""
    word = exact(promise.suppressed)
    if word is None:
        return rows
    shown = np.zeros(len(rows), np.bool_)
    for name in promise.quasi:
        shown |= rows.codes(name) != rows[name].of(word)
    return rows.take(shown)


def _values(place: Place, table: Any, promise: TablePromise) -> Iterator[Values]:
    """How often each sensitive value is in the table."""
    for name in promise.sensitive:
        each = partial(_count_each, name=name, promise=promise)
        counted = place.gather(place.each(table, each, {"value": str, "rows": int}))
        texts, counts = (*counted["value"].texts, None), Counter[str | None]()  # code -1, missing, picks the last
        for code, rows in zip(counted.codes("value").tolist(), counted["rows"].tolist(), strict=True):
            counts[texts[code]] += rows
        yield Values.of(name, counts, promise.t_distance)


def _count_each(rows: Relation, name: str, promise: TablePromise) -> Relation:
    column = _shown(rows, promise)[name]
    count = np.bincount(column.codes + 1)
    seen = np.flatnonzero(count)
    return Relation({"value": Texts(seen - 1, column.texts), "rows": count[seen]})


# ---- classes


def look_at_classes(rows: Relation, promise: TablePromise, values: Sequence[Values] = ()) -> Found:
    """Count and measure all classes that some rows have."""
    shown = _shown(rows, promise)
    sizes = _sizes(shown, promise.quasi, promise.person)
    found = Found([*checks.look_at(sizes, [checks.below_k], promise)])
    found.sums = {
        "rows": len(rows),
        "shown": len(shown),
        "classes": len(sizes),
        "unique": int((sizes["rows"] == 1).sum()),
        "below": checks.below_k.function(sizes, promise) if promise.k is not None else 0,
    }
    found.least["k"] = int(sizes["people"].min()) if len(sizes) else None
    for column in values if len(shown) else ():
        found.add(_look_at_values(shown, promise, column))
    return found


def _sizes(rows: Relation, names: Sequence[str], of_people: str | None) -> Relation:
    """The rows and the people of every class; without a column of people every row counts as one."""
    if of_people is None:
        counted = count_values(rows, names, np.int64(0), 1)
        return Relation({"rows": counted.count, "people": counted.count})
    column = rows[of_people]
    counted = count_values(rows, names, column.codes + 1, len(column.texts) + 1)  # 0: nobody
    return Relation({"rows": counted.sums(counted.count), "people": counted.sums(counted.value > 0)})


def _look_at_values(rows: Relation, promise: TablePromise, column: Values) -> Found:
    """Measure the values of a sensitive column in every class."""
    counted = count_values(rows, promise.quasi, column.of_rows(rows[column.name]), len(column.rows))
    close, diverse = closeness(counted, column), diversity(counted, column, promise.recursive_l)
    found = Found([
        *checks.look_at(diverse, checks.DIVERSITY, promise, column.name),
        *checks.look_at(close, checks.CLOSENESS, promise, column.name),
    ])  # fmt: skip
    for classes in (close, diverse):
        for name in classes if len(classes) else ():
            if name in _LEAST:
                found.least[f"{name} {column.name}"] = float(classes[name].min())
            elif name in _MOST:
                found.most[f"{name} {column.name}"] = float(classes[name].max())
    return found


# ---- people, any m values, the population


def _count_people(place: Place, table: Any, promise: TablePromise) -> Found:
    """Count the people of the table, and those who are in a class of fewer than k."""
    name = str(promise.person)
    people = place.regroup(table, promise.quasi, partial(_people_of_classes, promise=promise), {name: str, "few": bool})
    return all_found(place.divide(people, (name,), partial(_different_people, name=name)))


def _people_of_classes(rows: Relation, promise: TablePromise) -> Relation:
    """The people of some classes, and whether they are in a small one; people of suppressed rows are in none."""
    name, shown = str(promise.person), _shown(rows, promise)
    texts = rows[name].texts
    counted = count_values(shown, promise.quasi, shown.codes(name) + 1, len(texts) + 1)
    few = counted.sums(counted.value > 0) < (promise.k or 0)
    found = np.zeros(len(texts) + 1, np.int8)
    found[rows.codes(name) + 1] = 1
    found[counted.value[few[counted.class_of]]] = 2
    people = np.flatnonzero(found[1:])
    return Relation({name: Texts(people, texts), "few": found[1:][people] == 2})


def _different_people(rows: Relation, name: str) -> Found:
    few = rows["few"]
    every, exposed = (len(np.unique(rows.codes(name)[which])) for which in (slice(None), few))
    return Found(sums={"people": every, "exposed": exposed})


def _look_at_combinations(place: Place, table: Any, promise: TablePromise) -> Found:
    """Count the groups of every m quasi-identifiers; groups of fewer ones are larger."""
    return all_found(
        found
        for names in combinations(promise.quasi, promise.m or 0)
        for found in place.divide(table, names, partial(_look_at_groups, names=names, promise=promise))
    )


def _look_at_groups(rows: Relation, names: Sequence[str], promise: TablePromise) -> Found:
    groups = _sizes(_shown(rows, promise), names, promise.person)
    groups = groups.take(groups["people"] > 0)
    found = Found([*checks.look_at(groups, [checks.below_k_knowing_m], promise)], {"combinations": len(groups)})
    found.least["k knowing m"] = int(groups["people"].min()) if len(groups) else None
    return found


def _look_at_presence(place: Place, table: Any, promise: TablePromise) -> Found:
    """Compare the classes of the table with those of the population: δ-presence."""
    everyone = _read(place, POPULATION, promise.quasi)
    shape: Shape = {TABLE: int, POPULATION: int, "classes": int}
    classes = place.gather(place.both(table, everyone, promise.quasi, partial(_compared, promise=promise), shape))
    found, known = Found([*checks.look_at(classes, checks.PRESENCE, promise)]), classes[POPULATION] > 0
    share = classes[TABLE][known] / classes[POPULATION][known]
    if len(share):
        found.least["share"], found.most["share"] = float(share.min()), float(share.max())
    return found


def _compared(rows: Relation, everyone: Relation, promise: TablePromise) -> Relation:
    """How many rows classes have in the table and in the population, and how many classes have so many."""
    shown = _shown(rows, promise)
    both = Relation({name: _one_column(shown[name], everyone[name]) for name in promise.quasi})
    side = (np.arange(len(both)) >= len(shown)).astype(np.int64)
    counted = count_values(both, promise.quasi, side, 2)
    here, there = (counted.sums(np.where(counted.value == one, counted.count, 0)) for one in (0, 1))
    pairs, classes = np.unique(np.stack([here, there]), axis=1, return_counts=True)
    return Relation({TABLE: pairs[0], POPULATION: pairs[1], "classes": classes})


def _one_column(left: Texts, right: Texts) -> Texts:
    """Two columns one after the other."""
    codes = np.concatenate([left.codes, np.where(right.codes < 0, -1, right.codes + len(left.texts))])
    texts = [*left.texts, *right.texts]
    return Texts(codes, texts).mapped(texts)


# ---- metrics


def _note_sizes(found: Found, promise: TablePromise, notes: Notes) -> None:
    metrics, sums = notes.metrics, Counter(found.sums)
    metrics["released_rows"] = sums["rows"]
    if promise.suppressed is not None:
        metrics["suppressed_rows"] = sums["rows"] - sums["shown"]
    metrics["classes"] = sums["classes"]
    metrics["smallest_k"] = found.least.get("k")
    metrics["counted_in_classes"] = "rows (at least as many as people)" if promise.person is None else "people"
    metrics["unique_rows"] = sums["unique"]
    if promise.k is not None:
        metrics["rows_below_k_share"] = sums["below"] / sums["shown"] if sums["shown"] else None
    if promise.person is not None:
        metrics["released_people"] = sums["people"]
        if promise.k is not None:
            metrics["people_below_k_share"] = sums["exposed"] / max(sums["people"], 1)
    if promise.m is not None:
        metrics["smallest_k_knowing_m"] = found.least.get("k knowing m")
        metrics["combinations_of_m"] = sums["combinations"]
    if promise.population:
        metrics["presence"] = {"least": found.least.get("share"), "largest": found.most.get("share")}


def _note_sensitive(found: Found, values: Sequence[Values], notes: Notes) -> None:
    figures = found.least | found.most
    for column in values:
        for measure in (*_LEAST, *_MOST):
            worst = figures.get(f"{measure} {column.name}")
            if worst is not None:
                shown: Any = int(worst) if measure == "l" else worst if np.isfinite(worst) else None
                notes.metrics.setdefault(measure, {})[column.name] = shown
        notes.metrics.setdefault("t_distance", {})[column.name] = column.distance
