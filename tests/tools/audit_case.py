"""One captured audit: what the auditor was given and what it answered, in a folder of its own.

    inputs.pickle    the arguments by name; a path among them is the place of its copy in files/
    files/           copies of the files that the arguments name, in the folders they had
    case.json        the test, the entry that was called, the answer, and a digest of all

An answer is the report as JSON, or the type of the error. Inputs are plain values: frames, tables, paths, policies as
they are written. Of an object of shoal, such as a release, the parts that an auditor reads are kept.
"""

from __future__ import annotations

import glob
import hashlib
import importlib
import json
import os
import pickle
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

Answer = dict[str, Any]
_LIST = "cases.txt"
"""Next to the cases: their names, one a line, so that a lost case is noticed."""
LEFT_OUT = "left-out.txt"
"""Next to the cases: why a call was not kept, and the test that made it."""
ENTRIES = ("audit", "audit_table", "attack", "report_windows")
"""The public functions of `shoal.auditor`."""
_LISTENERS = ("progress",)
"""Arguments that an answer does not depend on."""
_PLACES = ("release", "truth", "trace", "table", "population", "other", "control", "policy")
"""Arguments that may be paths, or lists of paths."""
_PARTS = ("rows", "trace", "records", "blocks")
"""What an auditor reads of an object that is neither a table nor a path."""
_OWN = ("shoal", "test", "__main__")
"""Modules whose objects are not stored as they are: they may be gone when a case is replayed."""
_WITH_FILES = ("anonymize", "table")
"""The sections of a policy that may name files for the auditor."""


class Unstorable(Exception):
    """An argument cannot be stored; the text says why."""


@dataclass(frozen=True)
class _Copied:
    """A path among the arguments: the place of its copy in the folder of the case."""

    place: str
    is_text: bool


# ---- the list of cases


def listed(folder: Path) -> list[str]:
    """The names of all cases in a folder, in the order in which they were captured."""
    place = folder / _LIST
    return list(dict.fromkeys(place.read_text(encoding="utf-8").splitlines())) if place.exists() else []


def list_only(folder: Path, names: Iterable[str]) -> None:
    """Replace the list of cases."""
    (folder / _LIST).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")


# ---- write


def write_inputs(case: Path, arguments: Mapping[str, Any]) -> str:
    """Store the arguments of a call; return a digest of them."""
    files = _Files()
    plain = {name: _plain(name, value, files) for name, value in arguments.items() if name not in _LISTENERS}
    case.mkdir(parents=True)
    files.copy_to(case / "files")
    with (case / "inputs.pickle").open("wb") as file:
        _Writer(file, files).dump(plain)
    written = sorted(path for path in case.rglob("*") if path.is_file())
    names = [[path.relative_to(case).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()] for path in written]
    return _digest(names)


def write_answer(case: Path, test: str, entry: str, inputs: str, answered: Answer) -> None:
    """Store what the auditor answered; with it the case is complete."""
    content = {"test": test, "entry": entry, "digest": _digest([entry, inputs, answered]), "answer": answered}
    (case / "case.json").write_text(json.dumps(content, indent=1) + "\n")
    with (case.parent / _LIST).open("a", encoding="utf-8") as file:
        file.write(f"{case.name}\n")


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _plain(name: str, value: Any, files: _Files) -> Any:
    """An argument with a place for every path; of a method, its policy."""
    if name == "policy":
        value = getattr(value, "policy", value)
    if name not in _PLACES:
        return value
    if type(value) in (list, tuple):
        return type(value)(files.add(one) if isinstance(one, str | Path) else one for one in value)
    return files.add(value) if isinstance(value, str | Path) else _with_files(value, files)


def _with_files(content: Any, files: _Files) -> Any:
    """The content of a policy with a place for every file that it names."""
    if type(content) is dict:
        return {name: _with_files(inner, files) for name, inner in content.items()}
    if type(content) is list:
        return [_with_files(inner, files) for inner in content]
    return files.add(content) if isinstance(content, Path) or _is_file(content) else content


def _is_file(value: Any) -> bool:
    return isinstance(value, str) and os.path.isfile(value)


class _Files:
    """The files that arguments name, and what is next to them or named by a policy."""

    def __init__(self) -> None:
        self._named: dict[Path, None] = {}

    def add(self, given: str | Path) -> Any:
        """Take the files of a path or pattern along; any other text is returned as it is."""
        found = [Path(given)] if os.path.exists(given) else [Path(one) for one in glob.glob(str(given))]
        if not found:
            return given
        for path in found:
            next_to_it = map(Path, glob.glob(f"{glob.escape(str(path).rstrip('/'))}.*"))
            for one in (path, *next_to_it, *(_named_by_policy(path) if path.suffix == ".toml" else ())):
                self._named[Path(os.path.abspath(one))] = None
        return _Copied(os.path.abspath(given), isinstance(given, str))

    @property
    def root(self) -> Path:
        """The lowest folder that has all of them."""
        return Path(os.path.commonpath([path.parent for path in self._named]))

    def copy_to(self, folder: Path) -> None:
        """Copy them, in the folders they have."""
        for path in self._named:
            place = folder / path.relative_to(self.root)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                shutil.copytree(path, place, dirs_exist_ok=True)
            elif path.is_file():
                shutil.copyfile(path, place)
            else:
                raise Unstorable("a pipe or device")
            if path.suffix == ".toml" and path.is_file():
                _make_relative(place, path)


def _named_by_policy(path: Path) -> Iterator[Path]:
    """The files that the sections of a policy file name which an auditor reads files of."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for word in _words(content.get(section) for section in _WITH_FILES):
        if _is_file(str(path.parent / word)):
            yield path.parent / word


def _words(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif not isinstance(content, int | float):
        for inner in content.values() if isinstance(content, dict) else content or ():
            yield from _words(inner)


def _make_relative(copy: Path, policy: Path) -> None:
    """Name files by their places relative to the policy, so that its copy names the copies."""
    text = policy.read_text(encoding="utf-8", errors="surrogateescape")
    for named in _named_by_policy(policy):
        text = text.replace(f'"{named}"', f'"{os.path.relpath(named, policy.parent)}"')
    copy.write_text(text, encoding="utf-8", errors="surrogateescape")


class _Writer(pickle.Pickler):
    """Stores values of other libraries as they are, and of objects of shoal what an auditor reads."""

    def __init__(self, file: Any, files: _Files) -> None:
        super().__init__(file, protocol=5)
        self._root = files.root if files._named else Path()

    def persistent_id(self, value: Any) -> Any:
        if type(value) is _Copied:
            return os.path.relpath(value.place, self._root), value.is_text
        return None

    def reducer_override(self, value: Any) -> Any:
        kind = value if isinstance(value, type) or callable(value) else type(value)
        if not str(getattr(kind, "__module__", "")).startswith(_OWN):
            return NotImplemented
        parts = {name: getattr(value, name) for name in _PARTS if hasattr(value, name)}
        if not parts or kind is value:
            raise Unstorable(f"a live object: {getattr(kind, '__qualname__', kind)}")
        return SimpleNamespace(**parts).__reduce__()


# ---- replay


def replayed(case: Path) -> Answer:
    """Call the auditor again with what it was given; return what it answers now."""
    auditor = importlib.import_module("shoal.auditor")
    try:
        entry = str(read_case(case)["entry"])
        with (case / "inputs.pickle").open("rb") as file:
            arguments = _Reader(file, case / "files").load()
        return answer(getattr(auditor, entry)(**arguments))
    except Exception as error:
        return failure(error)


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any, folder: Path) -> None:
        super().__init__(file)
        self._folder = folder

    def persistent_load(self, found: tuple[str, bool]) -> str | Path:
        place = self._folder / found[0]
        return str(place) if found[1] else place


def read_case(case: Path) -> dict[str, Any]:
    """The content of case.json."""
    found: dict[str, Any] = json.loads((case / "case.json").read_text())
    return found


def answer(report: Any) -> Answer:
    """A report as plain values."""
    return {"report": json.loads(json.dumps(report.to_dict(), default=_number))}


def failure(error: Exception) -> Answer:
    """An error as plain values; its message is a sentence."""
    return {"error": type(error).__name__}


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)
