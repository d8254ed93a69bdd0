"""Check the pseudonyms that replace persons: their form, whether they hide the person, whether they end with the epoch.

Patterns that show how they were made are looked for in `patterns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.checks import Found, check, look
from shoal.auditor.counting import combined
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.relation import Relation, Texts
from shoal.auditor.rows.texts import kept
from shoal.auditor.sorting import firsts
from shoal.auditor.z.promise import ZPromise

_PSEUDONYM: Final = "^[0-9a-f]{32}$"

of_pseudonyms = partial(check, families=("z",), by="value")
of_people = partial(check, families=("z",), by="person", needs=("truth",))
_NEW_KEY: Final = (
    "People can be recognized: do not publish this release, run it again with a key that nobody else knows."
)
ANOTHER: Final = "Replace the method that makes pseudonyms: it must be a keyed hash, with a new key in every epoch."


# ---- the form of pseudonyms


def unmasked(forms: Relation, rows: Relation) -> Relation:
    """Mark released rows whose person is an identifier of the truth, or a form of one."""
    names, codes, is_raw = forms["pseudonym"].texts, forms.codes("pseudonym"), forms["is_raw"]
    for column, which in (("raw", is_raw), ("disguised", ~is_raw)):
        is_one = np.zeros(len(names), np.bool_)
        is_one[codes[which]] = True
        rows = rows.having(**{column: marked(rows["pseudonym"], compress(names, is_one.tolist()))})
    return rows.having(hashed=np.zeros(len(rows), np.bool_))


def marked(texts: Texts, known: Iterable[str]) -> Bools:
    """Mark the rows whose text is one of some texts."""
    wanted = known if isinstance(known, set | frozenset) else set(known)
    found = np.zeros(len(texts.texts) + 1, np.bool_)  # -1 picks the last
    found[:-1] = np.fromiter(map(wanted.__contains__, texts.texts), np.bool_, len(texts.texts))
    marks: Bools = found[texts.codes]
    return marks


def is_well_formed(texts: Texts) -> Bools:
    """Mark the rows whose text is a pseudonym."""
    marks: Bools = np.append(are_pseudonyms(texts.texts), False)[texts.codes]  # -1 picks the last
    return marks


def are_pseudonyms(texts: Sequence[str]) -> Bools:
    found = pc.match_substring_regex(pa.array(texts, TEXT), _PSEUDONYM)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


@of_pseudonyms(
    "unreadable-row", "A released row cannot be read or has no time.",
    advice="What cannot be read cannot be checked: write the release again.")  # fmt: skip
def unreadable_row(rows: Relation, *_: Any) -> Any:
    return ~rows["readable"]


@of_pseudonyms(
    "identifier-in-column", "A column other than the person column contains an identifier of the truth.",
    needs=("truth",), severity=Severity.WARNING,
    advice="Whoever knows the identifier finds the person's rows: publish the release without the column.")  # fmt: skip
def identifier_in_column(rows: Relation) -> Any:
    return rows["named"]


@of_pseudonyms(
    "bad-pseudonym",
    "The person column contains something other than a pseudonym of 32 lowercase hex characters.",
    advice=ANOTHER)  # fmt: skip
def bad_pseudonym(rows: Relation, *_: Any) -> Any:
    return ~is_well_formed(rows["pseudonym"]) & rows["readable"]


@of_pseudonyms(
    "raw-identifier", "A released row contains an identifier of the truth.", needs=("truth",), advice=_NEW_KEY
)
def raw_identifier(rows: Relation, *_: Any) -> Any:
    return rows["raw"]


@of_pseudonyms(
    "disguised-identifier",
    "A released person is an identifier of the truth in another form: respelt, as hex, or hashed without a key.",
    needs=("truth",), advice=_NEW_KEY)  # fmt: skip
def disguised_identifier(rows: Relation, *_: Any) -> Any:
    return rows["disguised"]


@of_pseudonyms(
    "disguised-identifier", "A released person is an identifier of the truth hashed with its epoch, without a key.",
    needs=("truth",), advice=_NEW_KEY)  # fmt: skip
def hashed_with_epoch(rows: Relation, *_: Any) -> Any:
    return rows["hashed"]


@of_pseudonyms(
    "empty-row", "A row was released although all its values are private.",
    advice="An empty row still shows that somebody was there: do not publish this release.")  # fmt: skip
def empty_row(rows: Relation, promise: ZPromise, *_: Any) -> Any:
    if any(attribute.on_private == "blank" for attribute in promise.attributes):
        return np.zeros(len(rows), np.bool_)
    values = [rows.codes(f"released {attribute.name}") < 0 for attribute in promise.attributes]
    return np.logical_and.reduce(values) & rows["readable"]


@of_pseudonyms(
    "pseudonym-across-epochs",
    "A pseudonym appears in more than one epoch, so that rows of different epochs can be linked.",
    advice=ANOTHER)  # fmt: skip
def across_epochs(rows: Relation, *_: Any) -> Bools:
    code = rows.codes("pseudonym")
    return has_several(code, rows["shown epoch"], rows["readable"] & (code >= 0))


@of_pseudonyms("pseudonym-shared", "Two persons share one pseudonym in one epoch.", needs=("truth",), advice=ANOTHER)
def pseudonym_shared(rows: Relation, *_: Any) -> Bools:
    return _has_several_in_epoch(rows, "pseudonym", "person")


@of_people(
    "pseudonym-split", "One person has two pseudonyms in one epoch.",
    advice="The person is counted twice where people are counted by pseudonym: run it again. " + ANOTHER)  # fmt: skip
def pseudonym_split(rows: Relation, *_: Any) -> Bools:
    return _has_several_in_epoch(rows, "person", "pseudonym")


def _has_several_in_epoch(rows: Relation, name: str, other: str) -> Bools:
    """Mark linked rows whose text of a column comes with more than one text of another in the epoch."""
    epoch = rows["shown epoch"] - rows["shown epoch"].min(initial=0)
    return has_several(combined([rows.codes(name), epoch], len(rows)), rows.codes(other), is_linked(rows))


def is_linked(rows: Relation) -> Bools:
    """Mark released rows that have a pseudonym and a usable record."""
    found: Bools = rows["readable"] & (rows.codes("pseudonym") >= 0) & (rows["record"] >= 0) & rows["usable"]
    return found


def has_several(key: Ints, other: Ints, among: Bools) -> Bools:
    """Mark the rows whose key occurs with more than one value of ``other``; keys are numbers from 0."""
    found = np.zeros(len(key), np.bool_)
    own, values = key[among], other[among]
    lowest = np.full(int(own.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    highest = np.full(len(lowest), np.iinfo(np.int64).min)
    np.minimum.at(lowest, own, values)
    np.maximum.at(highest, own, values)
    found[among] = (lowest < highest)[own]
    return found


def first_of_each(rows: Relation) -> Relation:
    """Every pseudonym once, at the first row that has it."""
    rows = kept(rows, is_well_formed(rows["pseudonym"])).ordered("row")
    return rows.take(np.sort(firsts(rows.codes("pseudonym"))))


def check_each(promise: ZPromise, rows: Relation, *, has_truth: bool) -> Found:
    """Check released rows, those of a pseudonym together."""
    checks = [unreadable_row, bad_pseudonym, empty_row, across_epochs]
    if has_truth:
        checks += [raw_identifier, disguised_identifier, hashed_with_epoch, pseudonym_shared]
    return Found(look(rows, checks, promise), {"pseudonyms": len(firsts(rows.codes("pseudonym")))})
