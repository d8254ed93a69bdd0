"""The truth and the release side by side, every text as a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shoal.auditor.counting import Paths, dense, pair_codes, shared_codes
from shoal.auditor.promise import Attribute, ZPromise
from shoal.auditor.reading.columns import TEXT, Bools, Ints, plain
from shoal.auditor.reading.tables import Rows


@dataclass(frozen=True, slots=True)
class Values:
    """One attribute: what the truth says, what was published (-1: nothing), and the paths of both."""

    truth: Ints
    shown: Ints
    paths: Paths


@dataclass(frozen=True, slots=True)
class Facts:
    """Truth (arrays of its length) and release (``shown_``) with common numbers."""

    time: Ints
    usable: Bools
    """Whether the truth's row has a person and a time; others cannot count for anything."""
    person: Ints
    carry: Ints
    shown_time: Ints
    shown_readable: Bools
    shown_person: Ints
    """Pseudonyms, numbered together with the truth's persons."""
    shown_carry: Ints
    persons: list[str]
    values: dict[str, Values]

    def keys(self) -> tuple[Ints, Ints]:
        """Number (time, carried columns) on both sides."""
        return pair_codes((self.time, self.carry), (self.shown_time, self.shown_carry))


def read_facts(promise: ZPromise, release: Rows, truth: Rows | None) -> Facts:
    """Turn both sides into numbers; an absent truth has no rows."""
    known = truth or Rows((), "truth")
    if len(known):
        known.require(*promise.columns)
    persons, (person, shown_person) = shared_codes(known.text(promise.person), release.text(promise.person))
    time, has_time = known.moments(promise.time)
    shown_time, shown_has_time = release.moments(promise.time)
    carry, shown_carry = _carried(promise, release, known)
    return Facts(
        time=time,
        usable=has_time & is_someone(person, persons),  # broken records have neither
        person=person,
        carry=carry,
        shown_time=shown_time,
        shown_readable=shown_has_time & ~release.broken,
        shown_person=shown_person,
        shown_carry=shown_carry,
        persons=persons,
        values={attribute.name: _values(attribute, release, known) for attribute in promise.attributes},
    )


def is_someone(person: Ints, persons: list[str]) -> Bools:
    """Tell which person codes stand for an identifier that is not empty."""
    return np.array([bool(text) for text in persons] + [False])[person]  # code -1 picks the last


def _values(attribute: Attribute, release: Rows, truth: Rows) -> Values:
    labels, (known, shown) = shared_codes(truth.text(attribute.name), release.text(attribute.name))
    return Values(known, shown, Paths(labels, attribute.ladder))


def _carried(promise: ZPromise, release: Rows, truth: Rows) -> tuple[Ints, Ints]:
    """Number the combinations of carried values, whatever spelling each side uses."""
    sides = [np.zeros(len(truth), np.int64)], [np.zeros(len(release), np.int64)]
    for name in promise.carry:
        _, known, shown = spelt_codes(name, truth, release)
        sides[0].append(known)
        sides[1].append(shown)
    joined = dense(*(np.concatenate(pair) for pair in zip(*sides, strict=True)))
    return joined[: len(truth)], joined[len(truth) :]


def spelt_codes(name: str, truth: Rows, release: Rows) -> tuple[list[str], Ints, Ints]:
    """Number a column's values on both sides, whatever spelling each uses; return the texts as well. Null is -1."""
    labels, (known, shown) = shared_codes(truth.text(name), release.text(name))
    texts, (same,) = shared_codes(pa.chunked_array([[plain(label) for label in labels]], TEXT))
    spelling = np.append(same, -1)  # code -1 picks the last
    return texts, spelling[known], spelling[shown]
