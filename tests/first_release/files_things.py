"""Files that are not about people: prices, earthquakes, tree rings, weather, cars."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import around, dates, each, moments, pick, skewed, whole, written

ANY = "quasi | carried | value | sensitive | drop, numeric | category | code"


def things(name, columns, traits, reason, *, person="row", may_ask=True, **more):
    """A file about things: rows are counted, whatever repeats."""
    return case(
        name, person=person, about_people=False, may_ask=may_ask, method="tuples | none", columns=columns,
        traits=f"not about people | {traits}", reason=reason, **more,
    )  # fmt: skip


@things(
    "prices.csv",
    f"""
        Date = time | quasi | drop | carried, time
        Open = {ANY}
        High = {ANY}
        Low = {ANY}
        Close = {ANY}
        Volume = {ANY}
    """,
    "prices",
    "Daily prices of one share: nobody's rows.",
    may_ask=False,
)
def prices(rng):
    n = 250
    opened = around(rng, 100, 8, n, 2)
    return {
        "Date": [f"2020-{month:02d}-{day:02d}" for month in range(1, 11) for day in range(1, 26)],
        "Open": opened,
        "High": [round(value + 1.5, 2) for value in opened],
        "Low": [round(value - 1.5, 2) for value in opened],
        "Close": [round(value + 0.4, 2) for value in opened],
        "Volume": skewed(rng, 1_000_000, n),
    }


@things(
    "earthquakes.csv",
    f"= row number, code\nlat = {ANY}\nlong = {ANY}\ndepth = {ANY}\nmag = {ANY}\nstations = {ANY}",
    "earthquakes | empty header cell | row number",
    "Earthquakes: stations is how many stations reported one.",
    may_ask=False,
)
def earthquakes(rng):
    n = 300
    return {
        "": range(1, n + 1),
        "lat": around(rng, -20, 5, n, 2),
        "long": around(rng, 179, 6, n, 2),
        "depth": whole(rng, 40, 680, n),
        "mag": around(rng, 4.6, 0.4, n, 1),
        "stations": whole(rng, 10, 132, n),
    }


@things(
    "tree_rings.csv",
    f"time = time | quasi | carried | drop, time | numeric\nvalue = {ANY}",
    "tree rings | years",
    "Ring widths by year from -600 on: no people, and the years are before any clock.",
    may_ask=False,
)
def tree_rings(rng):
    return {"time": list(range(-600, -200)), "value": around(rng, 1, 0.3, 400, 3)}


@things(
    "weather.csv",
    f"""
        STATIONS_ID = quasi | value | carried | drop, code
        MESS_DATUM = time | quasi | carried | drop, time
        QN_3 = {ANY}
        FX = {ANY}
        TMK = {ANY}
        eor = carried | drop | quasi, category
    """,
    "weather | station numbers | sentinels -999/9999/. | semicolon | language de",
    "Stations are places: their number is a code and not a person, -999 means missing.",
    missing={"FX": ("-999",), "TMK": ("-999",)},
    separator=";",
    person="row | ask",
)
def weather(rng):
    days = [f"202301{day:02d}" for day in range(1, 29)]
    n = len(days) * 12
    stations = pick(rng, range(100, 5000), 12)
    wind = around(rng, 9, 3, n)
    return {
        "STATIONS_ID": each(stations, 28),
        "MESS_DATUM": days * 12,
        "QN_3": pick(rng, [1, 3, 10], n),
        "FX": [value if number % 9 else -999 for number, value in enumerate(wind)],
        "TMK": [value if number % 14 else -999 for number, value in enumerate(around(rng, 4, 5, n))],
        "eor": ["eor"] * n,
    }


@things(
    "cars.csv",
    f"""
        = drop | row number | identifier | quasi | carried, text
        mpg = {ANY}
        cyl = {ANY}
        hp = {ANY}
        wt = {ANY}
        am = quasi | carried | value | drop, boolean | category
    """,
    "cars | row names | empty header cell",
    "Models of cars, one a row: the nameless column names a model, nobody.",
)
def cars(rng):
    n = 64
    brands = pick(rng, "Merc Fiat Volvo Honda Lotus Dodge", n)
    return {
        "": [f"{brand} {number}" for number, brand in enumerate(brands, 100)],
        "mpg": around(rng, 20, 6, n),
        "cyl": pick(rng, [4, 6, 8], n),
        "hp": whole(rng, 50, 335, n),
        "wt": around(rng, 3.2, 0.9, n, 3),
        "am": whole(rng, 0, 1, n),
    }


@things(
    "machines.csv",
    f"""
        timestamp = time | carried | drop, time
        machine_id = quasi | value | carried | drop, code
        temperature = {ANY}
        vibration = {ANY}
        failure = quasi | carried | value | sensitive | drop, boolean | category
    """,
    "sensors of machines | events",
    "Machines are no people; whether somebody stands behind each only their owner knows.",
    person="row | ask",
)
def machines(rng):
    n = 300
    return {
        "timestamp": written(moments(rng, "2024-01-01", 300_000, n)),
        "machine_id": [f"M{number:03d}" for number in whole(rng, 1, 30, n)],
        "temperature": around(rng, 60, 8, n),
        "vibration": around(rng, 0.4, 0.1, n, 3),
        "failure": pick(rng, ["False", "True"], n, [19, 1]),
    }


@things(
    "municipalities.csv",
    f"""
        code_insee = quasi | carried | value | drop | identifier, code
        commune = quasi | carried | value | drop | identifier, text | category
        population = {ANY}
        median_income = {ANY}
        founded = time | quasi | carried | drop, time
    """,
    "statistics by place | language fr",
    "Every row is a municipality: figures about places, not about persons; nobody is in one row.",
)
def municipalities(rng):
    n = 120
    return {
        "code_insee": [f"{number:05d}" for number in range(1001, 1001 + n)],
        "commune": [f"Saint-{name}-{number}" for number, name in enumerate(pick(rng, "Jean Paul Denis Loup", n))],
        "population": skewed(rng, 900, n, sigma=1),
        "median_income": skewed(rng, 22_000, n, sigma=0.2),
        "founded": dates(rng, "1790-01-01", 3000, n),
    }
