"""What a policy promises, in sentences for readers who are not engineers."""

from __future__ import annotations

from typing import Any, Final

from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.z.promise import ZPromise
from shoal.schema import format_duration

_MISSING: Final = {
    "own": "A missing value stays missing. Rows that look alike lack the same columns, so it is known of everyone "
    "behind them that they lack these values.",
    "hidden": "A column is shown only where everyone behind a group of rows has a value in it.",
    "covered": "A column is shown where enough people behind a group of rows have a value in it, so a row may show "
    "something where its record has nothing.",
    "paper": "Missing values stay visible row by row, so the first sentence does not hold for them.",
    "filled": "A row shows what its group shows, also where its record has nothing.",
}


def promise_in_words(promise: Any) -> list[str]:
    """Return what is promised, what is published, and what is not promised."""
    if isinstance(promise, ZPromise):
        return _of_z(promise)
    if isinstance(promise, SetPromise):
        return _of_sets(promise)
    if isinstance(promise, FlexiblePromise):
        return _of_flexible(promise)
    assert isinstance(promise, TuplePromise)
    return _of_tuples(promise)


def _columns(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _of_tuples(promise: TuplePromise) -> list[str]:
    wait = format_duration(promise.deadline) if promise.is_timed else f"{promise.deadline:,} arrivals"
    found = [
        f"Every published row looks like the rows of at least {promise.k} different people in the columns that could "
        f"identify someone ({_columns(tuple(rule.name for rule in promise.quasi))}).",
        f"Every record is decided within {wait}; a record that cannot be published safely is "
        + ("published without any detail." if promise.shows_suppressed else "not published."),
        f"Published as they are: {_columns((*promise.sensitive, *promise.carry))}. The person column is not published.",
    ]
    diversity = promise.diversity
    if diversity.l is not None:
        least = f"at least {diversity.l:g} different known sensitive values, or none"
        found.append(f"Among the rows that look alike there are {least}.")
    if diversity.entropy_l is not None:
        found.append(f"They are as evenly spread as {diversity.entropy_l:g} equally common values (entropy l).")
    if diversity.t is not None:
        found.append(f"Their distribution differs from the usual one by at most {diversity.t:g} (t-closeness).")
    is_diverse = any(level is not None for level in (diversity.l, diversity.entropy_l, diversity.t))
    if promise.generalized and is_diverse:
        names = _columns(promise.generalized)
        found.append(f"Sensitive values of {names} are the exact ones; rows show ranges or labels of them only.")
    if not is_diverse and (promise.sensitive or promise.generalized):
        found.append("Nothing is promised about sensitive values: rows that look alike may all have the same one.")
    fills = promise.missing == "paper" and not promise.keeps_record_nulls
    return [*found, _MISSING["filled" if fills else promise.missing]]


def _of_flexible(promise: FlexiblePromise) -> list[str]:
    return [
        f"Every published row has its usual identifying columns in common with rows of at least {promise.k} people; "
        "with the rare ones (sparse columns) in common with at least K_s people, which the audit states.",
        "Nothing is dropped: a record that cannot be published yet stays pending.",
        f"Published as they are: {_columns((*promise.sensitive, *promise.carry))}. The person column is not published.",
        "Nothing is promised about sensitive values.",
    ]


def _of_sets(promise: SetPromise) -> list[str]:
    found = []
    for size, (k, sigma) in enumerate(zip(promise.k, promise.sigma, strict=True), start=1):
        items = "item" if size == 1 else "items"
        if sigma == 1:
            found.append(f"Anyone who knows {size} {items} of a person finds at least {k} records that fit.")
        else:
            found.append(
                f"Anyone who knows {size} {items} finds at least {k} records that fit, in {sigma:.4%} of the cases."
            )
    return [
        *found,
        f"Nothing is promised against knowledge of more than {len(promise.k)} items. No person column is published.",
    ]


def _of_z(promise: ZPromise) -> list[str]:
    found = [
        f"A value of {one.name} is published only if at least {one.z} different people had it within "
        f"{format_duration(one.window_ns)}."
        for one in promise.attributes
    ]
    found.append(f"People appear under pseudonyms that change every {format_duration(promise.rotation_ns)}.")
    if promise.k is not None:
        found.append(f"At least {promise.k} people share the whole set of values published of anyone in that time.")
    else:
        found.append("Combinations are not protected: a person may be the only one with a set of common values.")
    found.append(f"Published as they are: {_columns((promise.time, *promise.carry))}.")
    return found
