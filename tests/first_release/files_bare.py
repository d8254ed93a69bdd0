"""Files without a header: records, item lists, ratings, check-ins."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import (
    ages,
    around,
    dates,
    distinct,
    each,
    full_names,
    moments,
    pick,
    sets_of,
    whole,
    words,
    written,
)

ILLNESSES = words("asthma diabetes influenza migraine HIV hypertension")
GROCERIES = words(
    "whole milk,rolls,tropical fruit,bottled water,yogurt,sausage,pip fruit,coffee,chicken,butter,curd,beer,"
    "napkins,frozen meals,hygiene articles,baby food,cat food,condoms,pregnancy test",
    ",",
)


@case(
    "members_bare.csv",
    person="row",
    has_header=False,
    traits="no header",
    columns="""
        column1 = quasi, numeric
        column2 = quasi, category
        column3 = quasi, category
        column4 = quasi, code
        column5 = quasi | sensitive, category
        column6 = quasi, numeric
    """,
    reason="The first line (age, sex, job, postcode, ...) looks like all others: it is a record.",
)
def members_bare(rng):
    n = 160
    return {
        "column1": ages(rng, n),
        "column2": pick(rng, "f m", n),
        "column3": pick(rng, "teacher nurse clerk driver cook", n),
        "column4": pick(rng, ["10115", "10117", "20095", "20097", "80331", "01067"], n),
        "column5": pick(rng, "married single divorced", n),
        "column6": whole(rng, 0, 4, n),
    }


@case(
    "words_bare.csv",
    person="row",
    has_header=False,
    traits="no header",
    columns="""
        column1 = quasi, category
        column2 = quasi, category
        column3 = sensitive, category
    """,
    reason="Words only, but every word of the first line occurs again below in its column: no header.",
)
def words_bare(rng):
    n = 150
    return {
        "column1": pick(rng, "Porto Lisboa Faro Braga", n),
        "column2": pick(rng, "baker plumber pilot farmer nurse", n),
        "column3": pick(rng, "catholic muslim none jewish hindu", n, [6, 2, 6, 1, 1]),
    }


@case(
    "ratings.dat",
    person="column1",
    method="z-anonymity | k^m",
    has_header=False,
    separator="\t",
    may_ask=True,
    traits="no header | several rows a person | ratings | events",
    columns="""
        column1 = person, code
        column2 = value | items, code
        column3 = drop | sensitive | carried | quasi, numeric | category
        column4 = time, time
    """,
    reason="User, film, rating, seconds since 1970 without names: the first column repeats at many times.",
)
def ratings_bare(rng):
    users = each(distinct(rng, 1, 900, 40), 9)
    order = rng.permutation(len(users)).tolist()
    seconds = [int(time.timestamp()) for time in moments(rng, "1998-01-05T00:00:00+00:00", 9_000_000, len(users))]
    films = distinct(rng, 1, 1600, 45)
    return {
        "column1": [users[index] for index in order],
        "column2": pick(rng, films, len(users), [1 / rank for rank in range(1, 46)]),
        "column3": whole(rng, 1, 5, len(users)),
        "column4": seconds,
    }


@case(
    "baskets.dat",
    person="row",
    method="k^m",
    format="items",
    has_header=False,
    separator=" ",
    traits="no header | sets | item lists",
    columns="items = items, code",
    reason="A line is one basket of item numbers; nothing says whose, so lines are counted.",
)
def baskets(rng):
    return [" ".join(map(str, basket)) for basket in sets_of(rng, list(range(30, 120)), 300, mean=5)]


@case(
    "groceries.csv",
    person="row",
    method="k^m",
    format="items",
    has_header=False,
    traits="no header | sets | item lists",
    columns="items = items, category",
    reason="Lines of different lengths with names of goods: baskets, and the first line is one of them.",
)
def groceries(rng):
    return [",".join(basket) for basket in sets_of(rng, GROCERIES, 250)]


@case(
    "checkins.txt",
    person="column1",
    method="z-anonymity",
    has_header=False,
    separator="\t",
    may_ask=True,
    traits="no header | several rows a person | events | persons by values",
    columns="""
        column1 = person, code
        column2 = time, time
        column3 = drop | quasi, numeric
        column4 = drop | quasi, numeric
        column5 = value | quasi, code
    """,
    reason="Somebody, when, latitude, longitude, place: the first column repeats at many times and places.",
)
def checkins_bare(rng):
    users = each(sorted(distinct(rng, 0, 20_000, 45)), 8)
    places = {
        place: (around(rng, 52.5, 0.1, 1, 6)[0], around(rng, 13.4, 0.1, 1, 6)[0]) for place in range(20_000, 20_030)
    }
    visited = pick(rng, places, len(users))
    return {
        "column1": users,
        "column2": written(moments(rng, "2010-10-01", 2_000_000, len(users)))[::-1],
        "column3": [places[place][0] for place in visited],
        "column4": [places[place][1] for place in visited],
        "column5": visited,
    }


@case(
    "admissions_bare.txt",
    person="column1",
    has_header=False,
    separator=";",
    may_ask=True,
    traits="no header | several rows a person | names",
    columns="""
        column1 = person, code
        column2 = identifier, text
        column3 = time | quasi | drop, time
        column4 = quasi, category
        column5 = sensitive, category
    """,
    reason="Patient number, name, day, ward, illness: the number repeats and the name depends on it.",
)
def admissions_bare(rng):
    people = dict(zip(distinct(rng, 40_000, 60_000, 70), full_names(rng, 70), strict=True))
    patients = pick(rng, people, 180)
    return {
        "column1": patients,
        "column2": [people[patient] for patient in patients],
        "column3": sorted(dates(rng, "2021-01-01", 300, 180)),
        "column4": pick(rng, "surgery cardiology neurology", 180),
        "column5": pick(rng, ILLNESSES, 180),
    }
