"""The relations of an audit of z-anonymity: released rows, records, and what the trace decides about them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import is_someone, shared_codes
from shoal.auditor.engine import Place, Table
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Texts, place_of
from shoal.auditor.trace import DEAD, RELEASED, VERDICTS
from shoal.auditor.z.promise import ZPromise

Columns = dict[str, type]
"""Columns of a relation: a shape that can be added to."""
NO_EPOCH: Final = np.iinfo(np.int64).min
"""The epoch for which an entry that was decided at once has waited."""
NO_ROWS: Final = Relation({})
LINK: Final[Columns] = {"record": int, "usable": bool, "person": str}
"""What is known of the record of a released row; -1 and no person if it is not known."""


def coded(column: Any) -> Texts:
    """Number the texts of a column in order of first appearance."""
    texts, (codes,) = shared_codes(column)
    return Texts(codes, texts)


def numbered(*columns: Texts) -> tuple[list[str], list[Ints]]:
    """Number the texts of several columns together."""
    numbers = {text: code for code, text in enumerate(columns[0].texts)}
    codes = [columns[0].codes]
    for column in columns[1:]:
        known = [numbers.setdefault(text, len(numbers)) for text in column.texts]
        codes.append(np.array([*known, -1], np.int64)[column.codes])
    return list(numbers), codes


def picked(rows: Relation, at: Ints) -> Relation:
    """The rows at some places; nothing where the place is -1."""
    if len(at) == len(rows) and np.array_equal(at, np.arange(len(rows))):
        return rows
    if len(rows) and at.min(initial=0) >= 0:
        return rows.take(at)
    return Relation({name: _picked(rows[name], at) for name in rows})


def _picked(column: Any, at: Ints) -> Any:
    if isinstance(column, Texts):
        return Texts(np.append(column.codes, -1)[at], column.texts)
    return np.append(column, np.zeros(1, column.dtype))[at]


def some(which: Bools, rows: Relation) -> Relation:
    """The marked rows."""
    return rows if which.all() else rows.take(which)


def with_nothing(shape: Columns, rows: Relation) -> Relation:
    """Rows with more columns, which are empty."""
    return rows.having(**{name: _nothing(kind, len(rows)) for name, kind in shape.items() if name not in rows})


def _places(wanted: Ints, known: Ints) -> Ints:
    """The place of every wanted number among different known ones; -1 if it is not there."""
    if len(known) and known[-1] - known[0] == len(known) - 1 and (known[1:] > known[:-1]).all():
        at = wanted - known[0]
        return np.where((at >= 0) & (at < len(known)), at, -1)
    return place_of(wanted, known)


# ---- released rows


def released_shape(promise: ZPromise, columns: tuple[str, ...]) -> Columns:
    """Released rows; `released x` is the text of column x."""
    numbers = {"row": int, "at": int, "shown epoch": int, "readable": bool, "pseudonym": str}
    return numbers | {f"released {name}": str for name in other_columns(promise, columns)}


def other_columns(promise: ZPromise, columns: tuple[str, ...]) -> list[str]:
    """All columns of the release but the person and the time."""
    there = [name for name in columns if name not in (promise.person, promise.time)]
    return list(dict.fromkeys((*(attribute.name for attribute in promise.attributes), *promise.carry, *there)))


def read_released(place: Place, promise: ZPromise) -> tuple[Table, Columns]:
    """Read the release."""
    shape = released_shape(promise, place.outline("release").columns)
    return place.read("release", partial(_released, promise, shape), shape), shape


def _released(promise: ZPromise, shape: Columns, rows: Rows, first: int) -> Relation:
    at, has_time = rows.moments(promise.time)
    numbers = {
        "row": np.arange(first, first + len(rows)), "at": at, "shown epoch": at // promise.rotation_ns,
        "readable": has_time & ~rows.broken, "pseudonym": coded(rows.text(promise.person)),
    }  # fmt: skip
    texts = {name: coded(rows.text(name.removeprefix("released "))) for name in shape if name not in numbers}
    return Relation(numbers | texts)


# ---- records


def record_shape(promise: ZPromise) -> Columns:
    """Records; `true x` is the text of column x."""
    numbers = {"record": int, "time": int, "epoch": int, "usable": bool, "person": str}
    return numbers | {f"true {name}": str for name in other_columns(promise, ())}


def read_records(place: Place, promise: ZPromise) -> Table:
    """Read the truth."""
    return place.read("truth", partial(_records, promise), record_shape(promise))


def _records(promise: ZPromise, rows: Rows, first: int) -> Relation:
    person, (time, has_time) = coded(rows.text(promise.person)), rows.moments(promise.time)
    numbers = {
        "record": np.arange(first, first + len(rows)), "time": time, "epoch": time // promise.rotation_ns,
        "usable": has_time & is_someone(person.codes, list(person.texts)),  # broken records have neither
        "person": person,
    }  # fmt: skip
    return Relation(numbers | {f"true {name}": coded(rows.text(name)) for name in other_columns(promise, ())})


# ---- entries of the trace


def entry_shape(promise: ZPromise) -> Columns:
    """Entries of the trace. One without a record, or without a released row, has a number below 0 of its own there."""
    numbers = {"entry": int, "record": int, "row": int, "verdict": int, "waited": int, "reason": str}
    return numbers | {f"{what} {one.name}": int for what in ("z", "level") for one in promise.attributes}


def read_entries(place: Place, promise: ZPromise) -> tuple[Table, int]:
    """Read the trace; return also by how many rows the release differs from what it says."""
    files = place.facts("trace", lambda rows: (len(rows), int((_verdicts(rows) == RELEASED).sum())))
    before = dict(np.cumsum([(0, 0), *files], axis=0)[:-1].tolist())
    """How many released rows the entries before a file have, by the number of its first one."""
    work = partial(_entries, promise, place.outline("truth").rows, level_columns(place, promise), before)
    apart = abs(sum(shown for _, shown in files) - place.outline("release").rows)
    return place.read("trace", work, entry_shape(promise)), apart


def level_columns(place: Place, promise: ZPromise) -> dict[str, str]:
    """The columns of the trace that say at which level values passed z, by attribute; nothing if one is missing."""
    columns, names = place.outline("trace").columns, [attribute.name for attribute in promise.attributes]
    found = {name: one for name in names for one in ("level", f"level.{name}") if one in columns}
    return found if len(found) == len(names) else {}


def _verdicts(trace: Rows) -> Ints:
    """RELEASED, SUPPRESSED or DEAD; -1 for anything else."""
    labels, (codes,) = shared_codes(trace.text("verdict"))
    numbers = [VERDICTS.index(label) if label in VERDICTS else -1 for label in labels]
    return np.array([*numbers, -1], np.int64)[codes]


def _entries(
    promise: ZPromise, records: int, levels: dict[str, str], before: dict[int, int], rows: Rows, first: int
) -> Relation:
    entry, verdict, record = np.arange(first, first + len(rows)), _verdicts(rows), rows.numbers("row")
    is_shown, nowhere = verdict == RELEASED, np.full(len(rows), -1)
    found: dict[str, Any] = {
        "entry": entry,
        "record": np.where((record >= 0) & (record < records), record, -1 - entry),
        "row": np.where(is_shown, np.cumsum(is_shown) - 1 + before.get(first, 0), -1 - entry),
        "verdict": verdict,
        "waited": _waited(rows) if promise.k is not None else nowhere,
        "reason": coded(rows.text("reason")),
    }
    for attribute in promise.attributes:
        z = next((name for name in (f"z.{attribute.name}", "z") if name in rows.columns), None)
        found[f"z {attribute.name}"] = nowhere if z is None else rows.numbers(z)
        level = levels.get(attribute.name)
        found[f"level {attribute.name}"] = nowhere if level is None else rows.numbers(level)
    return Relation(found)


def _waited(trace: Rows) -> Ints:
    """The epoch at whose end each entry was decided; NO_EPOCH if it was decided at once."""
    if "group" not in trace.columns:
        return np.full(len(trace), NO_EPOCH, np.int64)
    return np.where(shared_codes(trace.text("group"))[1][0] >= 0, trace.numbers("group"), NO_EPOCH)


# ---- together


def decided_shape(promise: ZPromise, released: Columns) -> Columns:
    """Entries with their released rows and records, and records without an entry (whose entry is -1)."""
    return entry_shape(promise) | released | record_shape(promise) | {"first": bool, "accepted": bool}


def join_rows(entries: Relation, released: Relation) -> Relation:
    """Put every released row next to its entry; both are in the same order."""
    at = _places(entries["row"], released["row"])
    rows = picked(released, at)
    return Relation({**rows.columns, **entries.columns, "row": np.maximum(entries["row"], -1)})


def without_rows(shape: Columns, entries: Relation) -> Relation:
    """Entries as if none had a released row."""
    return with_nothing(shape, entries).having(row=np.full(len(entries), -1))


def _nothing(kind: type, count: int) -> Any:
    """A column of missing values."""
    if kind is str:
        return Texts(np.full(count, -1, np.int64), [])
    return np.zeros(count, np.bool_) if kind is bool else np.full(count, -1, np.int64)


def join_records(entries: Relation, records: Relation) -> Relation:
    """Put every record next to its entries. The first entry of a record decides it: it is accepted or refused."""
    at = _places(entries["record"], records["record"])
    earliest = np.full(len(records) + 1, np.iinfo(np.int64).max)
    np.minimum.at(earliest, at, entries["entry"])
    first: Bools = (at >= 0) & (earliest[at] == entries["entry"])
    undecided = np.flatnonzero(earliest[:-1] == np.iinfo(np.int64).max)
    both = picked(entries, np.append(np.arange(len(entries)), np.full(len(undecided), -1)))
    known = picked(records, np.append(at, undecided))
    none = np.full(len(undecided), -1)
    numbers = {
        "entry": np.append(entries["entry"], none), "row": np.append(entries["row"], none),
        "record": np.append(entries["record"], records["record"][undecided]),
        "verdict": np.append(entries["verdict"], none), "first": np.append(first, np.zeros(len(none), np.bool_)),
    }  # fmt: skip
    is_counted = numbers["first"] & (numbers["verdict"] >= 0) & (numbers["verdict"] != DEAD)
    return Relation({**both.columns, **known.columns, **numbers, "accepted": is_counted & known["usable"]})
