"""Run an audit in this process on rows that are read batch by batch; rows that do not fit in memory go to files."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from shoal.auditor.engine import Here
from shoal.auditor.reading.memory import current
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts, has_shape

T = TypeVar("T")
_WORK: Final = 10
"""Bytes of memory that counting takes for each byte of the rows being counted."""
_PARTS: Final = 64
_ROWS: Final = 1 << 18
"""Rows that are read from a file at a time."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_STORED: Final[dict[type, Any]] = {str: np.int32, int: np.int64, float: np.float64, bool: np.bool_}


class Stored:
    """Rows in memory or, once they take more than is allowed, in a file. The texts of codes stay in memory."""

    def __init__(self, shape: Shape, allowed: int, path: Path) -> None:
        self.shape, self._allowed, self._path = shape, allowed, path
        self._row = np.dtype([(str(at), _STORED[kind]) for at, kind in enumerate(shape.values())])
        self.texts: dict[str, list[str]] = {}
        self._pieces: dict[str, list[Any]] = {name: [] for name in shape}
        self._bytes = 0
        self.is_on_disk = False

    def add(self, rows: Relation) -> None:
        """Add some rows."""
        if not has_shape(rows, self.shape):
            raise TypeError(f"expected columns {list(self.shape)}, each of its kind, got {list(rows)}")
        for name, pieces in self._pieces.items():
            pieces.append(self._codes(name, rows[name]) if self.shape[name] is str else rows[name])
        self._bytes += len(rows) * self._row.itemsize
        if self._bytes > (self._allowed // 8 if self.is_on_disk else self._allowed):
            self._write()

    def whole(self) -> Relation:
        """All rows."""
        if self.is_on_disk:
            self._write()
            return self._relation(np.fromfile(self._path, self._row))
        for name, pieces in self._pieces.items():
            kind = _STORED[self.shape[name]]
            pieces[:] = [np.concatenate([np.zeros(0, kind), *pieces]) if len(pieces) != 1 else pieces[0]]
        return Relation({name: self._column(name, one) for name, (one,) in self._pieces.items()})

    def batches(self) -> Iterator[Relation]:
        """All rows, some at a time if they are in a file."""
        if not self.is_on_disk:
            yield self.whole()
            return
        self._write()
        with self._path.open("rb") as file:
            while len(rows := np.fromfile(file, self._row, _ROWS)):
                yield self._relation(rows)

    def drop(self) -> None:
        """Forget all rows."""
        self._pieces = {name: [] for name in self.shape}
        self._path.unlink(missing_ok=True)

    def _codes(self, name: str, column: Texts) -> Any:
        """The codes of a column in the texts of all rows."""
        texts = self.texts.setdefault(name, column.texts)  # type: ignore[arg-type]
        if texts is column.texts:
            return column.codes.astype(np.int32, copy=False)
        numbers = {text: number for number, text in enumerate(texts)}
        known = [*(numbers.setdefault(text, len(numbers)) for text in column.texts), -1]
        self.texts[name] = list(numbers)
        return np.array(known, np.int32)[column.codes]

    def _write(self) -> None:
        rows = np.empty(sum(map(len, next(iter(self._pieces.values()), []))), self._row)
        for at, pieces in enumerate(self._pieces.values()):
            if pieces:
                rows[str(at)] = np.concatenate(pieces)
            pieces.clear()
        with self._path.open("ab") as file:
            rows.tofile(file)
        self._bytes, self.is_on_disk = 0, True

    def _relation(self, rows: Any) -> Relation:
        return Relation({
            name: self._column(name, np.ascontiguousarray(rows[str(at)])) for at, name in enumerate(self.shape)
        })  # fmt: skip

    def _column(self, name: str, column: Any) -> Any:
        return Texts(column, self.texts.get(name, [])) if self.shape[name] is str else column


class InBatches:
    """Runs an audit in this process. In memory a key has one part, which is everything; on disk it has 64."""

    def __init__(self, sources: Mapping[str, Callable[[], Iterable[Rows]]]) -> None:
        self._sources = sources
        self._allowed = current().left // _WORK
        self._numbers = count()
        self._folder: Path | None = None

    def __enter__(self) -> InBatches:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def has(self, role: str) -> bool:
        """Whether there is a table, a population."""
        return role in self._sources

    def facts(self, role: str, work: Callable[[Rows], T]) -> list[T]:
        """What a function says of every batch of a role."""
        return [work(rows) for rows in self._sources[role]()] if role in self._sources else []

    def read(self, role: str, work: Callable[[Rows, int], Relation], shape: Shape) -> Stored:
        """Read all rows of a role."""
        found, first = self._stored(shape), 0
        for rows in self._sources[role]():
            found.add(work(rows, first))
            first += len(rows)
        return found

    def each(self, table: Stored, work: Callable[[Relation], Relation], shape: Shape) -> Stored:
        """Change rows, each by itself."""
        return self._all(map(work, table.batches()), shape)

    def both(
        self, left: Stored, right: Stored, by: tuple[str, ...], work: Callable[[Relation, Relation], Relation],
        shape: Shape,
    ) -> Stored:  # fmt: skip
        """Bring together the rows of two tables that are equal in some columns."""
        divided = left.is_on_disk or right.is_on_disk
        return self._all(map(work, self._parts(left, by, divided), self._parts(right, by, divided)), shape)

    def divide(self, table: Stored, by: tuple[str, ...], work: Callable[[Relation], T]) -> list[T]:
        """What a function says of every part."""
        return [work(part) for part in self._parts(table, by, table.is_on_disk)]

    def regroup(
        self, table: Stored, by: tuple[str, ...], work: Callable[[Relation], Relation], shape: Shape
    ) -> Stored:
        """Change rows part by part."""
        return self._all(map(work, self._parts(table, by, table.is_on_disk)), shape)

    def along(self, table: Stored, order: tuple[str, ...], work: Callable[[Iterator[Relation]], T]) -> T:
        """What a function says of all rows in order."""
        return Here({}).along(table.whole(), order, work)

    def gather(self, table: Stored) -> Relation:
        """All rows in one place."""
        return table.whole()

    def _all(self, parts: Iterable[Relation], shape: Shape) -> Stored:
        found = self._stored(shape)
        for part in parts:
            found.add(part)
        return found

    def _stored(self, shape: Shape, *, in_memory: bool = True) -> Stored:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="shoal-audit-"))  # only this user can read it
        return Stored(shape, self._allowed if in_memory else 0, self._folder / f"{next(self._numbers)}.rows")

    def _parts(self, table: Stored, by: tuple[str, ...], divided: bool) -> Iterator[Relation]:
        """The rows, as one part or as 64 parts; rows that are equal in some columns are in one part."""
        if not divided:
            yield table.whole()
            return
        parts = [self._stored(table.shape, in_memory=False) for _ in range(_PARTS)]
        hashes = {name: np.array([*map(_hash, table.texts[name]), 0], np.uint64) for name in by if name in table.texts}
        for rows in table.batches():
            mixed = np.zeros(len(rows), np.uint64)
            for name in by:
                own = rows.codes(name)
                mixed = (mixed ^ (hashes[name][own] if name in hashes else own.astype(np.uint64))) * _MIX
            place = (mixed >> np.uint64(58)).astype(np.uint8)
            ends = np.cumsum(np.bincount(place, minlength=_PARTS))
            for part, some in zip(parts, np.split(np.argsort(place, kind="stable"), ends[:-1]), strict=True):
                part.add(rows.take(some))
        for part in parts:
            yield part.whole()
            part.drop()


def _hash(text: str) -> int:
    return zlib.crc32(text.encode())
