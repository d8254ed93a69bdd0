"""The contract of every encoder: Arrow batches in, bytes of one format out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import BinaryIO, ClassVar

import pyarrow as pa


class Writer(ABC):
    """Writes one piece: a whole file, or the next part of a file that can be appended to."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Accept rows; they may stay in memory until `close`."""

    @abstractmethod
    def close(self) -> None:
        """End the piece (compressed member, footer). The underlying stream stays open."""

    def abandon(self) -> None:  # noqa: B027
        """Drop a piece that will never be complete: nothing more is written, not even on garbage collection."""


class Encoder(ABC):
    """A format and its options."""

    appendable: ClassVar[bool]
    """Whether pieces written one after another form one valid file."""

    @property
    @abstractmethod
    def suffix(self) -> str:
        """The suffix of file names, with the dot."""

    @abstractmethod
    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        """Begin a piece, with a header if `fresh`, else as the continuation of an earlier piece."""

    def join(self, pieces: Iterable[BinaryIO], out: BinaryIO, schema: pa.Schema) -> None:
        """Join several complete files into one, if they cannot simply be concatenated."""
        raise NotImplementedError(f"{type(self).__name__}: pieces of this format are joined by concatenation")
