"""Run an audit here on rows that are read batch by batch; rows that do not fit in memory are in files, by column."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from shoal.auditor.engine import Here
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts

T = TypeVar("T")
WORK: Final = 10
"""Bytes of memory that counting takes for each byte of the rows being counted."""
_PARTS: Final = 64
_ROWS: Final = 1 << 18
"""Rows of a file that are looked at at a time."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, kw_only=True)
class InBatches(Here):
    """Runs an audit in this process: a key has one part, or 64 if the rows take more than the memory allowed.

    All texts of a column share one list, which is in memory.
    """

    batches: Mapping[str, Callable[[], Iterator[Rows]]]
    """What reads the rows of a role."""
    folder: Path
    """An empty folder that nobody else can read."""
    allowed: int
    """Bytes."""
    rows: Mapping[str, Rows] = field(default_factory=dict)

    def has(self, role: str) -> bool:
        """Whether there is a table, a population."""
        return role in self.batches

    def read(self, role: str, work: Callable[[Rows, int], Relation], shape: Shape) -> Relation:
        """Read all rows of a role."""
        paths = {name: self.folder / f"{role}-{at}" for at, name in enumerate(shape)}
        empty = work(Rows((), role), 0)
        read, size = [empty], 0
        for rows in self.batches[role]():
            read.append(work(rows, 0))
            size += _size(read[-1])
            if size > self.allowed:
                self._write(read, paths)
                read, size = [empty], 0
        if not next(iter(paths.values())).exists():
            return _together(read)
        self._write(read, paths)
        return Relation({
            name: _like(empty[name], np.asarray(np.memmap(path, empty.codes(name).dtype, "r")))
            for name, path in paths.items()
        })  # fmt: skip

    def each(self, table: Relation, work: Callable[[Relation], Relation], shape: Shape) -> Relation:
        """Change rows, some at a time."""
        if self._count(table) == 1:
            return work(table)
        starts = range(0, len(table), _ROWS)
        return _together([work(table.take(np.arange(at, min(at + _ROWS, len(table))))) for at in starts])

    def both(
        self, left: Relation, right: Relation, by: tuple[str, ...], work: Callable[[Relation, Relation], Relation],
        shape: Shape,
    ) -> Relation:  # fmt: skip
        """Bring together the rows of two tables that are equal in some columns."""
        count = max(self._count(left), self._count(right))
        return _together([*map(work, _parts(left, by, count), _parts(right, by, count))])

    def divide(self, table: Relation, by: tuple[str, ...], work: Callable[[Relation], T]) -> list[T]:
        """What a function says of every part."""
        return [work(part) for part in _parts(table, by, self._count(table))]

    def regroup(
        self, table: Relation, by: tuple[str, ...], work: Callable[[Relation], Relation], shape: Shape
    ) -> Relation:
        """Change rows part by part."""
        return _together([work(part) for part in _parts(table, by, self._count(table))])

    def _count(self, table: Relation) -> int:
        return 1 if _size(table) <= self.allowed else _PARTS

    def _write(self, read: Sequence[Relation], paths: Mapping[str, Path]) -> None:
        for name, path in paths.items():
            with path.open("ab") as file:
                for rows in read:
                    rows.codes(name).tofile(file)


def _size(rows: Relation) -> int:
    return sum(rows.codes(name).nbytes for name in rows)


def _together(parts: Sequence[Relation]) -> Relation:
    """All rows of some relations, which share their texts."""
    first = parts[0]
    return Relation({name: _like(first[name], np.concatenate([part.codes(name) for part in parts])) for name in first})


def _like(column: Any, codes: Any) -> Any:
    return Texts(codes, column.texts) if isinstance(column, Texts) else codes


def _parts(table: Relation, by: tuple[str, ...], count: int) -> Iterator[Relation]:
    """The rows in parts; rows that are equal in some columns are in one part."""
    if count == 1:
        yield table
        return
    part = np.zeros(len(table), np.uint8)
    keys = {name: table[name] for name in by}
    hashes = {name: _hashes(key.texts) for name, key in keys.items() if isinstance(key, Texts)}
    for start in range(0, len(table), _ROWS):
        mixed = np.zeros(len(part[start : start + _ROWS]), np.uint64)
        for name in by:
            codes = table.codes(name)[start : start + _ROWS]
            mixed = (mixed ^ (hashes[name][codes] if name in hashes else codes.astype(np.uint64))) * _MIX
        part[start : start + _ROWS] = (mixed >> np.uint64(32)) % np.uint64(count)
    for number in range(count):
        yield table.take(np.flatnonzero(part == number))


def _hashes(texts: Sequence[str]) -> Any:
    return np.array([*(zlib.crc32(text.encode()) for text in texts), 0], np.uint64)  # code -1, missing, picks the last
