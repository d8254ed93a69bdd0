"""The contract of every decoder: bytes of one format in, Arrow batches and refused records out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError

BATCH_ROWS: Final = 65_536
"""At most this many records are decoded at once."""

Position = dict[str, Any]
"""Where to continue reading, as values that fit in JSON."""


class Readable(Protocol):
    """The file interface that decoders use."""

    @property
    def name(self) -> str:
        """The name used in messages."""

    def open(self) -> BinaryIO:
        """The bytes from the start, decompressed."""

    def open_seekable(self) -> Any:
        """An Arrow file with random access."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that cannot be decoded: where it is and why, never what it contains."""

    row: int
    """Place among all records decoded together, from 0."""
    column: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """Consecutive records of a source: those that could be decoded as a batch, the others as refusals.

    Records are numbered from 0 in the order they came, refused ones included; the batch holds all others in order.
    """

    batch: pa.RecordBatch
    refused: tuple[Refused, ...]
    """In row order, at most one for each record."""
    position: Position
    """Where the next record starts: pass it to `batches` to continue there."""
    lines: npt.NDArray[np.int64] | None = None
    """Text formats: the line (from 1) that each record starts on, refused ones included."""

    @classmethod
    def of(
        cls,
        columns: Sequence[Any],
        schema: pa.Schema,
        found: Sequence[Refused],
        position: Position,
        lines: npt.NDArray[np.int64] | None = None,
    ) -> Decoded:
        """Join columns of all records; leave out refused ones, each with the first reason found for it."""
        by_row: dict[int, Refused] = {}
        for one in found:
            by_row.setdefault(one.row, one)
        batch = pa.RecordBatch.from_arrays(list(columns), schema=schema)
        if by_row:
            is_kept = np.ones(batch.num_rows, dtype=np.bool_)
            is_kept[list(by_row)] = False
            batch = batch.filter(pa.array(is_kept))
        return cls(batch, tuple(by_row[row] for row in sorted(by_row)), position, lines)

    @property
    def rows(self) -> int:
        """Records, refused ones included."""
        return int(self.batch.num_rows) + len(self.refused)

    @property
    def kept(self) -> npt.NDArray[np.int64]:
        """The number of every record in the batch."""
        is_kept = np.ones(self.rows, dtype=np.bool_)
        is_kept[self.places] = False
        return np.flatnonzero(is_kept)

    @property
    def places(self) -> list[int]:
        """The number of every refused record."""
        return [one.row for one in self.refused]

    def records(self, rows: npt.ArrayLike) -> pa.RecordBatch:
        """The records with these numbers, none of which is refused."""
        return self.batch.take(pa.array(np.searchsorted(self.kept, np.asarray(rows, dtype=np.int64))))


class Decoder(ABC):
    """Reads the needed columns of one file.

    Results do not depend on where a batch ends. Errors and refusals name the file, the column and the reason, never a
    value. A decoder keeps a stream open between `schema` and the end of `batches`: close it, or use `with`.
    `optional` columns are left out if the file does not have them. Encoded, large and view
    types become the basic ones: text is `string`, also if large or dictionary-encoded text was declared.
    """

    def __init__(
        self,
        file: Readable,
        *,
        columns: Sequence[str],
        types: Mapping[str, pa.DataType] | None = None,
        optional: Collection[str] = (),
    ) -> None:
        self._file = file
        self._optional = frozenset(optional)
        self._columns = tuple(dict.fromkeys(columns))
        self._declared = {name: plain_type(kind) for name, kind in (types or {}).items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of every batch: the requested columns, in order. InputError if one is missing."""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types in use: pass them to the decoder of the next file to keep them fixed."""
        return {field.name: field.type for field in self.schema}

    @property
    def numbers_rows(self) -> bool:
        """Whether row numbers are used as person ids, because the file has no column of them."""
        return False

    @abstractmethod
    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        """All records, or those from a position on."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""

    def _indices(self, names: Sequence[str], *, remedy: str) -> list[int]:
        """Indices of the needed columns in the file; InputError names every column that is missing or repeated.

        It never lists the file's own names: the first line of a file without a header is a person's record.
        """
        self._columns = tuple(name for name in self._columns if name in names or name not in self._optional)
        missing = [repr(column) for column in self._columns if column not in names]
        repeated = [repr(column) for column in self._columns if names.count(column) > 1]
        what = []
        if missing:
            what.append(f"there {'is no column' if len(missing) == 1 else 'are no columns'} {', '.join(missing)}")
        if repeated:
            what.append(f"several columns are named {' or '.join(repeated)}")
        if what:
            many = f"{len(names)} column{'s' * (len(names) != 1)}"
            raise InputError(f"{self._file.name}: {' and '.join(what)} among its {many}; {remedy}")
        return [names.index(column) for column in self._columns]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The basic type for views, large and encoded variants of it.

    >>> plain_type(pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    """
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind
