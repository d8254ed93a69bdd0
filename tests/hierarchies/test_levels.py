"""Level files: separators, headers, ragged lines, and errors."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy


@pytest.fixture
def write(tmp_path):
    def write_file(content: str | bytes):
        path = tmp_path / "levels.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


EXPECTED = Hierarchy.from_nested({"*": {"young": ["1", "2"], "old": ["80"]}})


@pytest.mark.parametrize(
    "content",
    [
        "1;young;*\n2;young;*\n80;old;*\n",
        "1,young,*\n2,young,*\n80,old,*",
        "\ufeff1;young;*\r\n2;young;*\r\n\r\n80;old;*\r\n",
        "\n\n1;young;*\n   \n2;young;*\n80;old;*\n",
        "age;group;any\n1;young;*\n2;young;*\n80;old;*\n",
        '"1","young","*"\n"2","young","*"\n"80","old","*"\n',
        "1;young;young;*\n2;2;young;*\n80;old;*;*\n",
        "1;young;*\nyoung;*\n*\n2;young;*\n80;old;*\n1;young;*\n",
        "1;young;*\r2;young;*\r80;old;*\r",
    ],
)
def test_the_same_tree_in_many_spellings(write, content):
    assert Hierarchy.from_csv(write(content)) == EXPECTED


def test_labels_may_hold_the_separator_in_quotes(write):
    hierarchy = Hierarchy.from_csv(write('17,"[15, 20[",*\n18,"[15, 20[",*\n'))
    assert hierarchy.path("17") == ("17", "[15, 20[", "*")
    assert Hierarchy.from_csv(write('"a;b",x,*\n')).path("a;b") == ("a;b", "x", "*")


def test_separator_and_header_can_be_given(write):
    assert Hierarchy.from_csv(write("1|young|*\n2|young|*\n80|old|*\n"), sep="|") == EXPECTED
    assert Hierarchy.from_csv(write("a;*\nb;*\n"), header=True).labels == ("*", "b")
    with pytest.raises(PolicyError, match=r"line 2: ends in another root than line 1"):
        Hierarchy.from_csv(write("age;any\n1;*\n"), header=False)
    with pytest.raises(PolicyError, match="sep must be one character"):
        Hierarchy.from_csv(write("a;*\n"), sep=";;")


@pytest.mark.parametrize(
    ("content", "fragments"),
    [
        ("", ["has no labels"]),
        ("\n  \n", ["has no labels"]),
        ("1;young;*\n2;young;*\n3;young;+\n", ["line 3: ends in another root than line 1"]),
        ("1;young;*\n2;;*\n", ["line 2: a label is empty"]),
        ("1;young;*\n2;young;*;\n", ["line 2: a label is empty"]),
        (
            "1;young;*\n2;old;*\n1;old;*\n",
            ["line 3: the label '1' has another parent in line 1"],
        ),
        ("1;a;b;*\n2;a;*\n", ["line 2: the label 'a' has another parent in line 1"]),
        ("a;b;a;*\n", ["line 1: the label 'a' is its own ancestor"]),
        ("a;b;*\nb;a;*\n", ["line 2: the label 'a' has another parent"]),
        ("a;*;b;*\n", ["line 1: the label '*' is its own ancestor"]),
        ("*;b;*\n", ["line 1: the label '*' is its own ancestor"]),
        ('1;"young;*\n2;young;*\n', ["line 2: a quote is not closed"]),
        ("1;*\n" + "a" * 200_000 + ";*\n", ["line 2: a quote is not closed"]),
        ("a" * 200_000 + ";*\n", ["line 1: a quote is not closed"]),
        (b"1;young;*\n\xff;young;*\n", ["line 2: is not UTF-8"]),
        ("1;a;*\n1;b;*\n2;;*\n3;a;+\n", ["line 2: the label", "line 3: a label is empty", "line 4: ends in"]),
    ],
)
def test_refused_files(write, content, fragments):
    with pytest.raises(PolicyError) as caught:
        Hierarchy.from_csv(write(content))
    assert len(caught.value.problems) == len(fragments)
    for problem, fragment in zip(caught.value.problems, fragments, strict=True):
        assert problem.startswith("levels.csv: ")
        assert fragment in problem


def test_a_flood_of_problems_is_cut(write):
    with pytest.raises(PolicyError) as caught:
        Hierarchy.from_csv(write("a;*\n" + "b;\n" * 100), header=False)
    assert len(caught.value.problems) == 20


def test_missing_file_and_folder(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(PolicyError, match="cannot be read"):
            Hierarchy.from_csv(path)


@st.composite
def chains(draw: st.DrawFn) -> list[list[str]]:
    text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5).filter(str.strip)
    labels = draw(st.lists(text, min_size=2, max_size=15, unique=True))
    parents = [-1] + [draw(st.integers(0, node - 1)) for node in range(1, len(labels))]

    def up(node: int) -> list[str]:
        return [labels[node], *(up(parents[node]) if parents[node] >= 0 else [])]

    return [up(node) for node in range(len(labels)) if node not in parents]


@given(chains(), st.sampled_from(";,\t"), st.booleans())
def test_what_was_written_is_read(tmp_path_factory, lines, separator, pads):
    path = tmp_path_factory.getbasetemp() / "written.csv"
    longest = max(map(len, lines))
    with path.open("w", encoding="utf-8", newline="") as file:
        for line in lines:
            padded = [line[0]] * (longest - len(line)) + line if pads else line
            csv.writer(file, delimiter=separator).writerow(padded)
    hierarchy = Hierarchy.from_csv(path, sep=separator, header=False)
    assert [hierarchy.path(line[0]) for line in lines] == [tuple(line) for line in lines]


def test_a_hundred_thousand_lines(write):
    path = write("".join(f"s{t}-{s};t{t};u{t // 10};*\n" for t in range(1000) for s in range(100)))
    hierarchy = Hierarchy.from_csv(path)
    assert len(hierarchy) == 101_101
