"""Classes: released rows that show equal quasi-identifiers; null is a value. How many people each has.

`with_classes` adds to every row its ``class`` (the number of the first row of the class), how many rows the class has
(``size``) and how many different people (``people``); rows that are not checked (``judged``) have no people.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from shoal.auditor.checks import Answer, Found, check
from shoal.auditor.counting import combined, different, numbered, people_of
from shoal.auditor.findings import Notes, Severity
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.quasi import Quasi

FAMILIES: Final = ("tuples", "flexible")
OF_CLASS: Final[Shape] = {"class": int, "size": int, "people": int}
MOST: Final = 0.5
"""A larger share of a class is a warning."""
LEAST_ROWS: Final = 10
"""Smaller classes cause no warning."""
_ROUNDING: Final = 1e-9


def keys_of(quasi: Sequence[Quasi]) -> tuple[str, ...]:
    """The columns in which the rows of a class are equal."""
    return tuple(name for one in quasi for name in one.shown)


def with_classes(quasi: Sequence[Quasi], rows: Relation) -> Relation:
    """Add the class of every row, and how many rows and people it has; without persons every row is one."""
    own = combined([one.codes(rows) for one in quasi], len(rows))
    count = int(own.max(initial=-1)) + 1
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, own, rows["row"])
    judged = rows["judged"]
    size = np.bincount(own[judged], minlength=count)
    people = size
    if "person" in rows:
        named = judged & (rows.codes("person") >= 0)
        people = people_of(own[named], rows.codes("person")[named], count)
    of_row = {"size": np.where(judged, size[own], 0), "people": np.where(judged, people[own], 0)}
    return rows.having(**{"class": first[own]}, **of_row)


def measure_classes(rows: Relation, k: int) -> Found:
    """Count classes, the people of the smallest, rows below k, and classes of a single row."""
    judged = rows.take(rows["judged"])
    classes, own = numbered(judged["class"])
    people, size = np.zeros((2, len(classes)), np.int64)
    people[own], size[own] = judged["people"], judged["size"]
    below = int((judged["people"] < k).sum())
    return Found(
        sums={"judged": len(judged), "classes": len(classes), "below": below, "unique": int((size == 1).sum())},
        least={"people": int(people.min()) if len(classes) else None},
    )


def count_nulls(rows: Relation, quasi: Sequence[Quasi]) -> Found:
    """Count the rows with each pattern of nulls; a pattern has a 1 for every column that is missing."""
    judged = rows.take(rows["judged"])
    missing = [(~one.is_shown(judged)).astype(np.int64) for one in quasi]
    pattern = combined(missing, len(judged))
    sizes, first = np.bincount(pattern), np.unique(pattern, return_index=True)[1]
    names = ["".join(str(int(column[at])) for column in missing) for at in first.tolist()]
    return Found(sums={f"nulls {name}": int(size) for name, size in zip(names, sizes, strict=True)})


def note_nulls(found: Found, notes: Notes) -> None:
    """Note how many patterns of nulls there are, the rarest one, and the share of rows with a null."""
    sizes = {name.removeprefix("nulls "): count for name, count in found.sums.items() if name.startswith("nulls ")}
    if rows := sum(sizes.values()):
        with_null = sum(count for name, count in sizes.items() if "1" in name)
        notes.metrics["nulls"] = {"patterns": len(sizes), "share": with_null / rows, "rarest": min(sizes.values())}


# ---- people below k


def exposed_people(rows: Relation, k: int) -> Found:
    """Count the people of readable and of checked rows, and those in a class of fewer than k; divided by person."""
    person, judged = rows.codes("person"), rows["judged"] & (rows.codes("person") >= 0)
    readable = ~rows["broken"] & (person >= 0)
    marks = {"people": readable, "released people": judged, "exposed people": judged & (rows["people"] < k)}
    return Found(sums={name: len(different(person[marked])) for name, marked in marks.items()})


# ---- the share of one person


def largest_shares(rows: Relation) -> tuple[Ints, Floats]:
    """Return the class of every row, numbered, and the largest share of one person in every class."""
    classes, own = numbered(rows["class"])
    judged = rows["judged"]
    named = judged & (rows.codes("person") >= 0)
    width = int(rows.codes("person").max(initial=0)) + 1
    pair, times = np.unique(own[named] * width + rows.codes("person")[named], return_counts=True)
    most = np.zeros(len(classes), np.int64)
    np.maximum.at(most, pair // width, times)
    return own, most / np.maximum(np.bincount(own[judged], minlength=len(classes)), 1)


@check(
    "one-person-share",
    "One person has more than half of the rows of a class: k people then protect little.",
    advice="Cap the rows that a person may have in a class (max_share), or count what one person repeats once.",
    families=FAMILIES,
    by="class",
    needs=("truth", "trace"),
    severity=Severity.WARNING,
)
def one_person_share(rows: Relation, share: Floats) -> Bools:
    """Mark the rows of classes of 10 rows or more that are mostly one person's."""
    found: Bools = rows["judged"] & (share > MOST) & (rows["size"] >= LEAST_ROWS)
    return found


@check(
    "above-max-share",
    "One person has more than max_share of the rows of a class.",
    advice="The policy promises less: do not publish this release, and report how it was made.",
    families=("tuples",),
    by="class",
    needs=("truth", "trace", "max_share"),
)
def above_max_share(rows: Relation, share: Floats, most: float | None) -> Answer:
    """Mark the rows of classes in which one person has more than the policy allows."""
    if most is None:
        return Answer()
    sentence = f"One person has more than max_share = {most:g} of the rows of a class."
    return Answer(rows["judged"] & (share > most + _ROUNDING), sentence=sentence)


def look_at_shares(rows: Relation, most: float | None) -> Found:
    """Look at the shares of persons in all classes, and note the largest."""
    own, largest = largest_shares(rows)
    share, checked = largest[own], different(own[rows["judged"]])
    owned = one_person_share.function(rows, share)
    found = Found([*one_person_share(rows, share), *above_max_share(rows, share, most)])
    found.most["share"] = float(largest[checked].max()) if len(checked) else None
    found.sums = {"owned rows": int(owned.sum()), "owned classes": len(different(own[owned]))}
    return found


def note_shares(found: Found, notes: Notes) -> None:
    """Note the largest share of one person, and how much is mostly one person's."""
    notes.metrics["largest_share_of_one_person"] = found.most.get("share")
    classes, rows = found.sums.get("owned classes", 0), found.sums.get("owned rows", 0)
    notes.metrics["classes_mostly_of_one_person"] = {"classes": classes, "rows": rows}
