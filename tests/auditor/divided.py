"""A place that divides and shuffles rows in this process, as many machines do: what an audit finds must be the same."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, has_shape, schema_of

T = TypeVar("T")
Parts = list[pa.Table]
"""A table of an audit: its rows, spread over parts as they happen to be."""


@dataclass(frozen=True)
class Divided:
    """Runs an audit in this process, but in parts: some files of each role, a number of buckets of every division."""

    files: Mapping[str, Sequence[Rows]]
    buckets: int = 3

    def has(self, role: str) -> bool:
        return role in self.files

    def outline(self, role: str) -> Outline:
        return sum((Outline.of(rows) for rows in self.files.get(role, ())), Outline())

    def facts(self, role: str, work: Callable[[Rows], T]) -> list[T]:
        return [work(rows) for rows in self.files.get(role, ())]

    def shape(self, table: Parts) -> Shape:
        return _shape(table[0])

    def read(self, role: str, work: Callable[[Rows, int], Relation], shape: Shape) -> Parts:
        found, first = [], 0
        for rows in self.files[role]:
            found.append(_sent(work(rows, first), shape))
            first += len(rows)
        return found or [schema_of(shape).empty_table()]

    def each(self, table: Parts, work: Callable[[Relation], Relation], shape: Shape) -> Parts:
        return [_sent(work(_back(part)), shape) for part in table]

    def both(
        self, left: Parts, right: Parts, by: tuple[str, ...], work: Callable[[Relation, Relation], Relation],
        shape: Shape,
    ) -> Parts:  # fmt: skip
        pairs = zip(self._buckets(left, by), self._buckets(right, by), strict=True)
        found = [_sent(work(one, other), shape) for one, other in pairs if len(one) or len(other)]
        return found or [schema_of(shape).empty_table()]

    def divide(self, table: Parts, by: tuple[str, ...], work: Callable[[Relation], T]) -> list[T]:
        return [work(part) for part in self._buckets(table, by) if len(part)]

    def regroup(self, table: Parts, by: tuple[str, ...], work: Callable[[Relation], Relation], shape: Shape) -> Parts:
        found = [_sent(work(part), shape) for part in self._buckets(table, by) if len(part)]
        return found or [schema_of(shape).empty_table()]

    def along(self, table: Parts, order: tuple[str, ...], work: Callable[[Iterator[Relation]], T]) -> T:
        whole = pa.concat_tables(table).sort_by([(name, "ascending") for name in order])
        step = max(len(whole) // 3, 1)
        return work(_back(whole.slice(at, step)) for at in range(0, len(whole), step))

    def gather(self, table: Parts) -> Relation:
        return _back(pa.concat_tables(table))

    def _buckets(self, table: Parts, by: tuple[str, ...]) -> list[Relation]:
        whole = pa.concat_tables(table)
        keys = zip(*(map(_key, whole[name].to_pylist()) for name in by), strict=True) if by else ((),) * len(whole)
        bucket = np.array([zlib.crc32("|".join(key).encode()) % self.buckets for key in keys], np.int64)
        order = np.random.default_rng(len(whole)).permutation(len(whole))
        return [_back(whole.take(pa.array(order[bucket[order] == at]))) for at in range(self.buckets)]


def _key(value: Any) -> str:
    return repr(value + 0.0 if isinstance(value, float) else value)  # -0.0 equals 0.0


def _sent(relation: Relation, shape: Shape) -> pa.Table:
    if not has_shape(relation, shape):
        raise TypeError(f"expected columns {list(shape)}, each of its kind, got {list(relation)}")
    return pa.Table.from_batches([relation.to_batch(shape)])


def _back(table: pa.Table) -> Relation:
    return Relation.from_table(table, _shape(table))


def _shape(table: pa.Table) -> Shape:
    kinds: dict[Any, type] = {pa.int64(): int, pa.float64(): float, pa.bool_(): bool, pa.large_string(): str}
    return {field.name: kinds[field.type] for field in table.schema}
