"""Compiled code is used only as long as every file it was compiled from is unchanged."""

from __future__ import annotations

import ast
import pickle
import shutil
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numba
import pytest
from benchmarks.z_peers import look_up

from shoal.kernels.clock import admit
from shoal.kernels.siphash import siphash128
from shoal.kernels.source_stamp import FOLDER, source_stamp
from shoal.kernels.z.crowd import count_values
from shoal.kernels.z.events import decide_value
from shoal.kernels.z.index import fold

TOOLS = {"compiling.py", "instructions.py"}
KERNELS = sorted(FOLDER.rglob("*.py"))


def changed_by(folder, file):
    """Names of the files of a package whose change changes the stamp of a file."""
    stamp, found = source_stamp(file, folder), set()
    for path in sorted({*folder.rglob("*.py"), file}):
        before = path.read_bytes()
        path.write_bytes(before + b"# changed")
        if source_stamp(file, folder) != stamp:
            found.add(path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name)
        path.write_bytes(before)
    assert source_stamp(file, folder) == stamp
    return found


@contextmanager
def changed(folder, names):
    """Files of a folder, changed for a while."""
    before = {folder / name: (folder / name).read_bytes() for name in names}
    for path, content in before.items():
        path.write_bytes(content + b"# changed")
    yield
    for path, content in before.items():
        path.write_bytes(content)


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The kernels."""
    folder = tmp_path_factory.mktemp("copied") / "kernels"
    return shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))


@cache
def imported_by(path):
    """The kernel files that a file imports, read off by the parser of Python."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            parts = name.split(".")
            for depth in range(2, len(parts) + 1):
                place = FOLDER.parents[1].joinpath(*parts[:depth])
                if place.is_relative_to(FOLDER):
                    found |= {file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()}
    return found


def closure(file):
    """All files that importing a kernel file runs."""
    found, waiting = set(), {file, *(FOLDER / name for name in TOOLS)}
    while waiting:
        found.add(path := waiting.pop())
        waiting |= imported_by(path) - found
    return {path.relative_to(FOLDER).as_posix() for path in found}


@pytest.mark.parametrize("name", [path.relative_to(FOLDER).as_posix() for path in KERNELS])
def test_every_kernel_file_is_stamped_with_all_it_imports(name, copied):
    """Every file it imports changes its stamp; all others together do not."""
    stamp, needed = source_stamp(FOLDER / name), closure(FOLDER / name)
    assert source_stamp(copied / name, copied) == stamp
    others = {path.relative_to(FOLDER).as_posix() for path in KERNELS} - needed
    with changed(copied, others):
        assert source_stamp(copied / name, copied) == stamp
    for one in needed:
        with changed(copied, {one}):
            assert source_stamp(copied / name, copied) != stamp, one


def write(folder, files):
    for name, text in {**dict.fromkeys(TOOLS, ""), "__init__.py": "", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


IMPORTS = {
    "from shoal.kernels.sets.lists import join": {"sets/__init__.py", "sets/lists.py"},
    "from shoal.kernels.sets import lists": {"sets/__init__.py", "sets/lists.py"},
    "from shoal.kernels.sets import lists as l, bits": {"sets/__init__.py", "sets/lists.py", "sets/bits.py"},
    "from shoal.kernels import flat, sets": {"flat.py", "sets/__init__.py"},
    "from shoal.kernels.flat import *": {"flat.py"},
    "from shoal.kernels.sets import (\n    lists,  # (most)\n    bits as b,\n)": {
        "sets/__init__.py",
        "sets/lists.py",
        "sets/bits.py",
    },
    "from shoal.kernels.sets import \\\n    bits": {"sets/__init__.py", "sets/bits.py"},
    "import shoal.kernels.sets.bits as b, shoal.kernels.flat": {"sets/__init__.py", "sets/bits.py", "flat.py"},
    "def late():\n    from shoal.kernels.flat import x": {"flat.py"},
    "from shoal.kernels.sets.far import x": {"sets/__init__.py", "sets/far.py", "flat.py"},
    "from shoal.kernels_of_others import flat": set(),
    "from numpy import flat": set(),
    "# from shoal.kernels import flat": set(),
}


@pytest.mark.parametrize("place", ["kernels/own.py", "kernels/sub/own.py", "benchmarks/own.py"])
@pytest.mark.parametrize(("text", "used"), IMPORTS.items(), ids=range(len(IMPORTS)))
def test_all_ways_to_import_count_inside_nested_and_outside_of_the_package(text, used, place, tmp_path):
    folder, own = tmp_path / "kernels", tmp_path / place
    files = {"flat.py": "", "sets/__init__.py": "", "sets/lists.py": "", "sets/bits.py": ""}
    write(folder, {**files, "sets/far.py": "from shoal.kernels.flat import x\n"})
    own.parent.mkdir(exist_ok=True)
    own.write_text(text)
    named = own.relative_to(folder).as_posix() if own.is_relative_to(folder) else own.name
    root = {"__init__.py"} if used else set()
    assert changed_by(folder, own) == used | root | TOOLS | {named}


@pytest.mark.compiled
def test_every_cache_carries_the_stamp_of_its_own_file():
    for made in (decide_value, count_values, admit, siphash128, fold, look_up):
        assert made._cache._cache_file._source_stamp == source_stamp(Path(made.py_func.__code__.co_filename))


@pytest.mark.compiled
def test_an_index_of_other_source_is_not_unpickled(tmp_path, monkeypatch):
    cache_file = count_values._cache._cache_file
    monkeypatch.setattr(cache_file, "_index_path", str(tmp_path / "old.nbi"))
    names_a_lost_class = b"\x80\x04cshoal.kernels.z.crowd\nLostClass\n."
    (tmp_path / "old.nbi").write_bytes(pickle.dumps(numba.__version__) + names_a_lost_class)
    assert cache_file._load_index() == {}
    (tmp_path / "old.nbi").write_bytes(pickle.dumps(cache_file._version) + names_a_lost_class)
    with pytest.raises(AttributeError):
        cache_file._load_index()
