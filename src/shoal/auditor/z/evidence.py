"""The relations of an audit of z-anonymity: released rows, records, and what the trace decides about them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import is_someone, shared_codes
from shoal.auditor.engine import Place, Table
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.texts import coded, matched, united
from shoal.auditor.sorting import order_of
from shoal.auditor.trace import RELEASED, SUPPRESSED, verdicts_of
from shoal.auditor.z.promise import ZPromise

NO_EPOCH: Final = np.iinfo(np.int64).min
"""The epoch for which an entry that was decided at once has waited."""
LINK: Final[Shape] = {"record": int, "usable": bool, "person": str}
"""What is known of the record of a released row; -1 and no person if it is not known."""


# ---- released rows


def other_columns(promise: ZPromise, columns: tuple[str, ...]) -> list[str]:
    """All columns of the release but the person and the time."""
    there = [name for name in columns if name not in (promise.person, promise.time)]
    return list(dict.fromkeys((*(attribute.name for attribute in promise.attributes), *promise.carry, *there)))


def read_released(place: Place, promise: ZPromise) -> Table:
    """Read the release; `released x` is the text of column x."""
    names = other_columns(promise, place.outline("release").columns)
    shape = {"row": int, "at": int, "shown epoch": int, "readable": bool, "pseudonym": str}
    texts = {f"released {name}": str for name in names}
    return place.read("release", partial(_released, promise, names), shape | texts)


def _released(promise: ZPromise, names: list[str], rows: Rows, first: int) -> Relation:
    at, has_time = rows.moments(promise.time)
    numbers = {
        "row": np.arange(first, first + len(rows)), "at": at, "shown epoch": at // promise.rotation_ns,
        "readable": has_time & ~rows.broken, "pseudonym": coded(rows.text(promise.person)),
    }  # fmt: skip
    return Relation(numbers | {f"released {name}": coded(rows.text(name)) for name in names})


def without_record(rows: Relation) -> Relation:
    """Released rows of which no record is known."""
    none = np.full(len(rows), -1)
    return rows.having(record=none, usable=none >= 0, person=Texts(none, []))


# ---- records


def read_records(place: Place, promise: ZPromise) -> Table:
    """Read the truth; `true x` is the text of column x."""
    shape = {"record": int, "time": int, "epoch": int, "usable": bool, "person": str}
    texts = {f"true {name}": str for name in other_columns(promise, ())}
    return place.read("truth", partial(_records, promise), shape | texts)


def _records(promise: ZPromise, rows: Rows, first: int) -> Relation:
    person, (time, has_time) = coded(rows.text(promise.person)), rows.moments(promise.time)
    numbers = {
        "record": np.arange(first, first + len(rows)), "time": time, "epoch": time // promise.rotation_ns,
        "usable": has_time & is_someone(person.codes, list(person.texts)),  # broken records have neither
        "person": person,
    }  # fmt: skip
    return Relation(numbers | {f"true {name}": coded(rows.text(name)) for name in other_columns(promise, ())})


# ---- entries of the trace


def read_entries(place: Place, promise: ZPromise) -> tuple[Table, int]:
    """Read the trace; return also by how many rows the release differs from what it says.

    An entry without a record, or without a released row, has a number below 0 of its own there.
    """
    files = place.facts("trace", lambda rows: (len(rows), int((verdicts_of(rows) == RELEASED).sum())))
    before = dict(np.cumsum([(0, 0), *files], axis=0)[:-1].tolist())
    """How many released rows the entries before a file have, by the number of its first one."""
    apart = abs(sum(shown for _, shown in files) - place.outline("release").rows)
    records, levels = place.outline("truth").rows, level_columns(place, promise)
    work = partial(_entries, promise, records, levels, {} if apart else before)
    shape = {"entry": int, "record": int, "row": int, "verdict": int, "waited": int, "reason": str}
    numbers = {f"{what} {one.name}": int for what in ("z", "level") for one in promise.attributes}
    return place.read("trace", work, shape | numbers), apart


def level_columns(place: Place, promise: ZPromise) -> dict[str, str]:
    """The columns of the trace that say at which level values passed z, by attribute; nothing if one is missing."""
    columns, names = place.outline("trace").columns, [attribute.name for attribute in promise.attributes]
    found = {name: one for name in names for one in ("level", f"level.{name}") if one in columns}
    return found if len(found) == len(names) else {}


def _entries(
    promise: ZPromise, records: int, levels: dict[str, str], before: dict[int, int], rows: Rows, first: int
) -> Relation:
    entry, verdict, record = np.arange(first, first + len(rows)), verdicts_of(rows), rows.numbers("row")
    is_shown, nowhere = (verdict == RELEASED) & bool(before), np.full(len(rows), -1)
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


def decide(place: Place, entries: Table, released: Table, known: Table) -> Table:
    """Bring together entries, released rows and records, also records without an entry (whose entry is -1)."""
    shape = place.shape(entries) | place.shape(released)
    entries = place.both(entries, released, ("row",), _with_rows, shape)
    shape = shape | place.shape(known) | {"first": bool, "accepted": bool}
    return place.both(entries, known, ("record",), _with_records, shape)


def _with_rows(entries: Relation, released: Relation) -> Relation:
    return matched(entries, released, "row").having(row=np.maximum(entries["row"], -1))


def _with_records(entries: Relation, records: Relation) -> Relation:
    """Put every record next to its entries. The first entry of a record decides it: it is accepted or refused."""
    order = order_of(entries["record"], entries["entry"])
    record = entries["record"][order]
    first = np.zeros(len(entries), np.bool_)
    first[order] = (record >= 0) & np.append(True, record[1:] != record[:-1])[: len(record)]
    decided = matched(entries, records, "record")
    accepted = first & ((entries["verdict"] == RELEASED) | (entries["verdict"] == SUPPRESSED)) & decided["usable"]
    undecided = records.take(~np.isin(records["record"], entries["record"]))
    decided = decided.having(first=first, accepted=accepted)
    return united(decided, undecided) if len(undecided) else decided
