"""The truth and the release side by side, every text as a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.auditor.counting import Paths, dense, is_someone, pair_codes, shared_codes, spelt_codes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.z.promise import Attribute, ZPromise


@dataclass(frozen=True, slots=True)
class Values:
    """One attribute: the true values, the published ones (-1: none), and the paths of both."""

    truth: Ints
    shown: Ints
    paths: Paths
    texts: list[str]


@dataclass(frozen=True, slots=True)
class Aligned:
    """The truth and the release (``shown_``) as arrays with common codes."""

    time: Ints
    usable: Bools
    """Whether the truth's row has a person and a time; others do not count."""
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


def align(promise: ZPromise, release: Rows, truth: Rows | None) -> Aligned:
    """Turn both sides into numbers; a missing truth has no rows."""
    known = truth or Rows((), "truth")
    if len(known):
        known.require(*promise.columns)
    persons, (person, shown_person) = shared_codes(known.text(promise.person), release.text(promise.person))
    time, has_time = known.moments(promise.time)
    shown_time, shown_has_time = release.moments(promise.time)
    carry, shown_carry = _carried(promise, release, known)
    return Aligned(
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


def _values(attribute: Attribute, release: Rows, truth: Rows) -> Values:
    labels, (known, shown) = shared_codes(truth.text(attribute.name), release.text(attribute.name))
    return Values(known, shown, Paths(labels, attribute.hierarchy), labels)


def _carried(promise: ZPromise, release: Rows, truth: Rows) -> tuple[Ints, Ints]:
    """Number the combinations of carried values, whatever spelling each side uses."""
    sides = [np.zeros(len(truth), np.int64)], [np.zeros(len(release), np.int64)]
    for name in promise.carry:
        _, known, shown = spelt_codes(name, truth, release)
        sides[0].append(known)
        sides[1].append(shown)
    joined = dense(*(np.concatenate(pair) for pair in zip(*sides, strict=True)))
    return joined[: len(truth)], joined[len(truth) :]
