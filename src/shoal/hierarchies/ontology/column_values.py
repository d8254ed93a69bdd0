"""The values of a column of data, read piece by piece, and the known texts most similar to an unknown one."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from shoal.errors import InputError

_GZIP: Final = b"\x1f\x8b"
_SHORTLIST: Final = 40
"""Number of texts with the most common trigrams; only these are compared letter by letter."""
_LEAST_SIMILARITY: Final = 0.6
"""Texts less similar than this (1 means equal) are not proposed."""


@dataclass(slots=True)
class Seen:
    """Number of rows with a value, and the number of the first one, counted from 1."""

    rows: int
    first: int


def count_values(path: Path, column: str) -> dict[str, Seen]:
    """Every value of a column of a CSV (also compressed) or Parquet file; blank cells are skipped."""
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


class NearestTexts:
    """An index of the trigrams of known texts."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known
        trigrams: dict[str, list[int]] = {}
        sizes = np.zeros(len(known), dtype=np.int64)
        for position, text in enumerate(known):
            found = _trigrams(_normalized(text))
            sizes[position] = len(found)
            for trigram in found:
                trigrams.setdefault(trigram, []).append(position)
        self._sizes = sizes
        self._texts_with = {trigram: np.array(positions, dtype=np.int64) for trigram, positions in trigrams.items()}

    def like(self, text: str, most: int = 3) -> tuple[str, ...]:
        """The known texts most similar to this one, best first; none where nothing is similar."""
        normalized = _normalized(text)
        trigrams = _trigrams(normalized)
        texts_with = [self._texts_with[trigram] for trigram in trigrams if trigram in self._texts_with]
        if not texts_with:
            return ()
        positions, shared = np.unique(np.concatenate(texts_with), return_counts=True)
        overlap = 2 * shared / (self._sizes[positions] + len(trigrams))
        shortlist = positions[np.lexsort((positions, -overlap))[:_SHORTLIST]]
        candidates = [self._known[position] for position in shortlist.tolist()]
        rated = [(_similarity(normalized, _normalized(known)), known) for known in candidates]
        best = sorted((-rate, known) for rate, known in rated if rate >= _LEAST_SIMILARITY)
        return tuple(known for _, known in best[:most])


def _normalized(text: str) -> str:
    """Lower case, with one blank for every run of other characters than letters and digits."""
    return re.sub(r"[^\w]+|_+", " ", text.casefold()).strip()


def _trigrams(normalized: str) -> set[str]:
    padded = f" {normalized} "
    return {padded[start : start + 3] for start in range(max(1, len(padded) - 2))}


def _similarity(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other, autojunk=False).ratio()
