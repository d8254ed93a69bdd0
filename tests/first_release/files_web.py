"""Web logs and clicks: access logs in both formats, CSV and JSON lines."""

from __future__ import annotations

from tests.first_release.cases import case
from tests.first_release.samples import (
    moments,
    pick,
    uuids,
    whole,
    words,
    words_of,
    written,
)

PAGES = words("/ /about /jobs /help /cart /login /news /shop/42 /shop/17 /clinic/hiv-test")
AGENTS = ("Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (Windows NT 10.0)", "curl/8.1")


def requests(rng, n):
    hosts = [*(f"10.{a}.{b}.7" for a, b in zip(whole(rng, 0, 255, 40), whole(rng, 0, 255, 40), strict=True))]
    pages = pick(rng, PAGES, n, [9, 5, 3, 3, 5, 6, 4, 2, 2, 1])
    return pick(rng, hosts, n), moments(rng, "2023-03-01", 40_000, n), pages


@case(
    "access.log",
    person="host",
    method="z-anonymity",
    format="common log",
    traits="access log | several rows a person | events | hosts",
    columns="""
        host = person, text
        ident = drop, text
        user = identifier | drop, text
        time = time, time
        request = value, text
        status = drop | quasi | carried, code
        size = drop | quasi | carried, numeric
    """,
    reason="Common log format: the address stands for the visitor and must not be published.",
)
def access(rng):
    hosts, times, pages = requests(rng, 250)
    stamps = written(times, "%d/%b/%Y:%H:%M:%S +0000")
    users = pick(rng, ["-", "-", "-", "-", "-", "-", "-", "-", "anna", "ben"], 250)
    return [
        f'{host} - {user} [{stamp}] "GET {page} HTTP/1.1" 200 {size}'
        for host, user, stamp, page, size in zip(hosts, users, stamps, pages, whole(rng, 200, 9000, 250), strict=True)
    ]


@case(
    "access_combined.log",
    person="host",
    method="z-anonymity",
    format="combined log",
    traits="access log | several rows a person | events | hosts",
    columns="""
        host = person, text
        ident = drop, text
        user = identifier | drop, text
        time = time, time
        request = value, text
        status = drop | quasi | carried, code
        size = drop | quasi | carried, numeric
        referer = drop | quasi, text
        agent = drop | quasi | identifier, text
    """,
    reason="Combined log format: as the common one, with referer and browser.",
)
def access_combined(rng):
    hosts, times, pages = requests(rng, 200)
    stamps = written(times, "%d/%b/%Y:%H:%M:%S +0000")
    agents = pick(rng, AGENTS, 200)
    return [
        f'{host} - - [{stamp}] "GET {page} HTTP/1.1" 200 512 "-" "{agent}"'
        for host, stamp, page, agent in zip(hosts, stamps, pages, agents, strict=True)
    ]


@case(
    "requests.csv",
    person="host",
    method="z-anonymity",
    traits="web log | several rows a person | events | hosts",
    columns="""
        host = person, text
        time = time, time
        request = value, text
        status = drop | quasi | carried, code
        bytes = drop | quasi | carried, numeric
    """,
    reason="A web log as CSV: the host is the visitor; host names are never published.",
)
def requests_csv(rng):
    n = 300
    hosts = [f"{word}.dialup.example" for word in words_of(rng, "abcdefghijklmnop", 6, 45)]
    _, times, pages = requests(rng, n)
    return {
        "host": pick(rng, hosts, n),
        "time": written(times),
        "request": [f"GET {page}" for page in pages],
        "status": pick(rng, [200, 304, 404], n, [8, 1, 1]),
        "bytes": whole(rng, 100, 20_000, n),
    }


@case(
    "clicks.jsonl",
    person="user",
    method="z-anonymity",
    traits="jsonl | several rows a person | events | epoch ms | uuid",
    columns="""
        ts = time, time
        user = person, code
        page = value, text
    """,
    reason="Someone, a clock in milliseconds, a page that many open: an event stream.",
)
def clicks(rng):
    n = 280
    times = moments(rng, "2024-02-01T00:00:00+00:00", 50_000, n)
    return {
        "ts": [int(time.timestamp() * 1000) for time in times],
        "user": pick(rng, uuids(rng, 35), n),
        "page": pick(rng, PAGES, n),
    }
