"""Read and check the names and coordinates of places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import FloatArray
from shoal.hierarchies.text_files import csv_lines, decode, read_bytes
from shoal.hierarchies.tree import is_label


def checked_names(names: Iterable[Any]) -> list[str]:
    """The names: at least one, each a text, no two equal."""
    listed = [] if isinstance(names, str) else list(names)
    if not listed:
        raise PolicyError("places: none given; give names and as many coordinates")
    if not all(map(is_label, listed)):
        raise PolicyError("places: every name must be text that is not empty")
    twice = len(listed) - len(set(listed))
    if twice:
        raise PolicyError(f"places: {twice} names appear twice; a place has one line and its own name")
    return listed


def checked_points(x: npt.ArrayLike, y: npt.ArrayLike, count: int, *, geographic: bool) -> FloatArray:
    """One row of x and y for each of `count` places."""
    try:
        points = np.column_stack([np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    except (TypeError, ValueError):
        raise PolicyError("places: x and y must be numbers, as many as there are names") from None
    if points.shape != (count, 2):
        raise PolicyError("places: x and y must be numbers, as many as there are names")
    missing = int((~np.isfinite(points)).any(axis=1).sum())
    if missing:
        raise PolicyError(f"places: {missing} have no finite coordinates; fill them in, or leave these places out")
    beyond = int((np.abs(points) > [180, 90]).any(axis=1).sum())
    if geographic and beyond:
        raise PolicyError(
            f"places: {beyond} lie beyond 180 degrees of longitude (x) or 90 of latitude (y); "
            "check that x and y are not swapped, or set geographic=False for metres"
        )
    return points


def columns_of(name: str, x: str | None, y: str | None, *, geographic: bool) -> tuple[str, str, str]:
    """The columns with names and both coordinates."""
    return name, x or ("lon" if geographic else "x"), y or ("lat" if geographic else "y")


def csv_columns(path: Path, columns: Sequence[str]) -> tuple[list[str], list[float], list[float]]:
    """Names and both coordinates from a file with a header; every problem names the line."""
    text = decode(read_bytes(path), path.name)
    if "\x00" in text:
        raise PolicyError(f"{path.name}: contains a NUL character; remove it")
    lines = list(csv_lines(text, path.name))
    header = lines[0][1] if lines else []
    name, *axes = (_column(header, column, path.name) for column in columns)
    names: list[str] = []
    points: list[list[float]] = []
    for number, cells in lines[1:]:
        if len(cells) != len(header):
            raise PolicyError(f"{path.name}: line {number}: has more or fewer cells than the header")
        names.append(cells[name])
        try:
            points.append([float(cells[axis]) for axis in axes])
        except ValueError:
            raise PolicyError(f"{path.name}: line {number}: a coordinate is not a number") from None
    return names, [x for x, _ in points], [y for _, y in points]


def table_columns(table: Any, columns: Sequence[str]) -> tuple[list[str], FloatArray, FloatArray]:
    """Names and both coordinates from an Arrow table, or from anything convertible to one."""
    import pyarrow as pa  # slow to import, and only tables need it

    try:
        read = table if isinstance(table, pa.Table) else pa.table(table)
        name, x, y = (read.column(_column(read.column_names, column, "table")) for column in columns)
        names = name.cast(pa.string()).to_pylist()
        return names, *(axis.cast(pa.float64()).to_numpy() for axis in (x, y))
    except (TypeError, pa.ArrowException):
        raise PolicyError("table: give an Arrow table with names as text and x and y as numbers") from None


def _column(header: Sequence[str], column: str, where: str) -> int:
    if column not in header:
        raise PolicyError(f"{where}: has no column {column!r}; give the columns as name=, x= and y=")
    return header.index(column)
