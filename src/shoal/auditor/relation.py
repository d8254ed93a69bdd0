"""Relations: named columns of equal length, which checks look at. Texts are coded; numbers are arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.sorting import order_of

Shape = dict[str, type]
"""The names of columns and what they hold: int, float, bool or str."""
_KINDS: Final[dict[type, Any]] = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: TEXT}
_DTYPES: Final[dict[type, Any]] = {int: np.int64, float: np.float64, bool: np.bool_}


@dataclass(frozen=True, slots=True)
class Texts:
    """A column of texts: a number for every row, and the text of every number; -1 is a missing text."""

    codes: npt.NDArray[Any]
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: npt.NDArray[Any]) -> Texts:
        """The texts of some rows, given by number or marked."""
        return Texts(self.codes[rows], self.texts)

    def mapped(self, texts: Iterable[str | None]) -> Texts:
        """Replace every different text; equal new texts get one number, None is missing."""
        numbers: dict[str, int] = {}
        new = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
        return Texts(np.array([*new, -1], np.int64)[self.codes], list(numbers))

    def of(self, text: str) -> int:
        """The number of a text; -2 if no row has it."""
        return self.texts.index(text) if text in self.texts else -2

    def to_arrow(self) -> Any:
        """The texts as an Arrow column."""
        return pa.array([*self.texts, None], TEXT).take(pa.array(np.where(self.codes < 0, len(self.texts), self.codes)))

    @staticmethod
    def from_arrow(column: Any) -> Texts:
        """Code a column of texts, in order of first appearance."""
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
        codes = np.asarray(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
        return Texts(codes, encoded.dictionary.to_pylist())


Column = Ints | Floats | Bools | Texts


@dataclass(frozen=True, slots=True)
class Relation:
    """Some rows: columns by name, all of the same length."""

    columns: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def codes(self, name: str) -> Ints:
        """The numbers of a column: of its texts, or what it holds."""
        column = self.columns[name]
        return column.codes if isinstance(column, Texts) else column

    def take(self, rows: npt.NDArray[Any]) -> Relation:
        """Some rows, given by number or marked."""
        return Relation({name: _taken(column, rows) for name, column in self.columns.items()})

    def ordered(self, *names: str) -> Relation:
        """The rows sorted by some columns; not copied if they are."""
        order = order_of(*(self.codes(name) for name in names))
        return self if np.array_equal(order, np.arange(len(order))) else self.take(order)

    def having(self, **columns: Any) -> Relation:
        """The same rows with more columns, or others of the same name."""
        return Relation({**self.columns, **columns})

    def only(self, *names: str) -> Relation:
        """The same rows with these columns alone."""
        return Relation({name: self.columns[name] for name in names})

    def to_batch(self, shape: Shape) -> pa.RecordBatch:
        """The columns of a shape as an Arrow batch."""
        arrays = [
            column.to_arrow() if isinstance(column, Texts) else pa.array(column, _KINDS[kind])
            for column, kind in ((self.columns[name], kind) for name, kind in shape.items())
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema_of(shape))

    @staticmethod
    def from_table(table: pa.Table, shape: Shape) -> Relation:
        """The columns of a shape, from an Arrow table."""
        return Relation({
            name: Texts.from_arrow(table[name])
            if kind is str
            else np.asarray(table[name].to_numpy()).astype(_DTYPES[kind], copy=False)
            for name, kind in shape.items()
        })  # fmt: skip


def _taken(column: Any, rows: npt.NDArray[Any]) -> Any:
    return column.take(rows) if isinstance(column, Texts) else column[rows]


def schema_of(shape: Shape) -> pa.Schema:
    """The Arrow schema of a shape."""
    return pa.schema([(name, _KINDS[kind]) for name, kind in shape.items()])


def shape_of(relation: Relation) -> Shape:
    """The shape of a relation."""
    kinds = {np.dtype(dtype): kind for kind, dtype in _DTYPES.items()}
    return {
        name: str if isinstance(relation[name], Texts) else kinds.get(relation[name].dtype, object) for name in relation
    }


def has_shape(relation: Relation, shape: Shape) -> bool:
    """Whether a relation has these columns, each of its kind and all of one length."""
    return len({len(relation[name]) for name in relation}) <= 1 and shape_of(relation) == shape


def place_of(wanted: Ints, known: Ints) -> Ints:
    """For every wanted number the first place that it has among the known ones; -1 if it is not there."""
    if not len(known) or not len(wanted):
        return np.full(len(wanted), -1, np.int64)
    if not (known[1:] > known[:-1]).all():
        order = np.argsort(known, kind="stable")
        return np.append(order, -1)[place_of_rising(wanted, known[order])]
    if known[-1] - known[0] == len(known) - 1:
        return np.where((wanted >= known[0]) & (wanted <= known[-1]), wanted - known[0], -1)
    return place_of_rising(wanted, known)


def place_of_rising(wanted: Ints, known: Ints) -> Ints:
    """The same where known ones are sorted. Looking up in order is many times faster."""
    if not len(known):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(wanted)
    asked = wanted[order]
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    found = np.empty(len(wanted), np.int64)
    found[order] = np.where(known[at] == asked, at, -1)
    return found
