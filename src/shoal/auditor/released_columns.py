"""Check which columns were released, and that nothing is hidden next to their rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from shoal.auditor.checks import Answer, check, look
from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes, Severity
from shoal.auditor.reading.hidden_data import Hidden
from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.rows import Rows

_WORD = re.compile(r"[^\w.@+-]+")
_ENDS: Final = ("lo", "hi")
"""The field names of a published range."""
_LONG: Final = 6
"""Shorter identifiers match whole words only."""
_EVERY: Final = ("z", "tuples", "flexible", "sets")


@check(
    "hidden-value",
    "The release contains values that no row shows: in a dictionary, under a null, or after the last row.",
    advice="Write the file again from its rows; anyone who opens it with another reader sees these values.",
    families=_EVERY,
    by="none",
)
def hidden_value(release: Rows | Outline) -> int:
    """Count values that no row shows."""
    return len(release.hidden.values)


@check(
    "unexpected-metadata",
    "The release has metadata that no file writer adds by itself; inspect it, or write the file without it.",
    advice="Identifiers of people in it are reported as raw-identifier; anything else only you can judge.",
    families=_EVERY,
    by="none",
    severity=Severity.WARNING,
)
def unexpected_metadata(release: Rows | Outline) -> int:
    """Count metadata entries that no writer adds by itself."""
    return release.hidden.unexpected


@check(
    "extra-column",
    "The release has columns that must not be released.",
    advice="Remove the columns, or name them in the policy: quasi, sensitive or carry.",
    families=_EVERY,
    by="none",
)
def extra_column(release: Rows | Outline, expected: Sequence[str]) -> Answer:
    """Count columns that the policy does not name."""
    there = release.columns
    extra = [number for number, name in enumerate(there) if name not in expected]
    # Without a header the first row is taken for one: repeat names only if all expected ones are there.
    is_header = all(name in there for name in expected)
    names = ", ".join(there[number] if is_header else str(number) for number in extra)
    return Answer(count=len(extra), sentence=f"The release has columns that must not be released: {names}.")


@check(
    "missing-column",
    "The release lacks columns; no row was checked.",
    advice="Check that the policy is the one that the release was made with, and that files have a header.",
    families=_EVERY,
    by="none",
)
def missing_column(release: Rows | Outline, expected: Sequence[str]) -> Answer:
    """Count columns that the policy names and the release lacks."""
    missing = [name for name in expected if name not in release.columns]
    return Answer(count=len(missing), sentence=f"The release lacks columns: {', '.join(missing)}.")


def check_columns(expected: tuple[str, ...], release: Rows | Outline, notes: Notes) -> bool:
    """Check the columns; return whether the rows can be checked."""
    notes.findings += look(release, (hidden_value, unexpected_metadata))
    if not len(release) and not release.columns:
        return True
    notes.findings += look(release, (extra_column, missing_column), expected)
    is_complete = all(name in release.columns for name in expected)
    if not is_complete:
        notes.skip("No row was checked: the release lacks columns.")
    return is_complete


@check(
    "raw-identifier",
    "The release's metadata contains identifiers of the truth.",
    advice="Write the files without metadata, and name no column after a person.",
    families=("z", "tuples", "flexible"),
    by="none",
    needs=("truth",),
)
def raw_identifier_in_metadata(mentioned: set[str]) -> int:
    """Count identifiers of the truth in metadata, in column names, or in values that no row shows."""
    return len(mentioned)


def mentioned_people(persons: Any, columns: Iterable[str], hidden: Hidden) -> set[str]:
    """Return the identifiers that occur in metadata, in column names, or in values that no row shows.

    Of a part of the people: those of all parts add up. ``columns`` are the names given by the policy. Metadata that
    file writers add contains numbers, so identifiers that are just numbers are not searched there.
    """
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
