"""Report a release window by window: how many people share their released set, and which values cost most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import is_someone, people_of, shared_codes, sum_by
from shoal.auditor.policy import read_policy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.report.released_sets import Groups, count_savings, group_sets, rank_costs
from shoal.auditor.report.windows_report import Target, Window, WindowReport
from shoal.auditor.z.promise import ZPromise, read_z_promise
from shoal.errors import PolicyError

_DEFAULT_K: Final = 2


def report_windows(release: Any, policy: Any, truth: Any = None, k: int | None = None) -> WindowReport:
    """Count, in every window of pseudonyms, the people who share their released set with others.

    Parameters
    ----------
    release, truth
        As in `audit`. With the truth, the raw input, the report also counts the active people.
    policy
        The path of a policy for z-anonymity, or its content as a dict.
    k
        How many people must have the same released set. By default the ``k`` of the policy's ``target`` or
        ``combine``, else 2.

    Examples
    --------
    >>> import pyarrow as pa
    >>> policy = {
    ...     "stream": {"person": "user", "time": "ts"},
    ...     "anonymize": {"method": "z-anonymity", "attribute": "site", "z": 2, "window": "1h"},
    ... }
    >>> shown = [("p", "news"), ("q", "news"), ("q", "chess"), ("r", "news")]
    >>> release = pa.table({"ts": [1, 2, 3, 4], "user": [who for who, _ in shown], "site": [what for _, what in shown]})
    >>> report = report_windows(release, policy)
    >>> [(window.shown, window.anonymous, window.exposed) for window in report.windows]
    [(3, 2, 1)]
    >>> [(cost.value, cost.saved) for cost in report.costs]
    [('chess', 1)]
    """
    written = read_policy(policy)
    if written.section("anonymize").get("method") != "z-anonymity":
        raise PolicyError(
            "[anonymize] method: only z-anonymity has windows to report on; for others write a page with -o report.html"
        )
    promise = read_z_promise(written)
    level = _level(k, promise)
    sink = replace(Format.of(written.section("sink")), names_once=True)
    shown = _read_shown(promise, read(release, name="release", expected=sink))
    known = None
    if truth is not None:
        rows = read(truth, name="truth", expected=Format.of_source(written.section("source")))
        known = _read_known(promise, by_stream(rows, written.section("stream")))
    return _report(promise, level, shown, known)


def _level(k: int | None, promise: ZPromise) -> tuple[int, str]:
    """Return k and where it comes from."""
    if k is None and promise.target:
        return promise.target.k, "the k of the policy's target"
    if k is None:
        return (promise.k, "the k of the policy") if promise.k else (_DEFAULT_K, "the default; choose another with --k")
    if isinstance(k, bool) or not isinstance(k, int) or k < 2:
        raise PolicyError("k: must be a whole number from 2; everybody shares a set with 1 person, themselves")
    return k, "as asked"


@dataclass(frozen=True, slots=True)
class _Shown:
    """The released rows that have a person and a time."""

    epoch: Ints
    person: Ints
    items: list[Ints]
    """Numbers of values, by attribute; all attributes are numbered together."""
    names: list[tuple[str, str]]
    """Attribute and value of every number."""
    unreadable: int


def _read_shown(promise: ZPromise, release: Rows) -> _Shown:
    attributes = [attribute.name for attribute in promise.attributes]
    if len(release) or release.columns:
        release.require(promise.time, promise.person, *attributes)
    time, has_time = release.moments(promise.time)
    _, (person,) = shared_codes(release.text(promise.person))
    usable = has_time & ~release.broken & (person >= 0)
    items: list[Ints] = []
    names: list[tuple[str, str]] = []
    for attribute in attributes:
        labels, (code,) = shared_codes(release.text(attribute))
        items.append(np.where(code >= 0, code + len(names), -1)[usable])
        names += [(attribute, label) for label in labels]
    return _Shown(time[usable] // promise.rotation_ns, person[usable], items, names, int((~usable).sum()))


def _read_known(promise: ZPromise, truth: Rows) -> tuple[Ints, Ints]:
    """Return epoch and person of the truth's rows that have both."""
    if len(truth):
        truth.require(promise.time, promise.person)
    time, has_time = truth.moments(promise.time)
    persons, (person,) = shared_codes(truth.text(promise.person))
    usable = has_time & is_someone(person, persons)
    return time[usable] // promise.rotation_ns, person[usable]


def _report(promise: ZPromise, level: tuple[int, str], shown: _Shown, known: tuple[Ints, Ints] | None) -> WindowReport:
    k, k_from = level
    active_epoch = known[0] if known else np.zeros(0, np.int64)
    starts, number = np.unique(np.concatenate([shown.epoch, active_epoch]), return_inverse=True)
    epoch = number[: len(shown.epoch)]
    groups = group_sets(epoch, shown.person, shown.items)
    savings = count_savings(groups, k, keeps_empty=promise.keeps_rows)
    costs, of_each = rank_costs(savings, epoch, shown.items, shown.names)
    counts = _counts(groups, k, len(starts)) | {"rows": np.bincount(epoch, minlength=len(starts))}
    if known:
        counts["active"] = people_of(number[len(epoch) :], known[1], len(starts))
    met, target = _judge_target(promise, groups, len(starts))
    return WindowReport(
        k=k,
        k_from=k_from,
        rotation_ns=promise.rotation_ns,
        windows=tuple(
            Window(
                start_ns=start * promise.rotation_ns,
                **{name: int(column[place]) for name, column in counts.items()},
                target_met=met[place],
                costs=tuple(of_each.get(place, ())),
            )
            for place, start in enumerate(starts.tolist())
        ),
        costs=tuple(costs),
        target=target,
        unreadable_rows=shown.unreadable,
    )


def _counts(groups: Groups, k: int, count: int) -> dict[str, Ints]:
    """Count the people of every epoch by how many have their set, and the values of their sets."""
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, groups.epoch, groups.length)
    return {
        "shown": sum_by(groups.epoch, groups.people, count),
        "anonymous": sum_by(groups.epoch, groups.people * (groups.people >= k), count),
        "unique": sum_by(groups.epoch, groups.people == 1, count),
        "values": sum_by(groups.epoch, groups.people * groups.length, count),
        "largest_set": largest,
    }


def _judge_target(promise: ZPromise, groups: Groups, count: int) -> tuple[list[bool | None], Target | None]:
    """Return in which windows enough people are k-anonymous, by the k of the target."""
    target = promise.target
    if target is None:
        return [None] * count, None
    counts = _counts(groups, target.k, count)
    met = [
        safe >= target.p * shown if shown else None
        for shown, safe in zip(counts["shown"].tolist(), counts["anonymous"].tolist(), strict=True)
    ]
    return met, Target(
        target.k, target.p, shown=sum(one is not None for one in met), met=sum(one is True for one in met)
    )
