"""Sets that k people must share: honest runs are acquitted, and every planted fault is found."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.methods.z.z_anonymity import ZAnonymity

MINUTE = 60
SITES = ("a.news", "b.news", "a.shop", "b.shop")
SCHEMA = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("site", pa.string()), ("device", pa.string())])
SUFFIX = {"on_private": "generalize", "hierarchy": {"kind": "suffix"}}


def stream(rows=240, *, seed=0, people=9):
    """Visits of a few people over some minutes, each person with tastes of their own."""
    random = np.random.default_rng(seed)
    times = np.cumsum(random.integers(0, 4, rows)) + 1_000_000
    users = random.integers(0, people, rows)
    liked = (users + random.choice([0, 0, 0, 1, 2], rows)) % len(SITES)
    return [
        {
            "ts": int(time),
            "user": f"user {user}",
            "site": SITES[like],
            "device": ("phone", "tv")[int(random.integers(2))],
        }
        for time, user, like in zip(times, users, liked, strict=True)
    ]


class Run:
    """A run of z-anonymity with combinations, whose release and trace tests may spoil."""

    def __init__(self, *, flush_after=(), truth=None, **rules):
        self.truth = stream() if truth is None else truth
        self.rules = {"attribute": "site", "z": 2, "window": MINUTE, "combine": "k", "k": 2, **rules}
        given = dict(self.rules)
        if "hierarchy" in given:
            given["hierarchy"] = Hierarchy.by_suffix()
        method = ZAnonymity(person="user", time="ts", key=bytes(16), **given)
        releases = []
        for start, stop in pairwise((0, *flush_after, len(self.truth))):
            releases.append(method.push_batch(pa.Table.from_pylist(self.truth[start:stop], SCHEMA)))
            releases.append(method.flush())
        self.release = [row for release in releases for row in release.rows.to_pylist()]
        self.trace = [row for release in releases for row in release.trace.to_pylist()]
        self.columns, self.traced = method.output_schema, method.trace_schema

    def policy(self):
        return {"stream": {"person": "user", "time": "ts"}, "anonymize": {"method": "z-anonymity", **self.rules}}

    def audit(self, *, truth=True, trace=True, without=()):
        release = pa.Table.from_pylist(self.release, self.columns)
        decisions = pa.Table.from_pylist(self.trace, self.traced).drop_columns(list(without))
        known = pa.Table.from_pylist(self.truth, SCHEMA) if truth else None
        return audit(release, known, decisions if trace else None, self.policy())

    def codes(self, **more):
        report = self.audit(**more)
        return {found.code for found in (*report.violations, *report.warnings)}

    def places(self, condition):
        return [place for place, entry in enumerate(self.trace) if condition(entry)]

    def shown(self, place):
        """The released row of a line of the trace."""
        return self.release[sum(entry["verdict"] == "released" for entry in self.trace[:place])]

    def withhold(self, place):
        """Suppress a released row after all."""
        at = sum(entry["verdict"] == "released" for entry in self.trace[:place])
        del self.release[at]
        self.trace[place]["verdict"] = "suppressed"


TABLE = {"attribute": {"site": {"z": 2}, "device": {"z": 3}}}


@pytest.mark.parametrize(
    "rules",
    [{}, {"k": 3}, {"on_private": "blank"}, SUFFIX, TABLE, {"rotation": 150}, {"z": 1, "rotation": 20}],
    ids=["drop", "three", "blank", "suffix", "table", "long", "everything"],
)
@pytest.mark.parametrize("lateness", [0, 5], ids=["at once", "late"])
def test_an_honest_run_is_acquitted(rules, lateness):
    run = Run(lateness=lateness, **rules)
    report = run.audit()
    assert run.release
    assert report.findings == ()
    assert report.not_checked == ()
    assert report.metrics["smallest_k"] >= run.rules["k"]
    assert run.audit(trace=False).findings == ()
    assert run.audit(truth=False).findings == ()


@pytest.mark.parametrize("lateness", [0, 5], ids=["at once", "late"])
@pytest.mark.parametrize("rules", [{}, {"on_private": "blank"}, TABLE], ids=["drop", "blank", "table"])
def test_flushes_in_the_middle_of_epochs(rules, lateness):
    run = Run(flush_after=range(20, 240, 31), lateness=lateness, rotation=150, **rules)
    assert run.audit().findings == ()
    at_once = [entry for entry in run.trace if entry["group"] is None and entry["verdict"] == "suppressed"]
    assert any(max(entry[name] for name in entry if name.startswith("level")) >= 0 for entry in at_once)


def alone(run, *, k=2):
    """A line of the trace whose row, withheld, changes a set that just k people share."""
    sets = {}
    for place in run.places(lambda entry: entry["verdict"] == "released"):
        row = run.shown(place)
        sets.setdefault((row["ts"] // MINUTE, row["user"]), []).append((row["site"], place))
    shared = Counter((someone[0], frozenset(site for site, _ in rows)) for someone, rows in sets.items())
    for (epoch, _), rows in sets.items():
        counts = Counter(site for site, _ in rows)
        if shared[epoch, frozenset(counts)] == k:
            for site, place in rows:
                if counts[site] == 1:
                    return place
    raise AssertionError("the stream has no such row")


def test_one_set_altered_breaks_the_promise():
    run = Run()
    run.withhold(alone(run))
    report = run.audit()
    assert [found.code for found in report.violations] == ["set-below-k"]
    assert report.metrics["smallest_k"] == 1
    assert {found.code for found in run.audit(truth=False).violations} == {"set-below-k"}
    assert {found.code for found in run.audit(trace=False).violations} == {"set-below-k"}


def test_a_higher_k_is_judged_as_such():
    run = Run()
    run.rules["k"] = 4
    assert run.codes() == {"set-below-k"}


def test_a_set_is_over_all_columns():
    run = Run(**TABLE)
    place = run.places(lambda entry: entry["verdict"] == "released" and entry["level.device"] >= 0)[0]
    row = run.shown(place)
    for other in run.release:
        if other["user"] == row["user"]:
            other["device"] = None
    assert "set-below-k" in run.codes()


def test_the_same_text_in_two_columns_is_two_values():
    run = Run(**TABLE)
    epochs = {row["ts"] // MINUTE for row in run.release}
    first, second = (run.release[0] | {"ts": max(epochs) * MINUTE + 90, "user": 32 * digit} for digit in "01")
    run.release += [first | {"site": "same", "device": None}, second | {"site": None, "device": "same"}]
    alone_rows = next(found.rows for found in run.audit(trace=False).violations if found.code == "set-below-k")
    assert alone_rows == (len(run.release) - 2, len(run.release) - 1)


def test_blank_rows_have_no_set():
    run = Run(on_private="blank")
    run.release.append(run.release[-1] | {"user": "f" * 32, "site": None})
    assert "set-below-k" not in run.codes(truth=False)


class TestTrace:
    def test_a_row_that_did_not_wait(self):
        run = Run()
        place = run.places(lambda entry: entry["verdict"] == "released")[0]
        run.trace[place]["group"] = None
        assert "trace-group" in run.codes()

    def test_a_row_that_waited_for_another_epoch(self):
        run = Run()
        run.trace[run.places(lambda entry: entry["group"] is not None)[0]]["group"] += 1
        assert run.codes() == {"trace-group"}

    def test_rows_of_an_epoch_out_of_order(self):
        run = Run(k=3)
        waited = run.places(lambda entry: entry["group"] is not None and entry["verdict"] == "suppressed")
        first, second = next((a, b) for a, b in pairwise(waited) if b == a + 1)
        run.trace[first], run.trace[second] = run.trace[second], run.trace[first]
        assert run.codes() == {"decision-order"}

    def test_rows_decided_at_once_out_of_order(self):
        run = Run()
        now = run.places(lambda entry: entry["group"] is None)
        first, second = next((a, b) for a, b in pairwise(now) if b == a + 1)
        run.trace[first], run.trace[second] = run.trace[second], run.trace[first]
        assert run.codes() == {"decision-order"}

    def test_an_epoch_that_was_decided_too_early(self):
        run = Run()
        groups = [entry["group"] for entry in run.trace]
        last = next(place for place in reversed(range(len(groups))) if groups[place] is not None)
        ended = [entry for entry in run.trace if entry["group"] == groups[last]]
        rest = [entry for entry in run.trace if entry["group"] != groups[last]]
        shown = sum(entry["verdict"] == "released" for entry in ended)
        run.trace = ended + rest
        run.release = run.release[-shown:] + run.release[:-shown] if shown else run.release
        assert "decision-order" in run.codes()

    def test_a_value_recorded_as_passed_that_did_not_pass(self):
        run = Run()
        place = run.places(lambda entry: entry["verdict"] == "suppressed" and entry["level"] < 0)[0]
        run.trace[place]["level"] = 0
        assert "trace-level" in run.codes()

    def test_a_level_that_does_not_exist(self):
        run = Run()
        place = run.places(lambda entry: entry["verdict"] == "suppressed" and entry["level"] < 0)[0]
        run.trace[place]["level"] = 7
        assert "trace-level" in run.codes()

    def test_a_value_recorded_as_not_passed_that_passed(self):
        run = Run(k=3)
        place = run.places(lambda entry: entry["verdict"] == "suppressed" and entry["group"] is not None)[0]
        run.trace[place]["level"] = -1
        assert run.codes() == {"held-back"}

    def test_a_row_that_passed_but_was_not_let_wait(self):
        run = Run(k=3)
        closed = set()
        for entry in run.trace:
            if entry["verdict"] == "suppressed" and entry["group"] is not None and entry["group"] not in closed:
                entry["group"] = None
                break
            closed.add(entry["group"])
        assert "held-back" in run.codes()

    def test_a_label_other_than_the_one_that_passed(self):
        run = Run(**SUFFIX)
        place = run.places(lambda entry: entry["verdict"] == "released" and entry["level"] == 0)[0]
        epoch = run.trace[place]["group"]
        for entry_place in run.places(lambda entry: entry["verdict"] == "released" and entry["group"] == epoch):
            row = run.shown(entry_place)
            row["site"] = row["site"].split(".")[-1]
        assert "wrong-label" in run.codes()

    def test_a_row_that_z_did_not_let_pass(self):
        run = Run()
        place = run.places(lambda entry: entry["verdict"] == "released")[0]
        record = run.truth[run.trace[place]["row"]]
        run.truth = [
            one | {"site": "elsewhere"} if one["site"] == record["site"] and one["user"] != record["user"] else one
            for one in run.truth
        ]
        assert "below-z" in run.codes()

    def test_a_lost_row(self):
        run = Run()
        del run.trace[run.places(lambda entry: entry["verdict"] == "suppressed")[0]]
        assert "lost" in run.codes()

    @pytest.mark.parametrize("waited", [False, True])
    def test_a_lost_row_of_the_last_epoch(self, waited):
        """Others of the epoch, which came later, were decided at its end: it cannot be waiting."""
        run = Run(z=4, k=3, rotation=150)
        last = max(entry["group"] for entry in run.trace if entry["group"] is not None)
        newest = max(entry["row"] for entry in run.trace if entry["group"] == last)

        def is_hidden(entry):
            own = run.truth[entry["row"]]["ts"] // 150 == last and entry["row"] < newest
            return own and entry["verdict"] == "suppressed" and (entry["group"] is not None) is waited

        del run.trace[run.places(is_hidden)[-1]]
        assert "lost" in run.codes()

    def test_rows_that_still_wait_are_no_fault(self):
        run = Run()
        epoch = max(entry["group"] for entry in run.trace if entry["group"] is not None)
        ended = [entry for entry in run.trace if entry["group"] == epoch]
        run.trace = [entry for entry in run.trace if entry["group"] != epoch]
        shown = sum(entry["verdict"] == "released" for entry in ended)
        run.release = run.release[:-shown]
        report = run.audit()
        assert [(found.code, found.count) for found in report.findings] == [("pending", len(ended))]

    def test_a_late_record_that_counted(self):
        run = Run(lateness=5)
        assert run.codes() == set()
        run.rules["lateness"] = 0
        run.truth[100]["ts"], run.truth[101]["ts"] = run.truth[101]["ts"] + 1, run.truth[100]["ts"]
        assert "late-accepted" in run.codes()

    def test_without_levels_less_is_checked(self):
        run = Run()
        report = run.audit(without=["level"])
        assert [found.code for found in report.violations] == ["unchecked-promise"]
        assert "level" in report.violations[0].sentence

    def test_without_epochs_nothing_is_known_to_have_waited(self):
        assert "trace-group" in Run().codes(without=["group"])


def test_a_first_clock_far_ahead():
    day = 86_400
    late = [{"ts": 1_000_000 + 3 * day + turn, "user": "odd", "site": "a.news", "device": "tv"} for turn in (0, 1, 200)]
    run = Run(truth=late + stream(), z=1)
    assert [entry["reason"] for entry in run.trace].count("ahead") == 1  # the others' epoch had ended
    assert run.audit().findings == ()


@pytest.mark.parametrize(
    "rules",
    [{"combine": "z", "k": 2}, {"combine": "k"}, {"k": 2}, {"combine": "k", "k": 1}, {"combine": "k", "k": True}],
    ids=["unknown", "no k", "no combine", "alone", "no number"],
)
def test_what_is_promised_must_be_clear(rules):
    written = {"method": "z-anonymity", "attribute": "site", "z": 2, "window": 60, **rules}
    release = pa.table({"ts": [1], "user": ["0" * 32], "site": ["a"]})
    with pytest.raises(PolicyError, match="combine"):
        audit(release, policy={"stream": {"person": "user", "time": "ts"}, "anonymize": written})
