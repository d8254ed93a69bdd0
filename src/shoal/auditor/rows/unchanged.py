"""How identifying the columns are that are published unchanged: the people of every value."""

from __future__ import annotations

from functools import partial

import numpy as np

from shoal.auditor.counting import combined
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Notes
from shoal.auditor.identifying_columns import ColumnCrowds, allows_identifying, measure_crowds, note_identifying
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation
from shoal.auditor.rows.reading import shown
from shoal.auditor.rows.rules import RowPromise
from shoal.auditor.rows.texts import kept


def look_at_unchanged(
    place: Place, rows: Table, policy: Policy, promise: RowPromise, people: int, notes: Notes
) -> None:
    """Report columns that identify people.

    Rows have ``class``, ``judged``, ``broken``, the unchanged columns, and ``person`` if persons are known; else every
    row counts as one. ``people``: how many there are.
    """
    allowed = allows_identifying(policy)
    names = tuple(dict.fromkeys((*promise.carry, *promise.sensitive)))
    if not names:
        return
    found = {name: _crowds(place, rows, (name,), promise.k) for name in names}
    joint = _crowds(place, rows, promise.carry, promise.k) if len(promise.carry) > 1 else None
    given = promise.carry, promise.sensitive
    note_identifying(found, joint, *given, ("k", promise.k), people, notes, allowed=allowed)


def _crowds(place: Place, rows: Table, names: tuple[str, ...], k: int) -> ColumnCrowds:
    columns = tuple(map(shown, names))
    return sum(place.divide(rows, columns, partial(_of_values, columns, k)), ColumnCrowds())


def _of_values(columns: tuple[str, ...], k: int, rows: Relation) -> ColumnCrowds:
    known = kept(rows, has_somebody(rows))
    if not (known["row"][1:] > known["row"][:-1]).all():
        known = known.take(np.argsort(known["row"]))
    value = known.codes(columns[0])
    if len(columns) > 1:
        value = combined([known.codes(name) for name in columns], len(known))
    person = known.codes("person") if "person" in known else known["row"]
    return measure_crowds(value, person, np.where(known["judged"], known["class"], -1), known["row"], k)


def has_somebody(rows: Relation) -> Bools:
    """Mark readable rows of somebody."""
    found: Bools = ~rows["broken"]
    return found & (rows.codes("person") >= 0) if "person" in rows else found
