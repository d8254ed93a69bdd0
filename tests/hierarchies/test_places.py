"""Places: cells, adjacency, distances, and refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import components
from tests.reference.effort import tries
from tests.reference.km_partition import haversine

SQUARE = [(0, 0), (40, 0), (40, 40), (0, 40)]
POINTS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=12)


def plane(points, region=None) -> shoal.Places:
    names = [f"p{number:02d}" for number in range(len(points))]
    return shoal.Places(names, [x for x, _ in points], [y for _, y in points], geographic=False, region=region)


def naive_edges(places) -> set[tuple[int, int]]:
    """Two cells share an edge if their borders share a line."""
    return {
        (one, other)
        for one in range(len(places.cells))
        for other in range(one + 1, len(places.cells))
        if places.cells[one].boundary.intersection(places.cells[other].buffer(1e-6)).length > 1e-3
    }


@tries(60)
@given(POINTS, st.booleans())
@example([(1, 1)], False)
@example([(1, 1), (3, 3)], True)
@example([(1, 1), (2, 2), (3, 3), (9, 9)], False)
@example([(5, 5), (5, 5), (7, 7)], True)
@example([(1, 1), (1, 2), (2, 1), (2, 2)], True)
def test_cells_cover_the_region_and_edges_are_shared_borders(points, clipped):
    places = plane(points, SQUARE if clipped else None)
    assert len(places.cells) == len(set(points)) == len(places.areas) == len(places.centroids)
    assert math.isclose(places.areas.sum() * 1e6, places.region.area, rel_tol=1e-9)
    for name, point in enumerate(points):
        cell = places.cells[places.site_of[name]]
        assert cell.distance(shapely.Point(point)) < 1e-9
        assert tuple(places.sites[places.site_of[name]]) == point
    assert {tuple(edge) for edge in places.edges.tolist()} == naive_edges(places)
    assert set(components(len(places.cells), places.edges.tolist())) == {0}


def test_a_grid_has_no_diagonals():
    places = plane([(x, y) for x in range(1, 8) for y in range(1, 8)])
    steps = np.abs(places.sites[places.edges[:, 0]] - places.sites[places.edges[:, 1]]).sum(axis=1)
    assert steps.tolist() == [1.0] * (2 * 7 * 6)


def test_names_are_sorted_with_their_coordinates():
    places = shoal.Places(["b", "a"], [3, 1], [4, 2], geographic=False)
    assert places.names == ("a", "b")
    assert (places.x.tolist(), places.y.tolist()) == ([1, 3], [2, 4])
    assert repr(places) == "<Places of 2 names at 2 sites>"


def test_equal_coordinates_are_one_site():
    places = plane([(9, 9), (1, 1), (9, 9), (1, 1.0000001), (5, 1)])
    assert places.site_of.tolist() == [0, 1, 0, 1, 2]
    assert places.ground.shares.tolist() == (places.areas[[0, 1, 0, 1, 2]] / [2, 2, 2, 2, 1]).tolist()
    assert repr(places) == "<Places of 5 names at 3 sites>"


def test_the_margin_is_the_median_distance_to_the_nearest():
    places = plane([(0, 0), (10, 0), (20, 0), (50, 0)])
    assert places.region.bounds == pytest.approx((-10, -10, 60, 10))
    assert plane([(5, 5)]).region.bounds == pytest.approx((-995, -995, 1005, 1005))


def test_islands_are_connected_by_their_nearest_pair():
    islands = shapely.union_all([shapely.box(0, 0, 10, 10), shapely.box(20, 0, 30, 10), shapely.box(100, 0, 110, 10)])
    places = plane([(2, 5), (8, 4), (22, 4), (28, 5), (105, 5)], islands)
    assert places.edges.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert math.isclose(places.areas.sum(), 300e-6)


def test_a_wall_parts_neighbours():
    corridor = [(0, 0), (30, 0), (30, 10), (20, 10), (20, 1), (10, 1), (10, 10), (0, 10)]
    places = plane([(5, 9), (25, 9), (15, 0.5)], corridor)
    assert places.edges.tolist() == [[0, 2], [1, 2]]


def test_a_cut_at_one_point_is_no_edge():
    touching = shapely.union_all([shapely.box(0, 0, 10, 10), shapely.box(10, 10, 20, 20), shapely.box(20, 0, 21, 10)])
    places = plane([(5, 5), (15, 15), (20.5, 5)], touching)
    # All three are bridges: the first two cells meet in the corner (10, 10) alone.
    assert places.edges.tolist() == [[0, 1], [1, 2]]


# ---- the globe

RAIN = {"Paris": (2.3522, 48.8566), "Lyon": (4.8357, 45.7640), "Lille": (3.0573, 50.6292)}


def test_distances_follow_the_globe():
    places = shoal.Places(RAIN, *zip(*RAIN.values(), strict=True))
    for one in RAIN.values():
        for other in RAIN.values():
            assert float(places.distance(one, other)) == pytest.approx(haversine(one, other))
    assert float(places.distance(RAIN["Paris"], RAIN["Lyon"])) == pytest.approx(391_500, rel=1e-3)
    assert places.distance(places.sites, places.sites[0]).shape == (3,)
    assert plane([(0, 0), (3, 4)]).distance((0, 0), (3, 4)) == 5.0


def test_areas_are_square_kilometres():
    side = 0.1  # degrees of latitude, 11.12 km
    corners = [(10, 60), (10 + 2 * side, 60), (10 + 2 * side, 60 + side), (10, 60 + side)]
    places = shoal.Places(["a", "b"], [10.05, 10.15], [60.05, 60.05], region=corners)
    across, up = haversine((10, 60.05), (10.1, 60.05)) / 1e3, haversine((10, 60), (10, 60.1)) / 1e3
    assert places.areas.tolist() == pytest.approx([across * up, across * up], rel=1e-4)
    assert places.centroids.tolist() == [pytest.approx([10.05, 60.05]), pytest.approx([10.15, 60.05])]
    assert places.ground.radius_m == 6371008.8
    assert np.linalg.norm(places.ground.points, axis=1) == pytest.approx(1)


def test_a_city_in_degrees_has_the_edges_it_has_in_metres():
    random = np.random.default_rng(4)
    x, y = random.normal(2.35, 0.06, 150), random.normal(48.85, 0.04, 150)
    names = [f"{number:03d}" for number in range(150)]
    city = shoal.Places(names, x, y)
    scale = 6371008.8 * math.pi / 180
    middle = math.radians((y.min() + y.max()) / 2)
    flat = shoal.Places(names, x * scale * math.cos(middle), y * scale, geographic=False)
    assert city.edges.tolist() == flat.edges.tolist()
    assert {tuple(edge) for edge in flat.edges.tolist()} == naive_edges(flat)
    assert city.areas == pytest.approx(flat.areas)


def test_a_pole_has_cells():
    places = shoal.Places(["a", "b", "c"], [0, 120, -120], [89.99, 89.99, 90])
    assert (places.areas > 0).all()


# ---- coming and going

GEOJSON = {"type": "Polygon", "coordinates": [[*SQUARE, SQUARE[0]]]}


@pytest.mark.parametrize(
    "region",
    [
        SQUARE,
        np.array(SQUARE),
        GEOJSON,
        shapely.Polygon(SQUARE),
        {"type": "Feature", "geometry": GEOJSON, "properties": {}},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": GEOJSON, "properties": {}}]},
    ],
    ids=["corners", "array", "geojson", "shapely", "feature", "collection"],
)
def test_ways_to_give_a_region(region):
    places = plane([(5, 5), (30, 30)], region)
    assert places.areas.sum() == pytest.approx(1600e-6)
    assert shoal.Places.from_dict(json.loads(json.dumps(places.to_dict()))).areas.tolist() == places.areas.tolist()


@pytest.mark.parametrize("region", [None, SQUARE])
def test_round_trip(region):
    places = plane([(5, 5), (30.25, 30), (5, 5)], region)
    content = json.loads(json.dumps(places.to_dict()))
    assert content == places.to_dict()
    again = shoal.Places.from_dict(content)
    assert again.edges.tolist() == places.edges.tolist()
    assert again == places
    assert hash(again) == hash(places)


def test_from_csv(tmp_path):
    file = tmp_path / "towers.csv"
    file.write_text("name,lat,lon,owner\n007,48.8,2.3,x\n\n12,48.9,2.4,y\n", encoding="utf-8-sig")
    places = shoal.Places.from_csv(file)
    assert places.names == ("007", "12")
    assert (places.x.tolist(), places.y.tolist()) == ([2.3, 2.4], [48.8, 48.9])
    file.write_text("tower,east,north\na,1000,2000\nb,3,4\n")
    corners = [(0, 0), (9e3, 0), (0, 9e3)]
    flat = shoal.Places.from_csv(file, name="tower", x="east", y="north", geographic=False, region=corners)
    assert flat.x.tolist() == [1000, 3]
    file.write_text("name,x,y\na,1000,2000\n")
    assert shoal.Places.from_csv(file, geographic=False).y.tolist() == [2000]


def test_from_table():
    table = pa.table({"name": ["b", "a"], "lon": [1, 2], "lat": [3.5, 4.5]})
    assert shoal.Places.from_table(table).x.tolist() == [2, 1]
    batch = pa.record_batch({"id": [7, 8], "x": [1.0, 2.0], "y": [3.5, 4.5]})
    assert shoal.Places.from_table(batch, name="id", geographic=False).names == ("7", "8")


# ---- what it refuses


@pytest.mark.parametrize(
    ("names", "x", "y", "problem"),
    [
        ([], [], [], "none given"),
        ("ab", [1, 2], [1, 2], "none given"),
        (["a", ""], [1, 2], [1, 2], "text that is not empty"),
        (["a", 3], [1, 2], [1, 2], "text that is not empty"),
        (["a", "b", "a"], [1, 2, 3], [1, 2, 3], "1 names appear twice"),
        (["a"], [1, 2], [1, 2], "as many as there are names"),
        (["a", "b"], [1, 2], [1], "as many as there are names"),
        (["a"], ["east"], [1], "must be numbers"),
        (["a"], 1, 1, None),
        (["a", "b"], [1, math.nan], [1, 1], "1 have no finite coordinates"),
        (["a", "b"], [1, 2], [None, 1], "1 have no finite coordinates"),
        (["a", "b"], [1, 2], [math.inf, 1], "1 have no finite coordinates"),
        (["a", "b"], [181, 2], [1, 1], "1 lie beyond"),
        (["a", "b"], [48, 2], [-90.5, 91], "2 lie beyond"),
    ],
)
def test_names_and_coordinates_it_refuses(names, x, y, problem):
    if problem is None:
        assert len(shoal.Places(names, x, y)) == 1
        return
    with pytest.raises(PolicyError, match=problem):
        shoal.Places(names, x, y)


@pytest.mark.parametrize(
    ("region", "problem"),
    [
        (7, "must be a polygon"),
        ([(0, 0), (1, 1)], "must be a polygon"),
        ({"type": "Feature"}, "must be a polygon"),
        ({"type": "Nothing"}, "must be a polygon"),
        (shapely.Point(1, 1), "polygon with an area"),
        ([(0, 0), (1, 1), (2, 2)], "polygon with an area"),
        ([(0, 0), (4, 4), (4, 0), (0, 5)], "crosses itself"),
        ([(0, 0), (4, 0), (4, 4), (0, 4)], "1 lie outside the region"),
    ],
)
def test_regions_it_refuses(region, problem):
    with pytest.raises(PolicyError, match=problem):
        plane([(1, 1), (30, 30)], region)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "towers.csv: has no column 'name'"),
        ("name,x,y\na,1,2\n", "towers.csv: has no column 'lon'"),
        ("name,lon,lat\na,1\n", "towers.csv: line 2: has more or fewer"),
        ("name,lon,lat\na,1,2\nb,secret,2\n", "towers.csv: line 3: a coordinate is not a number"),
        ('name,lon,lat\n"a,1,2\n', "a quote is not closed"),
        ("name,lon,lat\n", "none given"),
        (b"name,lon,lat\n\xff,1,2\n", "not UTF-8"),
        ("name,lon,lat\na\0,1,2\n", "contains a NUL character"),
        (None, "cannot be read"),
    ],
)
def test_files_it_refuses(tmp_path, text, problem):
    file = tmp_path / "towers.csv"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(PolicyError, match=problem) as caught:
        shoal.Places.from_csv(file)
    assert "secret" not in str(caught.value)


def test_tables_it_refuses():
    with pytest.raises(PolicyError, match="has no column 'lat'"):
        shoal.Places.from_table(pa.table({"name": ["a"], "lon": [1]}))
    for bad in (pa.table({"name": ["a"], "lon": ["x"], "lat": [1]}), 7):
        with pytest.raises(PolicyError, match="give an Arrow table"):
            shoal.Places.from_table(bad)
    with pytest.raises(PolicyError, match="1 have no finite"):
        shoal.Places.from_table(pa.table({"name": ["a", "b"], "lon": [1, None], "lat": [1, 2]}))


@pytest.mark.parametrize("content", [{}, None, {"names": ["a"], "x": [1], "y": [1]}, {"names": 3}])
def test_what_to_dict_never_wrote(content):
    with pytest.raises(PolicyError, match="write it again"):
        shoal.Places.from_dict(content)
