"""Where checked events go: to the bins of their values, pseudonyms, people and carried values."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.z.combined import NO_EPOCH, last_closed
from shoal.auditor.z.promise import Attribute
from shoal.spark.auditor.carried_columns import send_values
from shoal.spark.auditor.engine import Message
from shoal.spark.auditor.hashing import Hashes, mixed, of_text, of_texts
from shoal.spark.auditor.packing import divided, packed
from shoal.spark.auditor.people import mark_of, to_people
from shoal.spark.auditor.z.entries import Events
from shoal.spark.auditor.z.plan import CARRIED, PEOPLE, PSEUDONYMS, VALUES, Plan


def send_events(plan: Plan, events: Events) -> Iterator[Message]:
    """Send the events of a bin on."""
    for attribute in plan.promise.attributes:
        yield from _values(plan, events, attribute)
    yield from _identifiers(plan, events)
    yield from _pseudonyms(plan, events)
    yield from _people(plan, events)
    yield from _carried(plan, events)


def send_undecided(plan: Plan, events: Events, has_verdict: Bools) -> Iterator[Message]:
    """Send records without a verdict, and the last accepted one, to where they are compared.

    With `combine` also the newest record that waited for the end of the last epoch.
    """
    rows, aligned, last, closed = np.flatnonzero(~has_verdict), events.aligned, None, -1
    if len(events.counted):
        order = np.lexsort((events.rows, aligned.time[events.rows], events.start))
        own, start = events.rows[order] + events.first, events.start[order]
        time = aligned.time[events.rows][order]
        last = int(start[-1]), int(time[-1]), int(own[-1])
        if events.entries.waited is not None:
            waited = events.entries.waited[events.counted][order] != NO_EPOCH
            closed = last_closed(own, start, time // plan.promise.rotation_ns, waited)
    undecided = rows + events.first, aligned.time[rows], aligned.usable[rows], last, closed
    yield Message(0, "undecided", pickle.dumps(undecided))


def hashes_of(texts: Sequence[str]) -> Hashes:
    """Hashes of texts; the last place is for null."""
    return np.array([*map(of_text, texts), 0], np.uint64)


def _values(plan: Plan, events: Events, attribute: Attribute) -> Iterator[Message]:
    """Send accepted records to the bins of their values."""
    aligned, entries, rows, position = events.aligned, events.entries, events.rows, events.position
    values, z = aligned.values[attribute.name], entries.z[attribute.name][events.counted]
    at = np.where(position >= 0, np.cumsum(events.shown)[events.counted] - 1, -1)
    known, published = values.truth[rows], np.append(values.shown, -1)[at]
    passed = None if entries.level is None else entries.level[attribute.name][events.counted]
    has_something = (known >= 0) | (published >= 0) | ((z >= 0) & (z < attribute.z))
    if passed is not None:
        has_something |= passed >= 0
    kept = np.flatnonzero(has_something)
    of = np.full(len(kept), of_text(attribute.name) % plan.bins)
    if not attribute.generalizes:
        of = (hashes_of(values.texts)[known[kept]] % np.uint64(plan.bins)).astype(np.int64)
    columns = {
        "value": _texts(values.texts, known[kept]),
        "shown": _texts(values.texts, published[kept]),
        "person": pa.array(hashes_of(aligned.persons)[aligned.person[rows[kept]]]),
        "time": pa.array(aligned.time[rows[kept]]),
        "row": pa.array(rows[kept] + events.first),
        "start": pa.array(events.start[kept]),
        "position": pa.array(position[kept]),
        "z": pa.array(z[kept]),
    }
    if passed is not None:
        columns["passed"] = pa.array(passed[kept])
    for number, part in divided(pa.record_batch(columns), of):
        yield Message(plan.at(VALUES, number), f"value {attribute.name}", packed(part))


def _texts(texts: Sequence[str], codes: Ints) -> pa.Array:
    return pa.array([*texts, None], TEXT).take(pa.array(np.where(codes < 0, len(texts), codes)))


def _identifiers(plan: Plan, events: Events) -> Iterator[Message]:
    """Send identifiers, and texts of released columns that must have none, to the bins of texts."""
    aligned, promise = events.aligned, plan.promise
    raw = np.unique(hashes_of(aligned.persons)[aligned.person[aligned.person >= 0]])
    for number, part in divided(pa.record_batch({"hash": pa.array(raw)}), plan.hashed(raw)):
        yield Message(plan.at(PSEUDONYMS, number), "identifiers", packed(part))
    position = events.entries.position[events.shown]
    own = {promise.person, promise.time, *(attribute.name for attribute in promise.attributes)}
    for name in events.release.columns:
        if name not in own:
            texts = of_texts(events.release.text(name))
            batch = pa.record_batch({"hash": pa.array(texts), "position": pa.array(position)})
            there = np.flatnonzero(texts)  # 0: null
            for number, part in divided(batch.take(pa.array(there)), plan.hashed(texts[there])):
                yield Message(plan.at(PSEUDONYMS, number), "texts", packed(part))


def _pseudonyms(plan: Plan, events: Events) -> Iterator[Message]:
    """Send released rows to the bins of their pseudonyms and of their people."""
    aligned, row = events.aligned, events.entries.row[events.shown]
    hashes = hashes_of(aligned.persons)
    known = (row >= 0) & aligned.shown_readable & (aligned.shown_person >= 0)
    if len(aligned.usable):
        known &= aligned.usable[row]
    person = hashes[aligned.person[row]] if len(aligned.person) else np.zeros(len(row), np.uint64)
    batch = pa.record_batch({
        "pseudonym": pa.array(hashes[aligned.shown_person]),
        "person": pa.array(np.where(known, person, 0)),
        "epoch": pa.array(aligned.shown_time // plan.promise.rotation_ns),
        "readable": pa.array(aligned.shown_readable),
        "known": pa.array(known),
        "position": pa.array(events.entries.position[events.shown]),
    })  # fmt: skip
    named, linked = np.flatnonzero(aligned.shown_person >= 0), np.flatnonzero(known)
    for number, part in divided(batch.take(pa.array(named)), plan.hashed(hashes[aligned.shown_person[named]])):
        yield Message(plan.at(PSEUDONYMS, number), "pseudonyms", packed(part))
    for number, part in divided(batch.take(pa.array(linked)), plan.hashed(person[linked])):
        yield Message(plan.at(PEOPLE, number), "people", packed(part))


def _people(plan: Plan, events: Events) -> Iterator[Message]:
    """Send accepted people, each with whether a row of theirs was released, to the last step."""
    aligned, rows = events.aligned, events.rows
    released = set(aligned.person[rows[events.position >= 0]].tolist())
    marks = [(mark_of(aligned.persons[at]), at in released) for at in np.unique(aligned.person[rows]).tolist()]
    for message in to_people(marks, plan.bins):
        yield Message(message.bin, "later people", message.data)


def _carried(plan: Plan, events: Events) -> Iterator[Message]:
    """Send released rows to the bins of their carried values; a pseudonym is a person if some rows have no record."""
    aligned = events.aligned
    person = aligned.shown_person
    if not plan.trace.unlinked and len(aligned.person):
        person = aligned.person[events.entries.row[events.shown]]
    known = np.flatnonzero(aligned.shown_readable & (person >= 0))
    of_class = mixed([hashes_of(values.texts)[values.shown] for values in aligned.values.values()])
    yield from send_values(
        events.release, plan.promise.carry, (), known, hashes_of(aligned.persons)[person[known]], of_class[known],
        events.entries.position[events.shown][known], range(plan.at(CARRIED, 0), plan.at(CARRIED, plan.bins)),
    )  # fmt: skip
