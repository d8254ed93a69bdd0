"""Reports window by window: a twin that takes every value out of every set and counts again agrees on every number."""

from __future__ import annotations

from collections import Counter, defaultdict
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor import audit, report_windows
from shoal.auditor.report.released_sets import number_words
from shoal.errors import InputError, PolicyError
from tests.auditor.z.naive import HOUR, policy
from tests.reference.effort import tries

NAMES = ("ts", "user", "site", "land")
ONE = policy(z=2)
BLANK = policy(z=2, on_private="blank")
TWO = policy(z=2, attribute={"site": {}, "land": {}})
POLICIES = {"drop": ONE, "blank": BLANK, "two": TWO}


def table(rows):
    columns = zip(*rows, strict=True) if rows else [[]] * 4
    kinds = (pa.float64(), pa.string(), pa.string(), pa.string())
    return pa.table({name: pa.array(list(c), kind) for name, c, kind in zip(NAMES, columns, kinds, strict=True)})


def sets_of(rows, attributes):
    """Epoch → person → set of (attribute, value)."""
    found = defaultdict(lambda: defaultdict(set))
    for ts, user, *values in rows:
        shown = found[int(ts // HOUR)][user]
        shown |= {(name, value) for name, value in zip(NAMES[2:], values, strict=True) if value and name in attributes}
    return found


def exposed(sets, k):
    shared = Counter(frozenset(shown) for shown in sets.values())
    return sum(people for people in shared.values() if people < k)


def without(sets, value, keeps_empty):
    lessened = {person: shown - {value} for person, shown in sets.items()}
    if keeps_empty:
        return lessened
    return {person: shown for person, shown in lessened.items() if shown or not sets[person]}


def costs_of(sets, k, keeps_empty):
    """Value → (saved, holders), of values that save a person."""
    before = exposed(sets, k)
    found = {}
    for value in set().union(*sets.values()):
        saved = before - exposed(without(sets, value, keeps_empty), k)
        if saved:
            found[value] = (saved, sum(value in shown for shown in sets.values()))
    return found


def ranked(costs, count):
    order = sorted(costs.items(), key=lambda entry: (-entry[1][0], entry[1][1], entry[0]))
    return [(*value, *numbers) for value, numbers in order[:count]]


def briefly(costs):
    return [(cost.attribute, cost.value, cost.saved, cost.holders) for cost in costs]


def check(rows, kind, k):
    """Hold every number of a report against the twin."""
    promised = POLICIES[kind]
    attributes = ("site", "land") if kind == "two" else ("site",)
    report = report_windows(table(rows), promised, k=k)
    epochs = sets_of(rows, attributes)
    assert [window.start_ns for window in report.windows] == [epoch * HOUR * 10**9 for epoch in sorted(epochs)]
    totals, holders, windows = Counter(), Counter(), Counter()
    for window, (epoch, sets) in zip(report.windows, sorted(epochs.items()), strict=True):
        shared = Counter(frozenset(shown) for shown in sets.values())
        assert window.active is None
        assert window.shown == len(sets)
        assert window.exposed == exposed(sets, k)
        assert window.anonymous == len(sets) - exposed(sets, k)
        assert window.unique == sum(people == 1 for people in shared.values())
        assert window.rows == sum(int(row[0] // HOUR) == epoch for row in rows)
        assert window.largest_set == max(map(len, sets.values()))
        assert window.average_set == pytest.approx(sum(map(len, sets.values())) / len(sets))
        costs = costs_of(sets, k, kind == "blank")
        assert briefly(window.costs) == ranked(costs, 3)
        totals.update({value: saved for value, (saved, _) in costs.items()})
        windows.update(costs.keys())
        for shown in sets.values():
            holders.update(shown)
    assert briefly(report.costs) == ranked({value: (totals[value], holders[value]) for value in totals}, 10)
    for cost in report.costs:
        place = NAMES.index(cost.attribute)
        assert cost.rows == sum(row[place] == cost.value for row in rows)
        assert cost.windows == windows[cost.attribute, cost.value]
    return report


def some_rows(values):
    hour = st.integers(-1, 2).map(lambda number: float(number * HOUR + 5))
    value = st.one_of(st.none(), st.sampled_from(values))
    return st.lists(st.tuples(hour, st.sampled_from([f"p{n}" for n in range(8)]), value, value), max_size=40)


@given(rows=some_rows(["a", "b", "c"]), kind=st.sampled_from(sorted(POLICIES)), k=st.integers(2, 5))
@tries(150)
def test_any_release(rows, kind, k):
    check(rows, kind, k)


def random_rows(seed, count, people, values):
    random = Random(seed)
    return [
        (
            float(random.randrange(4 * HOUR)),
            f"p{random.randrange(people)}",
            f"v{int(random.paretovariate(0.7)) % values}",
            random.choice([None, "v0", "v1"]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("kind", sorted(POLICIES))
@pytest.mark.parametrize("k", [2, 4])
def test_many_rows(kind, k):
    report = check(random_rows(k, 1500, 150, 20), kind, k)
    assert len(report.costs) == 10
    assert 0 < report.total("exposed") < report.total("shown")


def test_it_agrees_with_the_audit():
    rows = random_rows(9, 2000, 300, 12)
    aimed = policy(z=2, target={"k": 3, "p": 0.9})
    del aimed["anonymize"]["z"]
    release = table(rows).select(["ts", "user", "site"])
    shares = audit(release, policy=aimed).metrics
    report = report_windows(release, aimed)
    assert report.k == 3
    assert report.total("anonymous") / report.total("shown") == shares["epochs"]["shares"]["3 or more"]["shown"]
    assert report.total("unique") / report.total("shown") == shares["epochs"]["shares"]["1 (unique)"]["shown"]
    assert report.target is not None
    assert (report.target.k, report.target.p) == (3, 0.9)
    assert report.target.shown == shares["target"]["epochs_shown"] == 4
    assert report.target.met == shares["target"]["epochs_met"]


def test_who_is_helped():
    """Without b the first two are alike; of the third nothing would be left without c; d parts two from one."""
    shown = {"p": "a", "q": "ab", "r": "c", "s": "e", "t": "e", "u": "ed"}
    release = table([(1.0, person, value, None) for person, values in shown.items() for value in values])
    report = report_windows(release, ONE)
    assert {cost.value: cost.saved for cost in report.costs} == {"b": 2, "c": 1, "d": 1, "a": 1}
    kept = report_windows(release, BLANK)
    assert {cost.value: cost.saved for cost in kept.costs} == {"b": 2, "d": 1}


def test_values_of_two_columns_are_two():
    release = table([(1.0, "p", "x", None), (1.0, "q", None, "x")])
    (window,) = report_windows(release, TWO).windows
    assert (window.unique, window.anonymous) == (2, 0)


@pytest.mark.parametrize(
    ("rules", "given_k", "k"),
    [
        ({"z": 3}, None, 2),
        ({"z": 3, "combine": "k", "k": 5}, None, 5),
        ({"target": {"k": 4, "p": 0.5}}, None, 4),
        ({"target": {"k": 4, "p": 0.5}}, 3, 3),
    ],
    ids=["plain", "combine", "target", "given"],
)
def test_which_k(rules, given_k, k):
    promised = policy(z=3)
    del promised["anonymize"]["z"]
    promised["anonymize"] |= rules
    assert report_windows(table([(1.0, "p", "x", None)]), promised, k=given_k).k == k


@pytest.mark.parametrize(
    ("p", "met"), [(0.5, [True, None, False]), (0.51, [False, None, False]), (0.3, [True, None, True])]
)
def test_a_target_is_judged_window_by_window(p, met):
    """Half of four are alike, then one in three of six; the truth adds a window without released rows."""
    rows = [(1.0, person, value, None) for person, value in zip("pqrs", "aabc", strict=True)]
    rows += [(2.0 * HOUR, person, value, None) for person, value in zip("pqrstu", "aabcde", strict=True)]
    promised = policy(target={"k": 2, "p": p})
    del promised["anonymize"]["z"]
    truth = table([(1.5 * HOUR, "x", "a", None), *rows])
    report = report_windows(table(rows), promised, truth=truth, k=3)
    assert [window.target_met for window in report.windows] == met
    assert report.target is not None
    assert (report.target.shown, report.target.met) == (2, met.count(True))
    assert f"met in {met.count(True)} of 2 windows with a released row" in report.text()


def test_active_people_come_from_the_truth():
    rows = [(1.0, "p", "a", None), (2.0, "q", "a", None)]
    truth = [*rows, (3.0, "p", "b", None), (4.0, "s", "c", None), (4.0, None, "c", None), (4.0, "", "c", None)]
    truth += [(HOUR + 1.0, "s", "a", None), (None, "t", "a", None)]
    report = report_windows(table(rows), ONE, truth=table(truth))
    assert [(window.active, window.shown) for window in report.windows] == [(3, 2), (1, 0)]
    assert report.windows[1].share is None
    assert report.windows[1].average_set is None
    assert "no one is shown in 1" in report.text()
    assert "people active                 4" in report.text()


def test_a_truth_without_rows():
    (window,) = report_windows(table([(1.0, "p", "a", None)]), ONE, truth=table([])).windows
    assert (window.active, window.shown) == (0, 1)


def test_rows_without_person_or_time_are_ignored():
    rows = [(1.0, "p", "a", None), (None, "q", "a", None), (1.0, None, "a", None)]
    report = report_windows(table(rows), ONE)
    assert report.unreadable_rows == 2
    assert (report.total("shown"), report.total("rows")) == (1, 1)
    assert "rows without a person or a time" in report.text()


@pytest.mark.parametrize("release", [table([]), pa.table({})], ids=["columns", "nothing"])
def test_nothing_released(release):
    report = report_windows(release, ONE)
    assert report.windows == report.costs == ()
    assert report.to_dict()["k_anonymous_share"] is None
    assert report.text().startswith("report of z-anonymity: 0 windows of 1h, k = 2 (the default; choose")


def test_no_value_can_be_removed_to_help():
    release = table([(1.0, "p", value, None) for value in "ab"] + [(1.0, "q", value, None) for value in "cd"])
    report = report_windows(release, ONE)
    assert report.costs == ()
    assert "no single value" in report.text()


def test_the_worst_window_comes_first():
    rows = [(float(hour * HOUR), f"p{n}", f"{'x' if n < 4 * hour else n}", None) for hour in range(3) for n in range(8)]
    report = report_windows(table(rows), ONE)
    assert [window.start for window in report.worst] == ["1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z"]


def test_odd_times_and_values():
    """Starts below a second and before 1970, and values that a terminal must not get as they are."""
    promised = policy(window=0.25)
    moments = pa.array([-(2**63) + 5, 250_000_001], pa.timestamp("ns"))
    release = pa.table({"ts": moments, "user": ["p", "q"], "site": ["a\x1b[2J", "b" * 100]})
    report = report_windows(release, promised)
    assert [window.start[:10] for window in report.windows] == ["1677-09-21", "1970-01-01"]
    assert report.windows[1].start == "1970-01-01T00:00:00.250000000Z"
    text = report.text()
    assert "\x1b" not in text
    assert "site = " + "b" * 59 + "…" in text
    assert "windows of 250ms" in text


def test_no_person_is_in_a_report():
    rows = [(1.0, f"person {n}", "a", None) for n in range(3)]
    report = report_windows(table(rows), ONE, truth=table(rows))
    assert "person 1" not in f"{report} {report.text()} {report.to_dict()} {report.cost_lines()}"


def test_words_differ_if_either_half_differs():
    words = np.array([[1, 2], [1, 3], [1, 2], [0, 2], [2**63 + 1, 2]], np.uint64)
    numbers = number_words(words)
    assert len(set(numbers.tolist())) == 4
    assert numbers[0] == numbers[2]
    assert number_words(words[:0]).tolist() == []


@pytest.mark.parametrize("k", [1, 0, True, 2.0])
def test_an_invalid_k(k):
    with pytest.raises(PolicyError, match="k: must be a whole number from 2"):
        report_windows(table([]), ONE, k=k)


def test_other_methods_have_no_windows():
    with pytest.raises(PolicyError, match="only z-anonymity has windows"):
        report_windows(table([]), {"stream": {}, "anonymize": {"method": "fads"}})


def test_missing_columns():
    with pytest.raises(InputError, match="release: no column user, site"):
        report_windows(pa.table({"ts": [1]}), ONE)
    with pytest.raises(InputError, match="truth: no column user"):
        report_windows(table([]), ONE, truth=pa.table({"ts": [1]}))
