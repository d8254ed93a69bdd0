"""The synthetic day: the same from the same seed, shaped like a day, and with what was planted in it."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np
import pytest

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.testing.visits import DEVICES, make_visits, write_visits_csv

HOUR = 3_600_000_000_000
START = int(np.datetime64("2026-03-02T00:00:00", "ns").astype(np.int64))


@pytest.fixture(scope="module")
def visits():
    return make_visits(people=1000, sites=600, events=60_000, seed=7)


def hours(visits):
    return (visits.times - START) // HOUR


def test_the_same_seed_gives_the_same_day(visits):
    again = make_visits(people=1000, sites=600, events=60_000, seed=7)
    other = make_visits(people=1000, sites=600, events=60_000, seed=8)
    for name in ("times", "person", "site", "device"):
        assert np.array_equal(getattr(visits, name), getattr(again, name))
    assert visits.sites == again.sites
    assert not np.array_equal(visits.times, other.times)


def test_shape(visits):
    assert len(visits) == 60_000
    assert (np.diff(visits.times) >= 0).all()
    assert visits.times.min() >= START
    assert visits.times.max() < START + 24 * HOUR
    assert len(set(visits.people)) == 1000
    assert len(set(visits.sites)) == 600
    for column, names in (
        (visits.person, visits.people),
        (visits.site, visits.sites),
        (visits.device, DEVICES),
    ):
        assert column.min() >= 0
        assert column.max() < len(names)


def test_a_few_people_and_sites_make_most_events(visits):
    for column, size in ((visits.person, 1000), (visits.site, 600)):
        counts = np.sort(np.bincount(column, minlength=size))[::-1]
        assert counts[: size // 10].sum() > 0.35 * counts.sum()
        assert counts[0] < 0.1 * counts.sum()


def test_nights_are_quiet_and_evenings_are_not(visits):
    by_hour = np.bincount(hours(visits), minlength=24)
    assert by_hour.argmax() in (19, 20, 21)
    assert by_hour[3] * 8 < by_hour[20]


def test_interests_drift(visits):
    morning, evening = ((hours(visits) == hour) for hour in (8, 20))
    top = [{site for site, _ in Counter(visits.site[when].tolist()).most_common(20)} for when in (morning, evening)]
    assert len(top[0] & top[1]) < 15


def test_visits_come_in_bursts(visits):
    pairs = visits.person * 600 + visits.site
    order = np.lexsort((visits.times, pairs))
    gap = np.diff(visits.times[order])
    soon = (np.diff(pairs[order]) == 0) & (gap < 120 * 10**9)
    assert soon.mean() > 0.2


def test_sites_make_a_hierarchy(visits):
    hierarchy = Hierarchy.from_nested(visits.tree())
    assert hierarchy.leaf_counts[0] == 600
    assert hierarchy.path(visits.sites[0])[1] == visits.sites[0].split(".", 1)[1]
    assert Hierarchy.by_suffix().path(visits.sites[0])[-2:] == ("example", "*")


@pytest.mark.parametrize("size", [{"people": 1}, {"sites": 1}, {"events": 1}, {"people": 1, "sites": 1, "events": 2}])
def test_tiny_days(size):
    visits = make_visits(**{"people": 5, "sites": 5, "events": 50, **size})
    assert len(visits) == size.get("events", 50)


@pytest.mark.parametrize("size", [{"people": 0}, {"sites": 0}, {"events": 0}])
def test_empty_days_are_refused(size):
    with pytest.raises(PolicyError):
        make_visits(**size)


def test_a_clean_file(visits, tmp_path):
    planted = write_visits_csv(tmp_path / "v.csv", visits, late_share=0, broken_share=0)
    rows = list(csv.DictReader(io.StringIO((tmp_path / "v.csv").read_text())))
    assert (planted.rows, planted.sound, planted.late, planted.longest_lateness_ns) == (60_000, 60_000, 0, 0)
    assert sum(planted.broken.values()) == 0
    assert [row["user"] for row in rows] == [visits.people[who] for who in visits.person]
    assert [row["site"] for row in rows] == [visits.sites[where] for where in visits.site]
    stamps = np.array([row["ts"].removesuffix("Z") for row in rows], dtype="datetime64[ns]").astype(np.int64)
    assert np.array_equal(stamps, visits.times)


def is_sound(line: bytes) -> bool:
    """Judged from the bytes alone, without the writer."""
    fields = line.split(b",")
    if len(fields) != 4 or b"\0" in line or b"\xff" in line or not fields[1]:
        return False
    try:
        np.datetime64(fields[0].decode().removesuffix("Z") or "none", "ns")
    except ValueError:
        return False
    return True


def test_what_was_planted_is_there(visits, tmp_path):
    planted = write_visits_csv(tmp_path / "v.csv", visits, late_share=0.02, broken_share=0.005)
    lines = (tmp_path / "v.csv").read_bytes().splitlines()[1:]
    sound = [line for line in lines if is_sound(line)]
    assert planted.rows == len(lines) == 60_000
    assert planted.sound == len(sound)
    assert planted.broken == dict.fromkeys(("fields", "time", "user", "utf8", "nul"), 60)
    assert sum(line.count(b",") != 3 for line in lines) == 60
    assert sum(b"\xff" in line for line in lines) == 60
    assert sum(b"\0" in line for line in lines) == 60
    newest, late = 0, 0
    for line in sound:
        moment = int(np.datetime64(line.split(b",")[0].decode().removesuffix("Z"), "ns").astype(np.int64))
        late += moment < newest
        newest = max(newest, moment)
    assert planted.late == late
    assert planted.too_late == late, "none is allowed by default"
    assert 600 < late < 1500
    assert 3600 * 10**9 < planted.longest_lateness_ns <= 7200 * 10**9


def test_the_same_bytes_every_time(visits, tmp_path):
    for name in "ab":
        write_visits_csv(tmp_path / name, visits)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("shares", [{"late_share": 1.5}, {"broken_share": -0.1}, {"late_share": float("nan")}])
def test_shares_lie_between_0_and_1(visits, tmp_path, shares):
    with pytest.raises(PolicyError):
        write_visits_csv(tmp_path / "v.csv", visits, **shares)


def test_everything_broken(tmp_path):
    planted = write_visits_csv(tmp_path / "v.csv", make_visits(people=5, sites=5, events=10), broken_share=1)
    assert (planted.sound, planted.late, planted.longest_lateness_ns) == (0, 0, 0)
