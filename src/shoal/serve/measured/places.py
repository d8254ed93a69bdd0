"""Published places as rectangles for the map: cells of a geographic hierarchy, or ranges of latitude and longitude."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import is_interval
from shoal.policy import Policy

_MOST_CELLS: Final = 400
_LATITUDES: Final = ("lat", "latitude")
_LONGITUDES: Final = ("lon", "lng", "long", "longitude")
_RANGE: Final = r"(-?[\d.]+)(?:…(-?[\d.]+))?"
_CELL: Final = re.compile(f"{_RANGE},{_RANGE}")

Cell = tuple[float, float, float, float]
"""West, south, east, north."""


def places_of(policy: Policy, rows: pa.Table) -> list[dict[str, Any]] | None:
    """The cells with most published rows; None if nothing published is a place."""
    counted = _labelled(policy, rows)
    if counted is None:
        counted = _ranges(rows)
    if counted is None:
        return None
    return [
        {"west": west, "south": south, "east": east, "north": north, "count": count}
        for (west, south, east, north), count in counted.most_common(_MOST_CELLS)
    ]


def _labelled(policy: Policy, rows: pa.Table) -> Counter[Cell] | None:
    for name, tree in policy.hierarchies.items():
        if name in rows.column_names and getattr(tree, "is_computed", False) and tree.to_dict()["kind"] == "geo":
            found: Counter[Cell] = Counter()
            for one in pc.value_counts(rows.column(name).combine_chunks().drop_null()).to_pylist():
                if match := _CELL.fullmatch(one["values"]):
                    south, north, west, east = match.groups()
                    found[float(west), float(south), float(east or west), float(north or south)] += one["counts"]
            return found
    return None


def _ranges(rows: pa.Table) -> Counter[Cell] | None:
    by_name = {name.lower(): name for name in rows.column_names if is_interval(rows.column(name).type)}
    latitude = next((by_name[name] for name in _LATITUDES if name in by_name), None)
    longitude = next((by_name[name] for name in _LONGITUDES if name in by_name), None)
    if latitude is None or longitude is None:
        return None
    columns = [
        pc.struct_field(rows.column(name).combine_chunks(), end).to_pylist()
        for name, end in ((longitude, "lo"), (latitude, "lo"), (longitude, "hi"), (latitude, "hi"))
    ]
    return Counter(cell for cell in zip(*columns, strict=True) if None not in cell)
