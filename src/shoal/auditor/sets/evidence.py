"""Read the release, the truth and the trace of an audit of sets into tables of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.checks import Check, Found, all_found, look
from shoal.auditor.counting import is_someone, shared_codes
from shoal.auditor.engine import Here, Place, Table
from shoal.auditor.findings import Notes
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.files import read
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.paths import Format
from shoal.auditor.reading.rows import NOTHING_HIDDEN, Rows, by_stream, has_row_column
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.released_columns import check_columns
from shoal.auditor.sets.promise import SetPromise
from shoal.auditor.sets.reading import (
    Entries,
    is_listed,
    nested_rows,
    read_entries,
    read_rows,
    separator_of,
    unfit_rows,
)
from shoal.auditor.sets.records import RELEASED, TRUTH, Records, different, once, ordered, sets_check

_ENTRIES: Final[Shape] = {"row": int, "entry": int, "label": str, "fits": bool}
"""A row for every label of a row of a file, and one without label for every row that has none."""
_FIRST: Final[Shape] = {"range": int, "first": int, "label": int}
_RANGE: Final = 1 << 16
"""People are numbered in ranges of this many rows."""


def sets_here(policy: Policy, promise: SetPromise, release: Any, truth: Any, trace: Any) -> Here:
    """Read what is audited on this machine."""
    rows = {"release": read_rows(release, policy, name="release", section="sink", column=promise.column)}
    if truth is not None:
        rows["truth"] = read_rows(
            truth, policy, name="truth", section="source", column=promise.item, person=promise.person
        )
    if truth is not None and trace is not None:
        rows["trace"] = read(trace, name="trace", expected=Format(), part="trace")
    return Here(rows)


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a file, or of all files of a role."""

    columns: tuple[str, ...] = ()
    rows: int = 0
    hidden: Hidden = NOTHING_HIDDEN
    has_row_column: bool = False
    is_listed: bool = True
    """Whether every row is a list of items."""

    @classmethod
    def of(cls, place: Place, role: str, column: str) -> Facts:
        """The facts of all files; `column` may have lists."""
        found = place.facts(role, partial(_facts_of, column))
        columns = dict.fromkeys(name for one in found for name in one.columns)
        hidden = sum((one.hidden for one in found), NOTHING_HIDDEN)
        return cls(
            tuple(columns), sum(one.rows for one in found), hidden, any(one.has_row_column for one in found),
            all(one.is_listed for one in found),
        )  # fmt: skip

    def header(self, name: str) -> Rows:
        """The columns of all files, for checks that look at no value."""
        columns = {column: pa.nulls(min(self.rows, 1)) for column in self.columns}
        return Rows(((columns, np.zeros(min(self.rows, 1), np.bool_)),), name, (), self.hidden)


def _facts_of(column: str, rows: Rows) -> Facts:
    lists = all(map(is_listed, rows.pieces(column)))
    return Facts(tuple(rows.columns), len(rows), rows.hidden, has_row_column(rows), lists)


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
    part = ordered(part, "row", "entry")
    texts, codes = part["label"].texts, part.codes("label")
    first = np.full(len(texts) + 1, -1)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    known = np.flatnonzero(first[:-1] >= 0)
    unfit, places = len(np.unique(part["row"][~part["fits"]])), first[known]
    labels = [texts[code] for code in known.tolist()]
    return _Survey(labels, part["row"][places], part["entry"][places], unfit, Found(look(part, checks)))


def _all_labels(surveys: Sequence[_Survey]) -> list[str]:
    """All labels in order of appearance, however rows were divided."""
    none = [np.zeros(0, np.int64)]
    row, entry = np.concatenate(none + [one.row for one in surveys]), np.concatenate(none + [one.entry for one in surveys])
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
    facts = Facts.of(place, "release", promise.column)
    is_named = promise.column in facts.columns or promise.item not in facts.columns
    column = promise.column if is_named else promise.item
    if not check_columns((column,), facts.header("release"), notes):
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
    record, label = np.divmod(different(owner * (labels + 1) + label + 1), labels + 1)
    return record, label - 1


# ---- the truth


def read_truth(place: Place, policy: Policy, promise: SetPromise, notes: Notes) -> Records:
    """Read the original records, in the order in which their people appear; all rows of a person are one record."""
    facts, person = Facts.of(place, "truth", promise.item), promise.person
    header = facts.header("truth")
    numbers_rows = person == "row" and not facts.has_row_column
    notes.counts_rows = numbers_rows
    by_person = person is not None and (person in facts.columns or numbers_rows)
    if facts.rows:
        header.require(promise.item)
    if person and not by_person and facts.rows and facts.columns != (promise.item,) and not facts.is_listed:
        header.require(person)
    work = partial(_true_entries, policy, promise, numbers_rows, by_person)
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


def _true_entries(
    policy: Policy, promise: SetPromise, numbers_rows: bool, by_person: bool, rows: Rows, first: int  # noqa: FBT001
) -> Relation:  # fmt: skip
    rows = by_stream(rows, policy.section("stream"), first, numbers=numbers_rows)
    separator, source = separator_of(policy, "source"), policy.section("source")
    trims = source.get("kind") == "csv" and Format.of_source(source).trims
    found = read_entries(rows, promise.item, separator, one_item=by_person and separator is None, trims=trims)
    fits = ~rows.broken & ~unfit_rows(rows, promise.item)
    if not by_person:
        return _relation(found, fits, first)
    assert promise.person is not None
    names, (code,) = shared_codes(rows.text(promise.person))
    fits &= is_someone(code, names) & ~nested_rows(rows, promise.person)
    return _relation(found, fits, first, person=Texts(code, names))


def _of_people(number: dict[str, int], part: Relation) -> Relation:
    """The items of every person with a usable row, whose record begins where the person first appears."""
    part = ordered(part, "row")
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
    part = ordered(part, "first")
    first, turn = np.unique(part["first"], return_inverse=True)
    begins = np.unique(first // _RANGE, return_index=True, return_inverse=True)
    start = np.array([starts[number] for number in begins[0].tolist()], np.int64)[begins[2]]
    number = start + np.arange(len(first)) - begins[1][begins[2]]
    return Relation({"record": number[turn], "label": part["label"], "row": np.full(len(part), -1)})
