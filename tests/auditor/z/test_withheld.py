"""The auditor knows what a target withholds and what it must not release."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.auditor import audit

WINDOW = 100


def table(events):
    times, users, sites = zip(*events, strict=True)
    return pa.table({"ts": pa.array(times), "user": users, "site": pa.array(sites, pa.string())})


def run(events, released, *, k=2, p=0.5, **more):
    """The audit of a release of all rows named, at z = k from the start."""
    target = {"k": k, "p": p, "start": k}
    rules = {"method": "z-anonymity", "attribute": "site", "window": WINDOW, "target": target, **more}
    trace = [
        {"row": row, "verdict": "released" if row in released else "suppressed", "z": k} for row in range(len(events))
    ]
    names = {user: sha256(user.encode()).hexdigest()[:32] for _, user, _ in events}
    rows = [(time, names[user], site) for row, (time, user, site) in enumerate(events) if row in released]
    policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": rules}
    return audit(table(rows), table(events), pa.Table.from_pylist(trace), policy)


def codes(report):
    return {(one.code, one.count) for one in report.findings if one.code in ("stands-out", "held-back")}


# a and b show x; everyone shows y, of whom c and d show it alone
EVENTS = [(0, "e", "x"), (1, "a", "x"), (2, "b", "x"), (3, "f", "y"), (4, "c", "y"), (5, "d", "y"), (6, "a", "y")]


def test_a_further_value_that_makes_too_many_stand_out():
    # of four people shown, a (x, y) and b (x) would stand alone
    assert codes(run(EVENTS, {1, 2, 4, 5, 6}, p=0.6)) == {("stands-out", 1)}
    assert codes(run(EVENTS, {1, 2, 4, 5, 6}, p=0.5)) == set()
    assert codes(run(EVENTS, {1, 2, 4, 5}, p=0.6)) == set()
    assert run(EVENTS, {1, 2, 4, 5}, p=0.6).metrics["withheld"] == 1


def test_what_need_not_be_withheld():
    assert codes(run(EVENTS, {1, 2, 4, 5}, p=0.5)) == {("held-back", 1)}
    # b joins a, so no one more stands alone, however many do
    assert codes(run(EVENTS[:3], {1}, p=1.0)) == {("held-back", 1)}
    # shown before: nothing more becomes known
    assert codes(run([*EVENTS[:3], (9, "a", "x")], {1, 2}, p=1.0)) == {("held-back", 1)}


def test_one_may_be_left_alone_while_another_finds_company():
    begin = [(0, "e", "x"), (1, "a", "x"), (2, "b", "x"), (3, "c", "x"), (4, "f", "y"), (5, "a", "y")]
    # g's first value stays alone, as a is with (x, y); then b leaves c behind with x and joins a
    events = [*begin, (6, "h", "w"), (7, "g", "w"), (8, "b", "y")]
    assert codes(run(events, {1, 2, 3, 5, 7, 8}, p=0.6)) == set()
    assert codes(run(events, {1, 2, 3, 5, 7}, p=0.6)) == {("held-back", 1)}


def test_a_set_that_no_one_shows_yet_counts_double_above_2():
    begin = [(number, f"u{number}", "x") for number in range(9)]
    events = [*begin, (20, "v", "y"), (21, "w", "y"), (22, "z", "y"), (23, "u8", "y")]
    released = {2, 3, 4, 5, 6, 7, 8}
    # eight people are shown with one of them alone; a new set of u8 counts twice
    assert codes(run(events, {*released, 11, 12}, k=3, p=0.7)) == {("stands-out", 1)}
    assert codes(run(events, {*released, 11}, k=3, p=0.7)) == set()
    assert codes(run(events, {*released, 11}, k=3, p=0.5)) == {("held-back", 1)}


def test_every_epoch_begins_anew():
    events = [*EVENTS, *((time + 2 * WINDOW, user, site) for time, user, site in EVENTS)]
    both = {1, 2, 4, 5, 6, 8, 9, 11, 12, 13}
    assert codes(run(events, both, p=0.6)) == {("stands-out", 2)}


@pytest.mark.parametrize(("k", "p", "on_private"), [(2, 0.95, "drop"), (2, 0.8, "blank"), (4, 0.9, "drop")])
def test_nothing_is_found_in_what_shoal_releases(k, p, on_private):
    random = np.random.default_rng(5)
    count = 3000
    times = np.sort(random.integers(0, 6 * WINDOW, count)).tolist()
    users = [f"u{who}" for who in random.integers(120, size=count)]
    sites = [None if site > 8 else f"s{site}" for site in random.geometric(0.35, size=count)]
    events = list(zip(times, users, sites, strict=True))
    ours = shoal.ZAnonymity(
        target=shoal.KTarget(k=k, p=p), window=WINDOW, person="user", time="ts", attribute="site", key=bytes(16),
        on_private=on_private,
    )  # fmt: skip
    release = ours.push_batch(table(events))
    rules = {"method": "z-anonymity", "attribute": "site", "window": WINDOW, "target": {"k": k, "p": p}}
    policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": {**rules, "on_private": on_private}}
    report = audit(release.rows, table(events), release.trace, policy)
    assert report.ok
    assert codes(report) == set()
    assert report.metrics["withheld"] > 0
