"""Read the release, the truth and the trace of an audit of sets into tables of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Check, Found, all_found, look
from shoal.auditor.counting import is_someone, shared_codes
from shoal.auditor.engine import Here, Place
from shoal.auditor.evidence import counts_rows
from shoal.auditor.findings import Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.files import read
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import Rows, by_stream
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.released_columns import check_columns
from shoal.auditor.rows.reading import require_columns
from shoal.auditor.sets.promise import SetPromise, read_set_promise
from shoal.auditor.sets.reading import (
    Entries,
    is_listed,
    nested_rows,
    read_entries,
    read_rows,
    separator_of,
    unfit_rows,
)
from shoal.auditor.sets.records import RELEASED, TRUTH, Records, once, sets_check
from shoal.auditor.sorting import distinct, firsts

_ENTRIES: Final[Shape] = {"row": int, "entry": int, "label": str, "fits": bool}
"""A row for every label of a row of a file, and one without label for every row that has none."""
_FIRST: Final[Shape] = {"range": int, "first": int, "label": int}
_RANGE: Final = 1 << 16
"""People are numbered in ranges of this many rows."""


def formats_of_sets(policy: Policy) -> dict[str, Format]:
    """The formats of the files of an audit of sets; a text file may have a set on every line."""
    promise, source = read_set_promise(policy), Format.of_source(policy.section("source"))
    sink = replace(Format.of(policy.section("sink")), names_once=True, line_column=promise.column)
    return {"release": sink, "truth": replace(source, line_column=promise.item), "trace": Format()}


@contextmanager
def sets_here(policy: Policy, inputs: Mapping[str, Any]) -> Iterator[Place]:
    """Read what is audited on this machine; the trace says nothing without the truth."""
    promise, formats, rows = read_set_promise(policy), formats_of_sets(policy), {}
    rows["release"] = read_rows(inputs["release"], formats["release"], name="release", column=promise.column)
    if "truth" in inputs:
        truth = read_rows(inputs["truth"], formats["truth"], name="truth", column=promise.item, person=promise.person)
        rows["truth"] = by_stream(truth, policy.section("stream"))
        if "trace" in inputs:
            rows["trace"] = read(inputs["trace"], name="trace", expected=formats["trace"], part="trace")
    yield Here(rows)


# ---- labels of rows


def _relation(found: Entries, fits: Bools, first: int, **more: Texts) -> Relation:
    """Entries as a relation; a row without entries gets one without a label. `more` is by row."""
    owner, label = found.owner, found.label
    empty = np.flatnonzero(np.bincount(owner, minlength=len(fits)) == 0)
    if len(empty):
        order = np.argsort(owner := np.append(owner, empty), kind="stable")
        owner, label = owner[order], np.append(label, np.full(len(empty), -1))[order]
    columns = {"row": owner + first, "entry": np.arange(len(owner)), "label": Texts(label, found.labels)}
    return Relation({**columns, "fits": fits[owner], **{name: column.take(owner) for name, column in more.items()}})


def _numbers_of(texts: Iterable[str], number: dict[str, int]) -> Ints:
    """The number of every text; -1 for a blank one, and at the end for none."""
    return np.array([*(number[text] if text.strip() else -1 for text in texts), -1], np.int64)


@dataclass(frozen=True, slots=True)
class _Survey:
    """What is known of a part: where each of its labels is first, rows that cannot be used, findings."""

    labels: list[str]
    row: Ints
    entry: Ints
    unfit: int
    found: Found


def _survey(checks: Sequence[Check], part: Relation) -> _Survey:
    part = part.ordered("row", "entry")
    texts, codes = part["label"].texts, part.codes("label")
    unfit, places = len(np.unique(part["row"][~part["fits"]])), firsts(codes)
    labels = [texts[code] for code in codes[places].tolist()]
    return _Survey(labels, part["row"][places], part["entry"][places], unfit, Found(look(part, checks)))


def _all_labels(surveys: Sequence[_Survey]) -> list[str]:
    """All labels in order of appearance, however rows were divided."""
    nothing = [np.zeros(0, np.int64)]
    row = np.concatenate(nothing + [one.row for one in surveys])
    entry = np.concatenate(nothing + [one.entry for one in surveys])
    labels = [label for one in surveys for label in one.labels]
    return list(dict.fromkeys(labels[at] for at in np.lexsort((entry, row)).tolist()))


# ---- the release


@sets_check(
    "unreadable", "Released rows are unreadable or contain an empty label.", by="record",
    advice="Nobody can check such a row. Write the release again; every row is a list of labels.",
)  # fmt: skip
def unreadable(rows: Relation) -> Bools:
    """Mark rows that cannot be read, or have a null or blank label."""
    return once(rows, ~rows["fits"])


@sets_check(
    "label-twice", "A released set contains a label more than once.", by="record",
    advice="How often a label comes may tell how many of its items a person has. Release every label once.",
)  # fmt: skip
def label_twice(rows: Relation) -> Bools:
    """Mark rows in which two entries have the same label."""
    label = _numbers_of(rows["label"].texts, {text: at for at, text in enumerate(rows["label"].texts)})
    labels = label[rows.codes("label")]
    entries = np.sort((rows["row"] * (len(label) + 1) + labels)[labels >= 0])
    twice = entries[1:][entries[1:] == entries[:-1]] // (len(label) + 1)
    return once(rows, np.isin(rows["row"], twice)) if len(twice) else np.zeros(len(rows), np.bool_)


def read_release(place: Place, policy: Policy, promise: SetPromise, notes: Notes) -> Records | None:
    """Read the released sets; report what is wrong with columns and rows. None if there are no sets."""
    outline = place.outline("release")
    is_named = promise.column in outline.columns or promise.item not in outline.columns
    column = promise.column if is_named else promise.item
    if not check_columns((column,), outline, notes):
        return None
    work = partial(_released_entries, column, separator_of(policy, "sink"))
    entries = place.read("release", work, _ENTRIES)
    surveys = place.divide(entries, ("row",), partial(_survey, (unreadable, label_twice)))
    notes.findings += all_found(survey.found for survey in surveys).findings
    labels = _all_labels(surveys)
    table = place.regroup(entries, ("row",), partial(_numbered_rows, _places(labels), "row"), RELEASED)
    return Records(place, table, "row", labels)


def _released_entries(column: str, separator: str | None, rows: Rows, first: int) -> Relation:
    found = read_entries(rows, column, separator)
    fits = ~rows.broken & ~unfit_rows(rows, column)
    is_blank = np.array([*(not text.strip() for text in found.labels), True])
    fits[found.owner[is_blank[found.label]]] = False
    return _relation(found, fits, first)


def _places(labels: Iterable[str]) -> dict[str, int]:
    return {label: number for number, label in enumerate(labels)}


def _numbered_rows(number: dict[str, int], key: str, part: Relation) -> Relation:
    """Number labels as all parts do; every row is a record."""
    label = _numbers_of(part["label"].texts, number)[part.codes("label")]
    found = _records(part["row"], label, len(number))
    return Relation({key: found[0], "label": found[1], **({"row": np.full(len(found[0]), -1)} if key != "row" else {})})


def _records(owner: Ints, label: Ints, labels: int) -> tuple[Ints, Ints]:
    """The different labels of every record, in order."""
    record, label = np.divmod(distinct(owner * (labels + 1) + label + 1), labels + 1)
    return record, label - 1


# ---- the truth


def read_truth(place: Place, policy: Policy, promise: SetPromise, notes: Notes) -> Records:
    """Read the original records, in the order in which their people appear; all rows of a person are one record."""
    outline, person = place.outline("truth"), promise.person
    notes.counts_rows = counts_rows(policy, outline)
    by_person = person in outline.columns
    require_columns(place, promise.item)
    needs_person = person and not by_person and len(outline) and outline.columns != (promise.item,)
    if needs_person and not all(place.facts("truth", partial(_has_lists, promise.item))):
        require_columns(place, str(person))
    work = partial(_true_entries, policy, promise.item, person if by_person else None)
    key, shape = ("person", {**_ENTRIES, "person": str}) if by_person else ("row", _ENTRIES)
    entries = place.read("truth", work, shape)
    surveys = place.divide(entries, (key,), partial(_survey, ()))
    notes.metrics["unusable_rows"] = sum(survey.unfit for survey in surveys)
    labels = _all_labels(surveys)
    if not by_person:
        table = place.regroup(entries, ("row",), partial(_numbered_rows, _places(labels), "record"), TRUTH)
        return Records(place, table, "record", labels)
    table = place.regroup(entries, ("person",), partial(_of_people, _places(labels)), _FIRST)
    ranges = sorted(one for part in place.divide(table, ("range",), _people_in_ranges) for one in part.items())
    starts = dict(zip((at for at, _ in ranges), np.cumsum([0, *(count for _, count in ranges)]).tolist(), strict=False))
    return Records(place, place.regroup(table, ("range",), partial(_in_order, starts), TRUTH), "record", labels)


def _has_lists(column: str, rows: Rows) -> bool:
    return all(map(is_listed, rows.pieces(column)))


def _true_entries(policy: Policy, item: str, person: str | None, rows: Rows, first: int) -> Relation:
    separator, source = separator_of(policy, "source"), policy.section("source")
    trims = source.get("kind") == "csv" and Format.of_source(source).trims
    found = read_entries(rows, item, separator, one_item=person is not None and separator is None, trims=trims)
    fits = ~rows.broken & ~unfit_rows(rows, item)
    if person is None:
        return _relation(found, fits, first)
    names, (code,) = shared_codes(rows.text(person))
    fits &= is_someone(code, names) & ~nested_rows(rows, person)
    return _relation(found, fits, first, person=Texts(code, names))


def _of_people(number: dict[str, int], part: Relation) -> Relation:
    """The items of every person with a usable row, whose record begins where the person first appears."""
    part = part.ordered("row")
    person = part.codes("person")
    first = np.full(len(part["person"].texts) + 1, -1)
    first[person[::-1]] = part["row"][::-1]
    part, begins = part.take(part["fits"]), first[person][part["fits"]]
    owner, label = _records(begins, _numbers_of(part["label"].texts, number)[part.codes("label")], len(number))
    return Relation({"range": owner // _RANGE, "first": owner, "label": label})


def _people_in_ranges(part: Relation) -> dict[int, int]:
    ranges, people = np.unique(np.unique(part["first"]) // _RANGE, return_counts=True)
    return dict(zip(ranges.tolist(), people.tolist(), strict=True))


def _in_order(starts: dict[int, int], part: Relation) -> Relation:
    """Number the records of some ranges: how many people appear before?"""
    part = part.ordered("first")
    first, turn = np.unique(part["first"], return_inverse=True)
    begins = np.unique(first // _RANGE, return_index=True, return_inverse=True)
    start = np.array([starts[number] for number in begins[0].tolist()], np.int64)[begins[2]]
    number = start + np.arange(len(first)) - begins[1][begins[2]]
    return Relation({"record": number[turn], "label": part["label"], "row": np.full(len(part), -1)})
