"""Check which columns were released, and that nothing is hidden next to their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.rows import Rows

_WORD = re.compile(r"[^\w.@+-]+")
_ENDS: Final = ("lo", "hi")
"""The field names of a published range."""
METADATA_SENTENCE: Final = "The release's metadata contains identifiers of the truth."
_LONG: Final = 6
"""Shorter identifiers match whole words only."""


def check_columns(expected: tuple[str, ...], release: Rows, notes: Notes) -> bool:
    """Check the columns; return whether the rows can be checked."""
    there = release.columns
    missing = [name for name in expected if name not in there]
    extra = [number for number, name in enumerate(there) if name not in expected]
    check_hidden(release, notes)
    if not len(release) and not there:
        return True
    # Without a header the first row is taken for one: repeat names only if all expected ones are there.
    names = ", ".join(str(number) if missing else there[number] for number in extra)
    notes.violation("extra-column", f"The release has columns that must not be released: {names}.", count=len(extra))
    notes.violation("missing-column", f"The release lacks columns: {', '.join(missing)}.", count=len(missing))
    if missing:
        notes.skip("No row was checked: the release lacks columns.")
    return not missing


def check_hidden(release: Rows, notes: Notes) -> None:
    """Check that the files of a release contain nothing besides their rows."""
    notes.violation(
        "hidden-value",
        "The release contains values that no row shows: in a dictionary, under a null, or after the last row.",
        count=len(release.hidden.values),
    )
    notes.warning(
        "unexpected-metadata",
        "The release has metadata that no file writer adds by itself; inspect it, or write the file without it.",
        count=release.hidden.unexpected,
    )


def check_metadata(persons: Any, columns: Iterable[str], release: Rows, notes: Notes) -> None:
    """Check that no identifier of the truth is in metadata, in column names, or in values that no row shows.

    ``columns`` are the names given by the policy. Metadata that file writers add contains numbers, so identifiers that
    are just numbers are not searched there.
    """
    found = mentioned_people(persons, columns, release.hidden)
    notes.violation("raw-identifier", METADATA_SENTENCE, count=len(found))


def mentioned_people(persons: Any, columns: Iterable[str], hidden: Hidden) -> set[str]:
    """Return the identifiers that occur in metadata, in column names, or in values that no row shows."""
    names = set(hidden.names) - {*columns, *_ENDS}
    texts, usual = (*hidden.metadata, *hidden.values, *names), hidden.usual
    if not texts and not usual:
        return set()
    people = shared_codes(persons)[0]
    others = [person for person in people if not person.isdigit()]
    return _mentioned(people, texts) | _mentioned(others, usual)


def _mentioned(people: Iterable[str], texts: tuple[str, ...]) -> set[str]:
    whole = "\n".join(texts)
    words = {*_WORD.split(whole), *texts} - {""}
    return {person for person in people if person in words or (len(person) >= _LONG and person in whole)}
