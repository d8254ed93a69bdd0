"""Read access logs of web servers, in the common and the combined log format."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.columns import TEXT
from shoal.auditor.reading.lines import Part

_TEXTS: Final = ("host", "ident", "user", "request", "status", "referer", "agent")
_MONTHS: Final = "JanFebMarAprMayJunJulAugSepOctNovDec"
_BEGINNING: Final = re.compile(r"([^ ]+) ([^ ]+) ([^[]+) \[([^]]{26})\] ")
_TIME: Final = re.compile(r"(\d\d)/(\w{3})/([12]\d{3}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)", re.ASCII)
_NUMBERS: Final = re.compile(r" (\d{3}|-) (\d{1,18}|-)", re.ASCII)
_UNREADABLE: Final = re.compile("[\x00\ud800-\udfff]")
"""NUL, and what stands for bytes that are not UTF-8."""


def read_access_log(data: bytes) -> Part:
    """Read a log: `time` as a moment, all else as text; a line in another format is unreadable."""
    rows = []
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if line.strip():
            text = line.decode("utf-8", "surrogateescape")
            rows.append(None if _UNREADABLE.search(text) else _row(text.rstrip(" \t\r")))
    found = [row or {} for row in rows]
    columns = {name: pa.chunked_array([pa.array([row.get(name) for row in found], TEXT)]) for name in _TEXTS}
    columns["time"] = pa.chunked_array([pa.array([row.get("time") for row in found], pa.timestamp("s", "UTC"))])
    columns["size"] = pa.chunked_array([pa.array([row.get("size") for row in found], pa.int64())])
    return columns, np.array([row is None for row in rows], np.bool_)


def _row(line: str) -> dict[str, Any] | None:
    begun = _BEGINNING.match(line)
    if begun is None:
        return None
    host, ident, user, written = begun.groups()
    time, (request, at) = _moment(written), _quoted(line, begun.end())
    numbers = _NUMBERS.match(line, at) if at >= 0 else None
    if time is None or numbers is None:
        return None
    status, size = numbers.groups()
    row: dict[str, Any] = {"host": host, "ident": ident, "user": user, "request": request, "status": status}
    if line[numbers.end() :]:
        row["referer"], at = _quoted(line, numbers.end() + 1)
        row["agent"], at = _quoted(line, at + 1) if line[at : at + 1] == " " else ("", -1)
        if line[numbers.end()] != " " or at != len(line):
            return None
    texts = {name: None if text in ("", "-") else text for name, text in row.items()}
    return {**texts, "time": time, "size": None if size == "-" else int(size)}


def _quoted(line: str, at: int) -> tuple[str, int]:
    """Return the text between quotes that begins here, as it is written, and where it ends; -1 if there is none."""
    end = at + 1
    while at >= 0 and line[at : at + 1] == '"' and end < len(line):
        if line[end] == '"':
            return line[at + 1 : end], end + 1
        end += 2 if line[end] == "\\" else 1
    return "", -1


def _moment(written: str) -> datetime | None:
    found = _TIME.fullmatch(written)
    if found is None:
        return None
    day, month, year, hour, minute, second, sign, hours, minutes = found.groups()
    place = _MONTHS.find(month)
    if place < 0 or place % 3 or int(minutes) > 59 or int(hours) > 23:
        return None
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    try:
        local = datetime(int(year), place // 3 + 1, int(day), int(hour), int(minute), int(second), tzinfo=UTC)
    except ValueError:
        return None
    return local - offset
