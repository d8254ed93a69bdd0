"""Check the pseudonyms that replace persons."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from shoal.auditor.counting import dense, shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import check_metadata
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import ZPromise
from shoal.auditor.z.weak_pseudonyms import (
    consecutive,
    digits_of,
    is_alike,
    is_hash_with_epoch,
    kept_places,
    shared_parts,
    steps,
    uneven_places,
)

_LOOKED_AT: Final = 200_000
_PSEUDONYM = re.compile(r"[0-9a-f]{32}")


def check_pseudonyms(aligned: Aligned, promise: ZPromise, notes: Notes) -> None:
    """Check that released persons are pseudonyms, none a raw identifier, none seen in two epochs."""
    well_formed = np.array([bool(_PSEUDONYM.fullmatch(text)) for text in aligned.persons] + [False])
    shown = aligned.shown_person
    raw = np.isin(shown, np.unique(aligned.person[aligned.person >= 0]))
    notes.violation("raw-identifier", "A released row contains an identifier of the truth.", rows=raw)
    notes.violation(
        "bad-pseudonym",
        "The person column contains something other than a pseudonym of 32 lowercase hex characters.",
        rows=~well_formed[shown] & aligned.shown_readable,
    )
    notes.violation(
        "disguised-identifier",
        "A released person is an identifier of the truth in another form: respelt, as hex, or hashed without a key.",
        rows=_is_disguise(aligned)[shown],
    )
    _check_patterns(aligned, well_formed, notes)
    epoch = aligned.shown_time // promise.rotation_ns
    notes.violation(
        "pseudonym-across-epochs",
        "A pseudonym appears in more than one epoch, so that rows of different epochs can be linked.",
        rows=_has_several(shown, epoch, aligned.shown_readable & (shown >= 0)),
    )


def _check_patterns(aligned: Aligned, well_formed: Bools, notes: Notes) -> None:
    """Check that pseudonyms look random: the first of them, each once."""
    codes, first = np.unique(aligned.shown_person[well_formed[aligned.shown_person]], return_index=True)
    texts = [aligned.persons[code] for code in codes[np.argsort(first)][:_LOOKED_AT].tolist()]
    places = uneven_places(digits_of(texts))
    sentence = f"Pseudonyms are not random: digits at {places} of 32 places are not equally frequent."
    notes.violation("weak-pseudonym", sentence, count=places)
    sentence = "Pseudonyms are not random: half of the digits of one are those of another."
    notes.violation("weak-pseudonym", sentence, count=shared_parts(texts))
    sentence = "Pseudonyms are not random: they follow one another in equal or small steps, as a counter does."
    notes.violation("weak-pseudonym", sentence, count=steps(texts))


def _check_kept(aligned: Aligned, person: Ints, epoch: Ints, known: Bools, notes: Notes) -> None:
    """Check that a person's pseudonyms of different epochs are unrelated."""
    before, after = consecutive(person[known], epoch[known], aligned.shown_person[known])
    fits = np.array([bool(_PSEUDONYM.fullmatch(text)) for text in aligned.persons] + [False])
    fits = fits[before] & fits[after] & (before != after)
    pair = [digits_of([aligned.persons[code] for code in codes[fits].tolist()]) for codes in (before, after)]
    places = kept_places(*pair)
    notes.violation(
        "pseudonym-across-epochs",
        f"Parts of pseudonyms stay the same over epochs, at {places or 'some'} of 32 places: people can be linked.",
        count=places or int(is_alike(*pair)),
    )


def _is_disguise(aligned: Aligned) -> Bools:
    """Mark texts that anyone can compute from an identifier of the truth; the last place is for null."""
    known = np.unique(aligned.person[aligned.person >= 0]).tolist()
    forms = {form for code in known for form in _disguises(aligned.persons[code])}
    return np.array([text in forms for text in aligned.persons] + [False])


def _disguises(person: str) -> Iterator[str]:
    data = person.encode("utf-8", "surrogatepass")
    yield re.sub("[^0-9a-z]", "", person.lower())
    yield data.hex()[:32]
    for make in (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.sha512):
        yield make(data, usedforsecurity=False).hexdigest()[:32]


def check_linked_pseudonyms(aligned: Aligned, promise: ZPromise, link: Ints, notes: Notes) -> None:
    """Check that persons and pseudonyms match one to one within an epoch, as far as records are known."""
    known = (link >= 0) & aligned.shown_readable & (aligned.shown_person >= 0)
    known[known] = aligned.usable[link[known]]
    person = np.where(known, aligned.person[link], -1) if len(aligned.person) else link
    epoch = aligned.shown_time // promise.rotation_ns
    _check_kept(aligned, person, epoch, known, notes)
    notes.violation(
        "disguised-identifier",
        "A released person is an identifier of the truth hashed with its epoch, without a key.",
        rows=is_hash_with_epoch(aligned, promise, person)[aligned.shown_person],
    )
    notes.violation(
        "pseudonym-split",
        "One person has two pseudonyms in one epoch.",
        rows=_has_several(dense(person, epoch), aligned.shown_person, known),
    )
    notes.violation(
        "pseudonym-shared",
        "Two persons share one pseudonym in one epoch.",
        rows=_has_several(dense(aligned.shown_person, epoch), person, known),
    )


def _has_several(key: Ints, other: Ints, among: Bools) -> Bools:
    """Mark the rows whose key occurs with more than one value of ``other``."""
    marked = np.zeros(len(key), np.bool_)
    if among.any():
        group = dense(key[among])
        lowest = np.full(int(group.max()) + 1, np.iinfo(np.int64).max)
        highest = np.full(len(lowest), np.iinfo(np.int64).min)
        np.minimum.at(lowest, group, other[among])
        np.maximum.at(highest, group, other[among])
        marked[among] = (lowest < highest)[group]
    return marked


def check_other_columns(promise: ZPromise, release: Rows, truth: Rows, notes: Notes) -> None:
    """Warn if an identifier of the truth is in a carried or unexpected column."""
    own = {promise.person, promise.time, *(attribute.name for attribute in promise.attributes)}
    persons = truth.text(promise.person)
    check_metadata(persons, (*own, *promise.carry), release, notes)
    marked = np.zeros(len(release), np.bool_)
    for name in release.columns:
        if name not in own:
            known, shown = shared_codes(persons, release.text(name))[1]
            marked |= np.isin(shown, np.unique(known[known >= 0]))
    notes.warning(
        "identifier-in-column",
        "A column other than the person column contains an identifier of the truth.",
        rows=marked,
    )
