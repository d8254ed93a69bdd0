"""A data set made ready for a study: its rows, what its columns are, and a policy for the auditor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.reproduce.data.trees import Domain, Nested
from shoal.schema import Categorical, Numeric, Schema

PERSON: Final = "person"


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows in arrival order, and what a tuple method has to know of their columns."""

    name: str
    origin: str
    """Where the rows come from, in words."""
    table: pa.Table
    domains: Mapping[str, Domain]
    trees: Mapping[str, Nested]
    sensitive: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def quasi(self) -> tuple[str, ...]:
        """Names of the quasi-identifiers: ranges first, then labels."""
        return (*self.domains, *self.trees)

    @property
    def schema(self) -> Schema:
        """The columns as a tuple method wants them."""
        numbers = [Numeric(name, low=low, high=high) for name, (low, high) in self.domains.items()]
        labels = [Categorical(name, Hierarchy.from_nested(tree)) for name, tree in self.trees.items()]
        return Schema(person=PERSON, quasi=[*numbers, *labels], sensitive=self.sensitive)

    def policy(self, method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What a run promised, as the auditor reads it."""
        numbers = {
            name: {"kind": "numeric", "low": low, "high": high} for name, (low, high) in self.domains.items()
        }  # fmt: skip
        labels = {
            name: {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": tree}}
            for name, tree in self.trees.items()
        }
        promised = {"method": method, **settings, "sensitive": list(self.sensitive), "quasi": numbers | labels}
        return {"stream": {"person": PERSON}, "anonymize": promised}

    def head(self, rows: int) -> Self:
        """The first rows."""
        return replace(self, table=self.table.slice(0, rows))

    def with_table(self, table: pa.Table) -> Self:
        """Other rows with the same columns."""
        return replace(self, table=table)

    def narrowed(self, quasi: Sequence[str], sensitive: Sequence[str]) -> Self:
        """Some of the columns, some of them sensitive."""
        return replace(
            self,
            table=self.table.select([PERSON, *quasi, *sensitive]),
            domains={name: self.domains[name] for name in quasi if name in self.domains},
            trees={name: self.trees[name] for name in quasi if name in self.trees},
            sensitive=tuple(sensitive),
        )


def numbered(columns: Mapping[str, Any], rows: int) -> pa.Table:
    """A table whose every row is another person."""
    return pa.table({PERSON: pa.array(range(rows), pa.int64()), **columns})
