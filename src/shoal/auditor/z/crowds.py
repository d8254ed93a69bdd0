"""Recount the people behind every released value: exactly with a trace, within bounds without one."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.auditor.counting import pair_codes, surplus
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import Attribute, ZPromise
from shoal.auditor.z.trace import Decisions

_WHOLE_PATH: Final = np.iinfo(np.int64).max - 1
_BELOW_Z: Final = "A value was released that fewer than z people had shown within the window."
_RESIDUAL: Final = (
    "A generalized value was released that fewer than z people stand behind, "
    "not counting those already released below it."
)


def crowds(value: Ints, person: Ints, time: Ints, window: int, *, ties_together: bool) -> Ints:
    """Count, for every row, the different persons with the same value at times from time - window on.

    Rows come in the order they were decided; among rows of one value times never fall. A row counts itself
    and the rows before it; with ``ties_together`` also later rows of the same time (the most that any order
    of equal times could count).

    Every row stands for its person from its own place until the person's next row of that value, or until the
    window has passed it: +1 where it starts, -1 where it ends, and a running sum gives all counts at once.
    """
    if not len(value):
        return np.zeros(0, np.int64)
    order = np.argsort(value, kind="stable")
    value, person, time = value[order], person[order], time[order]
    moments, rank = np.unique(time, return_inverse=True)
    stamp = value * len(moments) + rank  # rises with value, then time
    outlived = np.searchsorted(moments, _later(time, window), side="right")
    expiry = np.searchsorted(stamp, value * len(moments) + outlived)
    slot = np.searchsorted(stamp, stamp) if ties_together else np.arange(len(value))
    end = np.minimum(expiry, _next_slot(value, person, slot))
    change = np.bincount(slot, minlength=len(value) + 1) - np.bincount(end, minlength=len(value) + 1)
    counts = np.empty(len(value), np.int64)
    counts[order] = np.cumsum(change)[slot]
    return counts


def _later(time: Ints, window: int) -> Ints:
    top = np.iinfo(np.int64).max
    return np.where(time > top - window, top, time + np.minimum(window, top - np.maximum(time, 0)))


def _next_slot(value: Ints, person: Ints, slot: Ints) -> Ints:
    """Return where the same person shows the same value next; the end if never."""
    pair = value * (int(person.max()) + 1) + person
    order = np.argsort(pair, kind="stable")
    following = np.full(len(slot), len(slot), np.int64)
    same = pair[order[1:]] == pair[order[:-1]]
    following[order[:-1][same]] = slot[order[1:][same]]
    return following


def check_exactly(aligned: Aligned, attribute: Attribute, decisions: Decisions, notes: Notes) -> None:
    """Judge every decision by the records decided before it and by what had been released of them.

    A record counts for the labels of its path up to the one released, for all of them when suppressed:
    what was released at a strict descendant of a label does not count for the label.
    """
    values, rows = aligned.values[attribute.name], decisions.accepted
    known = values.truth[rows]
    published = np.where(decisions.shown_at >= 0, _pick(values.shown, decisions.shown_at), -1)
    level = values.paths.level(known, published)
    wrong = (published >= 0) & (level < 0)
    if decisions.passed is not None:  # what z let pass may have been taken out later, to let no combination stand alone
        wrong |= (published >= 0) & (level != decisions.passed[attribute.name])
        level = decisions.passed[attribute.name]
    _check_labels(wrong, attribute, aligned, decisions, notes)
    owner, step, label = values.paths.expand(known, np.where(level >= 0, level, _WHOLE_PATH))
    # Nothing counts across a fresh start of the stream: labels of each start are labels of their own.
    label += decisions.start[owner] * (int(label.max(initial=0)) + 1)
    crowd = crowds(
        label, aligned.person[rows][owner], aligned.time[rows][owner], attribute.window_ns, ties_together=False
    )
    z = _z_to_hold(attribute, decisions, notes)
    final, enough = step == level[owner], crowd >= z[owner]
    is_out = published >= 0
    failed = owner[final & ~enough]
    _note_below(_marked(decisions.shown_at[failed[is_out[failed]]], aligned), attribute, notes)
    unfounded = len(failed) - int(is_out[failed].sum()) + int((level >= values.paths.length(known)).sum())
    notes.violation("trace-level", "The trace says that z let a value pass that it did not.", count=unfounded)
    _check_held_back(np.unique(owner[~final & enough]), level, notes)
    _note_smallest(crowd[final & is_out[owner]], attribute, notes)


def _pick(values: Ints, places: Ints) -> Ints:
    return values[places] if len(values) else np.full(len(places), -1, np.int64)


def _marked(rows: Ints, aligned: Aligned) -> Bools:
    marked = np.zeros(len(aligned.shown_time), np.bool_)
    marked[rows] = True
    return marked


def _note_below(rows: Bools, attribute: Attribute, notes: Notes) -> None:
    notes.violation("below-z", _RESIDUAL if attribute.generalizes else _BELOW_Z, rows=rows)


def _check_labels(wrong: Bools, attribute: Attribute, aligned: Aligned, decisions: Decisions, notes: Notes) -> None:
    rows = _marked(decisions.shown_at[wrong], aligned)
    if attribute.generalizes:
        notes.violation("wrong-label", "A released label does not stand above the record's value.", rows=rows)
    else:
        notes.violation("wrong-value", "A released value is not the record's value.", rows=rows)


def _z_to_hold(attribute: Attribute, decisions: Decisions, notes: Notes) -> Ints:
    written = decisions.z[attribute.name]
    lower = (written >= 0) & (written < attribute.z)
    notes.violation("z-lowered", "The trace says a lower z was in force than promised.", count=int(lower.sum()))
    return np.maximum(written, attribute.z)


def _check_held_back(rows: Ints, level: Ints, notes: Notes) -> None:
    climbed = level[rows] >= 0
    notes.warning("too-general", "A more specific label could have been released.", count=int(climbed.sum()))
    notes.warning("held-back", "A value was held back although z people had shown it.", count=int((~climbed).sum()))


def _note_smallest(crowd: Ints, attribute: Attribute, notes: Notes) -> None:
    smallest = notes.metrics.setdefault("smallest_crowd", {})
    smallest[attribute.name] = int(crowd.min()) if len(crowd) else None


def check_bounds(aligned: Aligned, promise: ZPromise, counted: Bools, notes: Notes) -> None:
    """Judge by the most people who could stand behind a value: all records up to its time."""
    rows = np.flatnonzero(counted)
    rows = rows[np.argsort(aligned.time[rows], kind="stable")]
    for attribute in promise.attributes:
        values = aligned.values[attribute.name]
        owner, _, label = values.paths.expand(values.truth[rows])
        time = aligned.time[rows][owner]
        crowd = crowds(label, aligned.person[rows][owner], time, attribute.window_ns, ties_together=True)
        shown = np.flatnonzero((values.shown >= 0) & aligned.shown_readable)
        known, asked = pair_codes((label, time), (values.shown[shown], aligned.shown_time[shown]))
        behind = np.zeros(int(max(known.max(initial=0), asked.max(initial=0))) + 1, np.int64)
        behind[known] = crowd
        found = behind[asked]
        # A value that is nowhere in the truth at that time is not below z but invented: told apart elsewhere.
        _note_below(_marked(shown[(found > 0) & (found < attribute.z)], aligned), attribute, notes)
        _note_smallest(found[found > 0], attribute, notes)


def lone_links(known: Ints, shown: Ints) -> Ints:
    """Link shown rows to known rows where the key stands once on both sides; -1 elsewhere."""
    size = int(max(known.max(initial=-1), shown.max(initial=-1))) + 1
    place = np.full(size, -1, np.int64)
    place[known] = np.arange(len(known))
    lone = (np.bincount(known, minlength=size) == 1) & (np.bincount(shown, minlength=size) == 1)
    return np.where(lone, place, -1)[shown]


def check_membership(aligned: Aligned, promise: ZPromise, notes: Notes) -> Ints:
    """Check that rows are in the truth, and no more often; link those that can be only one record.

    A label may stand for any value below it. Labels nest, so enough records exist for all rows exactly when,
    for every label, no more rows are released at or below it than records lie below it.
    """
    usable, readable = np.flatnonzero(aligned.usable), np.flatnonzero(aligned.shown_readable)
    keys, shown_keys = aligned.keys()
    keys, shown_keys = keys[usable], shown_keys[readable]
    absent, extra = surplus(keys, shown_keys)
    link = lone_links(keys, shown_keys)
    for attribute in promise.attributes:
        values = aligned.values[attribute.name]
        shown = values.shown[readable]
        owner, _, label = values.paths.expand(values.truth[usable])
        shown_owner, _, shown_label = values.paths.expand(shown)
        pair = pair_codes((keys[owner], label), (shown_keys[shown_owner], shown_label))
        for marks, found in zip((absent, extra), surplus(*pair), strict=True):
            marks[shown_owner[found]] = True
        absent |= (shown >= 0) & (values.paths.length(shown) == 0)
    notes.violation("not-in-truth", "A released row is not in the truth.", rows=_marked(readable[absent], aligned))
    repeated = _marked(readable[extra & ~absent], aligned)
    notes.violation("more-often-than-truth", "A row was released more often than it is in the truth.", rows=repeated)
    linked = np.full(len(aligned.shown_time), -1, np.int64)
    linked[readable] = np.where(link >= 0, usable[link], -1) if len(usable) else -1
    return linked
