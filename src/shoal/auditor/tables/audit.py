"""The audit of a plain table of any tool: classes of equal quasi-identifiers, and the models of the field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Found, all_found, look
from shoal.auditor.engine import Place
from shoal.auditor.findings import AuditReport, Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.batches import read_batches
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.tables.checks import (
    CLOSENESS, DIVERSITY, PRESENCE, below_k, below_k_knowing_m, no_rows, promised,
)  # fmt: skip
from shoal.auditor.tables.classes import count_values
from shoal.auditor.tables.coding import Codes, exact, person
from shoal.auditor.tables.in_batches import InBatches
from shoal.auditor.tables.measures import closeness, diversity
from shoal.auditor.tables.promise import TablePromise, read_promise
from shoal.auditor.tables.values import Values

TABLE, POPULATION = "table", "population"
_LEAST: Final = ("l", "entropy_l")
"""Figures of a sensitive column whose worst class has the smallest one."""
_MOST: Final = ("t", "recursive_c", "alpha", "beta")


def audit_file(policy: Policy, table: Any) -> AuditReport:
    """Check a table against ``[table]`` of a policy in this process. Rows are read once, in batches."""
    promise, section = read_promise(policy), policy.section("table")
    expected = Format.of(policy.section("sink"))
    sources: dict[str, Callable[[], Iterator[Rows]]] = {
        TABLE: partial(rows_of, table, promise.columns, TABLE, expected)
    }
    if promise.population:
        everyone = section["population"]
        place = policy.folder / everyone if isinstance(everyone, str | Path) else everyone
        sources[POPULATION] = partial(rows_of, place, promise.quasi, POPULATION, expected)
    with InBatches(sources) as here:
        return audit_tables(here, policy)


def rows_of(what: Any, names: tuple[str, ...], role: str, expected: Format) -> Iterator[Rows]:
    """Read some columns batch by batch; InputError if a row cannot be read."""
    for columns in read_batches(what, names, name=role, expected=expected):
        yield Rows(((columns, np.zeros(len(columns[names[0]]), np.bool_)),), role)


def audit_tables(place: Place, policy: Policy) -> AuditReport:
    """Check a table, wherever its rows are."""
    promise = read_promise(policy)
    notes = Notes(counts_rows=promise.person is None)
    if not promise.is_promised:
        notes.skip("Nothing is promised about this table, so nothing is broken: name what must hold, such as k.")
    table = read_table(place, promise)
    values = _values(place, table, promise)
    found = all_found(place.divide(table, promise.quasi, partial(look_at_classes, promise=promise, values=values)))
    found.findings += look(Relation(), [no_rows], found.sums.get("rows", 0))
    if promise.person is not None:
        found.add(_count_people(place, table, promise))
    if promise.m is not None and promise.k is not None:
        found.add(_look_at_combinations(place, table, promise))
    if promise.population:
        found.add(_look_at_presence(place, table, promise))
    notes.findings += found.findings
    _note_sizes(found, promise, notes)
    _note_sensitive(found, values, notes)
    return notes.report("table")


# ---- rows as numbers


def read_table(place: Place, promise: TablePromise) -> Any:
    """Read the table: a number for every value."""
    return _read(place, TABLE, promise.columns, promise.person)


def _read(place: Place, role: str, names: Sequence[str], of_people: str | None = None) -> Any:
    codes = {name: Codes(name, person if name == of_people else exact) for name in names}

    def coded(rows: Rows, _: int) -> Relation:
        parts = [{name: columns[name] for name in names} for columns, _ in rows.parts]
        return Relation({name: _joined([codes[name].encode(part[name]) for part in parts]) for name in names})

    return place.read(role, coded, dict.fromkeys(names, str))


def _joined(parts: list[Texts]) -> Texts:
    """Parts of a column that share their texts as one."""
    return parts[0] if len(parts) == 1 else Texts(np.concatenate([part.codes for part in parts]), parts[0].texts)


def _shown(rows: Relation, promise: TablePromise) -> Relation:
    """The rows that are not suppressed."""
    word = exact(promise.suppressed)
    if word is None:
        return rows
    shown = np.zeros(len(rows), np.bool_)
    for name in promise.quasi:
        shown |= rows.codes(name) != rows[name].of(word)
    return rows.take(shown)


# ---- classes


def look_at_classes(rows: Relation, promise: TablePromise, values: Sequence[Values] = ()) -> Found:
    """Count and measure all classes that some rows have."""
    every, rows = len(rows), _shown(rows, promise)
    sizes = class_sizes(rows, promise.quasi, promise.person)
    few = np.zeros(0, np.bool_) if promise.k is None else sizes["people"] < promise.k
    found = Found(look(sizes, promised([below_k], promise), promise))
    found.sums = {
        "rows": every,
        "suppressed": every - len(rows),
        "classes": len(sizes),
        "unique": int((sizes["rows"] == 1).sum()),
        "below": int(sizes["rows"][: len(few)][few].sum()),
    }
    found.least["k"] = int(sizes["people"].min()) if len(sizes) else None
    for column in values if len(rows) else ():
        found.add(_look_at_values(rows, promise, column))
    return found


def class_sizes(rows: Relation, names: Sequence[str], of_people: str | None) -> Relation:
    """The rows and the people of every class; without a column of people every row counts as one."""
    if of_people is None:
        counted = count_values(rows, names, np.int64(0), 1)
        return Relation({"rows": counted.count, "people": counted.count})
    column = rows[of_people]
    counted = count_values(rows, names, column.codes + 1, len(column.texts) + 1)  # 0: nobody
    return Relation({"rows": counted.sums(counted.count), "people": counted.sums((counted.value > 0).astype(np.int64))})


def _look_at_values(rows: Relation, promise: TablePromise, column: Values) -> Found:
    """Measure the values of a sensitive column in every class."""
    counted = count_values(rows, promise.quasi, column.of_rows(rows[column.name]), len(column.rows))
    close = closeness(counted, column)
    diverse = diversity(counted, column, None if promise.recursive_l is None else promise.recursive_l[1])
    found = Found([
        *look(diverse, promised(DIVERSITY, promise), promise, column.name),
        *look(close, promised(CLOSENESS, promise), promise, column.name),
    ])  # fmt: skip
    for classes in (close, diverse):
        for name in classes if len(classes) else ():
            if name in _LEAST:
                found.least[f"{name} {column.name}"] = float(classes[name].min())
            elif name in _MOST:
                found.most[f"{name} {column.name}"] = float(classes[name].max())
    return found


def _values(place: Place, table: Any, promise: TablePromise) -> list[Values]:
    """How often each sensitive value is in the table."""
    if not promise.sensitive:
        return []
    shape: Shape = {"column": int, "value": str, "rows": int}
    found = place.gather(place.each(table, partial(_count_each, promise=promise), shape))
    counts: list[dict[str | None, int]] = [{} for _ in promise.sensitive]
    texts = [*found["value"].texts, None]
    for column, code, rows in zip(found["column"], found.codes("value"), found["rows"], strict=True):
        own = counts[column]
        own[texts[code]] = own.get(texts[code], 0) + int(rows)
    return [Values.of(name, own, promise.t_distance) for name, own in zip(promise.sensitive, counts, strict=True)]


def _count_each(rows: Relation, promise: TablePromise) -> Relation:
    """Count the values of each sensitive column among some rows."""
    rows = _shown(rows, promise)
    texts: list[str] = []
    places, codes, counts = [], [], []
    for place, name in enumerate(promise.sensitive):
        column = rows[name]
        count = np.bincount(column.codes + 1, minlength=1)
        seen = np.flatnonzero(count)
        codes.append(np.where(seen > 0, seen - 1 + len(texts), -1))
        places.append(np.full(len(seen), place))
        counts.append(count[seen])
        texts += column.texts
    # the same text may be a value of several columns: number it once
    value = Texts(np.concatenate(codes), range(len(texts))).mapped(texts)  # type: ignore[arg-type]
    return Relation({"column": np.concatenate(places), "value": value, "rows": np.concatenate(counts)})


# ---- people, any m values, the population


def _count_people(place: Place, table: Any, promise: TablePromise) -> Found:
    """Count the people of the table, and those who are in a class of fewer than k."""
    name = str(promise.person)
    people = place.regroup(table, promise.quasi, partial(_people_of_classes, promise=promise), {name: str, "few": bool})
    return all_found(place.divide(people, (name,), partial(_different_people, name=name)))


def _people_of_classes(rows: Relation, promise: TablePromise) -> Relation:
    """The people of some classes, and whether they are in a small one; people of suppressed rows are in none."""
    name, shown = str(promise.person), _shown(rows, promise)
    column = shown[name]
    counted = count_values(shown, promise.quasi, column.codes + 1, len(column.texts) + 1)
    few = counted.sums((counted.value > 0).astype(np.int64)) < (promise.k or 0)
    found = np.zeros(len(column.texts) + 1, np.int8)  # 0: not here, 1: here, 2: in a small class
    found[rows.codes(name) + 1] = 1
    found[counted.value[few[counted.class_of]]] = 2
    found[0] = 0
    here = np.flatnonzero(found)
    return Relation({name: Texts(here - 1, column.texts), "few": found[here] == 2})


def _different_people(rows: Relation, name: str) -> Found:
    few = np.zeros(len(rows[name].texts), np.int64)
    np.maximum.at(few, rows.codes(name), 1 + rows["few"])
    return Found(sums={"people": int((few > 0).sum()), "exposed": int((few > 1).sum())})


def _look_at_combinations(place: Place, table: Any, promise: TablePromise) -> Found:
    """Count the groups of every m quasi-identifiers; groups of fewer ones are larger."""
    return all_found(
        found
        for names in combinations(promise.quasi, promise.m or 0)
        for found in place.divide(table, names, partial(_look_at_groups, names=names, promise=promise))
    )


def _look_at_groups(rows: Relation, names: Sequence[str], promise: TablePromise) -> Found:
    rows = _shown(rows, promise)
    groups = class_sizes(rows, names, promise.person)
    if promise.person is not None:
        groups = groups.take(groups["people"] > 0)
    found = Found(look(groups, [below_k_knowing_m], promise), sums={"combinations": len(groups)})
    found.least["k knowing m"] = int(groups["people"].min()) if len(groups) else None
    return found


def _look_at_presence(place: Place, table: Any, promise: TablePromise) -> Found:
    """Compare the classes of the table with those of the population: δ-presence."""
    everyone = _read(place, POPULATION, promise.quasi)
    shape: Shape = dict.fromkeys((TABLE, POPULATION, "classes"), int)
    classes = place.gather(place.both(table, everyone, promise.quasi, partial(_compared, promise=promise), shape))
    found = Found(look(classes, promised(PRESENCE, promise), promise))
    known = classes[POPULATION] > 0
    share = classes[TABLE][known] / classes[POPULATION][known]
    found.least["share"] = float(share.min()) if len(share) else None
    found.most["share"] = float(share.max()) if len(share) else None
    return found


def _compared(rows: Relation, everyone: Relation, promise: TablePromise) -> Relation:
    """How many rows classes have in the table and in the population, and how many classes have so many."""
    shown = _shown(rows, promise)
    joined = Relation({name: _one_column(shown[name], everyone[name]) for name in promise.quasi})
    side = np.arange(len(joined)) >= len(shown)
    counted = count_values(joined, promise.quasi, side.astype(np.int64), 2)
    here, there = (counted.sums(np.where(counted.value == one, counted.count, 0)) for one in (0, 1))
    pairs, classes = np.unique(np.stack([here, there]), axis=1, return_counts=True)
    return Relation({TABLE: pairs[0], POPULATION: pairs[1], "classes": classes})


def _one_column(left: Texts, right: Texts) -> Texts:
    """Two columns one after the other."""
    both = Texts(np.concatenate([left.codes, np.where(right.codes < 0, -1, right.codes + len(left.texts))]), ())
    return both.mapped([*left.texts, *right.texts])


# ---- metrics


def _note_sizes(found: Found, promise: TablePromise, notes: Notes) -> None:
    metrics, sums = notes.metrics, found.sums
    metrics["released_rows"] = sums.get("rows", 0)
    if promise.suppressed is not None:
        metrics["suppressed_rows"] = sums.get("suppressed", 0)
    metrics["classes"] = sums.get("classes", 0)
    metrics["smallest_k"] = found.least.get("k")
    metrics["counted_in_classes"] = "rows (at least as many as people)" if promise.person is None else "people"
    metrics["unique_rows"] = sums.get("unique", 0)
    if promise.person is not None:
        metrics["released_people"] = sums.get("people", 0)
    if promise.k is not None:
        shown = sums.get("rows", 0) - sums.get("suppressed", 0)
        metrics["rows_below_k_share"] = sums["below"] / shown if shown else None
        if promise.person is not None:
            metrics["people_below_k_share"] = sums["exposed"] / sums["people"] if sums.get("exposed") else 0.0
    if promise.m is not None:
        metrics["smallest_k_knowing_m"] = found.least.get("k knowing m")
        metrics["combinations_of_m"] = sums.get("combinations", 0)
    if promise.population:
        metrics["presence"] = {"least": found.least.get("share"), "largest": found.most.get("share")}


def _note_sensitive(found: Found, values: Sequence[Values], notes: Notes) -> None:
    figures: Mapping[str, float | None] = found.least | found.most
    for column in values:
        for measure in (*_LEAST, *_MOST):
            worst = figures.get(f"{measure} {column.name}")
            if worst is not None:
                shown: Any = int(worst) if measure == "l" else worst if np.isfinite(worst) else None
                notes.metrics.setdefault(measure, {})[column.name] = shown
        notes.metrics.setdefault("t_distance", {})[column.name] = column.distance
