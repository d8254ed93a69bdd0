"""Checks of released rows one by one: their values alone, and next to the record that each is of.

Rows have the columns of a release (see `shoal.auditor.rows.reading`). Those of a record are next to them: ``is_there``
says whether the row has one, ``usable`` whether it may be published. ``is_root``: rows published without information.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from shoal.auditor.checks import Answer, Check, Found, check
from shoal.auditor.findings import Notes, Severity, filled_in_words
from shoal.auditor.reading.columns import Bools
from shoal.auditor.relation import Relation
from shoal.auditor.rows.quasi import FAULTS, Quasi
from shoal.auditor.rows.reading import has_fault, shown, true
from shoal.auditor.rows.rules import RowPromise
from shoal.auditor.rows.texts import same_texts, same_values

FAMILIES: Final = ("tuples", "flexible")
_BUG: Final = "Do not publish this release; the method or what came after it changed values. Report how it was made."
_of_record: Final = partial(check, families=FAMILIES, by="record", needs=("truth", "trace"))


# ---- the release alone


@check(
    "unreadable-row",
    "A released row cannot be read.",
    advice="Write the release again: a row that cannot be read may show anything.",
    families=FAMILIES,
    by="none",
)
def unreadable_row(rows: Relation) -> Bools:
    """Mark rows that could not be read."""
    found: Bools = rows["broken"]
    return found


_FAULTY: Final = {
    "unreadable-value": "A published value is neither a range nor a label.",
    "unknown-label": "A published label is not in the hierarchy.",
    "too-fine": "A published moment is finer than a microsecond.",
    "bad-range": "A published range ends before it begins.",
    "out-of-domain": "A published range reaches beyond the declared domain.",
    "off-grid": "A published range does not begin and end on the declared grid.",
    "not-a-cell": "A published range is not a cell of the declared grid.",
}


def _faulty(fault: str) -> Check:
    """Declare the check of one fault of published values."""

    def faulty(rows: Relation) -> Bools:
        return has_fault(rows, fault)

    faulty.__name__ = fault.replace("-", "_")
    advice = "Only values that the policy declares may be published: the rest of the value may identify someone."
    return check(fault, _FAULTY[fault], advice=advice, families=FAMILIES, by="none")(faulty)


OF_RELEASE: Final = (unreadable_row, *map(_faulty, FAULTS))
"""Checks that need the release alone."""


# ---- next to the record


@_of_record(
    "not-in-truth",
    "A released row has no row in the truth.",
    advice="Somebody added rows, or the truth is not the one that the release was made from.",
)
def not_in_truth(rows: Relation, *_: object) -> Bools:
    """Mark rows whose record is not in the truth."""
    found: Bools = ~rows["is_there"]
    return found


@_of_record("not-covered", "A published value does not cover the record's value.", advice=_BUG)
def not_covered(rows: Relation, quasi: Sequence[Quasi], _: RowPromise) -> Bools:
    """Mark rows with a label or range that the record's value is not in."""
    wrong = np.zeros(len(rows), np.bool_)
    for one in quasi:
        both = rows["usable"] & one.is_shown(rows) & one.is_recorded(rows)
        wrong |= both & ~one.covers(rows)
    return wrong


@_of_record(
    "wrong-nulls",
    "A row shows a value or a null that `missing` does not allow.",
    advice="Values that the record does not have were made up, or known ones are gone: see `missing` in the policy.",
)
def wrong_nulls(rows: Relation, quasi: Sequence[Quasi], promise: RowPromise) -> Bools:
    """Mark rows that lack other values than their records do; with ``hidden`` they may lack more."""
    odd = np.zeros(len(rows), np.bool_)
    if promise.rule_of_nulls not in ("exact", "hidden"):
        return odd
    for one in quasi:
        shows, has = one.is_shown(rows), one.is_recorded(rows)
        odd |= (shows ^ has) if promise.rule_of_nulls == "exact" else shows & ~has
    found: Bools = odd & rows["usable"] & ~rows["is_root"]
    return found


@_of_record("wrong-sensitive", "A released row has another sensitive value than its record.", advice=_BUG)
def wrong_sensitive(rows: Relation, _: Sequence[Quasi], promise: RowPromise) -> Bools:
    """Mark rows whose sensitive values are not those of the record."""
    return _changed(rows, promise.sensitive)


@_of_record("wrong-carry", "A released row has another carried value than its record.", advice=_BUG)
def wrong_carry(rows: Relation, _: Sequence[Quasi], promise: RowPromise) -> Bools:
    """Mark rows whose carried values are not those of the record."""
    return _changed(rows, promise.carry)


def _changed(rows: Relation, names: Sequence[str]) -> Bools:
    other = np.zeros(len(rows), np.bool_)
    for name in names:
        other |= rows["is_there"] & ~same_values(rows[shown(name)], rows[true(name)])
    return other


@_of_record(
    "identifier-in-column",
    "A row carries the identifier of its person.",
    advice="Do not carry this column: whoever knows the identifier finds the row.",
    severity=Severity.WARNING,
)
def identifier_in_column(rows: Relation, _: Sequence[Quasi], promise: RowPromise) -> Bools:
    """Mark rows that show the person's identifier in a column that is published unchanged."""
    named = np.zeros(len(rows), np.bool_)
    for name in (*promise.sensitive, *promise.carry):
        named |= same_texts(rows[shown(name)], rows["person"]) & (rows.codes(shown(name)) >= 0)
    return named


OF_RECORD: Final = (not_in_truth, not_covered, wrong_nulls, wrong_sensitive, wrong_carry)
"""Checks that need the record of every row. That of identifiers is for persons with identifiers only."""


# ---- cells that show something although the record has nothing there


def count_filled(rows: Relation, quasi: Sequence[Quasi], promise: RowPromise) -> Found:
    """Count them by column, and those of rows at the root."""
    found, there = Found(), rows["is_there"]
    for one in quasi:
        filled = there & one.is_shown(rows) & ~one.is_recorded(rows)
        found.sums[f"filled {one.name}"] = int(filled.sum())
        found.sums[f"filled at root {one.name}"] = int((filled & rows["is_root"]).sum())
    for name in (*promise.sensitive, *promise.carry):
        lacks = rows.codes(true(name)) < 0
        found.sums[f"filled {name}"] = int((there & lacks & (rows.codes(shown(name)) >= 0)).sum())
    return found


def note_filled(found: Found, names: Sequence[str], notes: Notes, *, is_asked: bool) -> None:
    """Note the number of such cells; warn if there are any and the policy does not ask for them."""
    columns = {name: found.sums.get(f"filled {name}", 0) for name in sorted(set(names))}
    at_root = {name: found.sums.get(f"filled at root {name}", 0) for name in columns}
    unasked = {name: count - at_root[name] for name, count in columns.items() if count > at_root[name]}
    notes.metrics["filled_cells"] = {
        "cells": sum(columns.values()),
        "at_root": sum(at_root.values()),
        "columns": {name: count for name, count in columns.items() if count},
    }
    if not is_asked:
        notes.findings += filled_cells(unasked)


@check(
    "filled-cells",
    'Cells show something although their record has nothing there, and the policy does not say `missing = "covered"` '
    'or `"paper"`; suppressed rows published at the root do not count.',
    advice='Tell users of the data, or set missing = "own": these cells are guesses, not records.',
    families=FAMILIES,
    by="none",
    needs=("truth", "trace"),
    severity=Severity.WARNING,
)
def filled_cells(columns: Mapping[str, int]) -> Answer:
    """Count the cells; the sentence names their columns."""
    cells = sum(columns.values())
    return Answer(count=cells, sentence=f"{filled_in_words(cells, columns)}; the policy does not ask for it.")
