"""Events, purchases, sets and devices: somebody, when, what."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import (
    around,
    dates,
    distinct,
    each,
    holes,
    moments,
    of,
    pick,
    sets_of,
    skewed,
    whole,
    words,
    words_of,
    written,
)  # fmt: skip

APPS = words("Mail Maps Camera Weather Chess Banking Dating Fasting Prayer Diabetes Poker Recovery")
GOODS = words("bread milk eggs apples rice coffee beer soap nappies aspirin insulin condoms")


@case(
    "checkins_label.csv",
    person="label",
    may_ask=True,
    method="z-anonymity | tuples",
    traits="check-ins with label | several rows a person | events | persons by values | person in the last column",
    columns="""
        time = time, time
        lat = quasi | drop, numeric
        lon = quasi | drop, numeric
        venue = value | quasi, code
        label = person, code
    """,
    reason="label is the user: it repeats at many times and places.",
)
def checkins_label(rng):
    n = 400
    spots = zip(around(rng, 40.7, 0.05, 35, 5), around(rng, -74, 0.05, 35, 5), strict=True)
    places = dict(zip(distinct(rng, 1000, 9999, 35), spots, strict=True))
    venues = pick(rng, places, n)
    return {
        "time": written(moments(rng, "2012-04-03", 5_000_000, n), "%Y-%m-%d %H:%M:%S"),
        "lat": [places[venue][0] for venue in venues],
        "lon": [places[venue][1] for venue in venues],
        "venue": venues,
        "label": pick(rng, distinct(rng, 1, 1083, 40), n),
    }


@case(
    "stream_ms.csv",
    person="uid",
    method="z-anonymity",
    traits="epoch ms | events | several rows a person",
    columns="""
        t = time, time
        uid = person, code
        domain = value, text | category
    """,
    reason="Milliseconds since 1970, a user, a domain that many visit.",
)
def stream_ms(rng):
    n = 400
    times = moments(rng, "2023-11-01T00:00:00+00:00", 80_000, n)
    domains = [f"{word}.example" for word in ["news", "mail", "bank", "video", "shop", "maps", "clinic", "church"]]
    return {
        "t": [
            int(time.timestamp() * 1000) + extra
            for time, extra in zip(times, sorted(whole(rng, 0, 999, n)), strict=True)
        ],
        "uid": pick(rng, words_of(rng, "0123456789abcdef", 8, 60), n),
        "domain": pick(rng, domains, n),
    }


@case(
    "places_unnamed.csv",
    person="b",
    may_ask=True,
    method="z-anonymity | tuples",
    traits="persons by values | several rows a person | events",
    columns="""
        a = time, time
        b = person, code
        c = value | quasi, code
    """,
    reason="a is a time, c one of 20 places; b repeats at many times in many of the places.",
)
def places_unnamed(rng):
    n = 400
    people = distinct(rng, 10_000, 99_999, 50)
    return {
        "a": written(moments(rng, "2022-06-01", 2_000_000, n)),
        "b": pick(rng, people, n),
        "c": pick(rng, [f"P{number:02d}" for number in range(20)], n),
    }


@case(
    "ratings.csv",
    person="userId",
    method="z-anonymity | k^m",
    traits="ratings | several rows a person | events",
    columns="""
        userId = person, code
        movieId = value | items, code
        rating = drop | sensitive | quasi | carried, numeric | category
        timestamp = time, time
    """,
    reason="Who rated which film when: events of users, or the set of films of each.",
)
def ratings(rng):
    users = each(range(1, 46), 8)
    films = distinct(rng, 1, 9000, 40)
    return {
        "userId": users,
        "movieId": pick(rng, films, len(users), [1 / rank for rank in range(1, 41)]),
        "rating": [value / 2 for value in whole(rng, 1, 10, len(users))],
        "timestamp": [1_260_000_000 + value for value in whole(rng, 0, 200_000_000, len(users))],
    }


@case(
    "purchases.csv",
    person="customer",
    method="k^m",
    traits="purchases | several rows a person | sets",
    columns="""
        customer = person, code
        basket = identifier | drop, code
        item = items, category
    """,
    reason="A customer has baskets, a basket has items: the customer is who, the basket number is not published.",
)
def purchases(rng):
    customers = pick(rng, distinct(rng, 1000, 9999, 60), 110)
    baskets = zip(customers, distinct(rng, 100_000, 999_999, 110), sets_of(rng, GOODS, 110, 3), strict=True)
    rows = [(customer, basket, item) for customer, basket, items in baskets for item in items]
    return {name: [row[place] for row in rows] for place, name in enumerate(("customer", "basket", "item"))}


@case(
    "transactions.csv",
    person="Member_number",
    method="k^m | z-anonymity",
    traits="transactions | several rows a person | sets | events | German dates",
    columns="""
        Member_number = person, code
        Date = time | drop, time
        itemDescription = items | value, category
    """,
    reason="Members, days written 21-07-2015, goods: sets of goods of a member, or events.",
)
def transactions(rng):
    n = 350
    return {
        "Member_number": pick(rng, distinct(rng, 1000, 5000, 70), n),
        "Date": dates(rng, "2014-01-01", 700, n, "%d-%m-%Y"),
        "itemDescription": pick(rng, GOODS, n, [1 / rank for rank in range(1, len(GOODS) + 1)]),
    }


@case(
    "card_payments.csv",
    person="account_no",
    method="z-anonymity | tuples",
    traits="transactions | several rows a person | events | identifiers",
    columns="""
        transaction_id = identifier | drop, code
        account_no = person, code
        card_number = identifier, code
        booked = time, time
        merchant = value | quasi, category
        amount = sensitive | quasi | drop, numeric
        currency = quasi | carried | drop, category | code
    """,
    reason="The account is the person; card and transaction numbers are never published.",
)
def card_payments(rng):
    n = 300
    accounts = distinct(rng, 10_000_000, 99_999_999, 55)
    cards = {number: f"4{number}{number % 9_000_000 + 1_000_000:07d}" for number in accounts}
    rows = pick(rng, accounts, n)
    return {
        "transaction_id": [f"TX{number}" for number in distinct(rng, 1_000_000, 9_999_999, n)],
        "account_no": rows,
        "card_number": of(rows, cards),
        "booked": written(moments(rng, "2024-03-01", 2_000_000, n)),
        "merchant": pick(rng, "grocer pharmacy casino airline cinema", n),
        "amount": skewed(rng, 30, n, digits=2),
        "currency": pick(rng, "EUR USD", n, [19, 1]),
    }


@case(
    "app_lists.csv",
    person="user_id",
    method="k^m",
    traits="app lists | sets",
    columns="""
        user_id = person, code
        apps = items, category
    """,
    reason="A user and the list of installed apps in one cell, separated by semicolons: sets.",
)
def app_lists(rng):
    n = 200
    return {"user_id": distinct(rng, 1000, 99_999, n), "apps": [";".join(apps) for apps in sets_of(rng, APPS, n)]}


@case(
    "app_sets.jsonl",
    person="phone_id",
    method="k^m",
    traits="app lists | sets | jsonl",
    columns="""
        phone_id = person, code
        installed = items, category
    """,
    reason="As before with a list in JSON: the phone stands for its owner.",
)
def app_sets(rng):
    n = 150
    return {"phone_id": words_of(rng, "0123456789abcdef", 12, n), "installed": sets_of(rng, APPS, n)}


MEASURED = ("heart_rate", "steps", "spo2", "glucose", "skin_temp", "sleep_min")


@case(
    "wearables.csv",
    person="wearer_id",
    method="varied",
    may_ask=True,
    traits="sensors mostly missing | several rows a person | missing",
    columns="""
        received_at = time, time
        wearer_id = person, code
        mac_address = identifier, code
        age = quasi, numeric
    """
    + "\n".join(f"{name} = quasi | sensitive, numeric" for name in MEASURED),
    reason="A message has one or two of six measurements: columns come and go, and the wearer is the person.",
)
def wearables(rng):
    n = 360
    people = distinct(rng, 500, 999, 60)
    born = dict(zip(people, whole(rng, 18, 80, 60), strict=True))
    macs = dict(
        zip(
            people,
            [":".join(w[i : i + 2] for i in range(0, 12, 2)) for w in words_of(rng, "0123456789abcdef", 12, 60)],
            strict=True,
        )
    )
    rows = pick(rng, people, n)
    return {
        "received_at": written(moments(rng, "2024-01-01", 90_000, n)),
        "wearer_id": rows,
        "mac_address": of(rows, macs),
        "age": of(rows, born),
        **{name: holes(rng, whole(rng, 40, 190, n), 0.75) for name in MEASURED},
    }
