"""Check which columns a release has."""

from __future__ import annotations

from shoal.auditor.reading import Rows
from shoal.auditor.report import Notes


def check_columns(expected: tuple[str, ...], release: Rows, notes: Notes) -> bool:
    """Check the columns; tell whether the rows can be looked at."""
    there = release.columns
    missing = [name for name in expected if name not in there]
    extra = [number for number, name in enumerate(there) if name not in expected]
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
