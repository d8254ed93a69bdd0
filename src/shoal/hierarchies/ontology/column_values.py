"""Which values a column of data holds, how often, and where each was first seen; read piece by piece."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from shoal.errors import InputError

_GZIP = b"\x1f\x8b"


@dataclass(slots=True)
class Seen:
    """How many rows hold a value, and the number of the first one, counted from 1."""

    rows: int
    first: int


def count_values(path: Path, column: str) -> dict[str, Seen]:
    """Every value of a column of a CSV (also compressed) or Parquet file; blank cells are left out."""
    cells = _parquet_cells(path, column) if path.suffix.lower() in (".parquet", ".pq") else _csv_cells(path, column)
    seen: dict[str, Seen] = {}
    with closing(cells):
        for row, cell in enumerate(cells, start=1):
            if cell is None or not cell.strip():
                continue
            known = seen.get(cell)
            if known is None:
                seen[cell] = Seen(1, row)
            else:
                known.rows += 1
    return seen


def _csv_cells(path: Path, column: str) -> Generator[str | None, None, None]:
    try:
        with _opened(path) as file:
            yield from _cells(csv.reader(file, strict=True), path.name, column)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path.name}: the compressed file is damaged or broke off; fetch it again") from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: is not UTF-8; save the file as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror}); check the path") from None


def _opened(path: Path) -> IO[str]:
    with path.open("rb") as file:
        is_compressed = file.read(2) == _GZIP
    if is_compressed:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _cells(reader: Any, where: str, column: str) -> Iterator[str | None]:
    try:
        header: list[str] = next(reader, [])
        if column not in header:
            raise InputError(f"{where}: has no column {column!r}; name one it has with --column")
        place = header.index(column)
        for cells in reader:
            if cells:
                yield cells[place] if place < len(cells) else None
    except csv.Error:
        raise InputError(f'{where}: line {reader.line_num}: a quote is not closed; write it twice ("")') from None


def _parquet_cells(path: Path, column: str) -> Generator[str | None, None, None]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if column not in file.schema_arrow.names:
                raise InputError(f"{path.name}: has no column {column!r}; name one it has with --column")
            for batch in file.iter_batches(columns=[column]):
                yield from batch.column(0).cast(pa.string()).to_pylist()
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror or 'damaged'}); check the path") from None
    except pa.ArrowException:
        raise InputError(f"{path.name}: is not Parquet, is damaged, or the column is not text") from None
