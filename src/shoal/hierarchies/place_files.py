"""Names and coordinates of places, checked, from wherever they come."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import FloatArray
from shoal.hierarchies.tree import is_label


def checked_names(names: Iterable[Any]) -> list[str]:
    """At least one, each a text, no two alike."""
    listed = [] if isinstance(names, str) else list(names)
    if not listed:
        raise PolicyError("places: none given; give names and as many coordinates")
    if not all(map(is_label, listed)):
        raise PolicyError("places: every name must be text that is not empty")
    twice = len(listed) - len(set(listed))
    if twice:
        raise PolicyError(f"places: {twice} names stand there twice; a place has one line and its own name")
    return listed


def checked_points(x: npt.ArrayLike, y: npt.ArrayLike, count: int, *, geographic: bool) -> FloatArray:
    """One row of x and y for each of `count` places."""
    try:
        points = np.column_stack([np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    except (TypeError, ValueError):
        raise PolicyError("places: x and y must be numbers, as many as there are names") from None
    if points.shape != (count, 2):
        raise PolicyError("places: x and y must be numbers, as many as there are names")
    nowhere = int((~np.isfinite(points)).any(axis=1).sum())
    if nowhere:
        raise PolicyError(f"places: {nowhere} have no finite coordinates; fill them in, or leave these places out")
    beyond = int((np.abs(points) > [180, 90]).any(axis=1).sum())
    if geographic and beyond:
        raise PolicyError(
            f"places: {beyond} lie beyond 180 degrees of longitude (x) or 90 of latitude (y); "
            "check that x and y are not swapped, or set geographic=False for metres"
        )
    return points


def axes(x: str | None, y: str | None, *, geographic: bool) -> tuple[str, str]:
    """Names of the two columns with coordinates."""
    return x or ("lon" if geographic else "x"), y or ("lat" if geographic else "y")


def csv_columns(path: Path, columns: Sequence[str]) -> tuple[list[str], list[float], list[float]]:
    """Names and both coordinates from a file with a header; every problem names the line."""
    lines = list(_lines(path))
    header = lines[0][1] if lines else []
    places = [_column(header, column, path.name) for column in columns]
    names: list[str] = []
    x: list[float] = []
    y: list[float] = []
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            raise PolicyError(f"{path.name}: line {number}: has more or fewer cells than the header")
        names.append(cells[places[0]])
        x.append(_number(cells[places[1]], path.name, number))
        y.append(_number(cells[places[2]], path.name, number))
    return names, x, y


def table_columns(table: Any, columns: Sequence[str]) -> tuple[list[str], FloatArray, FloatArray]:
    """Names and both coordinates from an Arrow table, or from anything that gives one."""
    import pyarrow as pa  # heavy, and nothing else here needs it

    try:
        read = table if isinstance(table, pa.Table) else pa.table(table)
        name, x, y = (read.column(_column(read.column_names, column, "table")) for column in columns)
        names = name.cast(pa.string()).to_pylist()
        return names, *(axis.cast(pa.float64()).to_numpy() for axis in (x, y))
    except (TypeError, pa.ArrowException):
        raise PolicyError("table: give an Arrow table with names as text and x and y as numbers") from None


def _column(header: Sequence[str], column: str, where: str) -> int:
    if column not in header:
        raise PolicyError(f"{where}: has no column {column!r}; say which ones hold name=, x= and y=")
    return header.index(column)


def _lines(path: Path) -> Iterable[tuple[int, list[str]]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise PolicyError(f"{path.name}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise PolicyError(f"{path.name}: is not UTF-8; save the file as UTF-8") from None
    if "\x00" in text:
        raise PolicyError(f"{path.name}: holds a NUL character; remove it")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error:
        raise PolicyError(f'{path.name}: line {reader.line_num}: a quote is not closed; write it twice ("")') from None


def _number(cell: str, where: str, line: int) -> float:
    try:
        return float(cell)
    except ValueError:
        raise PolicyError(f"{where}: line {line}: a coordinate is not a number") from None
