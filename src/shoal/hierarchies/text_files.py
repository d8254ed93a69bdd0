"""Read small text files that describe hierarchies; every error names the file and the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from shoal.errors import PolicyError


def read_bytes(path: Path) -> bytes:
    """The content of a file; raises PolicyError where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read ({error.strerror or 'damaged'}); check the path") from None


def decode(content: bytes, where: str) -> str:
    """UTF-8 text, with or without a byte order mark; raises PolicyError with the line."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"{where}: line {line}: is not UTF-8; save the file as UTF-8") from None


def csv_lines(text: str, where: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is not empty."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error:
        raise PolicyError(
            f"{where}: line {reader.line_num}: a quote is not closed or is inside a cell, or a cell is too long; "
            'write a quote twice ("") and put the cell in quotes'
        ) from None
