"""A synthetic measurement campaign: people move through a city and measure the speed of their phones' networks.

Everyone has a home, perhaps a workplace, and a few other places; activity follows the time of day. The popularity of
phone models follows a power law, so most models are rare. No person in it is real.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import PolicyError
from shoal.hierarchies.neighbourhood import METRES_A_DEGREE
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.reproduce.data.campaign_city import PARTS, Floats, Ints, campaign_places, city_cells

__all__ = ["campaign_places", "make_campaign"]

Flags = npt.NDArray[np.bool_]
Network = Literal["2G", "3G", "4G", "5G", "Wi-Fi"]
NETWORKS: Final[tuple[str, ...]] = get_args(Network)
PROVIDERS: Final = ("Norda", "Blue Mobile", "Telvia", "Quick")
START: Final = np.datetime64("2026-03-02T00:00:00", "ms")
"""A Monday."""

_WIFI: Final = NETWORKS.index("Wi-Fi")
_PROVIDER_SHARES: Final = (0.42, 0.31, 0.19, 0.08)
_SECOND_DEVICE: Final = 0.08
"""Share of people who measure with two phones."""
_POPULARITY, _FIRST_RANK = 1.1, 7.0
"""Exponent of the power law of models, and the rank it starts from: the first model has about 4%."""
_CANNOT_MEASURE, _WITHOUT_5G = "Series 30+", "feature phone system"
"""Labels of phones that cannot measure, and of phones without 5G."""

_HOME, _WORK, _SPOTS = 0, 1, 5
"""Spots of each person: home, work, and three others."""
_HOME_PARTS: Final = (0.22, 0.19, 0.19, 0.17, 0.17, 0.06)
_WORK_PARTS: Final = (0.55, 0.12, 0.11, 0.10, 0.10, 0.02)
_OTHER_PARTS: Final = (0.40, 0.14, 0.14, 0.13, 0.13, 0.06)
_OTHER_SHARES: Final = (0.5, 0.3, 0.2)
_WORKING: Final = 0.8
_AT_NIGHT: Final = 0.06
"""Share of workers on night shift."""
_SPREAD_M, _FIX_M = 180.0, 12.0
"""Standard deviations of spots from the middle of their cell, and of measured positions from their spot."""

_HOURS: Final = (
    *(1.2, 0.7, 0.4, 0.3, 0.3, 0.6, 1.6, 3.2, 4.6, 4.8, 4.7, 4.9),
    *(5.6, 5.2, 4.8, 4.8, 5.2, 6.0, 6.6, 6.8, 6.6, 6.0, 4.4, 2.6),
)
"""Relative number of measurements by hour of the day."""
_CELLULAR: Final = np.array(
    [
        [0.01, 0.06, 0.48, 0.45],  # centre
        *[[0.02, 0.10, 0.63, 0.25]] * 4,
        [0.10, 0.28, 0.58, 0.04],  # villages
    ]
)
"""Shares of 2G to 5G by part of the city."""
_WIFI_SHARES: Final = (0.7, 0.55, 0.2)
"""Share of Wi-Fi at home, at work, elsewhere."""
_DOWN: Final = np.array([0.12, 4.0, 32.0, 190.0, 65.0])
_UP: Final = np.array([0.05, 1.1, 11.0, 38.0, 24.0])
_LATENCY: Final = np.array([320.0, 85.0, 42.0, 19.0, 24.0])
"""Medians by network, in Mbit/s and milliseconds."""
_BUSY: Final = (18, 23)
"""Hours in which networks are slower."""

_FIRST: Final = (
    *("ana", "bela", "cem", "dora", "emil", "fara", "gil", "hana", "ivo", "june"),
    *("kai", "lena", "mo", "nils", "ola", "pia", "rui", "sara", "tom", "una"),
)
_LAST: Final = (
    *("abel", "brook", "costa", "dale", "ek", "fox", "grau", "holm", "ito", "jung"),
    *("koch", "lind", "marsh", "novak", "okoro", "petit", "reyes", "sato", "toth", "vega"),
)


@dataclass(frozen=True, slots=True)
class _Crowd:
    """Phones with their owners, and the spots and working hours of each person."""

    carrier: Ints
    model: Ints
    provider: Ints
    activity: Floats
    spot_cell: Ints
    spot_east: Floats
    spot_north: Floats
    works: Flags
    begins: Floats


def make_campaign(people: int, records: int, seed: int = 0, days: int = 7) -> pa.Table:
    """Return measurements in time order.

    Parameters
    ----------
    people
        Number of participants. Some have two phones: each phone has its own ``maid``, with the same account.
    records
        Number of measurements in all.
    seed
        A different seed gives a different campaign in the same city.
    days
        Number of days, starting on Monday, 2 March 2026.

    Returns
    -------
    pa.Table
        ``maid``, ``account``, ``email``, ``imei``, ``device`` (a value of :meth:`shoal.Ontology.devices`),
        ``provider``, ``network``, ``place`` (a cell of :func:`campaign_places`), ``lat``, ``lon``, ``time``,
        ``mbps_down``, ``mbps_up`` and ``latency_ms``.
    """
    _check(people, records, days)
    devices, lacks_5g = _measuring_devices()
    crowd = _crowd(np.random.default_rng([seed, 1]), people, len(devices))
    chooser = np.random.default_rng([seed, 2])
    phone = np.searchsorted(np.cumsum(crowd.activity), chooser.random(records) * crowd.activity.sum(), side="right")
    phone = np.minimum(phone, len(crowd.carrier) - 1)
    moment = _moments(chooser, crowd.carrier[phone], records, days)
    order = np.argsort(moment, kind="stable")
    phone, moment = phone[order], moment[order]
    person = crowd.carrier[phone]
    spot = _spots(chooser, crowd, person, moment)
    cell = crowd.spot_cell[person, spot]
    network = _networks(chooser, cell, spot, lacks_5g[crowd.model[phone]])
    return pa.table(
        {
            **_identities(np.random.default_rng([seed, 3]), crowd, phone),
            "device": _take(devices, crowd.model[phone]),
            "provider": _take(PROVIDERS, crowd.provider[phone]),
            "network": _take(NETWORKS, network),
            "place": _take(city_cells().names, cell),
            **_positions(chooser, crowd, person, spot),
            "time": pa.array(START + moment.astype("timedelta64[ms]"), pa.timestamp("ms", tz="UTC")),
            **_results(chooser, network, moment),
        }
    )


def _check(people: object, records: object, days: object) -> None:
    for name, given, least in (("people", people, 1), ("records", records, 0), ("days", days, 1)):
        if not isinstance(given, int) or isinstance(given, bool) or given < least:
            raise PolicyError(f"campaign: {name} must be a whole number of at least {least}")


def _measuring_devices() -> tuple[tuple[str, ...], Flags]:
    """Return the models that can measure, and which of them lack 5G."""
    concepts = Ontology.devices().attribute("device")
    devices = tuple(value for value in concepts.values if not concepts.subsumes(_CANNOT_MEASURE, value))
    return devices, np.array([concepts.subsumes(_WITHOUT_5G, value) for value in devices])


# ---- people


def _crowd(chooser: np.random.Generator, people: int, models: int) -> _Crowd:
    second = np.flatnonzero(chooser.random(people) < _SECOND_DEVICE)
    carrier = np.concatenate([np.arange(people), second])
    phones = len(carrier)
    weights = (_FIRST_RANK + np.arange(models)) ** -_POPULARITY
    ranked = chooser.permutation(models)
    spots = [_cells_of(chooser, people, shares) for shares in (_HOME_PARTS, _WORK_PARTS, *[_OTHER_PARTS] * 3)]
    return _Crowd(
        carrier=carrier,
        model=ranked[chooser.choice(models, phones, p=weights / weights.sum())],
        provider=chooser.choice(len(PROVIDERS), phones, p=_PROVIDER_SHARES),
        activity=chooser.lognormal(0.0, 0.9, phones),
        spot_cell=np.column_stack(spots),
        spot_east=chooser.normal(0.0, _SPREAD_M, (people, _SPOTS)),
        spot_north=chooser.normal(0.0, _SPREAD_M, (people, _SPOTS)),
        works=chooser.random(people) < _WORKING,
        begins=(chooser.normal(8.5, 1.0, people) + 13.0 * (chooser.random(people) < _AT_NIGHT)) % 24,
    )


def _cells_of(chooser: np.random.Generator, people: int, shares: tuple[float, ...]) -> Ints:
    """Draw a cell per person: a part by its share, then a uniform cell of that part."""
    parts = city_cells().parts
    weights = np.asarray(shares)[parts] / np.bincount(parts, minlength=len(PARTS))[parts]
    drawn: Ints = chooser.choice(len(parts), people, p=weights / weights.sum())
    return drawn


def _identities(chooser: np.random.Generator, crowd: _Crowd, phone: Ints) -> dict[str, Any]:
    people, phones = len(crowd.works), len(crowd.carrier)
    person = crowd.carrier[phone]
    names = zip(chooser.integers(len(_FIRST), size=people), chooser.integers(len(_LAST), size=people), strict=True)
    emails = [f"{_FIRST[first]}.{_LAST[last]}{number}@mail.example" for number, (first, last) in enumerate(names)]
    accounts = [f"u{number:010}" for number in (np.arange(people) * 7_368_787 + 1_234_567) % 9_999_999_967]
    return {
        "maid": _take(_words(chooser, phones), phone),
        "account": _take(accounts, person),
        "email": _take(emails, person),
        "imei": _take(_imeis(chooser, crowd.model), phone),
    }


def _words(chooser: np.random.Generator, count: int) -> list[str]:
    """Return words of 16 hexadecimal digits; the last 8 are a scrambled counter, so that all words differ."""
    high = chooser.integers(2**32, size=count).tolist()
    return [f"{first:08x}{place * 2_654_435_761 % 2**32:08x}" for place, first in enumerate(high)]


def _imeis(chooser: np.random.Generator, model: Ints) -> list[str]:
    """Return IMEIs: a type code of the model, a unique serial number, and the Luhn digit."""
    phones = len(model)
    serial = (np.arange(phones) * 618_033 + chooser.integers(1_000_000)) % 1_000_000
    body = (35_000_000 + model * 100 + np.arange(phones) // 1_000_000) * 1_000_000 + serial
    digits = body[:, None] // 10 ** np.arange(13, -1, -1) % 10
    digits[:, 1::2] *= 2
    total = (digits // 10 + digits % 10).sum(axis=1)
    return [f"{number:014}{check}" for number, check in zip(body.tolist(), (-total % 10).tolist(), strict=True)]


# ---- times and positions


def _moments(chooser: np.random.Generator, person: Ints, records: int, days: int) -> Ints:
    """Draw milliseconds since the start; each person's day is shifted by up to two hours."""
    weights = np.array(_HOURS)
    hour = chooser.choice(24, records, p=weights / weights.sum())
    shift = person * 2_654_435_761 % 5 - 2
    within = chooser.integers(3_600_000, size=records)
    day = chooser.integers(days, size=records)
    moments: Ints = (day * 24 + (hour + shift) % 24) * 3_600_000 + within
    return moments


def _spots(chooser: np.random.Generator, crowd: _Crowd, person: Ints, moment: Ints) -> Ints:
    """Draw the spot of each measurement: work in working hours, home at night, sometimes elsewhere."""
    hour = moment / 3_600_000 % 24
    is_weekday = moment // 86_400_000 % 7 < 5
    at_work = crowd.works[person] & is_weekday & ((hour - crowd.begins[person]) % 24 < 8)
    outside = np.where(at_work, 0.12, np.where((hour < 6.5) | (hour >= 23), 0.05, np.where(is_weekday, 0.32, 0.45)))
    is_out = chooser.random(len(person)) < outside
    other = chooser.choice(np.arange(_WORK + 1, _SPOTS), len(person), p=_OTHER_SHARES)
    spots: Ints = np.where(is_out, other, np.where(at_work, _WORK, _HOME))
    return spots


def _positions(chooser: np.random.Generator, crowd: _Crowd, person: Ints, spot: Ints) -> dict[str, Any]:
    cells = city_cells()
    cell = crowd.spot_cell[person, spot]
    east = crowd.spot_east[person, spot] + chooser.normal(0.0, _FIX_M, len(person))
    north = crowd.spot_north[person, spot] + chooser.normal(0.0, _FIX_M, len(person))
    lat = cells.lat[cell] + north / METRES_A_DEGREE
    lon = cells.lon[cell] + east / (METRES_A_DEGREE * np.cos(np.radians(cells.lat[cell])))
    return {"lat": np.round(lat, 6), "lon": np.round(lon, 6)}


# ---- measurements


def _networks(chooser: np.random.Generator, cell: Ints, spot: Ints, lacks_5g: Flags) -> Ints:
    up_to = np.cumsum(_CELLULAR, axis=1)[city_cells().parts[cell]]
    cellular = (chooser.random(len(cell))[:, None] >= up_to[:, :-1]).sum(axis=1)
    cellular = np.where(lacks_5g, np.minimum(cellular, NETWORKS.index("4G")), cellular)
    is_wifi = chooser.random(len(cell)) < np.asarray(_WIFI_SHARES)[np.minimum(spot, len(_WIFI_SHARES) - 1)]
    networks: Ints = np.where(is_wifi, _WIFI, cellular)
    return networks


def _results(chooser: np.random.Generator, network: Ints, moment: Ints) -> dict[str, Any]:
    hour = moment // 3_600_000 % 24
    slower = np.where((hour >= _BUSY[0]) & (hour < _BUSY[1]), 0.7, 1.0)
    quality = chooser.normal(0.0, 0.45, len(network))  # signal quality affects all three
    down, up, latency = (
        median[network] * np.exp(sign * quality + chooser.normal(0.0, 0.3, len(network))) * slower**sign
        for median, sign in ((_DOWN, 1), (_UP, 1), (_LATENCY, -0.5))
    )
    return {
        "mbps_down": np.round(down, 2),
        "mbps_up": np.round(up, 2),
        "latency_ms": np.round(latency, 1),
    }


def _take(words: Any, places: Ints) -> Any:
    return pc.take(pa.array(words, pa.string()), pa.array(places))
