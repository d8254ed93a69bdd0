"""Defects are found by kind, change one place each, and are drawn in turn over kinds and files."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.mutants.generate import KINDS, find_defects, plant
from tests.mutants.sample import drawn, in_turn


def changes(body, *kinds, function="def f(a, b, rows, s, log):"):
    """What replaces what, of some kinds, in a function with this body."""
    source = "\n".join([function, *(f"    {line}" for line in body.splitlines())])
    found = [one for one in find_defects(source, "file.py") if one.kind in kinds or not kinds]
    for one in found:
        assert ast.dump(ast.parse(plant(source, one))) != ast.dump(ast.parse(source))
    return [(one.old, one.new) for one in found]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("a < b", [("a < b", "a <= b")]),
        ("a <= b", [("a <= b", "a < b")]),
        ("a > b", [("a > b", "a >= b")]),
        ("a >= b", [("a >= b", "a > b")]),
        ("a == b", [("a == b", "a != b")]),
        ("a != b", [("a != b", "a == b")]),
        ("a in b", [("a in b", "a not in b")]),
        ("a not in b", [("a not in b", "a in b")]),
        ("a is b", []),
        ("a < b == rows", [("a < b == rows", "a <= b == rows"), ("a < b == rows", "a < b != rows")]),
        ("[x for x in rows if (x) < (b)]", [("x < b", "x <= b")]),
        ("f'{a < b}'", []),
    ],
)
def test_comparisons(written, expected):
    assert changes(f"return {written}", "comparison") == expected


def test_numbers():
    assert changes("return a + 1", "number") == [("1", "2"), ("1", "0")]
    assert changes("return rows[0]", "number") == [("0", "1"), ("0", "-1")]
    assert changes("return True, 1.5, 'one', None", "number") == []


def test_and_or_and_not():
    assert changes("return a and b or rows", "and/or") == [
        ("a and b", "a or b"),
        ("a and b or rows", "(a and b) and rows"),
    ]
    assert changes("return not (a or b)", "not") == [("not (a or b)", "a or b")]


def test_operators_bind_as_before():
    source = "def f(a, b, c):\n    return not (a or b) and c\n"
    planted = [plant(source, one).splitlines()[1].strip() for one in find_defects(source, "file.py")]
    assert sorted(planted) == [
        "return (a or b) and c", "return (not (a or b) or c)", "return not ((a and b)) and c",
    ]  # fmt: skip


def test_statements():
    body = "a = 1\nb.count += 1\nrows.append(a)\nb.x = 2\ns[0] = a\nc = 1\nc = 2\ndel s[a]\nreturn c"
    assert [old for old, _ in changes(body, "statement")] == [
        "a = 1", "b.count += 1", "rows.append(a)", "b.x = 2", "s[0] = a", "c = 2", "del s[a]",
    ]  # fmt: skip


def test_an_early_return_is_a_statement_and_the_last_is_not():
    body = "if a:\n    rows.clear()\n    return b\nfor x in rows:\n    continue\nraise ValueError(b)"
    assert [old for old, _ in changes(body, "statement")] == [
        "rows.clear()",
        "return b",
        "continue",
        "raise ValueError(b)",
    ]


def test_what_makes_an_object_stays():
    assert changes("self.a = a\nself.rows.clear()", "statement", function="def __init__(self, a):") == [
        ("self.rows.clear()", "pass")
    ]


def test_checks():
    body = "if a < b:\n  raise ValueError\nif a:\n  return 1\nfor x in rows:\n  if x:\n    continue\ncheck_rows(rows)"
    assert changes(body, "check") == [
        ("if a < b", "if False"), ("if a", "if False"), ("if x", "if False"), ("check_rows(rows)", "pass"),
    ]  # fmt: skip
    assert changes(body, "statement") == []
    assert changes("s._require_own()\na.refuse(b)", "check") == [("s._require_own()", "pass"), ("a.refuse(b)", "pass")]
    assert changes("if a:\n    return 1\nelse:\n    return 2", "check") == []


def test_columns():
    body = "return s[PERSON, a] + s[_ROW, b] + rows['x'] + rows['y'] + a.low + a.high + a.low.real"
    assert changes(body, "column") == [
        ("s[PERSON, a]", "s[_ROW, a]"), ("s[_ROW, b]", "s[PERSON, b]"), ("rows['x']", "rows['y']"),
        ("rows['y']", "rows['x']"), ("a.low", "a.high"), ("a.high", "a.low"), ("a.low", "a.high"),
    ]  # fmt: skip


def test_a_column_of_another_array_will_do():
    assert changes("return s[PERSON] + rows[ROW] + a[b]", "column") == [
        ("s[PERSON]", "s[ROW]"),
        ("rows[ROW]", "rows[PERSON]"),
    ]
    assert changes("return s[PERSON] + a.run() + a.stop() + s[b]", "column") == []


def test_attributes_of_self_and_of_modules_are_no_columns():
    source = "import numpy as np\ndef f(self):\n    return self.a + self.b + np.pi + np.e\n"
    assert find_defects(source, "file.py") == []


@pytest.mark.parametrize(
    "body",
    [
        '"""Text of 1 function."""',
        "x: Final[1] = a",
        "raise ValueError(a[1], 2 < b)",
        "assert a < 1",
        "log.info(1 < b)",
        "self._warn(1 < b)",
        "warnings.warn(a, stacklevel=2)",
        "print(1)",
        "import a",
        "return f'{a + 1}'",
        "return cast(1, a)",
    ],
)
def test_texts_are_left_alone(body):
    assert [
        old for old, _ in changes(f"{body}\nraise ValueError") if old != "raise ValueError" and body not in old
    ] == []


def test_what_is_executed_on_import_is_left_alone():
    source = "LIMIT = 1\nif LIMIT < 2:\n  LIMIT = 3\nclass A:\n  size: int = 4\n  def __repr__(self):\n    return 1\n"
    assert find_defects(source, "file.py") == []


def test_names_of_functions_and_lines():
    source = (
        "class A:\n"
        "    def f(self, a):\n"
        "        if (a\n"
        "                > 1):\n"
        "            return 2\n"
        "        def g(x): return x < 3\n"
        "        return g\n"
    )
    found = find_defects(source, "folder/file.py")
    assert {(one.function, one.line, one.last_line) for one in found} == {
        ("A.f", 3, 4), ("A.f", 5, 5), ("A.f.g", 6, 6),
    }  # fmt: skip
    assert found[0].name.startswith("folder/file.py A.f ")


def test_equal_defects_have_names_of_their_own():
    found = find_defects("def f(a):\n    return a[0] + a[0]\n", "file.py")
    assert len({one.name for one in found}) == len(found) == 4


def test_text_before_it_may_have_other_bytes_than_characters():
    source = "def f(a):\n    return 'é·–', a < 1\n"
    (found,) = [one for one in find_defects(source, "file.py") if one.kind == "comparison"]
    assert plant(source, found) == "def f(a):\n    return 'é·–', (a <= 1)\n"


# ---- the sample

SOURCE = """
def f(a, b, rows):
    check_rows(rows)
    if a < 1 and not b:
        rows.append(a)
    return rows['x'] + rows['y']
"""
FOUND = [one for number in range(4) for one in find_defects(SOURCE, f"{number}.py")]


def test_a_sample_takes_kinds_and_files_in_turn():
    sample = drawn(FOUND, 14, "seed")
    assert Counter(one.kind for one in sample) == dict.fromkeys(KINDS, 2)
    assert set(Counter(one.file for one in sample).values()) == {3, 4}
    assert len({one.name for one in sample}) == 14


def test_a_sample_depends_on_its_seed_alone_and_a_longer_one_continues_it():
    assert drawn(FOUND, 20, "seed")[:14] == drawn(FOUND, 14, "seed")
    assert drawn(FOUND, 14, "seed") != drawn(FOUND, 14, "other")


def test_a_sample_hardly_changes_with_a_defect_elsewhere():
    before = drawn(FOUND, 14, "seed")
    gone = next(one for one in FOUND if one not in before)
    after = drawn([one for one in FOUND if one != gone], 14, "seed")
    assert len({*before} & {*after}) >= 12


def test_a_sample_is_not_larger_than_what_there_is():
    assert sorted(one.name for one in drawn(FOUND, 1000, "seed")) == sorted(one.name for one in FOUND)
    assert drawn([], 10, "seed") == []


def test_packages_take_turns():
    a, b = FOUND[:3], FOUND[3:4]
    assert list(in_turn({"a": a, "b": b})) == [("a", a[0]), ("b", b[0]), ("a", a[1]), ("a", a[2])]
