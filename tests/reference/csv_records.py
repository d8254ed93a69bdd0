"""The naive twin of shoal.kernels.csv_records: one byte at a time, the whole input in memory."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, WRONG_COUNT, HAS_NUL, TOO_LONG, UNCLOSED = "good", "wrong count", "NUL", "too long", "unclosed"
NAMES = (GOOD, WRONG_COUNT, HAS_NUL, TOO_LONG, UNCLOSED)  # in the order of the kernel's codes


@dataclass(frozen=True)
class Record:
    verdict: str
    fields: list[bytes]
    line: int
    after: int


def read_records(
    data: bytes, *, width: int, longest: int, delimiter: bytes = b",", quote: bytes = b'"'
) -> list[Record]:
    found = []
    at, line = 0, 1
    while at < len(data):
        if is_line_end(data, at):
            at, line = line_end(data, at), line + 1
            continue
        record = _read(data, at, line, width=width, longest=longest, delimiter=delimiter, quote=quote)
        found.append(record)
        line += _count_lines(data[at : record.after])
        at = record.after
    return found


def _read(  # noqa: PLR0912 - one branch for each thing a byte can mean
    data: bytes, start: int, line: int, *, width: int, longest: int, delimiter: bytes, quote: bytes
) -> Record:
    fields, value = [], b""
    state = "field start"
    at = start
    while at < len(data) and at <= start + longest:
        byte = data[at : at + 1]
        if state == "quoted":
            if byte == quote:
                state = "maybe closed"
            else:
                value += byte
        elif state == "maybe closed" and byte == quote:
            value += quote
            state = "quoted"
        elif byte in b"\r\n":
            break
        elif byte == delimiter:
            fields.append(value)
            value, state = b"", "field start"
        elif state == "field start" and byte == quote:
            state = "quoted"
        else:
            value += byte
            state = "unquoted"
        at += 1
    fields.append(value)
    is_long = at > start + longest
    if state == "quoted":
        first = _next_line(data, start)
        if not is_long or _starts_within(data, start, at):
            return Record(UNCLOSED, [], line, first)
    if is_long:
        return Record(TOO_LONG, [], line, _next_line(data, at))
    after = line_end(data, at) if at < len(data) else at
    if b"\0" in data[start:at]:
        return Record(HAS_NUL, [], line, after)
    return Record(GOOD if len(fields) == width else WRONG_COUNT, fields, line, after)


def is_line_end(data: bytes, at: int) -> bool:
    return data[at : at + 1] in (b"\r", b"\n")


def line_end(data: bytes, at: int) -> int:
    return at + (2 if data[at : at + 2] == b"\r\n" else 1)


def _next_line(data: bytes, at: int) -> int:
    while at < len(data) and not is_line_end(data, at):
        at += 1
    return line_end(data, at) if at < len(data) else at


def _starts_within(data: bytes, start: int, end: int) -> bool:
    """Whether a line ends inside the bytes looked at."""
    return any(is_line_end(data, at) for at in range(start, end))


def _count_lines(part: bytes) -> int:
    return part.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
