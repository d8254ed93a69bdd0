"""Count the people who showed every value: exactly with a trace, an upper bound without one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Answer, Found, check, look
from shoal.auditor.counting import Paths, pair_codes
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.texts import shared_numbers
from shoal.auditor.sorting import order_of
from shoal.auditor.z.order import Clock
from shoal.auditor.z.promise import Attribute
from shoal.auditor.z.residual import Climbs, strict_crowds

_WHOLE_PATH: Final = np.iinfo(np.int64).max - 1
COUNTED: Final[Shape] = {"crowd": int, "is_out": bool, "wrong": bool, "low": bool, "below": bool, "unfounded": bool,
                         "general": bool, "held": bool}  # fmt: skip
"""What is found out about the value of every accepted record: see `counted`."""


# ---- the sweep


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
    moments, rank = _ranks(time)
    outlived = np.searchsorted(moments, _later(moments, window), side="right")
    order = order_of(value)
    value, person, rank = value[order], person[order], rank[order]
    offset = value * len(moments)
    stamp = offset + rank  # rises with value, then time
    expiry = np.searchsorted(stamp, offset + outlived[rank])
    slot = np.searchsorted(stamp, stamp) if ties_together else np.arange(len(value))
    end = np.minimum(expiry, _next_slot(value, person, slot))
    change = np.bincount(slot, minlength=len(value) + 1) - np.bincount(end, minlength=len(value) + 1)
    counts = np.empty(len(value), np.int64)
    counts[order] = np.cumsum(change)[slot]
    return counts


def _ranks(time: Ints) -> tuple[Ints, Ints]:
    """The different times, rising, and the place of every time among them."""
    if not len(time):
        return time, time
    is_later = time[1:] > time[:-1]
    if (is_later | (time[1:] == time[:-1])).all():
        return time[np.append(True, is_later)], np.append(0, np.cumsum(is_later))
    return np.unique(time, return_inverse=True)


def _later(time: Ints, window: int) -> Ints:
    top = np.iinfo(np.int64).max
    return np.where(time > top - window, top, time + np.minimum(window, top - np.maximum(time, 0)))


def _expiry(time: Ints, start: Ints, window: int) -> Ints:
    """Return the position of the first record, of those in order of start and time, whose window excludes each one."""
    moments, rank = _ranks(time)
    outlived = np.searchsorted(moments, _later(time, window), side="right")
    return np.searchsorted(start * len(moments) + rank, start * len(moments) + outlived)


def _next_slot(value: Ints, person: Ints, slot: Ints) -> Ints:
    """Return where the same person shows the same value next; the end if never."""
    order = order_of(value, person)
    value, person = value[order], person[order]
    following = np.full(len(slot), len(slot), np.int64)
    same = (value[1:] == value[:-1]) & (person[1:] == person[:-1])
    following[order[:-1][same]] = slot[order[1:][same]]
    return following


# ---- with the trace


def counted(attribute: Attribute, clock: Clock, has_levels: bool, rows: Relation) -> Relation:  # noqa: FBT001
    """Find out about every accepted record whether its value was released as it should be.

    A record counts for the labels of its path up to the released one, or for all of them if it was suppressed: a record
    released at a strict descendant of a label does not count for the label. By the strict residual rule it does not
    count either while a strict descendant on its path passes. Rows decided earlier count, in the order of start, time
    and arrival. With `has_levels` the trace says at which level values passed z: some are removed afterwards.
    """
    start = clock.starts(rows["record"])
    order = order_of(start, rows["time"], rows["record"])
    rows, start = rows.take(order), start[order]
    labels, (known, published) = shared_numbers(rows[f"true {attribute.name}"], rows[f"released {attribute.name}"])
    paths, z = Paths(labels, attribute.hierarchy), rows[f"z {attribute.name}"]
    is_out, level = published >= 0, paths.level(known, published)
    wrong = is_out & (level < 0)
    if has_levels:
        wrong |= is_out & (level != rows[f"level {attribute.name}"])
        level = rows[f"level {attribute.name}"]
    owner, step, label = paths.expand(known, np.where(level >= 0, level, _WHOLE_PATH))
    climbs = Climbs(owner, step == 0, paths.length(known)[owner] - 1 - step, label)
    crowd = _behind(attribute, climbs, start, rows)
    final, enough = step == level[owner], crowd >= np.maximum(z, attribute.z)[owner]
    failed, better = np.zeros((2, len(rows)), np.bool_)
    failed[owner[final & ~enough]] = better[owner[~final & enough]] = True
    people = np.full(len(rows), -1, np.int64)
    people[owner[final]] = crowd[final]
    found = {
        "crowd": people, "is_out": is_out, "wrong": wrong, "low": (z >= 0) & (z < attribute.z),
        "below": failed & is_out, "unfounded": (failed & ~is_out) | (level >= paths.length(known)),
        "general": better & (level >= 0), "held": better & (level < 0),
    }  # fmt: skip
    return rows.having(**found, **{f"held {attribute.name}": found["held"]})


def _behind(attribute: Attribute, climbs: Climbs, start: Ints, rows: Relation) -> Ints:
    """Count the people who count for each label of each record when it was decided; rows come in this order."""
    owner, person, time = climbs.owner, rows.codes("person"), rows["time"]
    # Nothing counts across a restart of the stream: every start has its own labels.
    label = climbs.label + start[owner] * (int(climbs.label.max(initial=0)) + 1)
    if attribute.generalizes and attribute.residual == "strict":
        expiry = _expiry(time, start, attribute.window_ns)
        return strict_crowds(replace(climbs, label=label), person, expiry, attribute.z)
    return crowds(label, person[owner], time[owner], attribute.window_ns, ties_together=False)


def check_counted(attribute: Attribute, rows: Relation, *, is_final: bool) -> Found:
    """Check the values of accepted records; what was held back is final unless a target may ask for it."""
    checks = [wrong_label if attribute.generalizes else wrong_value, z_lowered, below_z, trace_level, too_general]
    checks += [held_back] * is_final
    crowd = rows["crowd"][rows["is_out"] & (rows["crowd"] >= 0)]
    return Found(look(rows, checks, attribute), least={"crowd": int(crowd.min()) if len(crowd) else None})


of_values = partial(check, families=("z",), by="value", needs=("truth", "trace"))
_NOT_OURS: Final = "The row shows what its record does not say: do not publish this release."
_RESIDUAL: Final = {
    "loose": "A generalized value was released that fewer than z people had shown, "
    "not counting those already released below it.",
    "strict": "A generalized value was released that fewer than z people had shown, "
    "not counting those who were, or would be now, released below it.",
}


@of_values("wrong-value", "A released value is not the record's value.", advice=_NOT_OURS)
def wrong_value(rows: Relation, *_: Any) -> Any:
    return rows["wrong"]


@of_values("wrong-label", "A released label is not above the record's value.", advice=_NOT_OURS)
def wrong_label(rows: Relation, *_: Any) -> Any:
    return rows["wrong"]


@of_values(
    "below-z", "A value was released that fewer than z people had shown within the window.", needs=("truth",),
    advice="The value may point to the few people who have it: do not publish this release.")  # fmt: skip
def below_z(rows: Relation, attribute: Attribute) -> Answer:
    return Answer(rows["below"], sentence=_RESIDUAL[attribute.residual] if attribute.generalizes else None)


@of_values(
    "z-lowered", "The trace says a lower z was in force than promised.",
    advice="The run was weaker than the policy promises: publish with the policy that you audit with.")  # fmt: skip
def z_lowered(rows: Relation, *_: Any) -> int:
    return int(rows["low"].sum())


@of_values(
    "trace-level", "The trace says that a value passed z although it did not.",
    advice="People were counted in another way than promised: do not publish this release.")  # fmt: skip
def trace_level(rows: Relation, *_: Any) -> int:
    return int(rows["unfounded"].sum())


@of_values(
    "too-general", "A more specific label could have been released.", severity=Severity.WARNING,
    advice="Nobody is exposed, but the release says less than it may: look for other settings in the run.")  # fmt: skip
def too_general(rows: Relation, *_: Any) -> int:
    return int(rows["general"].sum())


@of_values(
    "held-back", "A value was suppressed although z people had shown it.", severity=Severity.WARNING,
    advice="Nobody is exposed, but the release says less than it may: look for other settings in the run.")  # fmt: skip
def held_back(rows: Relation, *_: Any) -> int:
    return int(rows["held"].sum())


# ---- without the trace


def shown_by(attribute: Attribute, rows: Relation) -> Relation:
    """The true values of records that count, as the column in which values are released."""
    values = rows[f"true {attribute.name}"]
    found = Relation({"time": rows["time"], "person": rows["person"], f"released {attribute.name}": values})
    return found.take(rows["usable"] & (values.codes >= 0))


def bounded(attribute: Attribute, known: Relation, rows: Relation) -> Relation:
    """Add to released rows the most people who can have shown their value, at any order of equal times.

    0 for a value that the truth does not have at that time: it is invented, not below z, and reported elsewhere.
    """
    name = f"released {attribute.name}"
    labels, (true, shown) = shared_numbers(known[name], rows[name])
    order = order_of(known["time"])
    owner, _, label = Paths(labels, attribute.hierarchy).expand(true[order])
    time, person = known["time"][order][owner], known.codes("person")[order][owner]
    crowd = crowds(label, person, time, attribute.window_ns, ties_together=True)
    counts = (shown >= 0) & rows["readable"]
    pairs, asked = pair_codes((label, time), (shown[counts], rows["at"][counts]))
    behind = np.zeros(int(max(pairs.max(initial=0), asked.max(initial=0))) + 1, np.int64)
    behind[pairs] = crowd
    found = np.zeros(len(rows), np.int64)
    found[counts] = behind[asked]
    return rows.having(crowd=found)


def check_bounded(attribute: Attribute, rows: Relation) -> Found:
    """Check released rows against the most people who can have shown their value."""
    found = rows["crowd"]
    rows = rows.having(below=(found > 0) & (found < attribute.z))
    return Found(below_z(rows, attribute), least={"crowd": int(found[found > 0].min()) if (found > 0).any() else None})
