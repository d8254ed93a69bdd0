"""How big the packages are, against the lines planned in size.toml: python -m tests.tools.size

Lines alone reward dense code, which AST statements, functions of more than 40 lines and the 90th percentile of function
bodies do not. Prints, and never fails.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path, PurePath
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PLAN: Final = Path(__file__).with_name("size.toml")
TOPS: Final = ("src", "tests", "benchmarks")
SUFFIXES: Final = frozenset({".py", ".sql", ".html", ".j2", ".js", ".css"})
LONG: Final = 40
"""Lines of a function's body; more are counted."""


@dataclass
class Size:
    """Of one package, or of several together."""

    files: int = 0
    lines: int = 0
    statements: int = 0
    bodies: list[int] = field(default_factory=list)
    """The lines of each function's body, without its docstring."""

    def add(self, text: str, *, is_python: bool) -> None:
        """Count one file."""
        self.files += 1
        self.lines += text.count("\n")
        if is_python:
            nodes = list(ast.walk(ast.parse(text)))
            self.statements += sum(isinstance(node, ast.stmt) for node in nodes)
            self.bodies += [_body(node) for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @property
    def long_functions(self) -> int:
        return sum(lines > LONG for lines in self.bodies)

    @property
    def p90(self) -> int:
        """90% of the functions have bodies of at most so many lines."""
        return sorted(self.bodies)[ceil(0.9 * len(self.bodies)) - 1] if self.bodies else 0


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the first statement to the last."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def package_of(path: str, planned: Collection[str]) -> str:
    """The longest planned folder that a file is in, or its own folder."""
    found = [folder for folder in planned if path.startswith(f"{folder}/")]
    return max(found, key=len) if found else str(PurePath(path).parent)


def sizes(root: Path, planned: Collection[str]) -> dict[str, Size]:
    """The size of every package."""
    found: dict[str, Size] = {}
    for path in _files(root):
        text = (root / path).read_text()
        found.setdefault(package_of(path, planned), Size()).add(text, is_python=path.endswith(".py"))
    return found


def _files(root: Path) -> Iterator[str]:
    """Files of the repository that are code, those included that are not committed yet."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *TOPS]
    names = subprocess.run(listed, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    return (name for name in names if PurePath(name).suffix in SUFFIXES and (root / name).is_file())


def table(found: Mapping[str, Size], plan: Mapping[str, int]) -> Iterator[str]:
    """A line for each package, and one for each folder at the top."""
    yield f"{'package':36}{'lines':>9}{'planned':>9}{'files':>7}{'statements':>12}{f'over {LONG} lines':>15}{'p90':>5}"
    for package in sorted({*found, *plan}):
        yield _line(package, found.get(package, Size()), plan.get(package, 0))
    for top in TOPS:
        within = [size for package, size in found.items() if PurePath(package).parts[0] == top]
        planned = sum(lines for package, lines in plan.items() if PurePath(package).parts[0] == top)
        yield _line(f"all of {top}", _together(within), planned)


def _together(several: list[Size]) -> Size:
    return Size(
        sum(size.files for size in several),
        sum(size.lines for size in several),
        sum(size.statements for size in several),
        [lines for size in several for lines in size.bodies],
    )


def _line(name: str, size: Size, planned: int) -> str:
    counts = f"{size.files:7,}{size.statements:12,}{size.long_functions:15,}{size.p90:5}"
    return f"{name:36}{size.lines:9,}{planned:9,}{counts}"


def main() -> None:
    plan = tomllib.loads(PLAN.read_text())["lines"]
    sys.stdout.writelines(f"{line}\n" for line in table(sizes(ROOT, plan), plan))


if __name__ == "__main__":
    main()
