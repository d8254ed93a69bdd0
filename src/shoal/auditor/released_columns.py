"""Check which columns were released, and that nothing is hidden next to their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.rows import Rows

_WORD = re.compile(r"[^\w.@+-]+")
_ENDS: Final = ("lo", "hi")
"""What the parts of a published range are called."""
_LONG: Final = 6
"""Shorter identifiers are found as whole words only."""


def check_columns(expected: tuple[str, ...], release: Rows, notes: Notes) -> bool:
    """Check the columns; tell whether the rows can be looked at."""
    there = release.columns
    missing = [name for name in expected if name not in there]
    extra = [number for number, name in enumerate(there) if name not in expected]
    check_hidden(release, notes)
    if not len(release) and not there:
        return True
    # Without a header the first row passes for one: repeat names only where all expected ones are there.
    names = ", ".join(str(number) if missing else there[number] for number in extra)
    notes.violation("extra-column", f"The release has columns that must not leave: {names}.", count=len(extra))
    notes.violation("missing-column", f"The release lacks columns: {', '.join(missing)}.", count=len(missing))
    if missing:
        notes.skip("No row was checked: the release lacks columns.")
    return not missing


def trace_with(names: tuple[str, ...], trace: Rows | None, notes: Notes) -> Rows | None:
    """Return the trace where it has these columns; without them it proves nothing, which is a failure."""
    if trace is None:
        return None
    missing = [name for name in names if name not in trace.columns]
    if missing:
        notes.unchecked(f"The trace proves nothing: it has no column {', '.join(missing)}.")
    return None if missing else trace


def check_hidden(release: Rows, notes: Notes) -> None:
    """Check that the files of a release hold nothing beside their rows."""
    notes.violation(
        "hidden-value",
        "The release holds values that no row shows: unused or repeated entries of a dictionary, or under a null.",
        count=len(release.hidden.values),
    )
    notes.warning(
        "unexpected-metadata",
        "The release has metadata that no writer of files adds by itself; look at it, or write the file without.",
        count=release.hidden.unexpected,
    )


def check_metadata(persons: Any, columns: Iterable[str], release: Rows, notes: Notes) -> None:
    """Check that no identifier of the truth stands in metadata, in names of columns, or in values that no row shows.

    ``columns`` are the names that the policy gives. What writers of files add holds numbers of their own, so no
    identifier that is a mere number is looked for there.
    """
    hidden = release.hidden
    names = set(hidden.names) - {*columns, *_ENDS}
    texts, usual = (*hidden.metadata, *hidden.values, *names), hidden.usual
    if not texts and not usual:
        return
    people = shared_codes(persons)[0]
    others = [person for person in people if not person.isdigit()]
    found = _mentioned(people, texts) | _mentioned(others, usual)
    notes.violation("raw-identifier", "The metadata of the release holds identifiers of the truth.", count=len(found))


def _mentioned(people: Iterable[str], texts: tuple[str, ...]) -> set[str]:
    whole = "\n".join(texts)
    words = {*_WORD.split(whole), *texts} - {""}
    return {person for person in people if person in words or (len(person) >= _LONG and person in whole)}
