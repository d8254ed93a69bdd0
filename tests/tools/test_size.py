"""Size counts lines, statements and long functions by package, and never fails because something is too big."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.size import ROOT, Size, package_of, sizes, table


def function(lines: int, *, docstring: str = "") -> str:
    return "def f():\n" + docstring + "    x = 1\n" * lines


def size_of(text: str) -> Size:
    size = Size()
    size.add(text, is_python=True)
    return size


@pytest.mark.parametrize(("lines", "long"), [(40, 0), (41, 1)])
@pytest.mark.parametrize("docstring", ["", '    """One line.\n\n    And more.\n    """\n'])
def test_a_function_of_more_than_40_lines_is_long(lines: int, long: int, docstring: str) -> None:
    size = size_of(function(lines, docstring=docstring))
    assert (size.bodies, size.long_functions) == ([lines], long)


@pytest.mark.parametrize("text", ["class A:\n    def f(self): pass\n", "async def f():\n    pass\n"])
def test_methods_and_coroutines_are_functions(text: str) -> None:
    assert size_of(text).bodies == [1]


def test_a_function_with_nothing_but_a_docstring_is_empty() -> None:
    assert size_of('def f():\n    """Nothing."""\n').bodies == [0]


def test_dense_code_has_as_many_statements() -> None:
    loose, dense = "if a:\n    b = 1\n    c = 2\n", "if a: b = 1; c = 2\n"
    assert (size_of(loose).lines, size_of(dense).lines) == (3, 1)
    assert size_of(loose).statements == size_of(dense).statements == 3


@pytest.mark.parametrize(("bodies", "p90"), [([], 0), ([7], 7), (range(1, 11), 9), (range(1, 12), 10)])
def test_nine_of_ten_functions_are_shorter(bodies: range, p90: int) -> None:
    assert Size(bodies=list(bodies)[::-1]).p90 == p90


@pytest.mark.parametrize(
    ("path", "package"),
    [("a/b/c/d.py", "a/b"), ("a/bc/d.py", "a"), ("a/d.py", "a"), ("other/x/d.py", "other/x"), ("a.py", ".")],
)
def test_the_longest_planned_folder_counts(path: str, package: str) -> None:
    assert package_of(path, {"a", "a/b"}) == package


def test_code_of_a_repository_is_counted(tmp_path: Path) -> None:
    files = {
        "src/p/one.py": function(41), "src/p/page.js": "a\nb\n", "src/p/notes.md": "no\n", "src/p/made.py": "no\n",
        "tests/test_one.py": function(2), "other/two.py": "no = 1\n", ".gitignore": "made.py\n",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    found = sizes(tmp_path, ["src/p", "tests"])
    assert found == {"src/p": Size(2, 44, 42, [41]), "tests": Size(1, 3, 3, [2])}
    words = [line.split() for line in table(found, {"src/p": 1_000, "tests": 1})]
    assert words[1:3] == [["src/p", "44", "1,000", "2", "42", "1", "41"], ["tests", "3", "1", "1", "3", "0", "2"]]
    assert words[3] == ["all", "of", "src", *words[1][1:]]


def test_the_command_prints_all_packages_and_succeeds() -> None:
    ended = subprocess.run([sys.executable, "-m", "tests.tools.size"], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line.split()[0] for line in ended.stdout.splitlines()][:2] == ["package", "benchmarks"]
