"""Apply the walk-through of docs/contributing.md to a copy of the source tree."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from tests.docs.pages import ROOT, blocks

PAGE = "docs/contributing.md"
_FILE = re.compile(r"# ((?:src|tests)/\S+)\n")


def _link(source: str, target: str) -> None:
    """Copy a file as a hard link; edits below replace the link and never change the original."""
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copy2(source, target)


def copy_tree(folder: Path) -> Path:
    """A copy of the package, its tests and its pages, compiled kernels included."""
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, copy_function=_link)
    shutil.copy2(ROOT / "pyproject.toml", folder)
    return folder


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


def new_files() -> dict[str, str]:
    """The files that the page adds; several blocks of one file follow each other."""
    files: dict[str, str] = {}
    for block in blocks("python"):
        found = _FILE.match(block.text)
        if block.page == PAGE and found:
            files[found[1]] = files.get(found[1], "") + block.text[found.end() :]
    return files


def edits() -> list[tuple[str, str, str]]:
    """The edits that the page makes: file, old lines, new lines."""
    found = []
    for block in blocks("diff"):
        head, *lines = block.text.splitlines()
        old = [line[1:] for line in lines if line[0] in " -"]
        new = [line[1:] for line in lines if line[0] in " +"]
        found.append((head.removeprefix("--- "), "\n".join(old), "\n".join(new)))
    return found


def apply(folder: Path) -> None:
    """Make the new files and the edits."""
    for name, text in new_files().items():
        _write(folder / name, text)
    for name, old, new in edits():
        text = (folder / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{PAGE}: the lines to edit are not in {name}"
        _write(folder / name, text.replace(old, new))
