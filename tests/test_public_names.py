"""The names users call, and that asking for them is cheap."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import shoal
from shoal.methods.registry import METHODS


def test_names_are_complete_and_resolve():
    assert sorted(shoal.__all__) == sorted(shoal._PLACES)
    for name in shoal.__all__:
        assert getattr(shoal, name) is getattr(shoal, name)
    assert set(shoal.__all__) <= set(dir(shoal))
    assert {entry.class_name for entry in METHODS.values()} <= set(shoal.__all__)


def test_methods_are_registered_by_their_names():
    assert all(name == entry.load().method for name, entry in METHODS.items())


def test_an_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = shoal.Nothing


HEAVY = ("numba", "pyarrow", "numpy", "pandas", "polars", "cryptography")


def test_importing_shoal_imports_nothing_heavy():
    script = f"import sys, shoal; print([name for name in {HEAVY} if name in sys.modules])"
    path = ":".join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": path}
    )
    assert done.stdout.strip() == "[]"


def test_every_method_has_a_page():
    root = Path(shoal.__file__).parents[2]
    assert [entry.docs for entry in METHODS.values() if not (root / entry.docs).is_file()] == []
