"""Grids: ends of ranges are exact multiples of the step, cover the values, and differ from all other numbers."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from shoal import Fads, FlexibleK, Numeric, Schema
from shoal.auditor import audit
from shoal.auditor.rows.grid import Points, cells_of, on_points
from shoal.encode.text import csv_column
from shoal.errors import InputError, PolicyError
from shoal.methods.flexible.axes import GridAxis
from shoal.methods.quasi_readers import NumericReader
from shoal.methods.schema_arrays import compile_shape
from shoal.pipeline.doctor.flexible import _Ranges
from shoal.schema import grid_units
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels

KEY = b"sixteen bytes or more"
plain = plain_kernels("tuples.generalize")


@st.composite
def decimal_grids(draw):
    """A domain and a grid of a few digits, and a value as a file would have it: often a point of the grid."""
    digits = draw(st.integers(0, 6))
    low, step = draw(st.integers(-(10**9), 10**9)), draw(st.integers(1, 10**4))
    count = draw(st.integers(1, 10**5))
    value = low + draw(st.one_of(st.integers(0, count).map(lambda n: n * step), st.integers(0, count * step)))
    return tuple(float(Fraction(number, 10**digits)) for number in (low, low + count * step, step, value)), digits


def snapped(role, value):
    shape = compile_shape([role], [None])
    s = SimpleNamespace(attr_f=shape.attr_f, attr_i=shape.attr_i)
    return float(plain.generalize.snapped_down(s, 0, value)), float(plain.generalize.snapped_up(s, 0, value))


@given(decimal_grids())
@example(((-74.25, -73.75, 0.01, -74.01), 2))
@example(((0.0, 0.9, 0.3, 0.9), 1))
@tries(100)
def test_ends_are_the_nearest_multiples_and_print_as_such(drawn):
    (low, high, grid, value), digits = drawn
    assume(low < high)
    down, up = snapped(Numeric("x", low=low, high=high, grid=grid), value)
    exact_low, exact_grid = Fraction(repr(low)), Fraction(repr(grid))
    steps = (Fraction(repr(value)) - exact_low) / exact_grid
    assert down == float(exact_low + math.floor(steps) * exact_grid)
    assert up == min(float(exact_low + math.ceil(steps) * exact_grid), high)
    assert low <= down <= value <= up <= high
    for end in (down, up):
        assert Fraction(repr(end)).limit_denominator(10**digits) == Fraction(repr(end))


@given(st.integers(-(10**9), 10**9), st.integers(1, 10**6), st.integers(1, 999), st.integers(1, 1000), st.floats(0, 1))
@tries(100)
def test_any_grid_covers(first, top, bottom, count, share):
    low, grid = first / 1000, top / bottom
    high = low + grid * count
    assume(grid_units(low, high, grid) is not None)
    value = min(max(low + share * (high - low), low), high)
    down, up = snapped(Numeric("x", low=low, high=high, grid=grid), value)
    assert low <= down <= value <= up <= high
    points = Points.of(low, high, grid)
    assert down == low or points.number(down) is not None
    assert up == high or points.number(up) is not None
    assert points.below(value) == points.number(down)


def test_a_grid_of_a_third():
    assert grid_units(-20, -17, 1 / 3) == (3, -60, 1)
    assert snapped(Numeric("x", low=0, high=3, grid=1 / 3), 1.0) == (1.0, 1.0)
    assert Points.of(0, 3, 1 / 3).number(2 / 3) == 2
    assert snapped(Numeric("x", low=0, high=3, grid=1 / 3), 0.7) == (2 / 3, 1.0)


def test_too_many_digits_are_refused():
    with pytest.raises(PolicyError, match="grid has too many digits together with low"):
        Numeric("x", low=1e15, high=1e15 + 1, grid=0.001)


@pytest.mark.parametrize(("low", "high"), [(-74.25909, -73.70027), (97.25908989999999, 98.1)])
def test_a_comparison_finds_a_grid_for_any_domain(low, high):
    role = _Ranges(Numeric("x", low=low, high=high), is_moment=False).role
    assert role.grid == pytest.approx((high - low) / 1024, rel=0.05)
    points = Points.of(low, high, role.grid)
    for value in np.linspace(low, high, 50).tolist():
        down, up = snapped(role, min(value, high))
        assert low <= down <= min(value, high) <= up <= high
        assert points.number(down) == points.below(min(value, high))


def test_a_comparison_goes_without_a_grid_where_none_fits():
    assert _Ranges(Numeric("x", low=0.1 + 0.2, high=7 / 3), is_moment=False).role.grid is None


def test_points_differ_from_their_neighbours():
    points = Points.of(-74.25, -73.75, 0.01)
    good = np.array([float(Fraction(-7425 + n, 100)) for n in range(51)])
    assert on_points(good, points).all()
    assert not on_points(np.nextafter(good, 0), points).any()
    assert not on_points(np.nextafter(good, -100), points).any()
    assert cells_of(good, points).tolist() == list(range(51))
    assert cells_of(np.nextafter(good, -100), points).tolist() == list(range(-1, 50))
    assert not on_points(np.array([math.nan, math.inf, -math.inf]), points).any()


# ---- moments

HOUR = {"low": "2012-04-01", "high": "2012-04-02", "grid": "1h"}
BEGIN = datetime(2012, 4, 1, tzinfo=UTC)
NS = int(BEGIN.timestamp()) * 10**9


def fads(rows, *, grid, kind="timestamp[ns]"):
    role = Numeric("ts", low="2012-04-01", high="2012-04-02", grid=grid)
    made = Fads(Schema(person="id", quasi=[role]), k=2, deadline=10, reuse=0, key=KEY)
    unit = kind.partition("[")[2][:2]
    column = pa.array(rows, pa.int64()).cast(pa.timestamp(unit, tz="UTC"))
    truth = pa.table({"id": [f"p{n}" for n in range(len(rows))], "ts": column})
    releases = [made.push_batch(truth), made.flush()]
    return pa.concat_batches([release.rows for release in releases]), truth, releases


def test_hours_end_on_the_hour():
    shown, truth, releases = fads([NS + 1800 * 10**9, NS + 3600 * 10**9], grid="1h")
    assert csv_column(shown.column("ts")).to_pylist() == ["[2012-04-01T00:00:00Z, 2012-04-01T01:00:00Z]"] * 2
    policy = {
        "stream": {"person": "id"},
        "anonymize": {
            "method": "fads",
            "k": 2,
            "deadline": 10,
            "reuse": 0,
            "quasi": {"ts": {"kind": "numeric", **HOUR}},
        },
    }
    assert audit(releases, truth, releases, policy).ok


@pytest.mark.parametrize(
    ("nanoseconds", "grid", "micros"),
    [
        ((0, 0), None, (0, 0)),
        ((0, 5000), None, (0, 5)),
        ((1, 999), None, (0, 1)),
        ((1999, 2001), None, (1, 3)),
        ((3600 * 10**9, 3600 * 10**9 + 1), "1h", (3600 * 10**6, 7200 * 10**6)),
        ((3600 * 10**9 - 1, 3600 * 10**9), "1h", (0, 3600 * 10**6)),
        ((1_000_001, 1_999_999), "1ms", (1000, 2000)),
        ((86400 * 10**9, 86400 * 10**9), "7h", (21 * 3600 * 10**6, 86400 * 10**6)),
    ],
)
def test_nanoseconds_are_covered_and_whole_microseconds_stay(nanoseconds, grid, micros):
    shown, _, _ = fads([NS + own for own in nanoseconds], grid=grid)
    ends = shown.column("ts")[0].as_py()
    assert (ends["lo"], ends["hi"]) == tuple(BEGIN + timedelta(microseconds=own) for own in micros)


def test_a_moment_above_the_domain_by_a_nanosecond_is_outside():
    role = Numeric("ts", low="2012-04-01", high="2012-04-02")
    column = pa.array([NS + 86400 * 10**9, NS + 86400 * 10**9 + 1, NS - 1, NS], pa.int64()).cast(pa.timestamp("ns"))
    assert NumericReader(role).read(column)[1].tolist() == [False, True, True, False]


def test_moments_have_grids_of_whole_microseconds():
    for grid in ("500ns", "1us1ns"):
        reader = NumericReader(Numeric("ts", low="1970-01-01", high="1970-01-02", grid=grid))
        with pytest.raises(InputError, match="column 'ts': low and grid of moments must be whole microseconds"):
            reader.check_type(pa.timestamp("us"))
        reader.check_type(pa.float64())


def ends_of(nanoseconds):
    """The microseconds between which a moment is published without a grid."""
    reader = NumericReader(Numeric("ts", low=-(2.0**33), high=2.0**33))
    kind = reader.output_type(pa.timestamp("ns"))
    raws, _ = reader.read(pa.array([nanoseconds], pa.int64()).cast(pa.timestamp("ns")))
    shown = reader.publish(raws, raws, np.zeros(1, np.int64), np.zeros(1, np.bool_), kind)
    return tuple(shown.field(name).cast(pa.int64())[0].as_py() for name in ("lo", "hi"))


@given(st.integers(-(2**31) * 10**9 + 1, 2**31 * 10**9 - 1))
@example(2**31 * 10**9 - 1)
@example(2**31 * 10**9 - 1000)
@example(1)
@tries(300)
def test_moments_come_back_covered(nanoseconds):
    assert ends_of(nanoseconds) == (nanoseconds // 1000, -(-nanoseconds // 1000))


@given(st.integers(2**31 * 10**9, 2**32 * 10**9 - 1), st.sampled_from([1, -1]))
@example(2_152_185_749_867_396_001, 1)
@example(2_152_185_749_867_396_001, -1)
@example(2**32 * 10**9 - 1, 1)
@tries(300)
def test_late_moments_are_covered_within_a_microsecond(nanoseconds, sign):
    """Until 2106 float seconds cannot show every half microsecond: ranges are never too narrow."""
    nanoseconds *= sign
    low, high = ends_of(nanoseconds)
    assert nanoseconds // 1000 - 1 <= low <= nanoseconds // 1000
    assert -(-nanoseconds // 1000) <= high <= -(-nanoseconds // 1000) + 1


# ---- cells of flexible


@given(decimal_grids())
@example(((0.1, 7.3, 0.1, 0.3), 1))
@tries(100)
def test_cells_begin_and_end_at_exact_multiples(drawn):
    (low, high, grid, value), _ = drawn
    assume(low < high)
    axis = GridAxis(Numeric("x", low=low, high=high, grid=grid), is_moment=False, with_root=False)
    cells = axis.cells_of(np.array([value]))
    kind = pa.struct([("lo", pa.float64()), ("hi", pa.float64())])
    exact_low, exact_grid = Fraction(repr(low)), Fraction(repr(grid))
    steps = min(math.floor((Fraction(repr(value)) - exact_low) / exact_grid), axis.cells - 1)
    (shown,) = axis.publish(axis.finest(cells), kind).to_pylist()
    assert shown["lo"] == float(exact_low + steps * exact_grid) <= value <= shown["hi"]
    assert shown["hi"] == (high if steps == axis.cells - 1 else float(exact_low + (steps + 1) * exact_grid))


@pytest.mark.parametrize(("low", "high"), [(-74.25909, -73.70027), (0, 1), (97.25908989999999, 98.1)])
def test_cells_without_a_grid(low, high):
    role = Numeric("x", low=low, high=high)
    made = FlexibleK(Schema(person="id", quasi=[role]), None, k=2, key=KEY)
    values = np.repeat(np.linspace(low, high, 40), 3)
    truth = pa.table({"id": [f"p{n}" for n in range(120)], "x": values})
    releases = [made.push_batch(truth), made.flush()]
    assert sum(release.rows.num_rows for release in releases) > 60
    policy = {
        "stream": {"person": "id"},
        "anonymize": {"method": "flexible-k", "k": 2, "quasi": {"x": {"kind": "numeric", "low": low, "high": high}}},
    }
    report = audit(releases, truth, releases, policy)
    assert report.ok, report.violations
