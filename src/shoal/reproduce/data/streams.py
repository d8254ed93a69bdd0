"""Data sets as streams of rows: finding and reading published files, columns, missing values, audit policy."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.hierarchies import Hierarchy
from shoal.reproduce.data.trees import Domain, Nested
from shoal.schema import Categorical, Numeric, Schema

PERSON: Final = "person"


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows in arrival order, and the description of their columns for tuple methods."""

    name: str
    origin: str
    """Description of where the rows come from."""
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
        """The columns as a schema for tuple methods."""
        numbers = [Numeric(name, low=low, high=high) for name, (low, high) in self.domains.items()]
        labels = [Categorical(name, Hierarchy.from_nested(tree)) for name, tree in self.trees.items()]
        return Schema(person=PERSON, quasi=[*numbers, *labels], sensitive=self.sensitive)

    def policy(self, method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the policy of a run for the auditor."""
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
        """Return the first rows."""
        return replace(self, table=self.table.slice(0, rows))

    def with_table(self, table: pa.Table) -> Self:
        """Return a stream of other rows with the same columns."""
        return replace(self, table=table)

    def narrowed(self, quasi: Sequence[str], sensitive: Sequence[str]) -> Self:
        """Return a stream with only these quasi-identifiers and sensitive columns."""
        return replace(
            self,
            table=self.table.select([PERSON, *quasi, *sensitive]),
            domains={name: self.domains[name] for name in quasi if name in self.domains},
            trees={name: self.trees[name] for name in quasi if name in self.trees},
            sensitive=tuple(sensitive),
        )


def numbered(columns: Mapping[str, Any], rows: int) -> pa.Table:
    """Return a table in which every row is a different person."""
    return pa.table({PERSON: pa.array(range(rows), pa.int64()), **columns})


def remove_values(stream: Stream, *, at_most: int, seed: int) -> Stream:
    """Remove up to `at_most` quasi-identifiers of every row, as in section 5 of the K-VARP paper.

    As in its Table 9, equally many rows miss none, one, two, … values: row i of a shuffle loses ``i % (at_most + 1)``
    values, chosen uniformly.
    """
    rows, names = len(stream), stream.quasi
    random = np.random.default_rng([seed, at_most])
    count = np.empty(rows, dtype=np.int64)
    count[random.permutation(rows)] = np.arange(rows) % (at_most + 1)
    rank = random.random((rows, len(names))).argsort(axis=1).argsort(axis=1)
    is_gone = rank < count[:, None]
    table = stream.table
    for at, name in enumerate(names):
        column = table.column(name)
        kept = pc.if_else(pa.array(is_gone[:, at]), pa.scalar(None, column.type), column)
        table = table.set_column(table.schema.get_field_index(name), name, kept)
    return stream.with_table(table)


def find_files(folder: Path, names: Sequence[str], *, publisher: str) -> list[Path]:
    """Find each file, possibly gzipped, in the folder or its direct subfolders."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the one that contains {', '.join(names)}")
    places = [folder, *sorted(place for place in folder.iterdir() if place.is_dir())]
    found = {name: _find(places, name) for name in names}
    lacking = [name for name, path in found.items() if path is None]
    if lacking:
        raise InputError(
            f"{folder}: missing {', '.join(lacking)} (or the same with .gz), here or in a direct subfolder; published "
            f"in the {publisher}. Without --data synthetic data is used"
        )
    return [path for path in found.values() if path is not None]


def _find(places: Sequence[Path], name: str) -> Path | None:
    candidates = (place / (name + suffix) for place in places for suffix in ("", ".gz"))
    return next((path for path in candidates if path.is_file()), None)


def read_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line numbers and fields; skip empty lines."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            reader = csv.reader(file, skipinitialspace=True)
            for fields in reader:
                if fields:
                    yield reader.line_num, fields
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InputError(f"{path.name}: cannot be read ({reason}); download the file again") from None
