"""Where an audit runs: here, all at once, or on many machines (`shoal.auditor.spark`), part by part.

An audit is written once, against `Place`. It reads files into relations, brings rows together that have something in
common, divides them by a key, and hands every part to a function. Here a key has one part, which is everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from shoal.auditor.reading.outline import Outline
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, has_shape, shape_of

T = TypeVar("T")
Table = Any
"""A relation that may be spread over machines; only a place looks inside."""


class Place(Protocol):
    """Runs the steps of an audit. Functions that it is given must not depend on how rows are divided."""

    def has(self, role: str) -> bool:
        """Whether there is a release, a truth, a trace."""

    def outline(self, role: str) -> Outline:
        """What the files of a role show before any row is looked at; empty if there are none."""

    def facts(self, role: str, work: Callable[[Rows], T]) -> list[T]:
        """What a function says of every file of a role, in their order."""

    def shape(self, table: Table) -> Shape:
        """The columns of a table."""

    def read(self, role: str, work: Callable[[Rows, int], Relation], shape: Shape) -> Table:
        """Read the files of a role; the function gets the rows of a file and the number of the first one."""

    def each(self, table: Table, work: Callable[[Relation], Relation], shape: Shape) -> Table:
        """Change rows, each by itself."""

    def both(
        self,
        left: Table,
        right: Table,
        by: tuple[str, ...],
        work: Callable[[Relation, Relation], Relation],
        shape: Shape,
    ) -> Table:
        """Bring together the rows of two tables that are equal in some columns."""

    def divide(self, table: Table, by: tuple[str, ...], work: Callable[[Relation], T]) -> list[T]:
        """What a function says of every part; rows that are equal in some columns are in one part."""

    def regroup(self, table: Table, by: tuple[str, ...], work: Callable[[Relation], Relation], shape: Shape) -> Table:
        """Change rows part by part; rows that are equal in some columns are in one part."""

    def along(self, table: Table, order: tuple[str, ...], work: Callable[[Iterator[Relation]], T]) -> T:
        """What a function says of all rows in the order of some columns, batch by batch; for small columns only."""

    def gather(self, table: Table) -> Relation:
        """All rows in one place; for few rows only."""


@dataclass(frozen=True, slots=True)
class Here:
    """Runs an audit in this process."""

    rows: Mapping[str, Rows]
    """What was read, by role."""

    def has(self, role: str) -> bool:
        """Whether there is a release, a truth, a trace."""
        return role in self.rows

    def outline(self, role: str) -> Outline:
        """What a role shows before any row is looked at."""
        return Outline.of(self.rows[role]) if role in self.rows else Outline()

    def facts(self, role: str, work: Callable[[Rows], T]) -> list[T]:
        """What a function says of all files of a role."""
        return [work(self.rows[role])] if role in self.rows else []

    def shape(self, table: Relation) -> Shape:
        """The columns of a table."""
        return shape_of(table)

    def read(self, role: str, work: Callable[[Rows, int], Relation], shape: Shape) -> Relation:
        """Read all files of a role."""
        return _shaped(work(self.rows[role], 0), shape)

    def each(self, table: Relation, work: Callable[[Relation], Relation], shape: Shape) -> Relation:
        """Change rows, each by itself."""
        return _shaped(work(table), shape)

    def both(
        self,
        left: Relation,
        right: Relation,
        by: tuple[str, ...],
        work: Callable[[Relation, Relation], Relation],
        shape: Shape,
    ) -> Relation:
        """Bring together two tables."""
        return _shaped(work(left, right), shape)

    def divide(self, table: Relation, by: tuple[str, ...], work: Callable[[Relation], T]) -> list[T]:
        """What a function says of all rows."""
        return [work(table)]

    def regroup(
        self, table: Relation, by: tuple[str, ...], work: Callable[[Relation], Relation], shape: Shape
    ) -> Relation:
        """Change all rows."""
        return _shaped(work(table), shape)

    def along(self, table: Relation, order: tuple[str, ...], work: Callable[[Iterator[Relation]], T]) -> T:
        """What a function says of all rows in order."""
        return work(iter([table.ordered(*order)]))

    def gather(self, table: Relation) -> Relation:
        """All rows."""
        return table


def _shaped(relation: Relation, shape: Shape) -> Relation:
    """Refuse what a place on many machines could not send."""
    if not has_shape(relation, shape):
        raise TypeError(f"expected columns {list(shape)}, each of its kind, got {list(relation)}")
    return relation
