from __future__ import annotations

import csv
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.auditor.reading import lines
from shoal.auditor.reading.lines import csv_records, read_csv, read_jsonl, split_fields
from shoal.auditor.reading.paths import Format
from shoal.decode.json_records import JsonParser
from shoal.errors import InputError
from tests.reference.effort import tries


def read(data, header=None, delimiter=","):
    columns, broken = read_csv(data, delimiter=delimiter, expected=Format(header=header), where="truth.csv")
    return {name: column.to_pylist() for name, column in columns.items()}, broken.tolist()


@tries(100)
@given(st.text('ab,"\n\r ', max_size=25).filter(lambda text: text.count('"') % 2 == 0))
@example('a,"b\n\n""c""",d\n\nx\r"y\r\nz"k,"')
def test_records_are_those_of_the_csv_module_where_every_quote_closes(text):
    stream = io.StringIO(text, newline="")
    expected, open_at_end = [], False
    reader = csv.reader(stream)
    for record in reader:
        open_at_end = stream.tell() == len(text)
        expected.append(record)
    found = list(csv_records(text, ","))
    if None not in found:  # the module does not say that a quote never closed
        assert found == [record for record in expected if record]
    else:
        assert open_at_end


@tries(100)
@given(
    st.one_of(
        st.text("ab,é\n\r ", max_size=40),
        st.text('a,"\n', max_size=16),
        st.lists(st.sampled_from(['"a"', '""', '"x,""y"', "b", ",", ",", "\n", "\r\n", '"']), max_size=16).map("".join),
    )
)
@example("x\n\n\na\n")
@example("\n\nx\na\n")
@example("x,y\na\n")
@example("x,x\na,b\n")
def test_the_fast_way_agrees_with_the_careful_one(text):
    data = text.encode()
    found = lines._read_plain(data, ",", Format(), "truth.csv")
    if found is not None:
        columns, broken = lines._read_careful(data, ",", Format(), "truth.csv")
        assert {name: column.to_pylist() for name, column in found[0].items()} == {
            name: column.to_pylist() for name, column in columns.items()
        }
        assert found[1].tolist() == broken.tolist()


@pytest.mark.parametrize("data", [b"x,y\na,b\n", b'"x","y"\r\n"a, ""b""",c\r\n\r\n,""'])
def test_tidy_rows_go_the_fast_way(data):
    assert lines._read_plain(data, ",", Format(), "truth.csv") is not None


def test_broken_records_keep_their_number():
    data = b'x,y\na,b\n\nc\nd,e,f\n\xff,g\nh,\x00\n"i\nj",k\n'
    columns, broken = read(data)
    assert broken == [False, True, True, True, True, False]
    assert columns == {"x": ["a", None, None, None, None, "i\nj"], "y": ["b", None, None, None, None, "k"]}


def test_a_quote_that_never_closes_costs_one_line():
    columns, broken = read(b'x,y\na,b\nc,"d\ne,f\ng,h\n')
    assert broken == [False, True, False, False]
    assert columns["x"] == ["a", None, "e", "g"]


def test_a_quoted_field_that_is_too_long_costs_one_line(monkeypatch):
    monkeypatch.setattr(lines, "_LONGEST_QUOTED", 10)
    assert read(b'x,y\na,"bcdefghij"\n')[1] == [False]
    columns, broken = read(b'x,y\na,"bcdefghijkl\nm,n"\no,p\n')
    assert broken == [True, False, False]
    assert columns["y"] == [None, 'n"', "p"]
    assert read(b'x,y\na,"b\ncccccccc,d\ne\nf"\ng,h\n')[1] == [True, False, True, True, False]


def test_many_open_quotes_do_not_take_for_ever():
    assert sum(record is None for record in csv_records('x","y\n' * 20_000, ",")) == 20_000


def test_with_a_given_header_the_first_line_is_a_record():
    assert read(b"a;b\n", header=["x", "y"], delimiter=";")[0] == {"x": ["a"], "y": ["b"]}
    assert read(b'"a";b\n', header=["x", "y"], delimiter=";")[0] == {"x": ["a"], "y": ["b"]}


def test_empty_fields_are_null_and_the_byte_order_mark_is_not_a_name():
    assert read(b"\xef\xbb\xbfx,y\n,b\n")[0] == {"x": [None], "y": ["b"]}
    assert read(b'\xef\xbb\xbfx,y\n"",b\n')[0] == {"x": [None], "y": ["b"]}


@pytest.mark.parametrize("data", [b'"x\n1\n', b"\xff,x\n1,2\n"])
def test_a_header_that_cannot_be_used_is_an_error(data):
    with pytest.raises(InputError, match="header"):
        read(data)


def test_nothing_has_no_columns():
    assert read(b"") == ({}, [])
    assert read(b"x,y\n") == ({"x": [], "y": []}, [])


def test_text_after_a_closing_quote_belongs_to_the_field():
    assert split_fields('"a"b,c"d"', ",") == ["ab", 'c"d"']


def test_json_lines_that_are_no_objects_keep_their_number():
    data = b'{"x": 1}\n\n [1]\n{"x": NaN}\n{"x"\n\xff\n{"x": "\\ud800"}\r\n{"y": "\\ud83d\\ude00"}\n{}'
    columns, broken = read_jsonl(data)
    assert broken.tolist() == [False, True, True, True, True, True, False, False]
    assert columns == {"x": [1, *[None] * 7], "y": [*[None] * 6, "😀", None]}


def test_json_too_deep_is_a_broken_record():
    assert read_jsonl(b"[" * 100_000)[1].tolist() == [True]


@pytest.mark.parametrize("line", [b'{"a": "SECRET", "a": "1"}', b'{"a": {"b": 1, "b": 1}}'])
def test_a_repeated_name_in_an_object(line):
    assert read_jsonl(line)[1].tolist() == [False]  # runs read the last one
    assert read_jsonl(line, names_once=True)[1].tolist() == [True]
    assert read_jsonl(b'{"a": "1"}', names_once=True)[0] == {"a": ["1"]}


@pytest.mark.parametrize("depth", [10, 900, 1000, 1020, 1024, 2000])
def test_a_nested_record_of_the_input_is_readable_where_a_run_reads_it(depth):
    line = b'{"user": "ann", "other": ' + b"[" * depth + b"]" * depth + b"}"
    _, refused = JsonParser(100_000, "line", too_long="too long", absent="absent").parse([line])
    columns, broken = read_jsonl(line)
    assert broken.tolist() == [bool(refused)]
    assert refused or columns["user"] == ["ann"]
