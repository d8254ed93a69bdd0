"""The walk counts what is called, and notices a call that is added."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shoal
from tests.reference.effort import some_by_default
from tests.tools.walk import RUNS, Passed, measured_alone, passed

BELOW = "def lower(): pass\n"
ABOVE = """
def helper(): return [lower() for _ in range(3)]
def upper(): helper(); (lambda: None)(){more}
"""


def made(more: str = "") -> Callable[[], Any]:
    """Two files of shoal that do not exist: upper calls helper, which calls lower in the other file three times."""
    names: dict[str, Any] = {}
    for file, text in {"below.py": BELOW, "above.py": ABOVE.format(more=more)}.items():
        exec(compile(text, str(Path(shoal.__file__).parent / file), "exec"), names)
    return names["upper"]


def test_calls_are_counted() -> None:
    found = passed(made())
    modules = sum(name == "shoal" or name.startswith("shoal.") for name in sys.modules)
    assert found == Passed(modules=modules, files=2, functions=3, calls=5, changes_of_file=6)


@pytest.mark.parametrize(
    ("more", "functions", "calls", "changes"),
    [("; helper()", 3, 9, 12), ("; lower()", 3, 6, 8), ("; made()", 4, 6, 6), ("; str(1)", 3, 5, 6)],
)
def test_an_added_call_is_noticed(more: str, functions: int, calls: int, changes: int) -> None:
    upper = made(more)
    exec(compile("def made(): pass", str(Path(shoal.__file__).parent / "above.py"), "exec"), upper.__globals__)
    found = passed(upper)
    assert (found.functions, found.calls, found.changes_of_file) == (functions, calls, changes)


def test_the_first_call_does_not_count() -> None:
    upper, lower = made(), made().__globals__["lower"]
    calls = iter([lower, upper])
    assert passed(lambda: next(calls)()).calls == 5


@pytest.mark.parametrize("run", some_by_default(RUNS, ["z"]))
def test_a_run_passes_through_files_that_it_imported(run: str) -> None:
    found = measured_alone(run)
    assert 10 < found.files < found.modules
    assert found.files < found.functions < found.calls
