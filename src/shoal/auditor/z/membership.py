"""Without a trace: are released rows in the truth, at least as often, and which can be only one record?"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import check
from shoal.auditor.counting import Paths, pair_codes, surplus
from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation
from shoal.auditor.rows.texts import matched, shared_numbers, spelt_alike
from shoal.auditor.sorting import dense
from shoal.auditor.z.promise import ZPromise


def lone_links(known: Ints, shown: Ints) -> Ints:
    """Link shown rows to known rows if the key is unique on both sides; else -1."""
    size = int(max(known.max(initial=-1), shown.max(initial=-1))) + 1
    place = np.full(size, -1, np.int64)
    place[known] = np.arange(len(known))
    lone = (np.bincount(known, minlength=size) == 1) & (np.bincount(shown, minlength=size) == 1)
    return np.where(lone, place, -1)[shown]


def linked(promise: ZPromise, records: Relation, released: Relation) -> Relation:
    """Link released rows to records that can be only theirs; mark those that no record, or too few, can explain.

    A label may stand for any value below it. Labels nest, so enough records exist for all rows exactly when,
    for every label, no more rows are released at or below it than there are records below it.
    """
    released = released.ordered("row")
    records, readable = records.take(records["usable"]), np.flatnonzero(released["readable"])
    shown = released.take(readable)
    keys, shown_keys = _keys(promise, records, shown)
    absent, extra = surplus(keys, shown_keys)
    link = lone_links(keys, shown_keys)
    for attribute in promise.attributes:
        labels, (true, values) = shared_numbers(records[f"true {attribute.name}"], shown[f"released {attribute.name}"])
        paths = Paths(labels, attribute.hierarchy)
        owner, _, label = paths.expand(true)
        shown_owner, _, shown_label = paths.expand(values)
        pair = pair_codes((keys[owner], label), (shown_keys[shown_owner], shown_label))
        for marks, found in zip((absent, extra), surplus(*pair), strict=True):
            marks[shown_owner[found]] = True
        absent |= (values >= 0) & (paths.length(values) == 0)
    at = np.full(len(released), -1, np.int64)
    at[readable] = link
    is_absent, is_extra = np.zeros((2, len(released)), np.bool_)
    is_absent[readable], is_extra[readable] = absent, extra & ~absent
    record = np.append(records["record"], -1)[at]
    released = released.having(record=record, absent=is_absent, extra=is_extra)
    return matched(released, records.only("record", "usable", "person"), "record")


def _keys(promise: ZPromise, records: Relation, shown: Relation) -> tuple[Ints, Ints]:
    """Number (time, carried columns) on both sides."""
    pairs = [(records["at"], shown["at"])]
    for name in promise.carry:
        known, released = spelt_alike(records[f"true {name}"]), spelt_alike(shown[f"released {name}"])
        own, other = shared_numbers(known, released)[1]
        pairs.append((own, other))
    joined = dense(*(np.concatenate(pair) for pair in pairs))
    return joined[: len(records)], joined[len(records) :]


of_times: Final = partial(check, families=("z",), by="record", needs=("truth",))
_NOT_OURS: Final = "Rows that the input does not explain are invented or changed: do not publish this release."


@of_times("not-in-truth", "A released row is not in the truth.", advice=_NOT_OURS)
def not_in_truth(rows: Relation, *_: Any) -> Any:
    return rows["absent"]


@of_times("more-often-than-truth", "A row was released more often than it is in the truth.", advice=_NOT_OURS)
def more_often(rows: Relation, *_: Any) -> Any:
    return rows["extra"]
