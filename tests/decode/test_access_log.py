"""Access logs: fields by hand, what is missing, what is refused, and the auditor's reader."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.auditor.reading.access_log import read_access_log
from shoal.decode.access_log import COLUMNS, NO_TIME, NOT_A_LINE, AccessLogDecoder, is_access_log
from shoal.decode.base import Decoded
from shoal.decode.columns import NOT_UTF8
from shoal.decode.text import HAS_NUL, TOO_LONG
from shoal.errors import InputError
from tests.decode.test_csv import Memory
from tests.reference.effort import tries

COMMON = '10.0.0.1 - anna [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.0" 200 2326'
COMBINED = r'h.example id - [01/Mar/2024:00:30:00 +0130] "GET /\"x\\ HTTP/1.1" 404 - "http://ref/" "Agent \"7\" (X; Y)"'
NOTHING = '::1 - ann b lee [31/Dec/2023:23:59:59 +0000] "-" - 0 "-" ""'
LOG = f"{COMMON}\n\n{COMBINED}\r\n{NOTHING}".encode()
ROWS = [
    ("10.0.0.1", None, "anna", datetime(2000, 10, 10, 20, 55, 36, tzinfo=UTC), "GET /a?b=1 HTTP/1.0", "200", 2326, None,
     None),
    ("h.example", "id", None, datetime(2024, 2, 29, 23, 0, tzinfo=UTC), r"GET /\"x\\ HTTP/1.1", "404", None,
     "http://ref/", r"Agent \"7\" (X; Y)"),
    ("::1", None, "ann b lee", datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC), None, None, 0, None, None),
]  # fmt: skip


def parts_of(data: bytes, position: dict[str, Any] | None = None, **options: Any) -> list[Decoded]:
    options.setdefault("columns", COLUMNS)
    with AccessLogDecoder(Memory(data, seekable=False), **options) as decoder:
        return list(decoder.batches(position))


def rows_of(parts: list[Decoded]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for part in parts for row in part.batch.to_pylist()]


def refusals(data: bytes, **options: Any) -> list[tuple[int, str | None, str]]:
    return [(one.row, one.column, one.reason) for part in parts_of(data, **options) for one in part.refused]


@pytest.mark.parametrize("block_bytes", [1, 7, 100, 4096])
def test_both_formats(block_bytes: int) -> None:
    parts = parts_of(LOG, block_bytes=block_bytes)
    assert rows_of(parts) == ROWS
    assert [line for part in parts if part.lines is not None for line in part.lines.tolist()] == [1, 3, 4]
    for at, part in enumerate(parts):
        assert rows_of(parts_of(LOG, part.position, block_bytes=block_bytes)) == rows_of(parts[at + 1 :])


def test_columns_and_types() -> None:
    assert rows_of(parts_of(LOG, columns=["status", "host"])) == [
        ("200", "10.0.0.1"),
        ("404", "h.example"),
        (None, "::1"),
    ]
    (part,) = parts_of(LOG + b"\n", columns=["status", "size"], types={"status": pa.int64(), "size": pa.string()})
    assert part.batch.to_pydict() == {"status": [200, 404, None], "size": ["2326", None, "0"]}
    with pytest.raises(InputError, match="no column 'page' among its 9 columns; an access log has host, ident, user"):
        parts_of(LOG, columns=["page"])


BAD = [
    ("", NOT_A_LINE, 'secret - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200'),
    ("", NOT_A_LINE, 'secret - - [10/Oct/2000:13:55:36] "GET / HTTP/1.0" 200 1'),
    ("", NOT_A_LINE, 'secret - - [10/Oct/2000:13:55:36 -0700] "GET /"secret" HTTP/1.0" 200 1'),
    ("", NOT_A_LINE, 'secret - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0 200 1'),
    ("", NOT_A_LINE, 'secret - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "referer alone"'),
    ("", NOT_A_LINE, 'secret - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1 "-" "-" "-"'),
    ("", NOT_A_LINE, 'secret - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 9999999999999999999'),
    ("", NOT_A_LINE, '- [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1'),
    ("time", NO_TIME, 'secret - - [31/Feb/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1'),
    ("time", NO_TIME, 'secret - - [10/Okt/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1'),
    ("time", NO_TIME, 'secret - - [10/anF/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1'),
    ("time", NO_TIME, 'secret - - [10/Oct/2000:24:00:00 -0700] "GET / HTTP/1.0" 200 1'),
    ("time", NO_TIME, 'secret - - [10/Oct/2000:23:59:60 -0700] "GET / HTTP/1.0" 200 1'),
    ("time", NO_TIME, 'secret - - [10/Oct/2000:13:55:36 -0760] "GET / HTTP/1.0" 200 1'),
    ("time", NO_TIME, 'secret - - [10/Oct/2000:13:55:36 +2400] "GET / HTTP/1.0" 200 1'),
    ("", HAS_NUL, COMMON.replace("anna", "an\0na")),
]


@pytest.mark.parametrize(("column", "reason", "line"), BAD)
def test_what_is_refused(column: str, reason: str, line: str) -> None:
    data = f"{COMMON}\n{line}\n{COMBINED}\n".encode()
    assert refusals(data) == [(1, column or None, reason)]
    assert refusals(data, columns=["host"]) == [(1, column or None, reason)]
    assert "secret" not in reason
    assert rows_of(parts_of(data)) == ROWS[:2]
    assert read_access_log(data)[1].tolist() == [False, True, False]


def test_bytes_and_long_lines() -> None:
    data = (
        COMMON.replace("anna", "\xe9").encode("latin-1")
        + b"\n"
        + COMMON.encode()
        + b"x" * 100
        + b"\n"
        + COMMON.encode()
    )
    assert refusals(data, max_record_bytes=len(COMMON) + 50) == [(0, None, NOT_UTF8), (1, None, TOO_LONG)]
    assert read_access_log(data)[1].tolist() == [True, True, False]


def test_what_an_access_log_is() -> None:
    assert is_access_log(LOG.decode())
    assert is_access_log(f"{COMMON}\n{COMMON}\nx\n")
    assert not is_access_log(f"{COMMON}\nx\n")
    assert not is_access_log("host,time\n10.0.0.1,3\n")
    assert not is_access_log("")


def audited(data: bytes) -> list[dict[str, Any] | None]:
    columns, broken = read_access_log(data)
    lists = {name: column.to_pylist() for name, column in columns.items()}
    return [None if bad else {name: lists[name][row] for name in COLUMNS} for row, bad in enumerate(broken)]


def published(data: bytes) -> list[dict[str, Any] | None]:
    found: list[dict[str, Any] | None] = []
    for part in parts_of(data):
        rows = iter(part.batch.to_pylist())
        found += [None if row in part.places else next(rows) for row in range(part.rows)]
    return found


def test_the_auditor_reads_the_same() -> None:
    assert [tuple(row.values()) for row in audited(LOG) if row] == ROWS


PIECES = st.sampled_from(
    ["a", " ", "-", '"', '\\"', "\\", "\\\\", "[", "]", "é", "\u00a0", "\t", "\x0b", "\r", "7", "/"]
)
TEXT = st.lists(PIECES, max_size=6).map("".join)
ESCAPED = TEXT.map(lambda text: text.replace("\\", "\\\\").replace('"', '\\"'))
TIMES = st.sampled_from(["10/Oct/2000:13:55:36 -0700", "29/Feb/2023:00:00:00 +0000", "01/jan/2024:10:00:00 +0000", "x"])


@tries(300)
@given(TEXT, TEXT, TEXT, TIMES, st.one_of(TEXT, ESCAPED), st.sampled_from(["200", "-", "20", ""]),
       st.sampled_from(["1", "-", "", "0" * 19]), st.none() | st.tuples(TEXT, TEXT))  # fmt: skip
@example("h", "-", "u", "10/Oct/2000:13:55:36 -0700", '\\"', "200", "1", ("\\\\", "\\"))
@example("h", "-", "u [10/Oct/2000:13:55:36 -0700]", "10/Oct/2000:13:55:36 -0700", "", "200", "1", None)
def test_both_agree_on_any_line(
    host: str, ident: str, user: str, time: str, request: str, status: str, size: str, more: tuple[str, str] | None
) -> None:
    further = "" if more is None else f' "{more[0]}" "{more[1]}"'
    data = f'{host} {ident} {user} [{time}] "{request}" {status} {size}{further}\n{COMMON}'.encode()
    assert published(data) == audited(data)


@given(ESCAPED, ESCAPED)
def test_escaped_quotes_are_part_of_the_field(request: str, agent: str) -> None:
    data = f'h - - [10/Oct/2000:13:55:36 -0700] "{request}" 200 1 "-" "{agent}"'.encode()
    (row,) = published(data)
    assert row is not None
    assert row["request"] == (None if request in ("", "-") else request)
    assert row["agent"] == (None if agent in ("", "-") else agent)
