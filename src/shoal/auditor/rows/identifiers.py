"""Identifiers of the truth: in columns that must not be released, in place of labels, in metadata."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from shoal.auditor.checks import check, look
from shoal.auditor.engine import Place
from shoal.auditor.findings import Finding, Notes, Severity
from shoal.auditor.reading.columns import Bools
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.released_columns import mentioned_people, raw_identifier_in_metadata
from shoal.auditor.rows.quasi import Quasi
from shoal.auditor.rows.reading import RowReader, persons_of
from shoal.auditor.rows.rules import RowPromise
from shoal.auditor.rows.texts import shared_numbers, stacked, texts_of
from shoal.auditor.sorting import distinct

_SUSPECTS: Shape = {"text": str, "row": int, "is_leak": bool}
_FOUND: Shape = {"row": int, "is_leak": bool}
_ADVICE = "Delete this release: its rows name people. Look for the step that added the column or the value."
_of_value: Final = partial(check, families=("tuples", "flexible"), by="value", needs=("truth",))


@_of_value("raw-identifier", "A released row contains an identifier of the truth.", advice=_ADVICE)
def raw_identifier(rows: Relation) -> Bools:
    """Mark rows with an identifier where no column may be, or in place of a label; each row once."""
    return _once(rows, rows["is_leak"])


@_of_value(
    "identifier-in-column",
    "A row carries the identifier of somebody.",
    advice="Do not carry this column: whoever knows the identifier finds the row.",
    severity=Severity.WARNING,
)
def identifier_in_some_column(rows: Relation) -> Bools:
    """Mark rows that show anybody's identifier in an unchanged column, if it is not known whose row it is."""
    return _once(rows, ~rows["is_leak"])


def _once(rows: Relation, marked: Bools) -> Bools:
    found, at = np.zeros(len(rows), np.bool_), np.flatnonzero(marked)
    found[at[np.unique(rows["row"][at], return_index=True)[1]]] = True
    return found


def have_identifiers(place: Place, person: str) -> bool:
    """Whether persons have identifiers; if every row is a person these are only the numbers of rows."""
    if person != "row":
        return True
    first = 0
    for count, start in [] if place.outline("truth").is_numbered else place.facts("truth", _numbered_from):
        if count and start != first:
            return True
        first += count
    return False


def _numbered_from(rows: Rows) -> tuple[int, int | None]:
    """The number of rows, and of the first one, if they are numbered."""
    texts = rows.text("row").to_pylist()
    start = next((int(text) - at for at, text in enumerate(texts) if text is not None and text.isdecimal()), 0)
    is_numbered = all(text is None or text == str(at) for at, text in enumerate(texts, start))
    return len(texts), start if is_numbered else None


def look_for_identifiers(
    place: Place, reader: RowReader, notes: Notes, *, in_unchanged: bool, in_labels: bool
) -> list[Finding]:
    """Search metadata, columns that must not be there, and, if asked for, unchanged columns and strange labels."""
    promise = reader.promise
    hidden = place.outline("release").hidden
    mentioned = place.facts("truth", partial(_mentioned, promise, hidden))
    notes.findings += raw_identifier_in_metadata(set[str]().union(*mentioned))
    extra = tuple(name for name in place.outline("release").columns if name not in promise.columns)
    unchanged = reader.unchanged if in_unchanged else ()
    if not (extra or unchanged or in_labels):
        return []
    suspects = place.read("release", partial(_suspects, reader.quasi, extra, unchanged), _SUSPECTS)
    persons = place.read("truth", partial(_persons, promise.person), {"text": str})
    found = place.both(suspects, persons, ("text",), _are_persons, _FOUND)
    checks = raw_identifier, identifier_in_some_column
    return [one for part in place.divide(found, ("row",), partial(look, checks=checks)) for one in part]


def _mentioned(promise: RowPromise, hidden: Hidden, rows: Rows) -> set[str]:
    return mentioned_people(rows.text(promise.person), promise.columns, hidden)


def _suspects(
    quasi: Sequence[Quasi], extra: Sequence[str], unchanged: Sequence[str], rows: Rows, first: int
) -> Relation:
    """Texts of released rows that may be identifiers."""
    nothing = Relation({"text": Texts(np.zeros(0, np.int64), []), **_rows(np.zeros(0, np.int64), is_leak=False)})
    parts = [nothing]
    for name in (*extra, *unchanged):
        texts = texts_of(rows, name)
        wanted = [name in extra or not text.isdigit() for text in texts.texts]
        at = np.flatnonzero(np.array([*wanted, False], np.bool_)[texts.codes])
        parts.append(Relation({"text": texts.take(at), **_rows(first + at, is_leak=name in extra)}))
    for one in quasi:
        strange = one.read_shown(rows)[1].get("unknown-label")
        if strange is not None and strange.any():
            at = np.flatnonzero(strange)
            parts.append(Relation({"text": texts_of(rows, one.name).take(at), **_rows(first + at, is_leak=True)}))
    return stacked(parts)


def _rows(rows: np.ndarray[tuple[int], np.dtype[np.int64]], *, is_leak: bool) -> dict[str, object]:
    return {"row": rows, "is_leak": np.full(len(rows), is_leak)}


def _persons(name: str, rows: Rows, _: int) -> Relation:
    found = persons_of(rows, name)
    return Relation({"text": Texts(distinct(found.codes[found.codes >= 0]), found.texts)})


def _are_persons(suspects: Relation, persons: Relation) -> Relation:
    _, (shown, known) = shared_numbers(suspects["text"], persons["text"])
    return suspects.take(np.isin(shown, known)).only("row", "is_leak")
