"""Sealed pieces of another format, for the private trace: written by an encoder, read back for an audit."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, ClassVar, Final

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.crypto.keys import Secret, secret_from_environment
from shoal.crypto.sealing import MAGIC, seal, unseal
from shoal.encode.base import Encoder, Writer
from shoal.errors import VaultError

_ROWS_A_PIECE: Final = 500_000
_LENGTH: Final = struct.Struct("<Q")
_PURPOSE: Final = "trace"


class SealedEncoder(Encoder):
    """Pieces of another format, each sealed before it reaches the disk; each is preceded by its length."""

    appendable: ClassVar[bool] = True

    def __init__(self, inner: Encoder, secret: Secret) -> None:
        self._inner = inner
        self._secret = secret

    @property
    def suffix(self) -> str:
        return self._inner.suffix + ".sealed"

    def open(self, out: BinaryIO, schema: pa.Schema, *, fresh: bool) -> Writer:
        return _SealedWriter(self._inner, self._secret, out, schema)


class _SealedWriter(Writer):
    def __init__(self, inner: Encoder, secret: Secret, out: BinaryIO, schema: pa.Schema) -> None:
        self._inner, self._secret, self._out, self._schema = inner, secret, out, schema
        self._begin()

    def _begin(self) -> None:
        self._memory = io.BytesIO()
        self._writer = self._inner.open(self._memory, self._schema, fresh=True)
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(batch)
        self._rows += batch.num_rows
        if self._rows >= _ROWS_A_PIECE:
            self.close()
            self._begin()

    def abandon(self) -> None:
        self._writer.abandon()

    def close(self) -> None:
        self._writer.close()
        sealed = seal(self._secret, self._memory.getvalue(), purpose=_PURPOSE)
        self._out.write(_LENGTH.pack(len(sealed)) + sealed)


def is_sealed_trace(path: Path) -> bool:
    """Whether a file is a sealed trace."""
    with path.open("rb") as file:
        return file.read(_LENGTH.size + len(MAGIC))[_LENGTH.size :] == MAGIC


def read_trace(path: Path) -> pa.Table:
    """Read a trace; a sealed one with the key of SHOAL_KEY_FILE."""
    if not is_sealed_trace(path):
        return pq.read_table(path)
    secret = secret_from_environment()
    if secret is None:
        raise VaultError(f"{path}: the trace is sealed; set SHOAL_KEY_FILE to the key it was made with")
    return read_sealed_trace(path, secret)


def read_sealed_trace(path: Path, secret: Secret) -> pa.Table:
    """Open a sealed trace."""
    with path.open("rb") as file:
        tables = [pq.read_table(io.BytesIO(unseal(secret, piece, purpose=_PURPOSE))) for piece in _pieces(file, path)]
    return pa.concat_tables(tables, promote_options="permissive")


def count_pieces(path: Path) -> int:
    """How many pieces a sealed trace has."""
    with path.open("rb") as file:
        return sum(1 for _ in _pieces(file, path))


def read_sealed_piece(path: str, number: int) -> pa.Table:
    """Open one piece of a sealed trace with the key of SHOAL_KEY_FILE."""
    secret = secret_from_environment()
    if secret is None:
        raise VaultError(f"{path}: the trace is sealed; set SHOAL_KEY_FILE to the key it was made with")
    with Path(path).open("rb") as file:
        piece = next(islice(_pieces(file, Path(path)), number, None))
    return pq.read_table(io.BytesIO(unseal(secret, piece, purpose=_PURPOSE)))


def _pieces(file: BinaryIO, path: Path) -> Iterator[bytes]:
    while head := file.read(_LENGTH.size):
        (length,) = _LENGTH.unpack(head.ljust(_LENGTH.size, b"\x00"))
        piece = file.read(length)
        if len(piece) < length:
            raise VaultError(f"{path}: the sealed trace is incomplete; its run may still be active")
        yield piece
