"""What is checked of flexible k-anonymity alone: crowds, what was in force, and a trace in which nothing is dropped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Check, check
from shoal.auditor.findings import Severity
from shoal.auditor.flexible.calibration import Calibration, Claims
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.relation import Relation
from shoal.auditor.rows.entries import decided_twice, trace_row, trace_verdict
from shoal.auditor.rows.quasi import LabelColumn, Quasi, RangeColumn
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED

_AGAIN: Final = "Do not publish this release: run it again, and report how it was made."
_TRACE: Final = "The trace cannot be trusted: audit with the one that the run itself wrote, or run it again."
_LOWER: Final = "The run used another policy than the one that is audited: run it again with this policy."
_ROOT: Final = "Such a value says nothing, but makes crowds look larger. Run it again with root = false."
_LETTERS: Final = "Flexible k drops nothing: look at the dead letters, and run it again with these records."
_LOWER_K: Final = "The trace says that a lower k was in force than promised."
_LOWER_K_S: Final = "The trace says that a lower K_s was in force than follows from the policy and the truth."
Marks = Any
"""For every row whether it breaks the promise."""
_CHECKABLE: Final = ("outside", "unknown", "null-person")
"""Reasons for a refusal that the truth can confirm."""

_of_rows = partial(check, families=("flexible",), by="class")
_of_entries = partial(check, families=("flexible",), by="none", needs=("trace",))
_of_records = partial(check, families=("flexible",), by="record", needs=("truth", "trace"))

# ---- crowds


@_of_rows(
    "below-k",
    "Fewer than K people share the normal quasi-identifiers of a released row.",
    advice="Anyone who knows these values of a person finds the person among fewer than K people. " + _AGAIN,
)
def below_k(rows: Relation) -> Marks:
    """Mark rows of blocks with too few people."""
    return rows["people"] < rows["needed"]


@_of_rows(
    "below-k-s",
    "Fewer than K_s people share all quasi-identifiers of a released row.",
    advice="Anyone who also knows the rare values of a person finds the person among fewer than K_s people. " + _AGAIN,
)
def below_k_s(rows: Relation) -> Marks:
    """Mark rows of classes with too few people."""
    return rows["people_s"] < rows["needed_s"]


@check(
    "held-back",
    "A record is pending although K people with pending records have the same values.",
    advice="These records can be published: end the stream with a flush.",
    families=("flexible",),
    by="value",
    needs=("truth", "trace"),
    severity=Severity.WARNING,
)
def held_back(pending: Relation) -> Marks:
    """Mark records of crowds that are large enough."""
    return pending["people"] >= pending["needed"]


@_of_rows("root-label", "A root label was published; the policy forbids it.", advice=_ROOT, needs=("root",))
def root_label(rows: Relation, quasi: Sequence[Quasi]) -> Marks:
    """Mark rows that show the root of a hierarchy."""
    return _at_root(rows, [one for one in quasi if isinstance(one, LabelColumn)])


@_of_rows(
    "whole-domain", "A range over the whole domain was published; the policy forbids it.", advice=_ROOT, needs=("root",)
)
def whole_domain(rows: Relation, quasi: Sequence[Quasi]) -> Marks:
    """Mark rows that show all of a domain."""
    return _at_root(rows, [one for one in quasi if isinstance(one, RangeColumn)])


def _at_root(rows: Relation, columns: Sequence[Quasi]) -> Marks:
    return np.logical_or.reduce([np.zeros(len(rows), np.bool_), *(one.at_root(rows) for one in columns)])


@check(
    "group-differs",
    "Rows of one group have different published values.",
    advice="Rows of a group can be told apart: do not publish this release, and report how it was made.",
    families=("flexible",),
    by="group",
    needs=("trace",),
)
def group_differs(rows: Relation) -> Marks:
    """Mark rows of a group (-1: none) that show something else than its first row."""
    groups, number = np.unique(rows["group"], return_inverse=True)
    least = np.full(len(groups), np.iinfo(np.int64).max)
    np.minimum.at(least, number, rows["row"])
    starts = np.flatnonzero(rows["row"] == least[number])
    shown = np.zeros(len(groups), np.int64)
    shown[number[starts]] = rows["class"][starts]
    return (rows["class"] != shown[number]) & (rows["group"] >= 0)


# ---- what was in force


@_of_entries("k-lowered", _LOWER_K, advice=_LOWER)
def k_lowered(rows: Relation, _: Calibration) -> Marks:
    """Mark rows for which the run applied a lower k than their record needs."""
    return rows["k"] < rows["own_k"]


@_of_entries("k-s-lowered", _LOWER_K_S, advice=_LOWER)
def k_s_lowered(rows: Relation, calibration: Calibration) -> Marks:
    """Mark rows for which the run applied a lower K_s than their record needs."""
    return rows["k_s"] < calibration.k_s(rows["own_k"])


@_of_entries("k-lowered", _LOWER_K, advice=_LOWER)
def k_claimed_lower(_: Relation, claims: Claims, promise: FlexiblePromise, __: Calibration) -> int:
    """Whether the whole run applied a lower k."""
    return int(claims.k is not None and claims.k < promise.k)


@_of_entries("k-s-lowered", _LOWER_K_S, advice=_LOWER)
def k_s_claimed_lower(_: Relation, claims: Claims, promise: FlexiblePromise, found: Calibration) -> int:
    """Whether the whole run applied a lower K_s."""
    return int(bool(found.sparse) and claims.k_s is not None and claims.k_s < found.k_s_of(promise.k))


@_of_entries(
    "sparse-differs",
    "The trace calls a quasi-identifier sparse that is not sparse.",
    advice="Fewer people share its values than promised. Name the sparse columns in the policy, and run it again.",
)
def sparse_differs(_: Relation, claims: Claims, __: FlexiblePromise, found: Calibration) -> int:
    """Count columns that were sparse for the run alone."""
    return len((claims.sparse or frozenset()) - set(found.sparse))


# ---- the trace


@_of_entries(
    "suppressed",
    "A record was suppressed; records that cannot be released must stay pending.",
    advice="Flexible k drops nothing. " + _TRACE,
)
def suppressed(entries: Relation) -> Marks:
    """Mark entries of suppressed records."""
    return entries["verdict"] == SUPPRESSED


@_of_entries("trace-group", "The trace has a released row without a group, or another row with one.", advice=_TRACE)
def trace_group(entries: Relation) -> Marks:
    """Mark entries whose group does not fit their verdict."""
    return (entries["verdict"] == RELEASED) != (entries["group"] >= 0)


@_of_entries("trace-delay", "A delay is missing or below 0.", advice=_TRACE)
def trace_delay(entries: Relation) -> Marks:
    """Mark released entries that did not wait 0 arrivals or more."""
    return (entries["verdict"] == RELEASED) & (entries["delay"] < 0)


@_of_records(
    "unusable-accepted",
    "A record without a person, or with a value outside its domain or hierarchy, was not refused.",
    advice="It may count as a person who does not exist. " + _AGAIN,
)
def unusable_accepted(entries: Relation) -> Marks:
    """Mark entries of unusable records that were released."""
    return (entries["verdict"] == RELEASED) & entries["exists"] & ~entries["usable"]


@_of_records("dead-without-cause", "A record was refused for a reason that does not apply to it.", advice=_LETTERS)
def refused_for_a_wrong_reason(entries: Relation) -> Marks:
    """Mark entries of usable records whose reason for the refusal would show."""
    return (entries["verdict"] == DEAD) & entries["usable"] & _has_checkable_reason(entries)


@_of_records(
    "dead-without-cause",
    "A record was refused although nothing is visibly wrong with it.",
    advice=_LETTERS,
    severity=Severity.WARNING,
)
def refused_without_visible_cause(entries: Relation) -> Marks:
    """Mark other refused entries of usable records."""
    return (entries["verdict"] == DEAD) & entries["usable"] & ~_has_checkable_reason(entries)


def _has_checkable_reason(entries: Relation) -> Marks:
    """Mark entries whose reason the truth can confirm, and those without any."""
    reason = entries["reason"]
    return np.array([*(text.partition(":")[0] in _CHECKABLE for text in reason.texts), True])[reason.codes]


@_of_records(
    "lost",
    "The trace has no verdict on a record that cannot be used.",
    advice="It must be refused, so that its owner can correct it. " + _TRACE,
)
def lost(undecided: Relation) -> Marks:
    """Mark unusable records without a verdict."""
    return ~undecided["usable"]


@_of_records(
    "pending",
    "Records had no verdict yet when the trace ended.",
    advice="Nothing is wrong: the run can still publish them.",
    severity=Severity.INFO,
)
def still_pending(undecided: Relation) -> Marks:
    """Mark usable records without a verdict."""
    return undecided["usable"]


OF_CLAIMS: Final = (k_claimed_lower, k_s_claimed_lower, sparse_differs)


def checks_of_entries(columns: Collection[str], *, has_truth: bool) -> tuple[Check, ...]:
    """The checks of a trace with these columns."""
    found = [trace_verdict, trace_row, decided_twice, suppressed, trace_group]
    found += [trace_delay] if "delay" in columns else []
    of_records = [unusable_accepted, refused_for_a_wrong_reason, refused_without_visible_cause]
    return (*found, *(of_records if has_truth else ()))
