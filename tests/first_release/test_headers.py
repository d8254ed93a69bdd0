"""The names that `shoal init` reads in each file of the table, and the header that it takes for one."""

from __future__ import annotations

import pytest

from shoal.decode.header_names import SHORT
from shoal.errors import InputError
from shoal.inspection.files.reading import read_data
from tests.first_release.names import names_read
from tests.first_release.table import CASES

EMPTY = {"header only", "0 rows"}
FILES = [case for case in CASES if not case.traits & EMPTY]
TEXTS = [case for case in FILES if case.reading.format == "csv"]


def files(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@files(FILES)
def test_columns_have_the_names_of_the_header(case, tmp_path):
    data = read_data(case.write(tmp_path), 1_000_000)
    assert data.table.column_names == names_read(case)
    assert data.has_header is (case.reading.has_header if case.reading.format in ("csv", "items") else None)


@files(TEXTS)
def test_the_policy_says_how_the_header_is_read(case, tmp_path):
    data = read_data(case.write(tmp_path), 1_000_000)
    if case.reading.has_header:
        assert data.source.get("header") == (SHORT if case.reading.is_header_short else None)
    else:
        assert data.source["header"] == names_read(case)
    assert data.source.get("delimiter", ",") == case.reading.separator


@files(TEXTS)
def test_every_record_is_read(case, tmp_path):
    """As many as were written: the header is none of them, and without one the first line is."""
    data = read_data(case.write(tmp_path), 1_000_000)
    content = case.make()
    columns = list(content.values()) if isinstance(content, dict) else [values for _, values in content]
    assert data.table.num_rows == len(list(columns[0]))


@files([case for case in TEXTS if case.reading.has_header and not case.reading.is_header_short])
def test_without_its_header_a_file_has_none(case, tmp_path):
    """None of a first record becomes the name of a column. Where a file has one row, nothing tells."""
    path = case.write(tmp_path)
    header, _, rest = path.read_text(case.reading.encoding).partition("\n")
    if rest.count("\n") < 2:
        return
    path.write_text(rest, case.reading.encoding)
    data = read_data(path, 1_000_000)
    assert data.has_header is False
    assert data.table.column_names == [f"column{place + 1}" for place in range(data.table.num_columns)]
    assert header.count(case.reading.separator) + 1 == data.table.num_columns or case.reading.is_quoted


@files([case for case in CASES if case.traits & EMPTY])
def test_names_without_records_are_refused(case, tmp_path):
    with pytest.raises(InputError, match="has no rows"):
        read_data(case.write(tmp_path), 1_000_000)
