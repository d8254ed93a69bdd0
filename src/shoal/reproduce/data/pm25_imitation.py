"""Synthetic weather and air quality like UCI PM2.5 of five Chinese cities, hour by hour from January 2013.

The tables are rounded averages of the published data; they contain no row of it. Dependencies: consecutive hours; the
posts of a city; temperature on season and hour; pressure and dew point on temperature; humidity on both; less dust in
dry hours; cumulated wind speed while the direction stays; cumulated rain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.reproduce.data.pm25 import CITIES, pm25_stream
from shoal.reproduce.data.streams import Stream
from shoal.reproduce.data.trees import PM25_DOMAINS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEASONS: Final = ("Winter", "Spring", "Summer", "Autumn")
DIRECTIONS: Final = ("NE", "NW", "SE", "SW", "cv")
COMPLETE_SHARE: Final = 0.77
"""Share of hours with every reading."""
_HOURS_A_DAY, _DAYS_A_YEAR, _LONGEST = 24, 365, 3 * 8760
_CALM: Final = DIRECTIONS.index("cv")
_WARMEST_HOUR: Final = 14
_MEMORY: Final = {"temperature": 0.985, "gap": 0.96, "pressure": 0.995, "dust": 0.967, "post": 0.65}
"""Autocorrelation of a deviation over one hour."""


@dataclass(frozen=True, slots=True)
class _City:
    """Averages by season (winter, spring, summer, autumn), some with their spread."""

    temperature: tuple[float, ...]
    temperature_spread: tuple[float, ...]
    swing: float
    """Half the difference between a day's warmest and coldest hour."""
    gap: tuple[float, ...]
    """Degrees from the dew point to the temperature."""
    pressure: tuple[float, ...]
    pressure_spread: tuple[float, ...]
    dust: tuple[float, ...]
    """Logarithm of the particles per cubic metre, over the posts."""
    dust_spread: tuple[float, ...]
    dust_and_gap: float
    """Correlation of the dust with the gap."""
    posts: tuple[float, float, float]
    """Deviation of each post from the average, as a logarithm."""
    post_spread: float
    directions: tuple[float, ...]
    stays: tuple[float, ...]
    """Probability that a direction stays for another hour."""
    speed: float
    rain: tuple[float, ...]
    """Share of hours with rain."""
    rain_amount: float


_CITIES: Final = {
    "Beijing": _City(
        (-0.8, 14.5, 26.1, 13.1), (3.0, 7.0, 2.5, 6.5), 4.8, (13.4, 15.2, 8.0, 9.9), (1026.8, 1013.9, 1004.9, 1019.3),
        (6.0, 6.0, 4.0, 5.0), (3.98, 4.04, 3.92, 3.93), (1.33, 0.96, 0.94, 1.20), -0.5, (-0.04, 0.06, -0.02), 0.27,
        (0.12, 0.30, 0.36, 0, 0.22), (0.41, 0.76, 0.76, 0, 0.44), 3.5, (0.009, 0.024, 0.062, 0.036), 0.5,
    ),
    "Chengdu": _City(
        (8.7, 19.1, 26.2, 18.7), (2.5, 4.8, 2.7, 4.0), 3.0, (5.4, 8.3, 5.7, 4.1), (1022.2, 1013.5, 1006.2, 1017.3),
        (6.0, 6.0, 3.5, 5.0), (4.67, 4.12, 3.74, 3.91), (0.62, 0.63, 0.55, 0.63), -0.1, (-0.03, -0.06, 0.09), 0.19,
        (0.10, 0.18, 0.06, 0.18, 0.48), (0.53, 0.57, 0.39, 0.53, 0.66), 2.4, (0.029, 0.072, 0.138, 0.118), 0.35,
    ),
    "Guangzhou": _City(
        (14.2, 21.6, 28.2, 24.3), (4.2, 4.2, 1.7, 3.5), 3.0, (5.7, 3.2, 4.3, 5.0), (1012.4, 1004.9, 997.2, 1005.0),
        (4.0, 5.0, 3.3, 4.5), (3.98, 3.66, 3.20, 3.64), (0.65, 0.63, 0.66, 0.55), 0.1, (-0.04, 0.09, -0.04), 0.18,
        (0.34, 0.37, 0.16, 0.11, 0.02), (0.55, 0.64, 0.58, 0.53, 0.18), 2.3, (0.070, 0.150, 0.112, 0.055), 0.8,
    ),
    "Shanghai": _City(
        (7.0, 16.5, 27.5, 20.1), (3.4, 5.4, 3.8, 5.0), 3.0, (6.4, 7.1, 5.7, 6.4), (1025.6, 1015.0, 1005.5, 1017.8),
        (5.0, 6.0, 3.3, 5.0), (4.14, 3.85, 3.50, 3.56), (0.78, 0.59, 0.66, 0.68), 0.1, (0.02, -0.04, 0.02), 0.17,
        (0.37, 0.19, 0.29, 0.12, 0.03), (0.85, 0.81, 0.83, 0.68, 0.33), 4.0, (0.092, 0.107, 0.116, 0.085), 0.5,
    ),
    "Shenyang": _City(
        (-7.2, 12.0, 23.2, 10.0), (5.0, 8.0, 2.5, 8.0), 4.3, (7.1, 12.4, 6.4, 8.1), (1025.4, 1013.2, 1006.0, 1019.2),
        (6.0, 6.5, 4.2, 5.5), (4.37, 3.93, 3.59, 4.00), (0.79, 0.71, 0.65, 0.88), -0.25, (0.04, -0.01, -0.04), 0.22,
        (0.15, 0.18, 0.24, 0.35, 0.08), (0.70, 0.75, 0.72, 0.81, 0.35), 3.3, (0.034, 0.036, 0.062, 0.049), 0.45,
    ),
}  # fmt: skip


def imitate_pm25(rows: int, *, seed: int) -> Stream:
    """Return synthetic readings of five cities in the columns of PM2.5."""
    random = np.random.default_rng(seed)
    hours = int(rows / COMPLETE_SHARE / len(CITIES) * 1.1) + 200
    hour = np.arange(hours) % _LONGEST
    parts = [_imitate_city(random, _CITIES[city], hour) for city in CITIES]
    is_complete = random.random((hours, len(CITIES))) < COMPLETE_SHARE
    chosen = np.flatnonzero(is_complete.ravel())[:rows]  # hour by hour, the cities in turn
    columns = {name: pa.array(np.stack([part[name] for part in parts], axis=1).ravel()[chosen]) for name in parts[0]}
    return pm25_stream(columns, origin=f"an imitation of PM2.5 with seed {seed}, made by shoal")


def _imitate_city(random: np.random.Generator, city: _City, hour: Ints) -> dict[str, Floats]:
    day = hour // _HOURS_A_DAY
    season = (((day % _DAYS_A_YEAR) + 31) // 91) % len(SEASONS)  # winter begins in December
    gap_wave, dust_wave = _waves(random, len(hour), city.dust_and_gap)
    temperature = _temperature(random, city, hour, season)
    gap = np.asarray(city.gap)[season] * np.exp(0.6 * gap_wave - 0.18)
    dew = np.maximum(temperature - gap, -30)
    direction = _wind(random, city, len(hour))
    speed = _sums(_speeds(random, city, direction), np.append(True, direction[1:] != direction[:-1]))
    rain = _rain(random, city, season)
    dust = np.asarray(city.dust)[season] + np.asarray(city.dust_spread)[season] * dust_wave
    posts = [
        np.round(np.exp(dust + above + city.post_spread * _wave(random, len(hour), _MEMORY["post"])))
        for above in city.posts
    ]
    pressure = np.asarray(city.pressure)[season]
    pressure = pressure + np.asarray(city.pressure_spread)[season] * _wave(random, len(hour), _MEMORY["pressure"])
    readings = (*posts, np.round(dew), np.round(temperature), _humidity(temperature, dew), np.round(pressure), speed,
                rain, _sums(rain, rain == 0))  # fmt: skip
    within = {
        name: np.clip(reading, low, high)
        for (name, (low, high)), reading in zip(PM25_DOMAINS.items(), readings, strict=True)
    }
    return {**within, "season": np.asarray(SEASONS)[season], "wind-direction": np.asarray(DIRECTIONS)[direction]}


def _wave(random: np.random.Generator, length: int, memory: float) -> Floats:
    """Draw a standard normal AR(1) process."""
    steps = random.standard_normal(length) * np.sqrt(1 - memory**2)
    steps[0] /= np.sqrt(1 - memory**2)
    wave = np.empty(length)
    last = 0.0
    for at, step in enumerate(steps.tolist()):
        last = memory * last + step
        wave[at] = last
    return wave


def _waves(random: np.random.Generator, length: int, correlation: float) -> tuple[Floats, Floats]:
    gap = _wave(random, length, _MEMORY["gap"])
    dust = _wave(random, length, _MEMORY["dust"])
    return gap, correlation * gap + np.sqrt(1 - correlation**2) * dust


def _temperature(random: np.random.Generator, city: _City, hour: Ints, season: Ints) -> Floats:
    """Draw temperatures: the interpolated average of the season, the swing of the day, and weather."""
    middle = np.asarray(city.temperature)
    place = ((hour / _HOURS_A_DAY + 31) % _DAYS_A_YEAR) / 91 - 0.5
    average = np.interp(place, np.arange(-1, 5), [middle[3], *middle, middle[0]])
    swing = city.swing * np.cos(2 * np.pi * (hour % _HOURS_A_DAY - _WARMEST_HOUR) / _HOURS_A_DAY)
    spread = np.asarray(city.temperature_spread)[season]
    return np.asarray(average + swing + spread * _wave(random, len(hour), _MEMORY["temperature"]))


def _humidity(temperature: Floats, dew: Floats) -> Floats:
    """Relative humidity in percent (Magnus' formula), as the files have it."""
    rounded, dew = np.round(temperature), np.round(dew)
    share = np.exp(17.27 * dew / (237.7 + dew) - 17.27 * rounded / (237.7 + rounded))
    return np.asarray(np.round(100 * share, 2))


def _wind(random: np.random.Generator, city: _City, length: int) -> Ints:
    """Draw directions that stay or change every hour, each with its share in the long run."""
    leaves = np.asarray(city.directions) * (1 - np.asarray(city.stays))
    drawn = random.choice(len(DIRECTIONS), size=length, p=leaves / leaves.sum())
    stays = np.asarray(city.stays)
    lots = random.random(length).tolist()
    direction = np.empty(length, dtype=np.int64)
    now = int(drawn[0])
    for at, lot in enumerate(lots):
        now = now if lot < stays[now] else int(drawn[at])
        direction[at] = now
    return direction


def _speeds(random: np.random.Generator, city: _City, direction: Ints) -> Floats:
    moving = np.round(random.gamma(3.0, city.speed / 3.0, size=len(direction)) + 0.5)
    calm = random.integers(0, 2, size=len(direction)).astype(np.float64)
    return np.where(direction == _CALM, calm, moving)


def _rain(random: np.random.Generator, city: _City, season: Ints) -> Floats:
    """Draw rain: spells that mostly continue, with log-normal amounts."""
    share, stays = np.asarray(city.rain)[season], 0.68
    begins = (share * (1 - stays) / (1 - share)).tolist()
    falls = np.zeros(len(season), dtype=np.bool_)
    is_raining = False
    for at, lot in enumerate(random.random(len(season)).tolist()):
        is_raining = lot < (stays if is_raining else begins[at])
        falls[at] = is_raining
    amount = np.round(np.maximum(0.1, city.rain_amount * random.lognormal(0.0, 1.5, size=len(season))), 1)
    return np.where(falls, amount, 0.0)


def _sums(values: Floats, starts: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
    """Return running sums that restart where `starts` is true."""
    total = np.cumsum(values)
    before = np.where(starts, total - values, -np.inf)
    return np.round(total - np.maximum.accumulate(before), 2)
