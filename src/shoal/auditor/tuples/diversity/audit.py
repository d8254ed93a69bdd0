"""The steps of an audit that are about sensitive values: of all rows, of classes, of clusters as they grew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shoal.auditor.checks import Found, all_found
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Notes
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.reading import shown
from shoal.auditor.rows.texts import only_columns, united
from shoal.auditor.tuples.diversity.diversity import (
    TOO_MANY,
    Promised,
    class_shape,
    count_values,
    look_at_diversity,
    measure_classes,
    with_class_measures,
    worst_of,
)
from shoal.auditor.tuples.diversity.references import RECORDED, look_at_references, read_recorded
from shoal.auditor.tuples.diversity.sensitive import Sensitive, sensitive_columns
from shoal.auditor.tuples.ordered import Ordered
from shoal.auditor.tuples.promise import TuplePromise


@dataclass(frozen=True, slots=True)
class Rows:
    """Released rows with their classes, and what is known besides."""

    table: Table
    shape: Shape
    records: Table | None
    """The sensitive values of records; None without the truth."""
    ordered: Ordered | None = None
    """What the pass along the trace found; None if rows are not linked to it."""
    entries: Table | None = None
    """When clusters were formed, if t is measured against references of the trace."""
    is_checked: bool = True
    """Whether what is promised is checked, not only measured."""


def look_at_values(place: Place, promise: TuplePromise, rows: Rows, notes: Notes) -> None:
    """Measure l, entropy l and t, and check what is promised of them."""
    is_linked, ordered = rows.ordered is not None, rows.ordered
    generalized = promise.generalized if is_linked and rows.records is not None else ()
    names = (*promise.sensitive, *generalized)
    recorded = _recorded(place, promise, notes) if is_linked and (names or promise.generalized) else None
    if not names:
        return
    columns = _columns(place, promise, names, rows, recorded)
    table, shape = _measured(place, columns, rows)
    has_events = ordered is not None and ordered.has_events
    promised = Promised(columns, promise, has_events, recorded is not None, _is_asked(promise, rows))
    found = all_found(place.divide(table, ("class",), partial(measure_classes, columns)))
    notes.findings += found.findings if promised.is_checked else []
    is_known = any(column.overall for column in columns)
    notes.metrics.update(worst_of(found, columns) if is_known else {})
    if recorded is not None:
        references = place.read("trace", read_recorded, RECORDED)
        table = place.both(table, references, ("group",), united, {**shape, **RECORDED})
    by = ("group",) if is_linked else ("class",)
    found = all_found(place.divide(table, by, partial(look_at_diversity, promised)))
    notes.findings += found.findings
    _note_clusters(found, columns, notes)
    if recorded is not None and ordered is not None and ordered.times is not None and rows.records is not None:
        notes.findings += look_at_references(place, rows.entries, recorded, columns, ordered, promise)


def _is_asked(promise: TuplePromise, rows: Rows) -> bool:
    wanted = promise.diversity
    return rows.is_checked and any(level is not None for level in (wanted.l, wanted.entropy_l, wanted.t))


def _recorded(place: Place, promise: TuplePromise, notes: Notes) -> Relation | None:
    """The references of t that the trace records, if they are needed."""
    if not promise.diversity.needs_reference:
        return None
    if "reference" not in place.outline("trace").columns:
        notes.unchecked("t was not checked: the trace has no column reference.")
        return None
    return place.gather(place.read("trace", read_recorded, RECORDED))


def _columns(
    place: Place, promise: TuplePromise, names: Sequence[str], rows: Rows, recorded: Relation | None
) -> tuple[Sensitive, ...]:
    """The sensitive columns, with how often each value is in checked rows."""
    own: Shape = {"row": int, **{shown(name): str for name in names if shown(name) in rows.shape}}
    tables = [(place.each(rows.table, partial(only_columns, tuple(own)), own), "row")]
    tables += [(rows.records, "record")] if rows.records is not None else []
    columns = sensitive_columns(place, promise, names, tables, _values_of(recorded))
    overall: dict[str, Counter[str | None]] = {name: Counter() for name in names}
    for counts in place.divide(rows.table, ("row",), partial(count_values, columns)):
        for name, found in counts.items():
            overall[name].update(found)
    return tuple(replace(column, overall=overall[column.name]) for column in columns)


def _values_of(recorded: Relation | None) -> list[tuple[str, str]]:
    """The different values of references, with their columns."""
    if recorded is None or not len(recorded):
        return []
    names, values = recorded["reference column"], recorded["reference value"]
    pairs = np.unique(np.stack([names.codes, values.codes]), axis=1).T.tolist()
    return [(names.texts[name], values.texts[value]) for name, value in pairs if name >= 0 and value >= 0]


def _measured(place: Place, columns: tuple[Sensitive, ...], rows: Rows) -> tuple[Table, Shape]:
    """The columns that diversity is about, and the measures of classes."""
    own: Shape = {"row": int, "class": int, "judged": bool, "group": int, "formed": bool, "event": int}
    own = {**own, **{column.column: str for column in columns}}
    table = place.each(rows.table, partial(_in_clusters, tuple(own)), own)
    shape = {**own, **class_shape(columns)}
    return place.regroup(table, ("class",), partial(with_class_measures, columns), shape), shape


def _in_clusters(names: tuple[str, ...], rows: Relation) -> Relation:
    """Some columns; rows that are not linked to the trace are in no cluster."""
    if "group" not in rows:
        nowhere = np.full(len(rows), -1, np.int64)
        rows = rows.having(group=nowhere, event=nowhere, formed=np.zeros(len(rows), np.bool_))
    return rows.only(*names)


def _note_clusters(found: Found, columns: Sequence[Sensitive], notes: Notes) -> None:
    if found.sums.get(TOO_MANY):
        notes.skip("Whether clusters stayed diverse as rows reused them was checked only at the end: too many values.")
    if found.sums.get("in clusters"):
        worst = worst_of(found, columns)
        notes.metrics["worst_cluster"] = {
            f"{name} {column}": value for name, own in worst.items() for column, value in own.items()
        }
