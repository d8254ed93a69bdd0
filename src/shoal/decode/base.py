"""The contract every decoder keeps: bytes in, Arrow batches out, one row for every record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.decode.types import plain_type
from shoal.errors import InputError

Position = dict[str, int]


class Readable(Protocol):
    """What a decoder needs of a file."""

    @property
    def name(self) -> str:
        """What people are shown."""

    def open(self) -> BinaryIO:
        """The bytes from the start, decompressed."""

    def open_seekable(self) -> Any:
        """An Arrow file that can jump about."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a record cannot be used; never what it holds."""

    row: int
    """Index in the batch."""
    column: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """Some records in order: one row each; an unusable one is a row of nulls and has a problem."""

    batch: pa.RecordBatch
    problems: tuple[Problem, ...]
    position: Position
    """Where the next record starts: give it to `batches` to go on exactly there. It can be kept as JSON."""
    lines: npt.NDArray[np.int64] | None
    """Text formats: the line (from 1) each record starts on."""


class Decoder(ABC):
    """Reads the needed columns of one file.

    Nothing depends on where a batch ends. Errors and problems name the file, the column and the reason, never
    a value. A decoder keeps a stream open between `schema` and the end of `batches`: close it, or use `with`.
    Columns that are `optional` are left out where the file does not have them.
    Types are plain ones: text is `string` also where large, viewed or dictionary-encoded text was declared.
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
        """Of every batch: the needed columns in the order asked for. InputError when one is missing."""

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types in use: give them to the decoder of the next file to hold them fixed."""
        return {field.name: field.type for field in self.schema}

    @abstractmethod
    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        """All records, or those from a position on."""

    @abstractmethod
    def close(self) -> None:
        """Give back what is open."""

    def _indices(self, names: Sequence[str], *, remedy: str) -> list[int]:
        """Where the needed columns are among the file's; never lists the file's names.

        The first line of a file without a header is a person's record.
        """
        found = []
        self._columns = tuple(name for name in self._columns if name in names or name not in self._optional)
        for column in self._columns:
            count = names.count(column)
            if count != 1:
                what = "there is no column" if count == 0 else f"{count} columns are named"
                many = f"{len(names)} column{'s' * (len(names) != 1)}"
                raise InputError(f"{self._file.name}: {what} {column!r} among its {many}; {remedy}")
            found.append(names.index(column))
        return found
