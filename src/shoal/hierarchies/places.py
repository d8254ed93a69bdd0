"""Points on a map, each with its Voronoi cell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from shoal.errors import PolicyError, missing_extra

try:
    import shapely
    import shapely.geometry
except ImportError:
    raise missing_extra("a map of places", package="shapely", extra="places") from None

from shoal.hierarchies.geometry import (
    MILLIMETRE,
    haversine_m,
    nearest_bridges,
    read_region,
    region_around,
    shared_edges,
    voronoi_cells,
)
from shoal.hierarchies.neighbourhood import (
    EARTH_RADIUS_M,
    METRES_A_DEGREE,
    FloatArray,
    Ground,
    IntArray,
    Neighbourhood,
    edge_array,
    frozen,
)
from shoal.hierarchies.text_files import csv_lines, decode, read_bytes
from shoal.hierarchies.tree import is_label

Projection = Callable[[FloatArray], FloatArray]
_LEAST_SCALE = 0.01  # of longitudes; at a pole it would be 0


class Places(Neighbourhood):
    """Named points, their Voronoi cells, and which cells are adjacent.

    Parameters
    ----------
    names
        One text for each place, no two equal.
    x, y
        Longitude and latitude in degrees; in a plane, metres.
    geographic
        Whether these are degrees. Cells are computed in an equirectangular projection around the middle of the places,
        which suits a city or a country; distances follow the globe. Cells do not cross the date line.
    region
        Cells are clipped to it; in the same coordinates: a shapely polygon, GeoJSON, or a list of (x, y) corners.
        None means the convex hull with a margin of the median distance between nearest neighbours (1 km around a
        single place).

    Attributes
    ----------
    names
        Sorted.
    x, y
        Coordinates of every name, in this order.
    site_of
        Site number of every name. Places equal to the millimetre are one site, with one cell.
    sites
        Coordinates of every site.
    cells
        Clipped cell of every site, in the given coordinates: a polygon, or several where the region is not convex.
    areas
        Areas of the cells, in km².
    centroids
        Centroids of the cells, in the given coordinates.
    edges
        Pairs of sites whose clipped cells share an edge; one point is not enough. Components are connected by their
        nearest pair of sites, so that everything can be merged into one block.

    Examples
    --------
    >>> places = Places(["west", "middle", "east"], [0, 1000, 2000], [0, 0, 0], geographic=False)
    >>> places.names, places.edges.tolist()
    (('east', 'middle', 'west'), [[0, 1], [1, 2]])
    >>> round(float(places.areas[1]), 1)
    2.0
    """

    def __init__(
        self, names: Iterable[str], x: npt.ArrayLike, y: npt.ArrayLike, *, geographic: bool = True, region: Any = None
    ) -> None:
        listed = _checked_names(names)
        points = _checked_points(x, y, len(listed), geographic=geographic)
        order = sorted(range(len(listed)), key=listed.__getitem__)
        self.names = tuple(listed[place] for place in order)
        points = points[order]
        self.x, self.y = frozen(points[:, 0].copy()), frozen(points[:, 1].copy())
        self.geographic = geographic
        self._given_region = None if region is None else read_region(region)
        self._draw(points)
        self.ground = self._ground()

    @classmethod
    def from_csv(
        cls, path: str | PathLike[str], *, name: str = "name", x: str | None = None, y: str | None = None,
        geographic: bool = True, region: Any = None,
    ) -> Self:  # fmt: skip
        """A file with a header and one place per line.

        Parameters
        ----------
        path
            UTF-8 text, cells separated by commas.
        name, x, y
            Columns; by default `x` and `y` are ``lon`` and ``lat`` if `geographic`, otherwise ``x`` and ``y``.
        geographic, region
            As for the class.
        """
        columns = _csv_columns(Path(path), _columns_of(name, x, y, geographic=geographic))
        return cls(*columns, geographic=geographic, region=region)

    @classmethod
    def from_table(
        cls, table: Any, *, name: str = "name", x: str | None = None, y: str | None = None,
        geographic: bool = True, region: Any = None,
    ) -> Self:  # fmt: skip
        """An Arrow table, or anything convertible to one (pandas, polars, duckdb); columns as in :meth:`from_csv`."""
        columns = _table_columns(table, _columns_of(name, x, y, geographic=geographic))
        return cls(*columns, geographic=geographic, region=region)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The places that :meth:`to_dict` wrote."""
        try:
            parts = [list(content[key]) for key in ("names", "x", "y")]
            geographic, region = bool(content["geographic"]), content["region"]
        except (KeyError, TypeError):
            raise PolicyError("places: not what Places.to_dict writes; write it again") from None
        return cls(*parts, geographic=geographic, region=region)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and texts, the same for equal places."""
        region = self._given_region
        return {
            "kind": "places", "names": list(self.names), "x": self.x.tolist(), "y": self.y.tolist(),
            "geographic": self.geographic, "region": None if region is None else _listed(region),
        }  # fmt: skip

    def distance(self, first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
        """Metres between points in the given coordinates; the last axis is (x, y)."""
        one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        if self.geographic:
            return haversine_m(one, other)
        straight: FloatArray = np.hypot(one[..., 0] - other[..., 0], one[..., 1] - other[..., 1])
        return straight

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Places) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.names, self.x.tobytes(), self.y.tobytes()))

    def __repr__(self) -> str:
        return f"<Places of {len(self)} names at {len(self.sites)} sites>"

    def _draw(self, points: FloatArray) -> None:
        """Compute sites, cells and edges in a plane of metres."""
        to_plane, to_given = _plane(points, geographic=self.geographic)
        flat, first, site_of = _one_site_each(to_plane(points))
        self.site_of = frozen(site_of)
        self.sites = frozen(points[first])
        region = region_around(flat) if self._given_region is None else shapely.transform(self._given_region, to_plane)
        cells = voronoi_cells(flat, region)
        _check_inside(flat, cells, region)
        edges = shared_edges(flat, region)
        self.edges = edge_array([*edges, *nearest_bridges(self.sites, edges, geographic=self.geographic)])
        self.region = shapely.transform(region, to_given)
        self.cells = tuple(shapely.transform(cells, to_given))
        self.areas = frozen(shapely.area(cells) / 1e6)
        self.centroids = frozen(to_given(shapely.get_coordinates(shapely.centroid(cells))))

    def _ground(self) -> Ground:
        site_of = self.site_of
        shares = (self.areas / np.bincount(site_of))[site_of]
        points = np.column_stack([self.x, self.y, np.zeros(len(self))])
        if not self.geographic:
            return Ground(points, self.centroids[site_of], shares, 0.0)
        x, y = np.radians(self.x), np.radians(self.y)
        points = np.column_stack([np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)])
        return Ground(points, np.radians(self.centroids)[site_of], shares, EARTH_RADIUS_M)


def _listed(region: Any) -> dict[str, Any]:
    """GeoJSON with lists instead of tuples, as it comes back from a file."""
    listed: dict[str, Any] = json.loads(json.dumps(shapely.geometry.mapping(region)))
    return {"type": listed["type"], "coordinates": listed["coordinates"]}


def _plane(points: FloatArray, *, geographic: bool) -> tuple[Projection, Projection]:
    """Projections from the given coordinates to a plane in metres around the middle, and back."""
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    scale = np.ones(2)
    if geographic:
        scale = np.array([METRES_A_DEGREE * max(_LEAST_SCALE, math.cos(math.radians(middle[1]))), METRES_A_DEGREE])
    return lambda given: (given - middle) * scale, lambda plane: plane / scale + middle


def _one_site_each(points: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp], IntArray]:
    """Distinct points in order of first appearance, the row of each, and the number of every row's point."""
    millimetres = np.round(points / MILLIMETRE).astype(np.int64)
    _, first, inverse = np.unique(millimetres, axis=0, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first)).astype(np.int32)
    first.sort()
    return points[first], first, rank[inverse.ravel()]


def _check_inside(sites: FloatArray, cells: npt.NDArray[np.object_], region: Any) -> None:
    inside = shapely.dwithin(region, shapely.points(sites), MILLIMETRE) & (shapely.area(cells) > 0)
    outside = int((~inside).sum())
    if outside:
        raise PolicyError(f"places: {outside} lie outside the region; leave them out, or widen the region")


# ---- names and coordinates, read and checked


def _checked_names(names: Iterable[Any]) -> list[str]:
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


def _checked_points(x: npt.ArrayLike, y: npt.ArrayLike, count: int, *, geographic: bool) -> FloatArray:
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


def _columns_of(name: str, x: str | None, y: str | None, *, geographic: bool) -> tuple[str, str, str]:
    """The columns with names and both coordinates."""
    return name, x or ("lon" if geographic else "x"), y or ("lat" if geographic else "y")


def _csv_columns(path: Path, columns: Sequence[str]) -> tuple[list[str], list[float], list[float]]:
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


def _table_columns(table: Any, columns: Sequence[str]) -> tuple[list[str], FloatArray, FloatArray]:
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
