"""A copy of the source in which defects are planted, so that the tree that is worked on never changes."""

from __future__ import annotations

import compileall
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Overlay:
    """The source of another folder, linked instead of copied where the file system allows it."""

    def __init__(self, source: Path, folder: Path) -> None:
        self._source = source
        self.folder = folder
        self.package = folder / source.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, self.package, copy_function=_link)
        compileall.compile_dir(self.package, quiet=2)  # most is compiled already

    @contextmanager
    def with_text(self, file: str, text: str) -> Iterator[None]:
        """Another text in one file; a new file, for a link would change the source as well."""
        path = self.package / file
        path.unlink()
        path.write_text(text)
        self._forget_compiled(path)
        try:
            yield
        finally:
            path.unlink()
            _link(self._source / file, path)
            self._forget_compiled(path)

    def _forget_compiled(self, path: Path) -> None:
        """Python tells changed files by their second and size, which two defects may share."""
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def _link(source: str | Path, target: str | Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
