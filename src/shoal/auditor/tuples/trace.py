"""Read the trace of a tuple stream, and check that it decides every record once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.counting import shared_codes
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.trace import DEAD, RELEASED, SUPPRESSED, Verdicts, read_verdicts
from shoal.auditor.tuples.promise import TuplePromise


@dataclass(frozen=True, slots=True)
class Decisions(Verdicts):
    """The trace: one entry for every decided record, in the order of the decisions."""

    group: Ints
    """The cluster, -1 for none."""
    delay: Ints | None
    """None if the trace does not record it."""
    reused: Bools
    """Entries published by a cluster formed earlier."""
    event: Ints | None = None
    """Entries with the same number were published together; -1 for none. None if not known."""

    @property
    def counted(self) -> Bools:
        """Entries that are the first one for an existing record, released or suppressed."""
        is_decided: Bools = (self.verdict == RELEASED) | (self.verdict == SUPPRESSED)
        return self.first & is_decided

    @property
    def records(self) -> int:
        """The least number of records that had arrived, as far as the trace shows."""
        seen = [self.row[self.exists], *([] if self.event is None else [self.event])]
        return max(int(numbers.max(initial=-1)) for numbers in seen) + 1

    @property
    def dead_rows(self) -> Ints:
        """Records that were refused."""
        is_dead: Bools = self.exists & (self.verdict == DEAD)
        return self.row[is_dead]

    @property
    def formed(self) -> Bools:
        """Entries published together with the cluster they form."""
        in_cluster: Bools = (self.verdict == RELEASED) & (self.group >= 0)
        return self.counted & in_cluster & ~self.reused

    def violation(self, code: str, sentence: str, entries: Bools, notes: Notes) -> None:
        """Report marked entries, with their released rows if these are known."""
        rows = entries[self.is_shown] if self.is_linked else np.zeros(0, np.bool_)
        notes.violation(code, sentence, rows=rows, count=int(entries.sum()))


def read_decisions(
    trace: Rows, promise: TuplePromise, *, records: int | None, released: int, notes: Notes
) -> Decisions:
    """Read the trace and check it by itself, against the number of records (None: unknown) and of released rows."""
    # Without the truth: as many records as could be pending next to those decided, so that memory stays bounded.
    limit = 10 * len(trace) + 10_000_000 if records is None else records
    shows = promise.shows_suppressed
    found = read_verdicts(trace, notes, records=limit, released=released, shows_suppressed=shows)
    group, is_released = trace.numbers("group"), found.verdict == RELEASED
    sentence = "The trace has a released row without a cluster, or another row with one."
    notes.violation("trace-group", sentence, count=int((is_released != (group >= 0)).sum()))
    if "k" in trace.columns:
        written = trace.numbers("k")
        lower = is_released & (written >= 0) & (written < promise.k)
        notes.violation("k-lowered", "The trace says a lower k was in force than promised.", count=int(lower.sum()))
    delay = trace.numbers("delay") if "delay" in trace.columns else None
    if delay is None:
        notes.unchecked("Deadlines and the age of reused clusters were not checked: the trace has no column delay.")
    event = trace.numbers("event") if "event" in trace.columns else None
    return Decisions(
        row=found.row,
        verdict=found.verdict,
        exists=found.exists,
        first=found.first,
        is_shown=found.is_shown,
        is_linked=found.is_linked,
        group=group,
        delay=delay,
        reused=_reused(trace, is_released, notes),
        event=None if event is None else np.where(event < limit, event, -1),
    )


def _reused(trace: Rows, released: Bools, notes: Notes) -> Bools:
    texts, (code,) = shared_codes(trace.text("reused"))
    known = np.array([*(text.lower() in {"true", "1", "false", "0"} for text in texts), False])[code]
    sentence = "Which rows were published by an earlier cluster is not known: the trace has no usable column reused."
    notes.unchecked(sentence, count=int((released & ~known).sum()))
    found: Bools = np.array([*(text.lower() in {"true", "1"} for text in texts), False])[code] & released
    return found


def read_lists(trace: Rows, name: str, width: int) -> npt.NDArray[np.int64]:
    """Return lists of ``width`` whole numbers as a matrix; -1 for rows without such a list."""
    found = [np.zeros((0, width), np.int64)]
    for piece in trace.pieces(name):
        column = _lists(piece, pa.list_(pa.int64()))
        matrix = np.full((len(column), width), -1, np.int64)
        fits = np.asarray(pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)) == width
        flat = pc.fill_null(pc.list_flatten(column.filter(pa.array(fits))), -1)
        matrix[fits] = np.asarray(flat.to_numpy(zero_copy_only=False), np.int64).reshape(-1, width)
        found.append(matrix)
    return np.concatenate(found)


def _lists(piece: Any, kind: Any) -> Any:
    """Return lists of a type; null for anything else."""
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
    """The references for t that the trace records: one entry for every value of every trace entry that has any."""

    entry: Ints
    column: list[str]
    value: list[str | None]
    count: Ints


def read_recorded(trace: Rows) -> Recorded:
    """Read the column ``reference`` of a trace."""
    kind = pa.struct([("column", pa.string()), ("value", pa.string()), ("count", pa.int64())])
    entries: list[Ints] = [np.zeros(0, np.int64)]
    pieces, begin = [], 0
    for piece in trace.pieces("reference"):
        column = _lists(piece, pa.list_(kind))
        entries.append(np.asarray(pc.list_parent_indices(column).to_numpy(zero_copy_only=False), np.int64) + begin)
        pieces.append(pc.list_flatten(column))
        begin += len(column)
    flat = pa.chunked_array(pieces, kind).combine_chunks()
    return Recorded(
        entry=np.concatenate(entries),
        column=flat.field("column").to_pylist(),
        value=flat.field("value").to_pylist(),
        count=np.asarray(pc.fill_null(flat.field("count"), -1).to_numpy(zero_copy_only=False), np.int64),
    )
