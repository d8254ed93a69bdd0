"""A z-anonymous release and its truth, grouped by person and epoch, for those who attack it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.attacks.item_lists import ItemLists
from shoal.auditor.attacks.settings import Settings
from shoal.auditor.counting import Paths, dense
from shoal.auditor.engine import Here
from shoal.auditor.evidence import read_evidence
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.texts import shared_numbers
from shoal.auditor.trace import RELEASED
from shoal.auditor.z.evidence import read_entries, read_records, read_released
from shoal.auditor.z.membership import linked
from shoal.auditor.z.promise import ZPromise, read_z_promise
from shoal.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Values:
    """One attribute: the true values, the published ones (-1: none), and the paths of both."""

    truth: Ints
    shown: Ints
    paths: Paths


@dataclass(frozen=True, slots=True)
class Aligned:
    """The truth and the release (``shown_``) as arrays with common codes."""

    time: Ints
    usable: Bools
    person: Ints
    shown_time: Ints
    shown_readable: Bools
    shown_person: Ints
    """Pseudonyms, numbered together with the truth's persons."""
    values: dict[str, Values]


@dataclass(frozen=True, slots=True)
class Side:
    """Released rows, or the records of the truth, grouped by person and epoch."""

    epoch: Ints
    """The epoch of every group, numbered from 0 on both sides alike."""
    person: Ints
    """The person of every group; -1 if not known."""
    group: Ints
    """The group of every row."""
    items: tuple[Ints, ...]
    """The value of every row in every attribute; -1 for none. All attributes are numbered together."""
    time: Ints
    lists: ItemLists


@dataclass(frozen=True, slots=True)
class StreamEvidence:
    """Everything that attacks on z-anonymity use."""

    promise: ZPromise
    aligned: Aligned
    shown: Side
    raw: Side
    link: Ints
    """The record of every released row that can be read; -1 if not known."""
    rows: Ints
    """The released rows that can be read."""
    settings: Settings
    random: np.random.Generator

    @property
    def targets(self) -> Ints:
        """Groups of released rows whose person is known, in random order."""
        known = np.flatnonzero(self.shown.person >= 0)
        return self.random.permutation(known)[: self.settings.targets]


def read_stream_evidence(policy: Policy, release: Any, truth: Any, trace: Any, settings: Settings) -> StreamEvidence:
    """Read a z-anonymous release and its truth."""
    if settings.knows is not None:
        raise PolicyError("knows: z-anonymity has no quasi-identifiers; attackers know values and times")
    settings.progress("reading")
    promise = read_z_promise(policy)
    evidence = read_evidence(policy, release, truth, trace)
    sides = {"release": evidence.release, "truth": evidence.truth or Rows((), "truth"), "trace": evidence.trace}
    aligned, link = _align(Here({role: rows for role, rows in sides.items() if rows is not None}), promise)
    rows = np.flatnonzero(aligned.shown_readable & (aligned.shown_person >= 0))
    known = np.flatnonzero(aligned.usable)
    epochs = dense(np.concatenate([aligned.shown_time[rows], aligned.time[known]]) // promise.rotation_ns)
    names = list(aligned.values)
    width = [
        max(int(value.truth.max(initial=-1)), int(value.shown.max(initial=-1))) + 1 for value in aligned.values.values()
    ]
    offset = np.cumsum([0, *width])
    shown_items = tuple(_shifted(aligned.values[name].shown[rows], offset[at]) for at, name in enumerate(names))
    true_items = tuple(_shifted(aligned.values[name].truth[known], offset[at]) for at, name in enumerate(names))
    person = np.append(aligned.person, -1)[link[rows]]
    shown = _side(
        epochs[: len(rows)], aligned.shown_person[rows], person, shown_items, aligned.shown_time[rows], int(offset[-1])
    )
    raw = _side(
        epochs[len(rows) :],
        aligned.person[known],
        aligned.person[known],
        true_items,
        aligned.time[known],
        int(offset[-1]),
    )
    return StreamEvidence(
        promise, aligned, shown, raw, link[rows], rows, settings, np.random.default_rng(settings.seed)
    )


def _align(place: Here, promise: ZPromise) -> tuple[Aligned, Ints]:
    """The release and the truth with common codes, and the record of every released row; -1 if it is not known."""
    shown, known = read_released(place, promise), read_records(place, promise)
    _, (person, pseudonym) = shared_numbers(known["person"], shown["pseudonym"])
    values = {}
    for attribute in promise.attributes:
        labels, (truth, released) = shared_numbers(known[f"true {attribute.name}"], shown[f"released {attribute.name}"])
        values[attribute.name] = Values(truth, released, Paths(labels, attribute.hierarchy))
    aligned = Aligned(known["time"], known["usable"], person, shown["at"], shown["readable"], pseudonym, values)
    if {"row", "verdict"} <= set(place.outline("trace").columns):
        entries, apart = read_entries(place, promise)
        if not apart:
            return aligned, np.maximum(entries["record"][entries["verdict"] == RELEASED], -1)
    return aligned, linked(promise, known.having(at=known["time"]), shown)["record"]


def _shifted(code: Ints, by: int) -> Ints:
    return np.where(code >= 0, code + by, -1)


def _side(epoch: Ints, name: Ints, person: Ints, items: tuple[Ints, ...], time: Ints, width: int) -> Side:
    group = dense(epoch, name) if len(epoch) else np.zeros(0, np.int64)
    count = int(group.max(initial=-1)) + 1
    of_group, of_epoch = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    of_epoch[group] = epoch
    sure = person >= 0
    of_group[group[sure]] = person[sure]
    owner = np.concatenate([group[item >= 0] for item in items] or [np.zeros(0, np.int64)])
    item = np.concatenate([item[item >= 0] for item in items] or [np.zeros(0, np.int64)])
    # Items of different epochs are different, so that only people of one epoch are compared.
    lists = ItemLists(owner, of_epoch[owner] * width + item, count, (int(of_epoch.max(initial=-1)) + 1) * width)
    return Side(of_epoch, of_group, group, items, time, lists)


def people_of_epoch(side: Side, groups: Ints) -> Ints:
    """Return how many people the epoch of each group has."""
    return np.bincount(side.epoch)[side.epoch[groups]] if len(groups) else groups
