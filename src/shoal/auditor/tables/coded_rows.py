"""The rows of a table as numbers, in memory or, where that would be too much, in files by class."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.memory import current

Matrix = npt.NDArray[np.int32]
"""A row of numbers for every row of the table; the quasi-identifiers come first."""
_WORK: Final = 10
"""Bytes of memory that counting takes for each byte of the rows being counted."""
_PARTS: Final = 64
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


class CodedRows:
    """Collects rows. Rows that are equal in their first `quasi` columns are always in the same part."""

    def __init__(self, quasi: int, *, memory: int | None = None) -> None:
        self._quasi = quasi
        self._allowed = (current().left if memory is None else memory) // _WORK
        self._in_memory: list[Matrix] = []
        self._bytes = 0
        self._folder: Path | None = None
        self._files: list[Any] = []

    def __enter__(self) -> CodedRows:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def is_on_disk(self) -> bool:
        """Whether rows were too many for the memory."""
        return self._folder is not None

    def add(self, rows: Matrix) -> None:
        """Add some rows."""
        self._in_memory.append(rows)
        self._bytes += rows.nbytes
        if self._bytes > (self._allowed if self._folder is None else self._allowed // 8):
            self._spill()

    def parts(self, *, divided: bool | None = None) -> Iterator[Matrix]:
        """Yield the rows, as one part or, if they are on disk (or `divided`), as 64 parts in a fixed order."""
        if self._folder is not None:
            self._spill()
            for at, file in enumerate(self._files):
                file.flush()
                yield np.fromfile(self._path(at), np.int32).reshape(-1, self._width)
            return
        rows = np.concatenate(self._in_memory) if self._in_memory else np.zeros((0, self._quasi), np.int32)
        if not divided:
            yield rows
            return
        places = self._places(rows)
        for at in range(_PARTS):
            yield rows[places == at]

    def _spill(self) -> None:
        """Write the rows in memory to the files of their parts."""
        if not self._in_memory:
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="shoal-audit-"))  # only this user can read it
            self._width = self._in_memory[0].shape[1]
            self._files = [self._path(at).open("wb") for at in range(_PARTS)]
        rows = np.concatenate(self._in_memory)
        self._in_memory, self._bytes = [], 0
        places = self._places(rows)
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=_PARTS))
        for file, piece in zip(self._files, np.split(rows[order], ends[:-1]), strict=True):
            piece.tofile(file)

    def _path(self, part: int) -> Path:
        return cast(Path, self._folder) / f"{part}.rows"

    def _places(self, rows: Matrix) -> npt.NDArray[np.uint8]:
        """Return the part of every row, by its quasi-identifiers."""
        mixed = np.zeros(len(rows), np.uint64)
        for column in range(self._quasi):
            mixed = (mixed ^ rows[:, column].astype(np.uint64)) * _MIX
        return (mixed >> np.uint64(58)).astype(np.uint8)
