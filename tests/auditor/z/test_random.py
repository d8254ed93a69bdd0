"""Arbitrary decisions, right or wrong: the auditor must convict exactly the rows the definition convicts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.auditor import audit
from tests.auditor.z.naive import HOUR, Publisher, policy, pseudonym, records, table, trace_table
from tests.reference.effort import tries

DOMAINS = {"kind": "suffix", "separator": "."}
SITES = ("a.news", "b.news", "a.shop", "news")
STEPS = {"a.news": ["a.news", "news", "*"], "b.news": ["b.news", "news", "*"], "news": ["news", "*"]}
STEPS["a.shop"] = ["a.shop", "shop", "*"]

STREAMS = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 7, HOUR]), st.integers(0, 5), st.sampled_from(SITES), st.integers(-1, 2)),
    max_size=10,
)


def timed(stream):
    """Turn gaps into times that never fall."""
    now, rows = 0, []
    for gap, user, site, level in stream:
        now += gap
        rows.append((now, f"user {user}", site, level))
    return rows


def people_behind(rows, number, label, labels, *, strict):
    """The definition: people with an exposure under the label, not released at a strict descendant of it.

    By the strict rule such a descendant does not pass now either.
    """
    return len({rows[number][1]} | counted(rows, number, label, labels, strict=strict))


def counted(rows, number, label, labels, *, strict):
    found = set()
    for other in range(number + 1):
        then, user, site, _ = rows[other]
        steps = STEPS[site]
        if then < rows[number][0] - HOUR or label not in steps:
            continue
        below = steps[: steps.index(label)]
        if labels[other] in below:
            continue
        if not strict or all(len(counted(rows, number, step, labels, strict=True)) < 2 for step in below):
            found.add(user)
    return found


def decided(rows, labels):
    shown = [
        {"ts": time, "user": pseudonym(user, time, HOUR), "site": label}
        for (time, user, _, _), label in zip(rows, labels, strict=True)
        if label is not None
    ]
    verdicts = ["suppressed" if label is None else "released" for label in labels]
    trace = [{"row": number, "verdict": verdict, "z": 2} for number, verdict in enumerate(verdicts)]
    return table(shown), trace_table(trace)


def counts(report):
    return {found.code: (found.count, found.rows) for found in report.findings if found.code != "pending"}


@pytest.mark.parametrize("rule", ["strict", "loose"])
@tries(100)
@given(stream=STREAMS)
@example([(0, 0, "a.news", 0), (HOUR, 1, "a.news", 0)])
@example([(0, 0, "a.news", 1), (0, 1, "a.news", 0), (0, 2, "b.news", 1)])
@example([(0, 0, "a.news", -1), (0, 1, "a.news", 0), (0, 2, "b.news", 1)])  # a.news passes: 1 is not behind news
@example([(0, 0, "a.news", -1), (0, 1, "b.news", 1), (0, 2, "news", 0), (0, 3, "a.shop", 2)])  # nor behind the root
@example([(0, 0, "a.shop", 2), (7, 2, "news", 0), (7, 0, "a.news", 2), (0, 1, "a.news", 1)])  # 1 counts for its own row
def test_generalized_rows_are_judged_by_the_residual_rule(rule, stream):
    rows = timed(stream)
    labels = [STEPS[site][level] if 0 <= level < len(STEPS[site]) else None for _, _, site, level in rows]
    release, trace = decided(rows, labels)
    promised = policy(z=2, on_private="generalize", hierarchy=DOMAINS, residual=rule)
    report = audit(release, _truth(rows), trace, promised)
    assert counts(report) == _expected(rows, labels, strict=rule == "strict")


def _truth(rows):
    return table(records(row[:3] for row in rows))


def _expected(rows, labels, *, strict):
    below, general, held, shown = [], 0, 0, 0
    for number, (_, _, site, _) in enumerate(rows):
        behind = {label: people_behind(rows, number, label, labels, strict=strict) for label in STEPS[site]}
        enough = [label for label in STEPS[site] if behind[label] >= 2]
        if labels[number] is None:
            held += bool(enough)
            continue
        if labels[number] not in enough:
            below.append(shown)
        general += any(STEPS[site].index(label) < STEPS[site].index(labels[number]) for label in enough)
        shown += 1
    found = {"below-z": (len(below), tuple(below)), "too-general": (general, ()), "held-back": (held, ())}
    return {code: what for code, what in found.items() if what[0]}


@tries(100)
@given(STREAMS)
@example([(0, 0, "news", 0), (HOUR, 1, "news", 0)])  # exactly the window: counts
@example([(0, 0, "news", 0), (1, 0, "news", 0)])  # the same person twice is one person
def test_plain_rows_are_judged_by_the_people_in_the_window(stream):
    rows = timed(stream)
    labels = [site if level >= 0 else None for _, _, site, level in rows]
    release, trace = decided(rows, labels)
    report = audit(release, _truth(rows), trace, policy(z=2))
    crowd = [
        len({user for then, user, other, _ in rows[: number + 1] if other == site and then >= now - HOUR})
        for number, (now, _, site, _) in enumerate(rows)
    ]
    shown = [number for number, label in enumerate(labels) if label is not None]
    below = tuple(place for place, number in enumerate(shown) if crowd[number] < 2)
    held = sum(crowd[number] >= 2 and labels[number] is None for number in range(len(rows)))
    expected = {"below-z": (len(below), below), "held-back": (held, ())}
    assert counts(report) == {code: what for code, what in expected.items() if what[0]}


@tries(100)
@given(STREAMS)
def test_without_a_trace_the_most_people_that_could_count_are_counted(stream):
    rows = timed(stream)
    labels = [site if level >= 0 else None for _, _, site, level in rows]
    release, _ = decided(rows, labels)
    report = audit(release, _truth(rows), policy=policy(z=2))
    shown = [number for number, label in enumerate(labels) if label is not None]
    below = tuple(place for place, number in enumerate(shown) if _most_people(rows, number) < 2)
    assert counts(report) == ({"below-z": (len(below), below)} if below else {})


def _most_people(rows, number):
    now, _, site, _ = rows[number]
    return len({user for then, user, other, _ in rows if other == site and now - HOUR <= then <= now})


LATE = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 2 * HOUR)),
        st.one_of(st.none(), st.sampled_from("uvwxy")),
        st.one_of(st.none(), st.sampled_from(SITES)),
        st.sampled_from("de"),
    ),
    max_size=25,
)


@tries(100)
@given(
    LATE,
    st.sampled_from([0, 600, 3 * HOUR]),
    st.sampled_from(["drop", "blank", "strict", "loose"]),
    st.integers(1, 3),
)
def test_a_correct_publisher_is_acquitted(stream, lateness, on_private, z):
    rows = records(stream, ("ts", "user", "site", "country"))
    climb = on_private in ("strict", "loose")
    publisher = Publisher(
        z=z,
        window_s=HOUR,
        lateness_s=lateness,
        paths={"site": lambda site: tuple(STEPS[site])} if climb else {},
        carry=("country",),
        blank=on_private == "blank",
        is_strict=on_private == "strict",
    ).run(rows)
    rules = {"on_private": on_private}
    if climb:
        rules = {"on_private": "generalize", "hierarchy": DOMAINS, "residual": on_private}
    promised = policy(z=z, lateness=lateness, carry=["country"], **rules)
    truth = table(rows, ("ts", "user", "site", "country"))
    with_trace = audit(publisher.release_table, truth, publisher.trace_table, promised)
    without_trace = audit(publisher.release_table, truth, policy=promised)
    alone = audit(publisher.release_table, policy=promised)
    assert with_trace.not_checked == ()
    for report in (with_trace, without_trace, alone):
        assert report.ok
        assert {found.code for found in report.findings} <= {"identifying-carry"}  # there are few people


@tries(100)
@given(LATE, st.integers(1, 3))
def test_several_attributes_are_judged_each_on_its_own(stream, z):
    rows = records(stream, ("ts", "user", "site", "country"))
    publisher = Publisher(z=z, window_s=HOUR, attributes=("site", "country")).run(rows)
    promised = policy(z=z, attribute={"site": {}, "country": {}})
    truth = table(rows, ("ts", "user", "site", "country"))
    assert audit(publisher.release_table, truth, publisher.trace_table, promised).findings == ()
    assert audit(publisher.release_table, truth, policy=promised).findings == ()
