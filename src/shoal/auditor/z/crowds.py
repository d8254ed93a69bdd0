"""Count the people who showed every released value: exactly with a trace, an upper bound without one."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.auditor.counting import pair_codes, surplus
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import Attribute, ZPromise
from shoal.auditor.z.residual import Climbs, strict_crowds
from shoal.auditor.z.trace import Decisions

_WHOLE_PATH: Final = np.iinfo(np.int64).max - 1
_BELOW_Z: Final = "A value was released that fewer than z people had shown within the window."
_RESIDUAL: Final = {
    "loose": "A generalized value was released that fewer than z people had shown, "
    "not counting those already released below it.",
    "strict": "A generalized value was released that fewer than z people had shown, "
    "not counting those who were, or would be now, released below it.",
}


def crowds(value: Ints, person: Ints, time: Ints, window: int, *, ties_together: bool) -> Ints:
    """Count, for every row, the different persons with the same value at times from time - window on.

    Rows come in the order they were decided; among rows of one value times never fall. A row counts itself
    and the rows before it; with ``ties_together`` also later rows of the same time (the most that any order
    of equal times could count).

    A row counts for its person from its own position until the person's next row of that value, or until it leaves the
    window: +1 at the start, -1 at the end, and a running sum gives all counts at once.
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


def _expiry(time: Ints, start: Ints, window: int) -> Ints:
    """Return the position of the first record, of those in order of start and time, whose window excludes each one."""
    moments, rank = np.unique(time, return_inverse=True)
    outlived = np.searchsorted(moments, _later(time, window), side="right")
    return np.searchsorted(start * len(moments) + rank, start * len(moments) + outlived)


def _next_slot(value: Ints, person: Ints, slot: Ints) -> Ints:
    """Return where the same person shows the same value next; the end if never."""
    pair = value * (int(person.max()) + 1) + person
    order = np.argsort(pair, kind="stable")
    following = np.full(len(slot), len(slot), np.int64)
    same = pair[order[1:]] == pair[order[:-1]]
    following[order[:-1][same]] = slot[order[1:][same]]
    return following


def check_exactly(aligned: Aligned, attribute: Attribute, decisions: Decisions, notes: Notes) -> Ints:
    """Check every decision by the records decided before it and by what had been released of them.

    Return the accepted rows whose value was suppressed although z people had shown it.

    A record counts for the labels of its path up to the released one, or for all of them if it was suppressed:
    a record released at a strict descendant of a label does not count for the label. By the strict residual rule it
    does not count either while a strict descendant on its path passes.
    """
    values, rows = aligned.values[attribute.name], decisions.accepted
    known, published = values.truth[rows], np.full(len(rows), -1, np.int64)
    if len(values.shown):
        published = np.where(decisions.shown_at >= 0, values.shown[decisions.shown_at], -1)
    is_out, level = published >= 0, values.paths.level(known, published)
    wrong = is_out & (level < 0)
    if decisions.passed is not None:  # values that passed z may have been removed later, to protect combinations
        wrong |= is_out & (level != decisions.passed[attribute.name])
        level = decisions.passed[attribute.name]
    marked = _marked(decisions.shown_at[wrong], aligned)
    if attribute.generalizes:
        notes.violation("wrong-label", "A released label is not above the record's value.", rows=marked)
    else:
        notes.violation("wrong-value", "A released value is not the record's value.", rows=marked)
    owner, step, label = values.paths.expand(known, np.where(level >= 0, level, _WHOLE_PATH))
    # Nothing counts across a restart of the stream: every start has its own labels.
    label += decisions.start[owner] * (int(label.max(initial=0)) + 1)
    person, time = aligned.person[rows], aligned.time[rows]
    if attribute.generalizes and attribute.residual == "strict":
        climbs = Climbs(owner, step == 0, values.paths.length(known)[owner] - 1 - step, label)
        crowd = strict_crowds(climbs, person, _expiry(time, decisions.start, attribute.window_ns), attribute.z)
    else:
        crowd = crowds(label, person[owner], time[owner], attribute.window_ns, ties_together=False)
    z = decisions.z[attribute.name]
    lower = int(((z >= 0) & (z < attribute.z)).sum())
    notes.violation("z-lowered", "The trace says a lower z was in force than promised.", count=lower)
    final, enough = step == level[owner], crowd >= np.maximum(z, attribute.z)[owner]
    failed = owner[final & ~enough]
    _note_below(_marked(decisions.shown_at[failed[is_out[failed]]], aligned), attribute, notes)
    unfounded = len(failed) - int(is_out[failed].sum()) + int((level >= values.paths.length(known)).sum())
    notes.violation("trace-level", "The trace says that a value passed z although it did not.", count=unfounded)
    better = np.unique(owner[~final & enough])
    is_released = level[better] >= 0
    notes.warning("too-general", "A more specific label could have been released.", count=int(is_released.sum()))
    _note_smallest(crowd[final & is_out[owner]], attribute, notes)
    held: Ints = better[~is_released]
    return held


def note_held_back(count: int, notes: Notes) -> None:
    """Warn of values that were suppressed without need."""
    notes.warning("held-back", "A value was suppressed although z people had shown it.", count=count)


def _marked(rows: Ints, aligned: Aligned) -> Bools:
    marked = np.zeros(len(aligned.shown_time), np.bool_)
    marked[rows] = True
    return marked


def _note_below(rows: Bools, attribute: Attribute, notes: Notes) -> None:
    sentence = _RESIDUAL[attribute.residual] if attribute.generalizes else _BELOW_Z
    notes.violation("below-z", sentence, rows=rows)


def _note_smallest(crowd: Ints, attribute: Attribute, notes: Notes) -> None:
    smallest = notes.metrics.setdefault("smallest_crowd", {})
    smallest[attribute.name] = int(crowd.min()) if len(crowd) else None


def check_bounds(aligned: Aligned, promise: ZPromise, counted: Bools, notes: Notes) -> None:
    """Check against the largest possible number of people: those of all records up to the released time."""
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
        # A value that the truth does not have at that time is invented, not below z: reported elsewhere.
        _note_below(_marked(shown[(found > 0) & (found < attribute.z)], aligned), attribute, notes)
        _note_smallest(found[found > 0], attribute, notes)


def lone_links(known: Ints, shown: Ints) -> Ints:
    """Link shown rows to known rows if the key is unique on both sides; else -1."""
    size = int(max(known.max(initial=-1), shown.max(initial=-1))) + 1
    place = np.full(size, -1, np.int64)
    place[known] = np.arange(len(known))
    lone = (np.bincount(known, minlength=size) == 1) & (np.bincount(shown, minlength=size) == 1)
    return np.where(lone, place, -1)[shown]


def check_membership(aligned: Aligned, promise: ZPromise, notes: Notes) -> Ints:
    """Check that rows are in the truth, at least as often; link those that can be only one record.

    A label may stand for any value below it. Labels nest, so enough records exist for all rows exactly when,
    for every label, no more rows are released at or below it than there are records below it.
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
