"""Read the trace of a tuple stream, and check that it decides every record once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.tuples.promise import TuplePromise

RELEASED, SUPPRESSED, DEAD = 0, 1, 2
VERDICTS: Final = ("released", "suppressed", "dead")


@dataclass(frozen=True, slots=True)
class Decisions:
    """The trace: one entry for every record decided, in the order they were decided."""

    row: Ints
    exists: Bools
    """Entries on records that are there."""
    verdict: Ints
    group: Ints
    """The cluster, -1 for none."""
    delay: Ints | None
    """None when the trace does not tell."""
    reused: Bools
    counted: Bools
    """Entries that are the only or first one on a record that exists, released or suppressed."""
    leaves: Bools
    """Entries whose row stands in the release, which has them in the same order."""
    is_linked: bool
    """Whether the release has as many rows as the trace says."""
    event: Ints | None = None
    """Entries with the same number were published together; -1 for none. None when that is not known."""

    @property
    def shown_at(self) -> Ints:
        """For every entry the number of its released row, -1 for none."""
        return np.where(self.leaves & self.is_linked, np.cumsum(self.leaves) - 1, -1)

    @property
    def records(self) -> int:
        """How many records had arrived at least, as far as the trace shows."""
        seen = [self.row[self.exists], *([] if self.event is None else [self.event])]
        return max(int(numbers.max(initial=-1)) for numbers in seen) + 1

    @property
    def dead_rows(self) -> Ints:
        """Records that were put among the dead."""
        is_dead: Bools = self.exists & (self.verdict == DEAD)
        return self.row[is_dead]

    @property
    def formed(self) -> Bools:
        """Which entries left with the cluster they made."""
        in_cluster: Bools = (self.verdict == RELEASED) & (self.group >= 0)
        return self.counted & in_cluster & ~self.reused

    def marked(self, entries: Bools, length: int) -> Bools:
        """Mark the released rows of some entries."""
        found = np.zeros(length, np.bool_)
        places = self.shown_at[entries]
        found[places[places >= 0]] = True
        return found


def read_decisions(
    trace: Rows, promise: TuplePromise, *, records: int | None, released: int, notes: Notes
) -> Decisions:
    """Read the trace and check it by itself, against the number of records (None: unknown) and of released rows."""
    row, verdict, group = trace.numbers("row"), _verdicts(trace, notes), trace.numbers("group")
    # Without the truth: as many records as could be pending next to those decided, so that memory stays bounded.
    limit = 10 * len(row) + 10_000_000 if records is None else records
    exists = _existing(row, limit, notes)
    counted = exists & _first(row, exists, notes) & ((verdict == RELEASED) | (verdict == SUPPRESSED))
    leaves = (verdict == RELEASED) | ((verdict == SUPPRESSED) & promise.shows_suppressed)
    apart = abs(int(leaves.sum()) - released)
    notes.violation("release-count", "The release and the trace do not have the same number of rows.", count=apart)
    if apart:
        notes.skip("Nothing was followed row by row: trace and release do not have the same number of rows.")
    misplaced = (verdict == RELEASED) != (group >= 0)
    notes.violation(
        "trace-group",
        "The trace has a released row without a cluster, or another row with one.",
        count=int(misplaced.sum()),
    )
    _check_k(trace, promise, verdict, notes)
    return Decisions(
        row=row,
        exists=exists,
        verdict=verdict,
        group=group,
        delay=_delays(trace, notes),
        reused=_reused(trace, verdict == RELEASED, notes),
        counted=counted,
        leaves=leaves,
        is_linked=not apart,
        event=_events(trace, limit),
    )


def _verdicts(trace: Rows, notes: Notes) -> Ints:
    labels, (codes,) = shared_codes(trace.text("verdict"))
    numbers = [VERDICTS.index(label) if label in VERDICTS else -1 for label in labels]
    verdict = np.array([*numbers, -1], np.int64)[codes]
    notes.violation("trace-verdict", "The trace holds an unknown verdict.", count=int((verdict < 0).sum()))
    return verdict


def _existing(row: Ints, limit: int, notes: Notes) -> Bools:
    exists: Bools = (row >= 0) & (row < limit)
    notes.violation("trace-row", "The trace names a record that the truth does not have.", count=int((~exists).sum()))
    return exists


def _first(row: Ints, exists: Bools, notes: Notes) -> Bools:
    first = np.zeros(len(row), np.bool_)
    first[np.unique(row, return_index=True)[1]] = True
    notes.violation("decided-twice", "The trace decides a record more than once.", count=int((exists & ~first).sum()))
    return first


def _delays(trace: Rows, notes: Notes) -> Ints | None:
    if "delay" in trace.columns:
        return trace.numbers("delay")
    notes.unchecked("Deadlines and the age of reused clusters were not checked: the trace has no column delay.")
    return None


def _events(trace: Rows, limit: int) -> Ints | None:
    if "event" not in trace.columns:
        return None
    event = trace.numbers("event")
    return np.where(event < limit, event, -1)


def _reused(trace: Rows, released: Bools, notes: Notes) -> Bools:
    texts, (code,) = shared_codes(trace.text("reused"))
    told = np.array([*(text.lower() in {"true", "1", "false", "0"} for text in texts), False])[code]
    sentence = "Which rows left by an earlier cluster is not known: the trace has no usable column reused."
    notes.unchecked(sentence, count=int((released & ~told).sum()))
    found: Bools = np.array([*(text.lower() in {"true", "1"} for text in texts), False])[code] & released
    return found


def _check_k(trace: Rows, promise: TuplePromise, verdict: Ints, notes: Notes) -> None:
    if "k" in trace.columns:
        written = trace.numbers("k")
        lower = (verdict == RELEASED) & (written >= 0) & (written < promise.k)
        notes.violation("k-lowered", "The trace says a lower k was in force than promised.", count=int(lower.sum()))


def read_lists(trace: Rows, name: str, width: int) -> npt.NDArray[np.int64]:
    """Return lists of ``width`` whole numbers as a matrix; -1 where a row has no such list."""
    pieces = [_matrix(piece, width) for piece in trace.pieces(name)]
    return np.concatenate([np.zeros((0, width), np.int64), *pieces])


def _matrix(piece: Any, width: int) -> npt.NDArray[np.int64]:
    column = _lists(piece, pa.list_(pa.int64()))
    found = np.full((len(column), width), -1, np.int64)
    fits = np.asarray(pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)) == width
    flat = pc.list_flatten(column.filter(pa.array(fits)))
    found[fits] = np.asarray(pc.fill_null(flat, -1).to_numpy(zero_copy_only=False), np.int64).reshape(-1, width)
    return found


def _lists(piece: Any, kind: Any) -> Any:
    """Return lists of a kind; null for what is none."""
    if not isinstance(piece, list):
        column = piece.combine_chunks() if isinstance(piece, pa.ChunkedArray) else piece
        try:
            return column.cast(kind)
        except pa.ArrowException:  # the file has another type
            piece = column.to_pylist()
    return pa.array([_list(value, kind) for value in piece], kind)


def _list(value: Any, kind: Any) -> Any:
    try:
        return pa.scalar(value if isinstance(value, list) else None, kind).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Recorded:
    """What t was held against, as the trace has it: one entry for every value of every entry that has any."""

    entry: Ints
    column: list[str]
    value: list[str | None]
    count: Ints


def read_recorded(trace: Rows) -> Recorded:
    """Read the column ``reference`` of a trace."""
    kind = pa.struct([("column", pa.string()), ("value", pa.string()), ("count", pa.int64())])
    entries: list[Ints] = []
    pieces = []
    begin = 0
    for piece in trace.pieces("reference"):
        column = _lists(piece, pa.list_(kind))
        entries.append(np.asarray(pc.list_parent_indices(column).to_numpy(zero_copy_only=False), np.int64) + begin)
        pieces.append(pc.list_flatten(column))
        begin += len(column)
    flat = pa.chunked_array(pieces, kind).combine_chunks()
    return Recorded(
        entry=np.concatenate([np.zeros(0, np.int64), *entries]),
        column=flat.field("column").to_pylist(),
        value=flat.field("value").to_pylist(),
        count=np.asarray(pc.fill_null(flat.field("count"), -1).to_numpy(zero_copy_only=False), np.int64),
    )
