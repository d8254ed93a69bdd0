"""The synthetic city of the measurement campaign: its cells, their districts, parts and coordinates."""

from __future__ import annotations

import math
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.neighbourhood import METRES_A_DEGREE

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CITY: Final = "city"
CELLS: Final = 200
PARTS: Final = ("centre", "north", "east", "south", "west", "villages")
_IN_CENTRE: Final = 40
_IN_VILLAGES: Final = 40
_IN_DISTRICT: Final = 10
_MIDDLE: Final = (-30.0, 45.0)
"""Longitude and latitude in the open sea: no real city is meant."""
_RADIUS_M: Final = 6000.0
_VILLAGES_STRETCH: Final = 1.6
"""Cells around the city are larger."""


class CityCells(NamedTuple):
    """Name, part (an index into `PARTS`) and coordinates of every cell."""

    names: tuple[str, ...]
    parts: Ints
    lon: Floats
    lat: Floats


def campaign_places() -> Hierarchy:
    """Return the hierarchy of the column ``place``: cell, district, part of the city, city."""
    tree: dict[str, dict[str, list[str]]] = {}
    for name in city_cells().names:
        district = name.rsplit("-", 1)[0]
        tree.setdefault(district.rsplit(" ", 1)[0], {}).setdefault(district, []).append(name)
    return Hierarchy.from_nested({CITY: tree})


@cache
def city_cells() -> CityCells:
    """Return cells along a spiral that fills a disk evenly; parts are the middle, the rim and four sides between."""
    place = np.arange(CELLS)
    angle = place * math.pi * (3 - math.sqrt(5))
    radius = _RADIUS_M * np.sqrt((place + 0.5) / CELLS)
    rim = place >= CELLS - _IN_VILLAGES
    radius = np.where(rim, radius * _VILLAGES_STRETCH, radius)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    parts = _parts(place, np.arctan2(y, x))
    shrinking = math.cos(math.radians(_MIDDLE[1]))
    lon = _MIDDLE[0] + x / (METRES_A_DEGREE * shrinking)
    lat = _MIDDLE[1] + y / METRES_A_DEGREE
    return CityCells(_names(parts, np.arctan2(y, x)), parts, lon, lat)


def _parts(place: Ints, angle: Floats) -> Ints:
    """Assign parts: the inner cells, the outer cells, and equally many cells on each side."""
    parts = np.zeros(CELLS, dtype=np.int64)
    parts[place >= CELLS - _IN_VILLAGES] = PARTS.index("villages")
    between = place[_IN_CENTRE : CELLS - _IN_VILLAGES]
    from_north_east = (math.pi / 4 * 3 - angle[between]) % (2 * math.pi)
    clockwise = between[np.argsort(from_north_east, kind="stable")]
    parts[clockwise] = 1 + np.arange(len(clockwise)) * 4 // len(clockwise)
    return parts


def _names(parts: Ints, angle: Floats) -> tuple[str, ...]:
    """``north 2-07`` is the seventh cell of the second district of the north."""
    names = [""] * CELLS
    for part, name in enumerate(PARTS):
        cells = np.flatnonzero(parts == part)
        for rank, cell in enumerate(cells[np.argsort(angle[cells], kind="stable")]):
            names[cell] = f"{name} {rank // _IN_DISTRICT + 1}-{rank % _IN_DISTRICT + 1:02}"
    return tuple(names)
