"""A synthetic city: cell towers, and the towers that each person visited.

It has the published statistics of a city whose data are not public (Acs, Achara, Castelluccia 2015, Table II): 1,303
towers over 128.1 km², sets with 11.42 towers on average (standard deviation 17.23, at most 422), and towers whose
popularity has a coefficient of variation of 1.31. Everything else is synthetic.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import METRES_A_DEGREE
from shoal.hierarchies.places import Places
from shoal.kernels.sets.city import Habits, Lots, fill_lots, visit_places

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TOWERS: Final = 1303
AREA_KM2: Final = 128.1
PEOPLE: Final = 4_427_486
"""People of the paper's city."""
MEAN_SIZE: Final = 11.42
SIZE_DEVIATION: Final = 17.23
LONGEST: Final = 422
POPULARITY_VARIATION: Final = 50_911 / 38_817
"""Standard deviation of the people per tower over their mean."""

_MIDDLE: Final = (-30.0, 45.0)
"""Longitude and latitude in the open sea: no real city is meant."""
_CORNERS: Final = 180
_THINNING_KM: Final = 5.0
"""Over this distance from the middle the density of towers falls by a factor of e."""
_OUTERMOST: Final = 0.985
"""Towers reach up to this part of the way to the border."""
_GOLDEN: Final = 1.32471795724474602596
"""The plastic number; multiples of its inverse powers spread evenly over a square."""
_SIZE_SHAPE, _SIZE_SCALE = 0.65285604, 8.0028839
"""Weibull parameters that, rounded up and truncated at the longest, give the mean and deviation above."""
_SKEW: Final = 0.78
"""Standard deviation of a tower's log attraction; gives the variation of popularity above."""
_CORE_SHARE: Final = 0.3
"""Share of towers in the core, where people with many towers meet."""
_CORE_EDGE: Final = 8.0
"""How steeply attraction falls at the edge of the core, for these people."""
_REACH_M: Final = 900.0
"""Over this distance from a person's centre a visit becomes less likely by a factor of e."""
_AT_HOME: Final = 0.6
_WANDERING_FROM: Final = 20.0
"""A person with this many places draws half of them from the whole city."""
_PEOPLE_PER_TASK: Final = 1 << 16
_PLACES_STREAM, _SKEW_STREAM, _SIZE_STREAM, _VISIT_STREAM = range(4)


@dataclass(frozen=True, slots=True)
class City:
    """Towers, and the towers of each person."""

    places: Places
    starts: Ints
    towers: npt.NDArray[np.int32]
    """Positions in the names of the places, person by person."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def records(self) -> pa.LargeListArray:
        """One list of tower names per person."""
        names = pa.array(self.places.names, pa.string())
        values = pa.DictionaryArray.from_arrays(pa.array(self.towers), names)
        return pa.LargeListArray.from_arrays(pa.array(self.starts), values)

    @property
    def sizes(self) -> Ints:
        """Number of towers of each person."""
        return np.diff(self.starts)

    @property
    def people_per_tower(self) -> Ints:
        """Number of people at each tower."""
        return np.bincount(self.towers, minlength=len(self.places))


def make_city(people: int, *, seed: int = 0) -> City:
    """Return a city with this many people; the towers depend only on the seed."""
    if people < 1:
        raise PolicyError("people: must be at least 1")
    places = make_places(seed)
    starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(_draw_sizes(people, seed))))
    return City(places, starts, _draw_visits(places, starts, seed))


def make_places(seed: int = 0) -> Places:
    """Return towers, denser in the middle, in a city with an irregular border."""
    shift = _random(seed, _PLACES_STREAM).random(2)
    steps = np.outer(np.arange(1, TOWERS + 1), [1 / _GOLDEN, 1 / _GOLDEN**2])
    share, turn = ((steps + shift) % 1.0).T
    angles = np.linspace(0, 2 * math.pi, _CORNERS, endpoint=False)
    border = _on_globe(_winding(angles), angles)
    distance = _from_the_middle(share) * _winding(2 * math.pi * turn)
    x, y = _on_globe(distance, 2 * math.pi * turn).T
    names = [f"T{number:04}" for number in range(1, TOWERS + 1)]
    return Places(names, x, y, region=border)


def _winding(angles: Floats) -> Floats:
    """Return the distance in metres from the middle to the border, scaled to the area of the city."""
    waves = ((2, 0.10, 0.4), (3, 0.06, 2.0), (5, 0.03, 1.1))
    shape = np.ones_like(angles)
    for count, height, phase in waves:
        shape += height * np.cos(count * angles + phase)
    square = 1 + sum(height**2 / 2 for _, height, _ in waves)  # mean of shape²
    return 1000 * math.sqrt(AREA_KM2 / math.pi / square) * shape


def _from_the_middle(share: Floats) -> Floats:
    """Return the part of the way to the border within which this share of the towers lies."""
    way = np.linspace(0, _OUTERMOST, 2001)
    fallen = way * math.sqrt(AREA_KM2 / math.pi) / _THINNING_KM
    nearer = 1 - (1 + fallen) * np.exp(-fallen)
    return np.interp(share, nearer / nearer[-1], way)


def _on_globe(metres: Floats, angles: Floats) -> Floats:
    """Convert distances and angles from the middle to longitudes and latitudes."""
    shrinking = math.cos(math.radians(_MIDDLE[1]))
    steps = np.column_stack([np.cos(angles) / shrinking, np.sin(angles)]) * metres[:, None] / METRES_A_DEGREE
    points: Floats = steps + _MIDDLE
    return points


def _draw_sizes(people: int, seed: int) -> Ints:
    """Draw the number of towers of each person, stratified so that few people fit the distribution too."""
    random = _random(seed, _SIZE_STREAM)
    upto = 1 - np.exp(-((np.arange(1, LONGEST + 1) / _SIZE_SCALE) ** _SIZE_SHAPE))
    drawn = (np.arange(people) + random.random(people)) / people
    sizes: Ints = 1 + np.searchsorted(upto / upto[-1], drawn, side="right").clip(max=LONGEST - 1)
    random.shuffle(sizes)
    return sizes


def _habits(places: Places, seed: int) -> Habits:
    attraction = np.exp(_SKEW * _random(seed, _SKEW_STREAM).standard_normal(len(places)))
    points = np.column_stack([places.x, places.y])
    apart = places.distance(points[:, None, :], points[None, :, :])
    edge = np.quantile(attraction, 1 - _CORE_SHARE)
    in_core = attraction / (1 + (edge / attraction) ** _CORE_EDGE)
    weights = np.vstack([attraction * np.exp(-apart / _REACH_M), in_core])
    lots = Lots(np.empty_like(weights), np.empty(weights.shape, np.int32))
    fill_lots(weights, lots, *np.empty((2, len(places)), np.int64))
    sizes = np.arange(LONGEST + 1)
    return Habits(lots, _AT_HOME, sizes / (sizes + _WANDERING_FROM))


def _draw_visits(places: Places, starts: Ints, seed: int) -> npt.NDArray[np.int32]:
    habits, key = _habits(places, seed), _random(seed, _VISIT_STREAM).integers(1 << 63, size=2, dtype=np.uint64)
    people, towers = len(starts) - 1, np.empty(starts[-1], np.int32)

    def work(first: int) -> None:
        seen, coins = np.full(len(places), -1, np.int64), np.zeros(1, np.uint64)
        visit_places(starts, first, min(first + _PEOPLE_PER_TASK, people), habits, key, seen, coins, towers)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(work, range(0, people, _PEOPLE_PER_TASK)))
    return towers


def _random(seed: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, stream]))
