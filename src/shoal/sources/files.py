"""Files, folders, globs and standard input as one source of records."""

from __future__ import annotations

import glob
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from shoal.decode.base import Decoded, Decoder, Position
from shoal.errors import InputError, PolicyError
from shoal.sources.base import End, FiniteSource
from shoal.sources.compression import COMPRESSIONS, Compression
from shoal.sources.input_file import STANDARD_INPUT, InputFile, unreadable

_LEFTOVERS: Final = (".partial", ".tmp", ".dead.jsonl")


class OpenDecoder(Protocol):
    """Opens the decoder of one file."""

    def __call__(
        self, file: InputFile, columns: tuple[str, ...], types: dict[str, pa.DataType] | None, *, first_row: int
    ) -> Decoder:
        """`types` are those of the first file, `first_row` is the number of the file's first record in the stream."""


class FileSource(FiniteSource):
    """The records of files, one file after another. It ends with the last one and is never idle.

    The first file determines the columns and their types. Its decoder stays open between `schema` and the
    first poll: standard input cannot be opened a second time.
    """

    def __init__(self, files: Sequence[InputFile], open_decoder: OpenDecoder) -> None:
        self.files = files
        self._open_decoder = open_decoder
        self._columns: tuple[str, ...] = ()
        self._first: Decoder | None = None
        self._types: dict[str, pa.DataType] | None = None
        self._numbers_rows = False
        self._file, self._rows = 0, 0
        self._at: Position | None = None
        self._starts: list[int] = []
        self._records: Iterator[Decoded] = iter(())

    @property
    def name(self) -> str:
        return self.files[0].name

    @property
    def schema(self) -> pa.Schema:
        if self._first is None:
            self._first = self._open_decoder(self.files[0], self._columns, None, first_row=self._rows)
        self._types, self._numbers_rows = self._first.types, self._first.numbers_rows
        return self._first.schema

    @property
    def inputs(self) -> int:
        return len(self.files)

    @property
    def numbers_rows(self) -> bool:
        return self._numbers_rows

    def identity(self) -> dict[str, str]:
        return {file.name: file.fingerprint() for file in self.files}

    def first_rows(self, columns: tuple[str, ...], count: int) -> pa.Table | None:
        if not self.files or any(file.path is None or not file.path.is_file() for file in self.files):
            return None
        parts: list[pa.RecordBatch] = []
        types: dict[str, pa.DataType] | None = None
        left = count
        try:
            for file in self.files:
                with self._open_decoder(file, columns, types, first_row=count - left) as decoder:
                    types = decoder.types
                    for decoded in decoder.batches():
                        parts.append(decoded.batch.slice(0, left))
                        left -= parts[-1].num_rows
                        if left <= 0:
                            return pa.Table.from_batches(parts)
        except InputError:
            pass
        return pa.Table.from_batches(parts) if parts else None

    def open(self, columns: tuple[str, ...], position: Position | None) -> None:
        self._columns = columns
        if position is not None:
            self._file, self._at, self._rows = position["file"], position["at"], position["rows"]
            self._starts = list(position["starts"])
        self._records = self._read()

    def poll(self) -> Decoded | End:
        return next(self._records, End())

    @property
    def position(self) -> Position:
        return {"file": self._file, "at": self._at, "rows": self._rows, "starts": list(self._starts)}

    def place(self, row: int) -> dict[str, Any]:
        file = bisect_right(self._starts, row) - 1
        return {"file": self.files[file].name, "row": row - self._starts[file] + 1}

    def close(self) -> None:
        first, self._first = self._first, None
        if first is not None:
            first.close()

    def _read(self) -> Iterator[Decoded]:
        while self._file < len(self.files):
            if self._file >= len(self._starts):
                self._starts.append(self._rows)
            with self._decoder() as decoder:
                for decoded in decoder.batches(self._at):
                    self._at, self._rows = decoded.position, self._rows + decoded.rows
                    yield decoded
            self._file, self._at = self._file + 1, None

    def _decoder(self) -> Decoder:
        first, self._first = self._first, None
        if first is not None and self._file == 0:
            return first
        if first is not None:
            first.close()
        return self._open_decoder(self.files[self._file], self._columns, self._types, first_row=self._rows)


def find_files(
    path: str | Sequence[str], *, compression: Compression = "auto", base: Path | None = None
) -> list[InputFile]:
    """The files that paths name, in order: files, globs, folders or "-" for standard input.

    A folder stands for its regular files in name order, without hidden files, subfolders and leftovers of runs
    (`*.partial`, `*.tmp`, `*.dead.jsonl`). A file named twice is read once. InputError when a path
    matches nothing.
    """
    if compression not in COMPRESSIONS:
        raise PolicyError(f"compression: must be one of {', '.join(COMPRESSIONS)}")
    found: dict[Path | None, None] = {}
    for text in (path,) if isinstance(path, str) else path:
        full = Path(text) if base is None else base / text
        try:
            found.update(dict.fromkeys([None] if text == STANDARD_INPUT else _matches(text, full)))
        except OSError as error:
            raise unreadable(str(full), error) from None
    return [InputFile(one, compression=compression) for one in found]


def _matches(text: str, path: Path) -> list[Path]:
    if path.is_dir():
        found, problem = sorted(filter(_is_input, path.iterdir())), "this folder has no file to read"
    elif path.exists() or not glob.has_magic(text):
        path.stat()
        return [path]
    else:
        found = sorted(filter(_is_input, map(Path, glob.glob(str(path), recursive=True))))
        problem = "no file matches; check the pattern"
    if not found:
        raise InputError(f"{path}: {problem}")
    return found


def _is_input(path: Path) -> bool:
    return not path.name.startswith(".") and not path.name.endswith(_LEFTOVERS) and path.is_file()
