"""Logs of Zeek: columns and types from the header, comments anywhere, any block size, what breaks."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor.reading.zeek import read_zeek
from shoal.decode.base import Decoded
from shoal.decode.zeek import ZeekDecoder
from shoal.errors import InputError
from tests.decode.test_csv import Memory
from tests.reference.effort import tries

HEADER = (
    "#separator \\x09\n#set_separator\t,\n#empty_field\t(empty)\n#unset_field\t-\n#path\tdns\n"
    "#open\t2024-05-01-00-00-00\n"
    "#fields\tts\tuid\tid.orig_h\tid.orig_p\tquery\trtt\tanswers\n"
    "#types\ttime\tstring\taddr\tport\tstring\tinterval\tvector[string]\n"
)
ROWS = (
    "1714521600.123456\tC1\t10.0.0.1\t5353\texample.org\t0.25\ta,b\n"
    '1714521601.5\tC2\t10.0.0.2\t53\t"odd\t-\t(empty)\n'
    "1714521602\tC3\t-\t80\t\\xc3\\xa9.org\t1\t-\n"
)
CLOSE = "#close\t2024-05-01-01-00-00\n"
LOG = (HEADER + ROWS + CLOSE).encode()
COLUMNS = ["ts", "id.orig_h", "id.orig_p", "query", "rtt", "answers"]
EXPECTED = [
    (1714521600.123456, "10.0.0.1", 5353, "example.org", 0.25, "a,b"),
    (1714521601.5, "10.0.0.2", 53, '"odd', None, None),
    (1714521602.0, None, 80, "\\xc3\\xa9.org", 1.0, None),
]


def parts_of(data: bytes, position: dict[str, Any] | None = None, **options: Any) -> list[Decoded]:
    columns = options.pop("columns", COLUMNS)
    with ZeekDecoder(Memory(data, seekable=False), columns=columns, **options) as decoder:
        assert decoder.schema.names == columns
        return list(decoder.batches(position))


def rows_of(parts: list[Decoded]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for part in parts for row in part.batch.to_pylist()]


def test_columns_types_and_missing_values():
    parts = parts_of(LOG)
    assert rows_of(parts) == EXPECTED
    types = [pa.float64(), pa.string(), pa.int64(), pa.string(), pa.float64(), pa.string()]
    assert parts[0].batch.schema.types == types
    assert parts[0].lines is not None
    assert parts[0].lines.tolist() == [9, 10, 11]  # as an editor counts them


def test_declared_types_win():
    assert parts_of(LOG, columns=["id.orig_p"], types={"id.orig_p": pa.string()})[0].batch.to_pydict() == {
        "id.orig_p": ["5353", "53", "80"]
    }


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 300])
def test_any_block_size_and_two_logs_in_one(block_bytes):
    twice = LOG + LOG
    parts = parts_of(twice, block_bytes=block_bytes)
    assert rows_of(parts) == 2 * EXPECTED
    assert [line for part in parts for line in part.lines.tolist()] == [9, 10, 11, 21, 22, 23]
    for at, part in enumerate(parts):
        left = rows_of(parts[at + 1 :])
        assert rows_of(parts_of(twice, part.position, block_bytes=block_bytes)) == left


def test_a_line_with_too_few_fields_is_refused():
    broken = LOG.replace(b"\t0.25\ta,b", b"")
    (part,) = parts_of(broken)
    assert rows_of([part]) == EXPECTED[1:]
    assert [(one.row, "5 fields where" in one.reason) for one in part.refused] == [(0, True)]
    assert "C1" not in part.refused[0].reason


def test_other_columns_in_the_middle_end_the_file_after_what_came_before():
    data = LOG + LOG.replace(b"\trtt\t", b"\tttl\t")
    with ZeekDecoder(Memory(data), columns=COLUMNS, block_bytes=50) as decoder:
        found: list[Decoded] = []
        with pytest.raises(InputError, match="another header, with other columns"):
            found.extend(decoder.batches())
    assert rows_of(found) == EXPECTED


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a log of Zeek"),
        (b"ts\tquery\n1\texample.org\n", "not a log of Zeek"),
        (b"#separator \\x09\n#fields\ta\tb\n#types\ttime\n", "of the same length"),
        (b"#separator ab\n#fields\ta\n#types\ttime\n", "#separator must name one character"),
        (LOG.replace(b"query", b"host"), "no column 'query'"),
    ],
)
def test_what_is_no_log(data, message):
    with pytest.raises(InputError, match=message) as caught:
        parts_of(data)
    assert "example" not in str(caught.value)


def test_logs_in_json():
    lines = b'{"ts":1714521600.1,"id.orig_h":"10.0.0.1","query":"a.org"}\n{"ts":1714521601.5,"id.orig_h":"10.0.0.2"}\n'
    assert rows_of(parts_of(lines, columns=["ts", "id.orig_h", "query"])) == [
        (1714521600.1, "10.0.0.1", "a.org"), (1714521601.5, "10.0.0.2", None),
    ]  # fmt: skip


FIELD = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cc", "Cs"]), max_size=4)
LINES = st.lists(
    st.lists(FIELD, min_size=2, max_size=4).map("\t".join).filter(lambda line: line[:1] != "#"), max_size=6
)


@tries(60)
@given(LINES, st.integers(1, 40))
def test_the_auditor_reads_the_same(lines, block_bytes):
    header = "#separator \\x09\n#unset_field\t-\n#fields\ta\tb\tc\n#types\tstring\tstring\tstring\n"
    data = (header + "".join(line + "\n#comment\n" for line in lines)).encode()
    parts = parts_of(data, columns=["a", "b", "c"], block_bytes=block_bytes)
    columns, broken = read_zeek(data, "log")
    kept = [tuple(row) for row in zip(*(columns[name].to_pylist() for name in "abc"), strict=True)]
    assert rows_of(parts) == [row for row, is_broken in zip(kept, broken, strict=True) if not is_broken]
    assert sum(len(part.refused) for part in parts) == broken.sum()
