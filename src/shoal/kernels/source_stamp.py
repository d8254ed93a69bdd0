"""A digest of the source a kernel is compiled from: its own file and every kernel file it imports, directly or not.

Numba's cache looks only at the function's own file. A kernel with an old version of another one compiled into it would
go on running, and two versions would work on one table: people would be counted twice.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

PACKAGE: Final = "shoal.kernels"
FOLDER: Final = Path(__file__).parent

_COMMENT: Final = re.compile(r"#[^\n]*|\\\n")
_IMPORT: Final = re.compile(
    rf"^[ \t]*(?:from[ \t]+({re.escape(PACKAGE)}[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))",
    re.MULTILINE,
)
_NAME: Final = re.compile(r"([\w.]+)(?:\s+as\s+\w+)?")


def source_stamp(file: Path, folder: Path = FOLDER) -> str:
    """Digest `file`, which may be anywhere, and all files of the kernel package in `folder` that it imports.

    `compiling.py` and `instructions.py` count for every kernel: they define how all of them are compiled.
    """
    needed: set[Path] = set()
    waiting = {file, folder / "compiling.py", folder / "instructions.py"}
    while waiting:
        needed.add(path := waiting.pop())
        waiting |= _imported(path.read_text(encoding="utf-8"), folder) - needed
    digest = hashlib.sha256()
    for name, path in sorted((_name_of(path, folder), path) for path in needed):
        content = path.read_bytes()
        digest.update(f"{name}\x00{len(content)}\x00".encode() + content)
    return digest.hexdigest()


def _name_of(path: Path, folder: Path) -> str:
    """A name that is the same on every machine: the path in the package, or the bare name of a file outside it."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


@cache
def _imported(text: str, folder: Path) -> frozenset[Path]:
    """Files of the package that a source imports; a match inside a string only adds a file that is not needed."""
    names = []
    for package, inside, modules in _IMPORT.findall(_COMMENT.sub("", text)):
        names += [package, *(f"{package}.{name}" for name in _NAME.findall(inside))] if package else []
        names += _NAME.findall(modules)
    ours = [name.split(".")[2:] for name in names if f"{name}.".startswith(f"{PACKAGE}.")]
    return frozenset(path for parts in ours for path in _files_of(parts, folder))


def _files_of(parts: list[str], folder: Path) -> Iterator[Path]:
    """All files that importing the dotted name runs; its last part may be a name inside a module."""
    for depth in range(len(parts) + 1):
        place = folder.joinpath(*parts[:depth])
        candidates = (place / "__init__.py", place.with_suffix(".py")) if depth else (place / "__init__.py",)
        yield from (path for path in candidates if path.is_file())
