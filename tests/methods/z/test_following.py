"""Where z follows the stream, a row needs the z of its epoch, and may not make too many people stand out."""

from __future__ import annotations

from hashlib import sha256
from hmac import digest

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.auditor import audit
from shoal.errors import PolicyError
from shoal.models.z.target.target import NOTHING
from tests.reference.effort import IS_COMPILED, tries
from tests.reference.withholding import followed

WINDOW = 60
SHARED = {"window": WINDOW, "person": "user", "time": "ts", "attribute": "site", "key": bytes(16)}


def make(*, k=2, p=0.7, **more):
    target = {name: more.pop(name) for name in ("floor", "start") if name in more}
    return shoal.ZAnonymity(target=shoal.KTarget(k=k, p=p, **target), **SHARED, **more)


def crowd(windows, *, people, sites=6, visits=3, seed=1):
    """Visits of people who prefer the first sites, in whole seconds."""
    random = np.random.default_rng(seed)
    count = people * visits * windows
    times = np.sort(random.integers(0, windows * WINDOW, count))
    return list(
        zip(
            times.tolist(),
            (f"u{who}" for who in random.integers(people, size=count)),
            (f"s{min(site, sites)}" for site in random.geometric(0.45, size=count)),
            strict=True,
        )
    )


def table(events):
    times, users, sites = zip(*events, strict=True)
    return pa.table({"ts": pa.array(times), "user": users, "site": sites})


def pseudonym(user, epoch):
    return digest(b"a key of the test", f"{user} {epoch}".encode(), sha256).hex()[:32]


def by_twin(events, z_of, *, k=2, p=0.7, rotation=WINDOW):
    """Rows of the epochs that have a z, and the sets shown; the running epoch has none yet."""
    return followed(events, z_of, k=k, p=p, window=WINDOW, rotation=rotation)


def z_by_epoch(ours):
    return {one.epoch: one.z for one in ours.outcomes}


@pytest.mark.parametrize(
    ("people", "rotation", "start", "k", "p"),
    [(80, 60, None, 2, 0.95), (80, 30, 5, 2, 0.9), (90, 90, 3, 3, 0.8), (90, 60, 6, 4, 0.9)],
)
@pytest.mark.compiled
def test_rows_are_released_as_by_the_twin(people, rotation, start, k, p):
    events = crowd(10, people=people)
    ours = make(rotation=rotation, start=start, k=k, p=p)
    trace = ours.push_batch(table(events)).trace.to_pylist()
    expected, _ = by_twin(events, z_by_epoch(ours), k=k, p=p, rotation=rotation)
    released = {entry["row"]: entry["verdict"] == "released" for entry in trace if entry["row"] in expected}
    assert released == expected
    assert any(released.values())
    assert len({one.z for one in ours.outcomes}) >= 3


@pytest.mark.compiled
def test_what_came_of_it_is_recounted():
    events, ours = crowd(12, people=70), make()
    ours.push_batch(table(events))
    _, shown = by_twin(events, z_by_epoch(ours))
    for one in ours.outcomes:
        sets = shown[one.epoch]
        assert (one.shown, one.anonymous) == (len(sets.of), len(sets.of) - sets.alone)
        assert one.people == len({user for time, user, _ in events if time // WINDOW == one.epoch})
        assert one.is_met == (one.anonymous >= 0.7 * one.shown)
    assert any(one.shown for one in ours.outcomes)


@pytest.mark.compiled
def test_every_z_is_reported_once_when_its_epoch_begins():
    events, ours = crowd(8, people=60), make()
    changes = []
    for start in range(0, len(events), 100):
        ours.push_batch(table(events[start : start + 100]))
        changes += ours.take_changes()
    assert [change.start_ns // 10**9 for change in changes] == [WINDOW * number for number in range(8)]
    assert [change.z for change in changes[:-1]] == [one.z for one in ours.outcomes]
    assert changes[-1].z == ours.z
    assert ours.take_changes() == []


@pytest.mark.parametrize("before", [5, 1], ids=["after a while", "after the first epoch"])
@pytest.mark.compiled
def test_after_a_long_silence_a_whole_epoch_must_be_seen_again(before):
    ours = make(max_gap="10h")
    back = 40 * WINDOW - 1  # 26 epochs or more later, a moment before an epoch ends
    crowded = [(back, f"v{who}", "s1") for who in range(60)]
    ours.push_batch(table(crowd(before, people=60) + crowded))
    ours.take_changes()
    again = [(back + 1 + time, user, site) for time, user, site in crowd(3, people=60)]
    ours.push_batch(table(again))
    found = [change.z for change in ours.take_changes()]
    assert found[0] == NOTHING
    assert found[1] < NOTHING


def test_blanked_rows_show_people_at_a_z_that_nothing_reaches_too():
    ours = make(k=3, on_private="blank")
    for time, user in enumerate(["a", "b", "a"]):
        assert ours.push({"ts": time, "user": user, "site": "s1"})[0]["site"] is None
    ours.push({"ts": WINDOW, "user": "a", "site": "s1"})
    [outcome] = ours.outcomes
    assert (outcome.shown, outcome.anonymous, outcome.is_met) == (2, 0, False)


@pytest.mark.filterwarnings("error:divide by zero", "error:invalid value")
def test_epochs_of_nulls_alone_let_nothing_leave():
    ours = make(start=2)
    for time in range(0, 6 * WINDOW, WINDOW // 2):
        assert ours.push({"ts": time, "user": f"u{time}", "site": None}) == []
    assert ours.z == NOTHING


@tries(15)
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([20, 60, 75]))
def test_single_records_go_the_same_way(seed, k, rotation):
    events = crowd(6 if IS_COMPILED else 3, people=35, visits=2, seed=seed)
    batches, singles = (make(k=k, rotation=rotation, start=k) for _ in range(2))
    rows = batches.push_batch(table(events)).rows.to_pylist()
    found = [row for time, user, site in events for row in singles.push({"ts": time, "user": user, "site": site})]
    assert found == rows
    assert singles.outcomes == batches.outcomes
    assert singles.counts == batches.counts


@pytest.mark.compiled
def test_the_auditor_agrees_and_finds_a_z_that_was_moved():
    events, ours = crowd(10, people=70), make()
    release = ours.push_batch(table(events))
    rules = {"method": "z-anonymity", "attribute": "site", "window": WINDOW, "target": {"k": 2, "p": 0.7}}
    policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": rules}
    report = audit(release.rows, table(events), release.trace, policy)
    assert report.ok
    shown = [one for one in ours.outcomes if one.shown]
    assert report.metrics["target"]["epochs_met"] >= sum(one.is_met for one in shown)
    moved = release.trace.to_pylist()
    moved[-1]["z"] += 1
    found = audit(release.rows, table(events), pa.Table.from_pylist(moved), policy)
    assert "z-within-epoch" in {one.code for one in found.violations}
    nothing = [{**entry, "z": None} for entry in moved]
    found = audit(release.rows, table(events), pa.Table.from_pylist(nothing), policy)
    assert "z-missing" in {one.code for one in found.violations}
    low = [{**entry, "z": 1} for entry in moved]
    found = audit(release.rows, table(events), pa.Table.from_pylist(low), policy)
    assert "z-lowered" in {one.code for one in found.violations}
    assert "z-too-early" in {one.code for one in found.violations}
    assert any("Which z" in text for text in audit(release.rows, table(events), policy=policy).not_checked)


@pytest.mark.parametrize(("rotation", "start"), [(60, None), (25, None), (90, 9)])
@pytest.mark.compiled
def test_the_auditor_finds_a_z_that_fell_before_enough_was_seen(rotation, start):
    events, ours = crowd(10, people=70), make(rotation=rotation, start=start)
    ours.push_batch(table(events))
    first = {"start": start} if start else {}
    rules = {"method": "z-anonymity", "attribute": "site", "window": WINDOW, "rotation": rotation}
    policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": rules | {"target": {"k": 2, "p": 0.7} | first}}
    seen = [one.epoch for one in ours.outcomes if one.epoch > 0 and (one.epoch + 1) * rotation >= WINDOW]
    for epoch in range(seen[0] + 2):
        z = {one.epoch: one.z for one in ours.outcomes} | {epoch: 5}
        left, _ = by_twin(events, z, rotation=rotation)
        kept = sorted(left)
        trace = [{"row": row, "verdict": "released" if left[row] else "suppressed", "z": z[events[row][0] // rotation]}
                 for row in kept]  # fmt: skip
        shown = [events[row] for row in kept if left[row]]
        release = table([(time, pseudonym(user, time // rotation), site) for time, user, site in shown])
        found = audit(release, table(events[: len(kept)]), pa.Table.from_pylist(trace), policy)
        assert {one.code for one in found.violations} == ({"z-too-early"} if epoch <= seen[0] else set())


@pytest.mark.parametrize(("start", "codes"), [(None, {"z-too-early"}), (3, {"z-too-early"}), (2, set())])
def test_two_people_are_no_start(start, codes):
    events = [(0, "a", "x"), (1, "b", "x")]
    trace = [{"row": 0, "verdict": "suppressed", "z": 2}, {"row": 1, "verdict": "released", "z": 2}]
    target = {"k": 2, "p": 0.7} | ({"start": start} if start else {})
    rules = {"method": "z-anonymity", "attribute": "site", "window": WINDOW, "target": target}
    policy = {"stream": {"person": "user", "time": "ts"}, "anonymize": rules}
    found = audit(table([(1, pseudonym("b", 0), "x")]), table(events), pa.Table.from_pylist(trace), policy)
    assert {one.code for one in found.violations} == codes


@pytest.mark.parametrize("start", [1, True, "5"])
def test_the_auditor_knows_what_a_start_may_be(start):
    rules = {"method": "z-anonymity", "attribute": "site", "window": 1, "target": {"k": 2, "p": 0.7, "start": start}}
    with pytest.raises(PolicyError, match="start"):
        audit(
            table([(0, pseudonym("b", 0), "x")]),
            policy={"stream": {"person": "user", "time": "ts"}, "anonymize": rules},
        )


@pytest.mark.compiled
def test_the_auditor_counts_windows_in_which_the_aim_was_missed():
    # in the second window one person more shows what many had shown before, and no one follows
    events = [(WINDOW - 20 + second, f"u{second}", "s1") for second in range(12)] + [(WINDOW, "v", "s1")]
    events += [(5 * WINDOW, "w", "s2"), (6 * WINDOW, "w", "s2")]
    ours = make(p=0.99, start=2)
    release = ours.push_batch(table(events))
    rules = {"method": "z-anonymity", "attribute": "site", "window": WINDOW, "target": {"k": 2, "p": 0.99, "start": 2}}
    report = audit(
        release.rows, table(events), release.trace, {"stream": {"person": "user", "time": "ts"}, "anonymize": rules}
    )
    missed = [one for one in ours.outcomes if not one.is_met]
    assert [(one.epoch, one.shown, one.anonymous) for one in missed] == [(1, 1, 0)]
    assert report.ok
    assert [(found.code, found.count) for found in report.warnings if found.code == "target-missed"] == [
        ("target-missed", len(missed))
    ]


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"z": 3}, "z: cannot be combined with a target"),
        (
            {"on_private": "generalize", "hierarchy": shoal.Hierarchy.by_suffix()},
            'on_private: must be "drop" or "blank"',
        ),
        ({"combine": "k", "k": 3}, "combine"),
        ({"target": {"k": 2, "p": 0.9}}, "must be a shoal.KTarget"),
    ],
)
def test_what_does_not_go_together(more, word):
    with pytest.raises(PolicyError, match=word):
        shoal.ZAnonymity(**{"target": shoal.KTarget(k=2, p=0.9), **SHARED, **more})


def test_a_column_may_not_have_its_own_z():
    attribute = {"site": {"z": 4}, "app": {}}
    with pytest.raises(PolicyError, match=r"attribute\.site\.z: cannot be combined with a target"):
        shoal.ZAnonymity(**{**SHARED, "attribute": attribute, "target": shoal.KTarget(k=2, p=0.9)})


def test_a_fixed_z_tells_nothing():
    fixed = shoal.ZAnonymity(z=3, **SHARED)
    assert (fixed.z, fixed.outcomes, fixed.take_changes(), fixed.metrics) == (3, (), [], {})
    assert shoal.ZAnonymity(**{**SHARED, "attribute": {"site": {"z": 4}}}).z is None
    assert "aimed at, not promised" in make().guarantee.statement
    assert make(floor=9).guarantee.parameters["target"] == {"k": 2, "p": 0.7, "floor": 9, "start": None}
