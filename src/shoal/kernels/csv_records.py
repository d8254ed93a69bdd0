"""Find records and fields in CSV bytes, with the quoting rules of Arrow's CSV parser.

A quote is special at the start of a field only; there, a doubled quote is one quote and line breaks are part
of the field. What follows a closing quote is read literally. Lines end with \\n, \\r\\n or \\r.
"""

from __future__ import annotations

from typing import Any

from shoal.kernels.compiling import kernel, piece

# Meaning of a byte, as in the table given to the kernels.
ORDINARY, DELIMITER, LF, CR, NUL, QUOTE = 0, 1, 2, 3, 4, 5

# Outcomes of a record.
GOOD, WRONG_COUNT, HAS_NUL, TOO_LONG, UNCLOSED = 0, 1, 2, 3, 4

# Why a call ended.
FULL, NEEDS_MORE, ENDLESS = 0, 1, 2

# Entries of the cursor: next byte; its line; how far an open quote was scanned; line breaks in an endless record.
AT, LINE, OPEN_UNTIL, BREAKS = 0, 1, 2, 3

# Outcomes inside the kernels.
_MORE, _BLANK, _ENDLESS, _AGAIN = 10, 11, 12, 13


@kernel
def next_line(data: Any, at: int, final: int) -> int:
    """Where the line after the one at `at` starts; -1 when that is not in the data yet."""
    size = len(data)
    while at < size and data[at] != 10 and data[at] != 13:
        at += 1
    if at >= size:
        return size if final else -1
    if data[at] == 13:
        if at + 1 >= size:
            return size if final else -1
        if data[at + 1] == 10:
            return at + 2
    return at + 1


@piece
def keep_bounds(slots: Any, starts: Any, ends: Any, row: int, field: int, begin: int, end: int) -> None:
    """Store the bounds of a field if its column is read."""
    if field < len(slots) and slots[field] >= 0:
        starts[slots[field], row] = begin
        ends[slots[field], row] = end


@piece
def scan_record(
    data: Any, start: int, limit: int, final: int, table: Any, open_until: int,
    slots: Any, starts: Any, ends: Any, row: int,
) -> tuple[int, int, int, int, int, int, int, int, int]:  # fmt: skip
    """Scan from `start` to the line break that ends the record, or to `limit`.

    Give (where it stopped, where the next line starts or -1, fields before the last, start of the last, line breaks,
    the first of them or -1, whether a quote is open, whether there is a NUL, whether a part was skipped).
    """
    at = field = after = start
    fields = breaks = 0
    first_break = -1
    has_nul = skipped = quoted = False
    fresh = True  # at the start of a field
    while at < limit:
        kind = table[data[at]]
        if kind == ORDINARY:
            fresh = False
            at += 1
            while at < limit and table[data[at]] == ORDINARY:
                at += 1
            continue
        if kind == NUL:
            has_nul = True
            fresh = False
        elif kind == QUOTE:
            if fresh:
                quoted = True
                fresh = False
            elif quoted:
                if at + 1 < limit and table[data[at + 1]] == QUOTE:
                    at += 1
                else:
                    quoted = False
        elif kind == DELIMITER:
            if not quoted:
                keep_bounds(slots, starts, ends, row, fields, field, at)
                fields += 1
                field = at + 1
                fresh = True
        else:
            after = next_line(data, at, final)
            if after < 0 or not quoted:
                break
            breaks += 1
            if first_break < 0:
                first_break = after
            skipped = skipped or after <= open_until
            at = max(after, open_until)
            continue
        at += 1
    return at, after, fields, field, breaks, first_break, quoted, has_nul, skipped


@piece
def read_record(
    data: Any, start: int, final: int, table: Any, longest: int, open_until: int,
    slots: Any, starts: Any, ends: Any, row: int,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Read the record at `start`; give (outcome, where the next starts, fields, line breaks, scanned until).

    `open_until` > `start`: a field that is open at any line break before it is still open there. So a quote that is
    never closed is scanned once, not once for every line after it.
    """
    limit = min(len(data), start + longest + 1)
    at, after, fields, field, breaks, first_break, quoted, has_nul, skipped = scan_record(
        data, start, limit, final, table, open_until, slots, starts, ends, row
    )
    if after < 0:
        return _MORE, start, 0, 0, -1
    if at >= limit:
        is_long = limit == start + longest + 1
        if quoted and (is_long or final):
            if first_break >= 0:
                return UNCLOSED, first_break, 0, 1, limit
            if not is_long:
                return UNCLOSED, len(data), 0, 1, -1
        if not is_long and not final:
            return _MORE, start, 0, 0, -1
        if is_long and not skipped:
            return _ENDLESS, limit, 0, breaks, -1
        after = len(data)
    if skipped:
        return _AGAIN, start, 0, 0, -1
    if at == start:
        return _BLANK, after, 0, 1, -1
    keep_bounds(slots, starts, ends, row, fields, field, at)
    return HAS_NUL if has_nul else GOOD, after, fields + 1, breaks + 1, -1


@kernel
def split_records(
    data: Any,
    final: int,
    table: Any,
    longest: int,
    width: int,
    slots: Any,
    cursor: Any,
    starts: Any,
    ends: Any,
    codes: Any,
    counts: Any,
    lines: Any,
) -> tuple[int, int]:
    """Read records from the cursor on, as many as there is room for; give (rows, why it ended).

    `slots[f]` is the row of `starts` and `ends` where the bounds of field f go, or -1. A record of another
    width than `width` (0: any) or with a NUL byte has empty bounds. Blank lines are skipped. The cursor stops at a
    record that is too long and whose line does not end in the data; the caller handles it.
    """
    rows = 0
    while rows < len(codes) and cursor[AT] < len(data):
        outcome, after, fields, breaks, scanned = read_record(
            data, cursor[AT], final, table, longest, cursor[OPEN_UNTIL], slots, starts, ends, rows
        )
        if outcome == _AGAIN:
            # the field is closed in the part that was skipped: read it without skipping
            outcome, after, fields, breaks, scanned = read_record(
                data, cursor[AT], final, table, longest, -1, slots, starts, ends, rows
            )
        if outcome == _MORE:
            return rows, NEEDS_MORE
        if outcome == _ENDLESS:
            after = next_line(data, after, final)
            if after < 0:
                cursor[BREAKS] = breaks
                return rows, ENDLESS
            outcome = TOO_LONG
            breaks += 1
        if scanned >= 0:
            cursor[OPEN_UNTIL] = scanned
        if outcome != _BLANK:
            if outcome == GOOD and width not in (0, fields):
                outcome = WRONG_COUNT
            if outcome != GOOD:
                for slot in range(len(starts)):
                    starts[slot, rows] = 0
                    ends[slot, rows] = 0
            codes[rows] = outcome
            counts[rows] = fields
            lines[rows] = cursor[LINE]
            rows += 1
        cursor[AT] = after
        cursor[LINE] += breaks
    return rows, FULL if cursor[AT] < len(data) else NEEDS_MORE


@kernel
def gather_fields(data: Any, starts: Any, ends: Any, quote: int, out: Any, offsets: Any) -> int:
    """Copy fields one after another without their quotes; give the bytes written.

    `out` needs room for the sum of `ends - starts`, `offsets` for one more than there are fields.
    """
    to = 0
    offsets[0] = 0
    for row in range(len(starts)):
        at = starts[row]
        end = ends[row]
        if at < end and data[at] == quote:
            at += 1
            while at < end:
                if data[at] == quote:
                    at += 1
                    if at >= end or data[at] != quote:
                        break
                out[to] = data[at]
                to += 1
                at += 1
        while at < end:
            out[to] = data[at]
            to += 1
            at += 1
        offsets[row + 1] = to
    return to
