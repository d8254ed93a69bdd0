"""The people of a release: how many, whether identifiers or pseudonyms give them away, what carried columns say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from shoal.auditor.checks import Found, all_found, find, look
from shoal.auditor.counting import combined
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Notes
from shoal.auditor.identifying_columns import ColumnCrowds, allows_identifying, measure_crowds, note_identifying
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.released_columns import mentioned_people, raw_identifier_in_metadata
from shoal.auditor.rows.texts import kept
from shoal.auditor.sorting import dense, distinct, firsts
from shoal.auditor.trace import RELEASED
from shoal.auditor.z import patterns, pseudonyms
from shoal.auditor.z.disguises import FORMS, KNOWN_PAIRS, OTHER_PAIRS, disguises, hashed_forms, spread
from shoal.auditor.z.evidence import LINK
from shoal.auditor.z.promise import ZPromise


@dataclass(slots=True)
class Counts:
    """How many people count: all, those with a released row, and those of every epoch."""

    people: int = 0
    shown: int = 0
    active: dict[int, int] = field(default_factory=dict)


def measure(place: Place, counted: Table, notes: Notes, *, has_trace: bool) -> Counts:
    """Count the people whose records were accepted; without a trace, of all records that can be used."""
    shape = {"person": str, "epoch": int, "is_shown": bool}
    found = Counts()
    for part in place.divide(place.each(counted, _counting, shape), ("person",), _count):
        found.people += part.people
        found.shown += part.shown
        found.active = {at: found.active.get(at, 0) + part.active.get(at, 0) for at in found.active | part.active}
    metrics, rows = notes.metrics, place.outline("truth").rows
    if has_trace:
        metrics["released_people"] = found.shown
        metrics["people_never_released_share"] = 1 - found.shown / found.people if found.people else None
    if rows:
        metrics["rows"], metrics["people"] = rows, found.people
    return found


def _counting(rows: Relation) -> Relation:
    is_shown = rows["verdict"] == RELEASED if "verdict" in rows else np.zeros(len(rows), np.bool_)
    counts = rows["accepted"] if "accepted" in rows else rows["usable"]
    return kept(rows.only("person", "epoch").having(is_shown=is_shown), counts)


def _count(rows: Relation) -> Counts:
    person = rows.codes("person")
    first = firsts(combined([person, dense(rows["epoch"])], len(rows)))
    epochs, counts = np.unique(rows["epoch"][first], return_counts=True)
    active = dict(zip(epochs.tolist(), counts.tolist(), strict=True))
    return Counts(len(firsts(person)), len(firsts(person[rows["is_shown"]])), active)


# ---- identifiers


def check_identifiers(place: Place, promise: ZPromise, known: Table, rows: Table, notes: Notes) -> Table:
    """Look for identifiers of the truth wherever they must not be; mark the rows whose person is one."""
    usable = sum(place.divide(known, ("record",), lambda rows: int(rows["usable"].sum())))
    if place.outline("truth").rows:
        notes.metrics["usable_rows"] = usable
    persons = place.each(known, lambda rows: rows.only("person").take(rows.codes("person") >= 0), {"person": str})
    people = place.regroup(persons, ("person",), lambda rows: rows.take(firsts(rows.codes("person"))), {"person": str})
    release = place.outline("release")

    def in_metadata(people: Relation) -> Found:
        texts = pa.chunked_array([people["person"].to_arrow()])
        return Found(raw_identifier_in_metadata(mentioned_people(texts, promise.columns, release.hidden)))

    find(place, people, ("person",), in_metadata, notes)
    _check_other_columns(place, promise, people, rows, notes)
    forms = place.each(people, disguises, FORMS)
    marks = place.shape(rows) | {"raw": bool, "disguised": bool, "hashed": bool}
    rows = place.both(forms, rows, ("pseudonym",), pseudonyms.unmasked, marks)
    hashes = _hashes(place, promise, known, rows)
    return place.each(rows, lambda rows: rows.having(hashed=pseudonyms.marked(rows["pseudonym"], hashes)), marks)


def _check_other_columns(place: Place, promise: ZPromise, people: Table, rows: Table, notes: Notes) -> None:
    """Warn if an identifier of the truth is in a carried or unexpected column."""
    own = {promise.person, promise.time, *(attribute.name for attribute in promise.attributes)}
    others = [f"released {name}" for name in place.outline("release").columns if name not in own]
    shape: Shape = {"row": int, "named": bool, **dict.fromkeys(others, str)}
    rows = place.each(rows, lambda rows: rows.having(named=np.zeros(len(rows), np.bool_)).only(*shape), shape)
    for name in others:
        known = place.each(people, partial(_as_column, name), {name: str})
        rows = place.both(known, rows, (name,), partial(_named, name), shape)
    find(place, rows, ("row",), lambda rows: Found(pseudonyms.identifier_in_column(rows)), notes)


def _as_column(name: str, people: Relation) -> Relation:
    return Relation({name: people["person"]})


def _named(name: str, people: Relation, rows: Relation) -> Relation:
    return rows.having(named=rows["named"] | pseudonyms.marked(rows[name], people[name].texts))


def _hashes(place: Place, promise: ZPromise, known: Table, rows: Table) -> frozenset[str]:
    """Hashes of a few people with their epochs, people of released rows if these are known."""
    found = place.divide(rows, ("row",), lambda rows: distinct(rows["shown epoch"][rows["readable"]]))
    epochs = distinct(np.concatenate([np.zeros(0, np.int64), *found]))
    if not len(epochs):
        return frozenset()
    shape = {"row": int, "person": str, "epoch": int}
    table, wanted = place.each(rows, _linked_people, shape), KNOWN_PAIRS
    count = sum(place.divide(table, ("row",), len))
    if not count:
        table, wanted = place.each(known, partial(_people_within, epochs), shape), OTHER_PAIRS
        count = sum(place.divide(table, ("row",), len))
    pairs = place.along(table, ("row",), partial(_people_at, spread(count, wanted)))
    return hashed_forms(pairs, wanted, promise.rotation_ns, int(epochs[0]))


def _linked_people(rows: Relation) -> Relation:
    found = Relation({"row": rows["row"], "person": rows["person"], "epoch": rows["shown epoch"]})
    return kept(found, pseudonyms.is_linked(rows))


def _people_within(epochs: Ints, rows: Relation) -> Relation:
    found = Relation({"row": rows["record"], "person": rows["person"], "epoch": rows["epoch"]})
    return found.take(rows["usable"] & np.isin(rows["epoch"], epochs))


def _people_at(places: Ints, parts: Iterable[Relation]) -> list[tuple[str, int]]:
    """The people and epochs at some places of all rows."""
    found: list[tuple[str, int]] = []
    first = 0
    for rows in parts:
        rows, first = rows.take(places[(places >= first) & (places < first + len(rows))] - first), first + len(rows)
        texts = rows["person"].texts
        found += zip((texts[code] for code in rows.codes("person")), rows["epoch"].tolist(), strict=True)
    return found


# ---- pseudonyms


def check_pseudonyms(place: Place, promise: ZPromise, rows: Table, notes: Notes) -> None:
    """Check that released persons are pseudonyms that are random, and kept within their epoch."""
    has_truth = place.has("truth")
    check = partial(pseudonyms.check_each, promise, has_truth=has_truth)
    found = find(place, rows, ("pseudonym",), check, notes)
    notes.metrics["released_rows"] = place.outline("release").rows
    notes.metrics["pseudonyms"] = found.sums.get("pseudonyms", 0)
    shape: Shape = {"row": int, "pseudonym": str}
    names = place.each(rows, lambda rows: rows.only(*shape), shape)
    different = place.regroup(names, ("pseudonym",), pseudonyms.first_of_each, shape)
    first = place.along(different, ("row",), patterns.first_pseudonyms)
    notes.findings += look(first, (patterns.uneven_digits, patterns.shared_halves, patterns.counted_up))
    if has_truth:
        columns = {"row": int, "pseudonym": str, "shown epoch": int, "readable": bool} | LINK
        linked = place.each(rows, lambda rows: kept(rows.only(*columns), pseudonyms.is_linked(rows)), columns)
        parts = place.divide(linked, ("person",), _of_people)
        notes.findings += all_found(part for part, _ in parts).findings
        same = sum((same for _, same in parts), np.zeros(33, np.int64))
        notes.findings += patterns.kept_parts(same[:-1], int(same[-1]))


def _of_people(rows: Relation) -> tuple[Found, Ints]:
    return Found(look(rows, (pseudonyms.pseudonym_split,))), patterns.kept_digits(rows)


# ---- carried columns


def check_carried(place: Place, policy: Policy, promise: ZPromise, rows: Table, notes: Notes) -> None:
    """Measure how identifying carried columns are; a pseudonym counts as a person unless all records are known."""
    allowed, carry = allows_identifying(policy), promise.carry
    if not carry:
        return
    unlinked = sum(place.divide(rows, ("row",), lambda rows: int((rows["record"] < 0).sum())))
    person = "pseudonym" if unlinked else "person"
    classes = [f"released {attribute.name}" for attribute in promise.attributes]
    columns = [f"released {name}" for name in carry]
    shape: Shape = {"row": int, "someone": str, **dict.fromkeys((*classes, *columns), str)}
    table = place.each(rows, partial(_of_someone, person, shape), shape)
    z = min(attribute.z for attribute in promise.attributes)

    def measured(by: tuple[str, ...]) -> ColumnCrowds:
        return sum(place.divide(table, by, partial(_crowds_of, by, classes, z)), ColumnCrowds())

    found = {name: measured((f"released {name}",)) for name in carry}
    joint = measured(tuple(columns)) if len(carry) > 1 else None
    people = sum(place.divide(table, ("someone",), lambda rows: len(firsts(rows.codes("someone")))))
    note_identifying(found, joint, carry, (), ("z", z), people, notes, allowed=allowed)


def _of_someone(person: str, shape: Shape, rows: Relation) -> Relation:
    is_someone = rows["readable"] & (rows.codes(person) >= 0)
    return kept(rows.having(someone=rows[person]).only(*shape), is_someone)


def _crowds_of(by: tuple[str, ...], classes: list[str], z: int, rows: Relation) -> ColumnCrowds:
    rows = rows.ordered("row")
    value, of_class = (combined([rows.codes(name) for name in names], len(rows)) for names in (by, classes))
    return measure_crowds(value, rows.codes("someone"), of_class, rows["row"], z)
