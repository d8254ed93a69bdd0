"""Names at sites and which sites are adjacent: the common base of graphs and places."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int32]
FloatArray = NDArray[np.float64]
Array = TypeVar("Array", bound=NDArray[Any])
EARTH_RADIUS_M: Final = 6_371_008.8
"""The mean radius of the WGS 84 ellipsoid."""
METRES_A_DEGREE: Final = EARTH_RADIUS_M * math.pi / 180


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Positions from which distances within a block are computed; one row per name.

    Attributes
    ----------
    points
        Position on the unit sphere, or ``x, y, 0`` in a plane.
    centres
        Centre of its cell, as longitude and latitude in radians or as x and y.
    shares
        Area of its cell; names at one site share theirs equally, so that a cell counts once.
    radius_m
        Radius of the sphere; 0 for a plane.
    """

    points: FloatArray
    centres: FloatArray
    shares: FloatArray
    radius_m: float


class Neighbourhood:
    """Names, each at a site, and which sites are adjacent; the graph of sites is connected.

    Attributes
    ----------
    names
        Sorted.
    site_of
        Site number of every name; sites are numbered by their first name.
    edges
        Pairs of site numbers, the smaller first, sorted; one row per pair.
    ground
        None where distances are unknown.
    """

    names: tuple[str, ...]
    site_of: IntArray
    edges: IntArray
    ground: Ground | None = None

    def __len__(self) -> int:
        return len(self.names)


def components(count: int, edges: Iterable[Sequence[int]]) -> list[int]:
    """For each of `count` sites the smallest member of its component."""
    above = list(range(count))

    def top(site: int) -> int:
        while above[site] != site:
            above[site] = above[above[site]]
            site = above[site]
        return site

    for first, second in edges:
        low, high = sorted((top(first), top(second)))
        above[high] = low
    return [top(site) for site in range(count)]


def edge_array(edges: Iterable[tuple[int, int]]) -> IntArray:
    """Each pair once, the smaller first, sorted; read-only."""
    pairs = sorted({(min(pair), max(pair)) for pair in edges})
    return frozen(np.array(pairs, dtype=np.int32).reshape(-1, 2))


def frozen(array: Array) -> Array:
    """Make the array read-only and return it."""
    array.flags.writeable = False
    return array
