"""Reading sets: every input form gives the same records, and errors never contain a value."""

from __future__ import annotations

import gzip
import random
from itertools import pairwise

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import shoal
from shoal.errors import InputError
from shoal.methods.sets.records import read_records

TREE = shoal.Hierarchy.from_nested({"all": {"left": ["a", "b", "c"], "right": ["d", "e", "f"], "far": ["g", "h"]}})
RECORDS = [{"a", "b"}, {"a"}, {"b", "c", "d"}, {"d", "e"}, {"a", "b", "d"}, {"e", "f"}, {"g"}, {"a", "g", "f"}]
LISTS = [sorted(record) for record in RECORDS]
ROWS = [(f"p{number}", item) for number, record in enumerate(LISTS) for item in record]
SECRET = "a secret value"


def text(lists=LISTS) -> str:
    return "".join(" ".join(record) + "\n" for record in lists)


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def shuffled(rows, seed=3):
    """People are in order of first appearance."""
    people = list(dict.fromkeys(person for person, _ in rows))
    mixed = random.Random(seed).sample(rows, len(rows))
    first = [next(row for row in mixed if row[0] == person) for person in people]
    return first + [row for row in mixed if row not in first]


class Foreign:
    """Another library's table, which has only the Arrow protocol."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def as_dictionary(lists):
    flat = [item for record in lists for item in record]
    codes = pa.array(["zzz unused", *"hgfedcba"].index(item) for item in flat)
    values = pa.DictionaryArray.from_arrays(codes.cast(pa.int8()), ["zzz unused", *"hgfedcba"])
    return pa.ListArray.from_arrays(pa.array(np.cumsum([0, *map(len, lists)]), pa.int32()), values)


ROW_TABLE = pa.table({"who": [row[0] for row in ROWS], "what": [row[1] for row in ROWS]})
MIXED_TABLE = pa.table({"who": [row[0] for row in shuffled(ROWS)], "what": [row[1] for row in shuffled(ROWS)]})
COLUMN = pa.array(LISTS, pa.list_(pa.string()))

FORMS = {
    "sets": RECORDS,
    "frozen sets": tuple(map(frozenset, RECORDS)),
    "lists, repeated and unsorted": [[*reversed(record), *record] for record in LISTS],
    "tuples": [(*record, record[0], record[0]) for record in LISTS],
    "generators": lambda: ((item for item in record) for record in LISTS),
    "Arrow lists": COLUMN,
    "large lists": pa.array(LISTS, pa.large_list(pa.large_string())),
    "list views": pa.array(LISTS, pa.list_view(pa.string())),
    "a slice": pa.array([["zzz"], *LISTS, ["zzz"]])[1:-1],
    "dictionary": as_dictionary(LISTS),
    "a slice of a dictionary": as_dictionary([["h"], *LISTS, ["h"]]).slice(1, len(LISTS)),
    "chunks": pa.chunked_array([LISTS[:3], [], LISTS[3:]], pa.list_(pa.string())),
    "dictionary chunks": pa.chunked_array([as_dictionary(LISTS[:3]), as_dictionary(LISTS[3:])]),
    "repeats": pa.array([[*record, *record] for record in LISTS]),
    "table": pa.table({"sets": COLUMN}),
    "batch": pa.record_batch({"sets": COLUMN}),
    "foreign table": Foreign(pa.table({"sets": COLUMN})),
    "rows": ROWS,
    "rows, mixed and repeated": shuffled(ROWS) + ROWS,
    "row table": ROW_TABLE,
    "row table, mixed": MIXED_TABLE,
    "row table, chunks": pa.concat_tables([MIXED_TABLE[:5], MIXED_TABLE[5:]]),
    "row table, dictionaries": pa.table([one.dictionary_encode() for one in MIXED_TABLE.columns], ["who", "what"]),
    "row batch": MIXED_TABLE.combine_chunks().to_batches()[0],
    "foreign rows": Foreign(MIXED_TABLE),
    "whole numbers for people": [(7 * int(who[1:]), what) for who, what in shuffled(ROWS)],
}  # fmt: skip


def outcome(records, generalize=TREE):
    result = shoal.KmAnonymity(k=2, m=3, sigma=1, generalize=generalize).anonymize(records)
    return result.records, result.error, result.blocks, result.certificate, result.published().to_pylist()


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(form):
    given = FORMS[form]
    assert outcome(given() if callable(given) else given) == outcome(RECORDS)


@pytest.mark.parametrize("form", ["dictionary", "a slice of a dictionary", "a slice", "rows, mixed and repeated"])
def test_an_open_hierarchy_has_only_items_that_occur(form):
    """Labels of a dictionary that no record has are not items."""
    assert outcome(FORMS[form], shoal.Hierarchy.by_suffix()) == outcome(RECORDS, shoal.Hierarchy.by_suffix())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.txt", text()),
        ("no newline at the end.dat", text().rstrip("\n")),
        ("windows.txt", text().replace("\n", "\r\n")),
        ("tabs.txt", text().replace(" ", "\t")),
        ("much space.txt", "  " + text().replace(" ", " \t  ").replace("\n", "  \n ")),
        ("packed.txt.gz", gzip.compress(text().encode(), mtime=0)),
    ],
)
def test_files(name, content, tmp_path):
    path = written(tmp_path / name, content)
    assert outcome(path) == outcome(str(path)) == outcome(RECORDS)


def test_whole_numbers_are_items():
    tree = shoal.Hierarchy.from_nested({"all": ["1", "2", "3"]})
    sets = [{1, 2}, {1, 2}, {3}, {3}]
    same = [{"1", "2"}, {"1", "2"}, {"3"}, {"3"}]
    wanted = outcome(same, tree)
    assert outcome(sets, tree) == wanted
    assert outcome([{1, "1", np.int64(2)}, *sets[1:]], tree) == wanted
    assert outcome(pa.array(list(map(sorted, sets))), tree) == wanted
    assert outcome([(number, item) for number, record in enumerate(sets) for item in record], tree) == wanted


def test_rows_of_a_person_are_one_record_in_order_of_first_appearance():
    rows = [("z", "a"), ("b", "c"), ("z", "b"), ("a", "d"), ("b", "c"), ("z", "a")]
    people = pa.DictionaryArray.from_arrays(pa.array([3, 1, 0, 2, 1, 3]), ["z", "b", "a", "z"])  # z stands there twice
    for given in (rows, pa.table({"p": people, "i": [row[1] for row in rows]})):
        read = read_records(given)
        ends = pairwise(read.starts.tolist())
        sets = [{read.labels[code] for code in read.codes[begin:end]} for begin, end in ends]
        assert sets == [{"a", "b"}, {"c"}, {"d"}]
        assert len(read) == 3


def test_pairs_are_rows_but_sets_of_two_are_sets():
    assert len(read_records([("p", "a"), ("p", "b")])) == 1
    assert len(read_records([{"p", "a"}, {"p", "b"}])) == 2
    assert len(read_records([["p", "a"], ["p", "b", "c"]])) == 2
    assert len(read_records([("p", "a"), ("p", "b", "c")])) == 2
    for rows in ([["p", "a"], ["p", "b"]], np.array([["p", "a"], ["p", "b"]])):  # a person must not become an item
        with pytest.raises(InputError, match=r"every one is a list of two; give tuples if they are \(person, item\)"):
            read_records(rows)
    with pytest.raises(InputError, match="record 1: not a set of items"):
        read_records([{"person": "p", "item": "a"}])


def test_people_with_lists_and_single_columns():
    table = pa.table({"person": ["p", "q", "p"], "items": [["a", "b"], ["a"], ["c"]]})
    read = read_records(table)
    assert [read.labels[code] for code in read.codes] == ["a", "b", "c", "a"]
    assert read.starts.tolist() == [0, 3, 4]
    with pytest.raises(InputError, match="row 2: the list of items is null"):
        read_records(pa.table({"person": ["p", "q"], "items": [["a"], None]}))
    for column in (pandas.Series([["a", "b"], ["a"]]), polars.Series([["a", "b"], ["a"]])):
        assert len(read_records(column)) == 2
    assert len(read_records(polars.DataFrame({"person": ["p", "q", "p"], "item": ["a", "b", "c"]}))) == 2


# ---- what is wrong


BAD = {
    "an empty set": ([{"a"}, set(), {"b"}, []], r"record 2: is empty \(2 such records\); leave them out"),
    "an empty Arrow list": (pa.array([["a"], []]), r"record 2: is empty \(1 such records\)"),
    "no record": (None, "records: give an iterable of sets"),
    "a number": (7, "records: give an iterable of sets"),
    "bytes": (b"a b", "records: give an iterable of sets"),
    "a table from one thing to another": ({"a": {"b"}}, "records: give an iterable of sets"),
    "a null record": ([{"a"}, None], "record 2: not a set of items"),
    "a record that is text": ([{"a"}, SECRET], "record 2: not a set of items"),
    "texts": ([SECRET, SECRET], "record 1: not a set of items"),
    "a record that is bytes": ([b"a", {"a"}], "record 1: not a set of items"),
    "a null Arrow record": (pa.array([["a"], ["b"], None]), "record 3: is null; leave it out"),
    "a null item": ([{"a"}, {"a"}, {"a", None}], "record 3: has an item that is neither text nor a whole number"),
    "a null Arrow item": (pa.array([["a"], ["b", "a", None]]), "record 2: has an item that is null"),
    "nothing but null": (pa.array([[None], [None]]), "record 1: has an item that is null"),
    "a null in a dictionary": (
        pa.ListArray.from_arrays([0, 1, 2], pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["a", None])),
        "record 2: has an item that is null",
    ),
    "an empty item": ([{"a"}, {"a", ""}], "record 2: has an item that is empty or blank; leave it out"),
    "a blank item": (pa.array([["a"], ["b", "a"], ["a", " \t"]]), "record 3: has an item that is empty or blank"),
    "a blank in a row": ([("p", "a"), ("q", "a"), ("p", " ")], "row 3: has an item that is empty or blank"),
    "a fraction": ([{"a"}, {1.5}], "record 2: has an item that is neither text nor a whole number"),
    "a truth": ([{"a"}, {True}], "record 2: has an item that is neither text nor a whole number"),
    "an item that is bytes": ([{"a"}, {b"a"}], "record 2: has an item that is neither text nor a whole number"),
    "an item that is a set": ([[{"a"}], [{"b"}]], "record 1: has an item that is neither text nor a whole number"),
    "half a character": ([{"a"}, {SECRET + "\ud800"}], "records: a text holds half a character"),
    "half a character in a row": ([("p", "a"), (SECRET + "\ud800", "a")], "records: a text holds half a character"),
    "Arrow fractions": (pa.array([[1.5], [2.5]]), "records: items are double; items must be texts or whole numbers"),
    "Arrow texts": (pa.array(["a", "b"]), "records: a column of string holds no sets"),
    "an unknown item": (
        [{"a"}, {"a", SECRET}, {SECRET, "x", "b"}],
        r"record 2: has an item that the generalization does not know \(3 such items in 2 records\)",
    ),
    "an inner node": ([{"a"}, {"left"}], r"record 2: .* \(1 such items in 1 records\)"),
    "three columns": (pa.table({"a": ["x"], "b": ["x"], "c": ["x"]}), "records: a table of 3 columns"),
    "no column": (pa.table({}), "records: a table of 0 columns"),
    "a null person": (pa.table({"p": ["x", None], "i": ["a", "b"]}), "row 2: the person is null"),
    "a null in a row": (pa.table({"p": ["x", "y"], "i": ["a", None]}), "row 2: the item is null"),
    "a null in a row's dictionary": (
        pa.table({"p": pa.DictionaryArray.from_arrays(pa.array([0, 1]), ["a", None]), "i": ["a", "b"]}),
        "row 2: the person is null",
    ),
    "a missing person": ([("p", "a"), (None, "a")], "row 2: the person is neither text nor a whole number"),
    "an item that is nothing": ([("p", "a"), ("p", None)], "row 2: the item is neither text nor a whole number"),
    "too few": ([{"a"}], "1 records cannot hide anybody among 2; give more records, or ask for less"),
    "none": ([], "0 records cannot hide anybody among 2"),
    "one person in many rows": ([("p", "a")] * 9, "1 records cannot hide anybody among 2"),
    "an empty column": (pa.array([], pa.list_(pa.string())), "0 records cannot hide anybody among 2"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_refused_records(what):
    given, message = BAD[what]
    with pytest.raises(InputError, match=f"^{message}") as caught:
        outcome(given)
    shown = str(caught.value)
    assert "secret" not in shown
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("blank line.txt", "a b\n\na\n", r"record 2: is empty \(1 such records\)"),
        ("blank lines at the end.txt", "a b\na\n\n\n", r"record 3: is empty"),
        ("nothing.txt", "", "0 records cannot hide anybody"),
        ("latin.txt", "a\nü\n".encode("latin-1"), r"latin\.txt: cannot be read as UTF-8 text \(UnicodeDecodeError\)"),
        ("plain.gz", "a b\n", r"plain\.gz: cannot be read as UTF-8 text \(BadGzipFile\)"),
        ("cut.gz", gzip.compress(b"a b\n" * 99, mtime=0)[:-9], r"cut\.gz: cannot be read as UTF-8 text \(EOFError\)"),
        ("unknown.txt", f"a b\n{SECRET}\n", r"record 2: .* \(2 such items in 1 records\)"),
    ],
)
def test_refused_files(name, content, message, tmp_path):
    path = written(tmp_path / name, content)
    with pytest.raises(InputError, match=f"^{message}") as caught:
        outcome(path)
    assert "secret" not in str(caught.value)


def test_files_that_cannot_be_opened(tmp_path):
    with pytest.raises(InputError, match=r"^missing\.txt: cannot be read as UTF-8 text \(FileNotFoundError\)"):
        outcome(tmp_path / "missing.txt")
    with pytest.raises(InputError, match=r"cannot be read as UTF-8 text \(IsADirectoryError\)"):
        outcome(tmp_path)


def test_a_broken_gzip_stream(tmp_path):
    packed = bytearray(gzip.compress(random.Random(1).randbytes(4000).hex().encode()))
    messages = set()
    for place in range(30, 600, 30):
        broken = packed.copy()
        broken[place] ^= 0xFF
        with pytest.raises(InputError, match=r"broken\.gz: cannot be read as UTF-8 text") as caught:
            outcome(written(tmp_path / "broken.gz", bytes(broken)))
        messages.add(str(caught.value))
    assert any("(error)" in message for message in messages)  # zlib's own
