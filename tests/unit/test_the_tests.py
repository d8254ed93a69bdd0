"""Rules of the house that a reader cannot see to: what kernels may do, and that each of them is tested."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import pytest

import shoal.kernels

KERNELS = sorted(Path(shoal.kernels.__file__).parent.glob("*.py"))
TESTS = Path(__file__).resolve().parents[1]
ALLOWED = {"__future__", "typing", "numpy", "numba"}
DECORATORS = {"kernel", "inlined", "piece"}
FORBIDDEN_SETTINGS = {"fastmath", "parallel", "forceobj", "object_mode"}

COMPILING = Path(shoal.kernels.__file__).parent / "compiling.py"
TOOLS = (
    COMPILING,
    COMPILING.with_name("prefetching.py"),
    COMPILING.with_name("siphash_lanes.py"),
    COMPILING.with_name("source_stamp.py"),
)
"""What kernels are made with; not kernels themselves."""

functions = [
    pytest.param(path, node, id=f"{path.stem}.{node.name}")
    for path in KERNELS
    if path not in TOOLS
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.FunctionDef)
]


@cache
def words_in_tests():
    return set(re.findall(r"\w+", "\n".join(path.read_text() for path in TESTS.rglob("*.py"))))


def njit_settings(tree):
    """Keywords of every call of njit in a piece of code."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "njit"]
    return [{word.arg: getattr(word.value, "value", None) for word in call.keywords} for call in calls]


def check_settings(settings):
    """What has a way in from Python is cached; a piece has none, and is cached with the kernels it is part of."""
    assert settings.get("no_cpython_wrapper", False) != settings.get("cache", False)
    assert not FORBIDDEN_SETTINGS & set(settings)


@pytest.mark.parametrize(("path", "node"), functions)
def test_a_kernel_is_compiled_and_cached(path, node):
    (decorator,) = node.decorator_list
    if getattr(decorator, "id", "") in DECORATORS:
        return
    (settings,) = njit_settings(decorator)
    check_settings(settings)


def test_the_decorators_compile_and_cache():
    tree = ast.parse(COMPILING.read_text())
    assert {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} > DECORATORS
    found = njit_settings(tree)
    assert len(found) == len(DECORATORS)
    for settings in found:
        check_settings(settings)


@pytest.mark.parametrize(("path", "node"), functions)
def test_a_kernel_says_what_it_does(path, node):
    assert ast.get_docstring(node)


NAMES = {parameter.values[1].name for parameter in functions}


@pytest.mark.parametrize(("path", "node"), functions)
def test_a_kernel_neither_raises_nor_prints_nor_allocates(path, node):
    for inner in ast.walk(node):
        assert not isinstance(inner, ast.Raise | ast.Try | ast.With | ast.Global | ast.Assert)
        if isinstance(inner, ast.Call):
            called = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if isinstance(inner.func, ast.Name) and called in NAMES:
                continue  # another kernel
            assert called not in {"print", "open", "empty", "zeros", "ones", "full", "array", "append", "random"}


@pytest.mark.parametrize(("path", "node"), functions)
def test_a_kernel_is_named_in_a_test(path, node):
    assert node.name.lstrip("_") in words_in_tests() or node.name in words_in_tests()


@pytest.mark.parametrize("path", [path for path in KERNELS if path not in TOOLS], ids=lambda path: path.stem)
def test_kernels_import_arrays_and_kernels_alone(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.split(".")[0] in ALLOWED or name.startswith("shoal.kernels.")


def test_kernel_modules_can_be_imported():
    assert len(KERNELS) > 5
    for path in KERNELS:
        importlib.import_module(f"shoal.kernels.{path.stem}".removesuffix(".__init__"))


def test_no_test_sleeps():
    pattern = re.compile(r"\b(?:time\.)?sleep\(")
    here = Path(__file__).resolve()
    assert [path.name for path in TESTS.rglob("*.py") if path != here and pattern.search(path.read_text())] == []


def test_names_of_tests_do_not_hang_on_the_clock():
    """A gzip header holds the time: as a parameter it would give one test two names in two workers."""
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            for decorator in getattr(node, "decorator_list", ()):
                for call in ast.walk(decorator):
                    if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "compress":
                        assert any(word.arg == "mtime" for word in call.keywords), f"{path.name}: {node.name}"
