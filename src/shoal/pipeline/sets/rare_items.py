"""Leave out items that few people have, before the others are generalized."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shoal.errors import InputError
from shoal.methods.sets.records import ReadRecords
from shoal.pipeline.sets.reading import PeopleSets


@dataclass(frozen=True, slots=True)
class Dropped:
    """What was left out."""

    items: int
    entries: int
    """How often people have one of them."""
    share: float
    """Of all entries."""
    people: int
    """Those who have nothing else."""


def drop_rare_items(sets: PeopleSets, least: int) -> tuple[PeopleSets, Dropped]:
    """The sets without items that fewer than `least` people have; people who have nothing else get no record.

    InputError if nothing is left.
    """
    records = sets.records
    people = np.bincount(records.codes, minlength=len(records.labels))  # a record has every item once
    is_kept = people >= least
    entries = is_kept[records.codes]
    owners = np.repeat(np.arange(len(sets)), np.diff(records.starts))[entries]
    sizes = np.bincount(owners, minlength=len(sets))
    has_any = sizes > 0
    if not has_any.any():
        raise InputError(f"every item is one that fewer than {least} people have; lower drop_rare, or leave it out")
    number = np.cumsum(is_kept) - 1
    labels = tuple(label for label, kept in zip(records.labels, is_kept.tolist(), strict=True) if kept)
    starts = np.concatenate([[0], np.cumsum(sizes[has_any])]).astype(np.int64)
    kept = ReadRecords(starts, number[records.codes[entries]].astype(np.int32), labels)
    lost = len(records.codes) - int(entries.sum())
    dropped = Dropped(int((~is_kept).sum()), lost, lost / len(records.codes), int((~has_any).sum()))
    return PeopleSets(sets.people, sets.numbers[has_any], kept), dropped


def only_published(blocks: Mapping[str, tuple[str, ...]], items: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The blocks without items that are in no record; which of those were dropped is not shown."""
    there = set(items)
    found = {label: tuple(item for item in own if item in there) for label, own in blocks.items()}
    return {label: own for label, own in found.items() if own}


def drop_statement(least: int | None) -> str:
    """What the statement of a guarantee says of dropped items: nothing if none may be dropped."""
    if least is None:
        return ""
    return (
        f"\nItems that fewer than {least} people have are in no record: the guarantee is about the other items, and "
        "people who have only such items are not published."
    )
