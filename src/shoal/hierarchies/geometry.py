"""Voronoi cells in a plane, their common edges, and distances on the globe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.affinity import rotate

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import EARTH_RADIUS_M, FloatArray, components

Pairs = list[tuple[int, int]]
MILLIMETRE: Final = 1e-3
"""Points nearer than this are one place, and edges shorter than this do not count: rounding errors are smaller."""
LONE_MARGIN_M: Final = 1000.0


def haversine_m(first: FloatArray, second: FloatArray) -> FloatArray:
    """Metres along the globe between longitudes and latitudes in degrees; the last axis is (x, y)."""
    x, y, other_x, other_y = map(np.radians, (first[..., 0], first[..., 1], second[..., 0], second[..., 1]))
    squared = np.sin((other_y - y) / 2) ** 2 + np.cos(y) * np.cos(other_y) * np.sin((other_x - x) / 2) ** 2
    distance: FloatArray = 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(1.0, squared)))
    return distance


def read_region(region: Any) -> Any:
    """A polygon from a shapely geometry, GeoJSON, or a list of corners."""
    try:
        polygon = _polygon(region)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, shapely.errors.ShapelyError):
        raise PolicyError("places: region must be a polygon, GeoJSON of one, or a list of (x, y) corners") from None
    if polygon.geom_type not in ("Polygon", "MultiPolygon") or not polygon.area > 0:
        raise PolicyError("places: region must be a polygon with an area")
    if not polygon.is_valid:
        raise PolicyError("places: the border of the region crosses itself; draw it again")
    return polygon


def _polygon(region: Any) -> Any:
    if isinstance(region, shapely.Geometry):
        return region
    if not isinstance(region, Mapping):
        return shapely.Polygon(region)
    if region.get("type") == "FeatureCollection":
        return shapely.union_all([_polygon(feature) for feature in region["features"]])
    return shapely.geometry.shape(region["geometry"] if region.get("type") == "Feature" else region)


def region_around(sites: FloatArray) -> Any:
    """The convex hull with a margin of the median distance between nearest neighbours."""
    points = shapely.points(sites)
    margin = LONE_MARGIN_M
    if len(sites) > 1:
        _, distances = shapely.STRtree(points).query_nearest(points, exclusive=True, return_distance=True)
        margin = float(np.median(distances))
    return shapely.buffer(shapely.MultiPoint(points).convex_hull, margin, quad_segs=4)


_TURNS: Final = (0.0, 17.0, 41.0, 73.0)
"""Degrees by which the plane is turned before cells are drawn. GEOS now and then draws a cell over others if edges are
parallel to an axis; turned a little, the same sites give correct cells."""
_ROUNDING: Final = 1e-6


def _diagram(sites: FloatArray, region: Any) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """The cell of every site and the edges of the Voronoi diagram, clipped to the region."""
    points = shapely.points(sites)
    for degrees in _TURNS:
        turned, around = (rotate(shape, degrees, origin=(0, 0)) for shape in (shapely.MultiPoint(points), region))
        polygons, edges = (
            shapely.get_parts(rotate(drawn, -degrees, origin=(0, 0)))
            for drawn in (
                shapely.voronoi_polygons(turned, extend_to=around),
                shapely.voronoi_polygons(turned, extend_to=around, only_edges=True),
            )
        )
        owners, numbers = shapely.STRtree(points).query(polygons, predicate="contains")
        cells = np.full(len(sites), None, dtype=object)
        cells[numbers] = shapely.make_valid(polygons[owners])
        cells = shapely.intersection(cells, region)
        covered = np.nansum(shapely.area(cells)) / region.area
        if shapely.is_valid(polygons).all() and abs(covered - 1) < _ROUNDING:
            break
    return cells, shapely.get_parts(shapely.intersection(edges, region))


def voronoi_cells(sites: FloatArray, region: Any) -> NDArray[np.object_]:
    """The cell of every site, clipped to the region."""
    if len(sites) == 1:
        return np.array([region], dtype=object)
    return _diagram(sites, region)[0]


def shared_edges(sites: FloatArray, region: Any) -> Pairs:
    """Pairs of sites whose clipped cells share more than a point.

    The edges are clipped, not the cells: two cells clipped separately would not share the new corners to the last
    digit. The middle of an edge is equally near to its two sites, and to no third.
    """
    pieces = _diagram(sites, region)[1]
    pieces = pieces[shapely.length(pieces) > MILLIMETRE]
    middles = shapely.line_interpolate_point(pieces, 0.5, normalized=True)
    tree = shapely.STRtree(shapely.points(sites))
    found, distances = tree.query_nearest(middles, all_matches=False, return_distance=True)
    reach = np.empty(len(middles))
    reach[found[0]] = distances + MILLIMETRE / 2
    lines, numbers = tree.query(middles, predicate="dwithin", distance=reach)
    return _two_nearest(lines, numbers, shapely.distance(middles[lines], shapely.points(sites[numbers])))


def _two_nearest(lines: NDArray[np.int64], numbers: NDArray[np.int64], distances: FloatArray) -> Pairs:
    order = np.lexsort((distances, lines))
    lines, numbers = lines[order], numbers[order]
    first = np.flatnonzero(np.diff(lines, prepend=-1))
    return list(zip(numbers[first].tolist(), numbers[first + 1].tolist(), strict=True))


def nearest_bridges(sites: FloatArray, edges: Pairs, *, geographic: bool) -> Pairs:
    """Edges that connect the components, each between the nearest sites of two of them."""
    part = np.array(components(len(sites), edges))
    bridges: Pairs = []
    reached = np.zeros(len(sites), dtype=np.bool_)
    nearest, gap = np.zeros(len(sites), dtype=np.int64), np.full(len(sites), np.inf)
    newest = part == 0
    while len(bridges) + 1 < len(np.unique(part)):
        reached |= newest
        for site in np.flatnonzero(newest):
            distance = haversine_m(sites[site], sites) if geographic else np.hypot(*(sites - sites[site]).T)
            nearer = distance < gap
            nearest[nearer], gap[nearer] = site, distance[nearer]
        outside = np.flatnonzero(~reached)
        next_site = int(outside[np.argmin(gap[outside])])
        bridges.append((int(nearest[next_site]), next_site))
        newest = part == part[next_site]
    return bridges
