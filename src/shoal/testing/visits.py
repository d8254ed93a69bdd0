"""A synthetic day of web visits: heavy tails, a daily rhythm, drifting interests, late and invalid rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from shoal.crypto.safe_open import write_file
from shoal.errors import PolicyError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DAY_S: Final = 86_400
DEVICES: Final = ("phone", "laptop", "tablet", "tv")
# Topics with their peak hour.
TOPICS: Final = {
    "news": 7.5, "weather": 6.5, "work": 10.5, "bank": 11.0, "school": 9.0, "shop": 13.0, "recipes": 17.0,
    "sport": 18.5, "games": 20.5, "video": 21.0, "music": 16.0, "travel": 19.5, "health": 22.0, "blog": 14.5,
}  # fmt: skip
_ACTIVITY_BY_HOUR: Final = (
    2.0, 1.2, 0.8, 0.6, 0.6, 1.0, 2.5, 5.0, 6.5, 7.0, 7.0, 7.2,
    7.8, 7.4, 7.0, 7.0, 7.4, 8.2, 9.4, 11.0, 12.5, 11.5, 8.0, 4.5,
)  # fmt: skip
_FIRST: Final = (
    "quiet", "green", "north", "daily", "little", "bright", "open", "silver", "wild", "first", "warm",
    "rapid", "amber", "blue", "calm", "dusty", "early", "fair", "golden", "happy", "inner", "jolly",
    "keen", "lucky",
)  # fmt: skip
_SECOND: Final = (
    "otter", "harbour", "lantern", "maple", "river", "cats", "compass", "meadow", "kettle", "falcon",
    "orchard", "pebble", "bridge", "cloud", "violin", "garden", "anchor", "beacon", "cedar", "drum", "ember",
    "fern", "grove",
)  # fmt: skip
_PEOPLE: Final = (
    "ada", "ben", "cleo", "dan", "eva", "finn", "gia", "hugo", "ines", "jan", "kim", "leo", "mia", "nils",
    "olga", "paul", "quin", "rosa", "sam", "tess", "uma", "vik", "wes", "xena", "yara", "zoe",
)  # fmt: skip
_MILLISECOND: Final = 1_000_000
_BREAKS: Final = ("fields", "time", "user", "utf8", "nul")


@dataclass(frozen=True, slots=True, eq=False)
class Visits:
    """Events in time order; `person`, `site` and `device` are indices into the names."""

    times: Ints
    person: Ints
    site: Ints
    device: Ints
    people: tuple[str, ...]
    sites: tuple[str, ...]
    devices: tuple[str, ...]
    seed: int

    def __len__(self) -> int:
        return len(self.times)

    def tree(self) -> dict[str, Any]:
        """Sites under their topics, for `Hierarchy.from_nested`."""
        topics: dict[str, list[str]] = {}
        for site in self.sites:
            topics.setdefault(site.split(".", 1)[1], []).append(site)
        return {"web": topics}


@dataclass(frozen=True, slots=True)
class Planted:
    """Counts of the rows in a file of visits."""

    rows: int
    sound: int
    """Rows that can be read."""
    late: int
    """Sound rows older than the newest sound row before them."""
    too_late: int
    """Sound rows that are later than allowed, in whole milliseconds as the file has them."""
    longest_lateness_ns: int
    broken: dict[str, int]
    """Number of invalid rows by fault: fields, time, user, utf8, nul."""


def make_visits(
    *,
    people: int = 3000,
    sites: int = 2000,
    events: int = 200_000,
    seed: int = 1,
    start: str = "2026-03-02T00:00:00Z",
) -> Visits:
    """Generate a day of visits; equal arguments give equal visits."""
    if min(people, sites, events) < 1:
        raise PolicyError("people, sites and events: must be at least 1")
    random = np.random.default_rng(seed)
    site_names, topic_of_site = _name_sites(sites, random)
    seconds, person, site = _bursts(*_first_visits(people, topic_of_site, events, random), events, random)
    order = np.argsort(seconds, kind="stable")
    begin = np.datetime64(start.removesuffix("Z"), "ns").astype(np.int64)
    main_device = random.choice(len(DEVICES), size=people, p=(0.55, 0.3, 0.1, 0.05))
    other_device = random.integers(len(DEVICES), size=events)
    device = np.where(random.random(events) < 0.85, main_device[person], other_device)
    return Visits(
        times=begin + np.round(seconds[order] * 1000).astype(np.int64) * 1_000_000,
        person=person[order],
        site=site[order],
        device=device[order].astype(np.int64),
        people=_name_people(people),
        sites=site_names,
        devices=DEVICES,
        seed=seed,
    )


def _name_sites(count: int, random: np.random.Generator) -> tuple[tuple[str, ...], Ints]:
    """Names in order of popularity, and the topic of each."""
    topics = tuple(TOPICS)
    pairs = [f"{first}-{second}" for first, second in product(_FIRST, _SECOND)]
    topic = random.integers(len(topics), size=count)
    pair = random.integers(len(pairs), size=count)
    used: dict[str, int] = {}
    names = []
    for name in (f"{pairs[p]}.{topics[t]}" for p, t in zip(pair.tolist(), topic.tolist(), strict=True)):
        again = used[name] = used.get(name, 0) + 1
        host, _, label = name.partition(".")
        names.append(f"{host}{again if again > 1 else ''}.{label}.example")
    return tuple(names), topic


def _name_people(count: int) -> tuple[str, ...]:
    return tuple(f"{_PEOPLE[number % len(_PEOPLE)]}{number:05d}@mail.example" for number in range(count))


def _first_visits(
    people: int, topic_of_site: Ints, events: int, random: np.random.Generator
) -> tuple[Floats, Ints, Ints]:
    """Draw visits that are not repetitions: time, person and site."""
    count = max(1, round(events * 0.6))
    seconds = _times(count, random)
    person = _draw(random.lognormal(0, 1.1, people), count, random)
    topic = _topics(seconds, person, people, random)
    return seconds, person, _sites(seconds, topic, topic_of_site, random)


def _times(count: int, random: np.random.Generator) -> Floats:
    """Draw seconds of the day, many in the evening and few at night."""
    hours = np.arange(25)
    density = np.array([*_ACTIVITY_BY_HOUR, _ACTIVITY_BY_HOUR[0]])
    fine = np.linspace(0, 24, 24 * 60 + 1)
    mass = np.concatenate([[0.0], np.cumsum(np.interp(fine[1:], hours, density))])
    hour: Floats = np.interp(random.random(count) * mass[-1], mass, fine)
    return hour * 3600 * (1 - 1e-9)


def _topics(seconds: Floats, person: Ints, people: int, random: np.random.Generator) -> Ints:
    """Draw topics: half by the hour, half from the person's own three topics."""
    peaks = np.array(list(TOPICS.values()))
    quarter = np.arange(96)[:, None] / 4
    away = np.abs(quarter - peaks)
    weights = 0.15 + np.exp(-((np.minimum(away, 24 - away) / 2.5) ** 2))
    cumulative = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    bucket = np.minimum((seconds // 900).astype(np.int64), 95)
    by_hour = (random.random(len(seconds))[:, None] > cumulative[bucket]).sum(axis=1)
    taste = random.integers(len(peaks), size=(people, 3))
    by_taste = taste[person, random.integers(3, size=len(seconds))]
    chosen = np.where(random.random(len(seconds)) < 0.5, by_taste, by_hour)
    return np.minimum(chosen, len(peaks) - 1)


def _sites(seconds: Floats, topic: Ints, topic_of_site: Ints, random: np.random.Generator) -> Ints:
    """Draw sites of the topics by Zipf's law; over the day a second ranking replaces the first."""
    site = np.zeros(len(seconds), dtype=np.int64)
    is_evening = random.random(len(seconds)) < seconds / DAY_S
    for number in range(len(TOPICS)):
        members = np.flatnonzero(topic_of_site == number)
        if len(members) == 0:
            members = np.array([number % len(topic_of_site)])
        later = random.permutation(members)
        weights = 1 / np.arange(1, len(members) + 1) ** 1.05
        for ranking, wanted in ((members, ~is_evening), (later, is_evening)):
            rows = np.flatnonzero((topic == number) & wanted)
            site[rows] = ranking[_draw(weights, len(rows), random)]
    return site


def _draw(weights: Floats, count: int, random: np.random.Generator) -> Ints:
    mass = np.cumsum(weights)
    place: Ints = np.searchsorted(mass, random.random(count) * mass[-1], side="right").astype(np.int64)
    return np.minimum(place, len(weights) - 1)


def _bursts(
    seconds: Floats, person: Ints, site: Ints, events: int, random: np.random.Generator
) -> tuple[Floats, Ints, Ints]:
    """Add visits of the same person to the same site seconds to minutes later: reloads, next pages."""
    again = random.integers(len(seconds), size=max(0, events - len(seconds)))
    delay = random.exponential(60, size=len(again)) + 1
    repeated = np.minimum(seconds[again] + delay, DAY_S - 0.001)
    return (
        np.concatenate([seconds, repeated])[:events],
        np.concatenate([person, person[again]])[:events],
        np.concatenate([site, site[again]])[:events],
    )


def write_visits_csv(
    path: str | PathLike[str], visits: Visits, *, late_share: float = 0.01, broken_share: float = 0.001,
    allowed_lateness_ns: int = 0,
) -> Planted:  # fmt: skip
    """Write ``ts,user,site,device`` in arrival order, with some rows late and some invalid.

    Equal visits and shares give equal bytes. Late rows arrive seconds to two hours after their time; those later than
    the allowed lateness are counted.
    """
    if not (0 <= late_share <= 1 and 0 <= broken_share <= 1):
        raise PolicyError("late_share and broken_share: must be between 0 and 1")
    random = np.random.default_rng([visits.seed, 2])
    order = _arrival(visits.times, late_share, random)
    lines = _lines(visits, order)
    broken = _break(lines, broken_share, random)
    text = "\n".join(["ts,user,site,device", *lines, ""])
    write_file(Path(path), text.encode("utf-8", "surrogateescape"))
    is_sound = np.ones(len(lines), dtype=bool)
    is_sound[[row for rows in broken.values() for row in rows]] = False
    times = visits.times[order][is_sound]
    lateness = np.maximum.accumulate(times) - times if len(times) else times
    written = times // _MILLISECOND * _MILLISECOND
    written_lateness = np.maximum.accumulate(written) - written if len(times) else times
    return Planted(
        rows=len(lines),
        sound=len(times),
        late=int((lateness > 0).sum()),
        too_late=int((written_lateness > allowed_lateness_ns).sum()),
        longest_lateness_ns=int(lateness.max(initial=0)),
        broken={what: len(rows) for what, rows in broken.items()},
    )


def _arrival(times: Ints, late_share: float, random: np.random.Generator) -> Ints:
    is_late = random.random(len(times)) < late_share
    delay_s = np.exp(random.uniform(0, np.log(7200), size=len(times)))
    arrival = times + np.where(is_late, delay_s * 1e9, 0).astype(np.int64)
    return np.argsort(arrival, kind="stable")


def _lines(visits: Visits, order: Ints) -> list[str]:
    stamps = np.datetime_as_string(visits.times[order].astype("datetime64[ns]"), unit="ms").tolist()
    people, sites, devices = visits.people, visits.sites, visits.devices
    columns = (visits.person[order].tolist(), visits.site[order].tolist(), visits.device[order].tolist())
    return [
        f"{stamp}Z,{people[who]},{sites[where]},{devices[what]}"
        for stamp, who, where, what in zip(stamps, *columns, strict=True)
    ]


def _break(lines: list[str], share: float, random: np.random.Generator) -> dict[str, list[int]]:
    """Corrupt some rows in place; return the rows by fault."""
    rows = random.choice(len(lines), size=round(len(lines) * share), replace=False).tolist()
    broken = {what: rows[number :: len(_BREAKS)] for number, what in enumerate(_BREAKS)}
    for what, members in broken.items():
        for row in members:
            lines[row] = _broken(lines[row], what, row)
    return broken


def _broken(line: str, what: str, row: int) -> str:
    stamp, user, site, device = line.split(",")
    if what == "fields":
        return ",".join((stamp, user, site)) if row % 2 else f"{line},{device}"
    if what == "time":
        stamp = ("yesterday", "2026-13-45T00:00:00Z", "")[row % 3]
    elif what == "user":
        user = ""
    elif what == "utf8":
        site = "\udcff" + site  # written as the byte FF, which is invalid UTF-8
    else:
        site = site[:3] + "\0" + site[3:]
    return ",".join((stamp, user, site, device))
