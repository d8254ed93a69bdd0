"""Every law can fail: planted offenders are convicted."""

from __future__ import annotations

import pytest

from shoal.methods.z.reader import Reader
from shoal.testing import laws, promise_laws
from shoal.testing.driving import LawBroken
from tests.laws import broken as kinds
from tests.laws.broken import broken, broken_tuples
from tests.laws.cases import PEOPLE, Z_CASES, make_z, steady, stream
from tests.laws.tuple_cases import TUPLE_CASES, people

STREAM = stream()
LATE = {"lateness": "3s"}
POLICY = Z_CASES[0].policy["anonymize"]


def policy(**rules):
    return {"stream": {"person": "user", "time": "ts"}, "anonymize": {**POLICY, **rules}}


def convicted(law, make, *args, saying, **more):
    with pytest.raises(LawBroken, match=saying) as caught:
        law(make, *args, **more)
    assert not any(person in str(caught.value) for person in PEOPLE)


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (kinds.ReversesRows, "release different rows than one batch"),
        (kinds.ReversesTrace, "a different trace"),
        (kinds.CountsBatches, "rows end in a different state"),
        (kinds.PushReleasesLess, "single records release different rows"),
        (kinds.PushCountsMore, "single records end in a different state"),
    ],
)
@pytest.mark.parametrize("settings", [{}, LATE], ids=["at once", "late"])
def test_batching(kind, saying, settings):
    convicted(laws.batching_is_invisible, broken(kind, **settings), STREAM, saying=saying)


@pytest.mark.parametrize(
    ("kind", "settings", "saying"),
    [
        (kinds.LosesVerdicts, {}, "no verdict in the trace"),
        (kinds.LosesRows, {}, "counts and rows disagree"),
        (kinds.DecidesTwice, {}, "decided twice|disagree on how many"),
        (kinds.CountsRefused, {}, "never pushed"),
        (kinds.HidesPending, LATE, "released \\+ suppressed \\+ dead \\+ pending"),
    ],
)
def test_accounting(kind, settings, saying):
    convicted(laws.everything_is_accounted_for, broken(kind, **settings), STREAM, saying=saying)


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (kinds.ForgetsCrowds, "a different snapshot"),
        (kinds.SnapshotsDiffer, "two snapshots of the same state differ"),
        (kinds.SnapshotsExpire, "changes the output"),
    ],
)
def test_snapshots(kind, saying):
    convicted(laws.snapshots_are_invisible, broken(kind), STREAM, saying=saying)


@pytest.mark.parametrize(
    ("kind", "saying"),
    [(kinds.CountsRefused, "changed the state"), (kinds.AcceptsAnything, "was not refused")],
)
def test_refusals(kind, saying):
    convicted(laws.refusals_change_nothing, broken(kind), STREAM, saying=saying)


@pytest.mark.compiled
def test_another_process():
    make = broken(kinds.DependsOnTheProcess)
    convicted(laws.is_same_in_another_process, make, STREAM, saying="another process gives a different output")


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_another_process_that_fails():
    with pytest.raises(ChildProcessError, match="the other process failed"):
        laws.is_same_in_another_process(broken(kinds.ZAnonymity, z=0), STREAM)


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (kinds.KeepsPending, "pending after a flush"),
        (kinds.FlushMovesTime, "second flush changes the state"),
        (kinds.FlushesAgain, "second flush gives something"),
    ],
)
def test_flush(kind, saying):
    convicted(laws.flush_leaves_nothing, broken(kind, **LATE), STREAM, saying=saying)


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (kinds.IgnoresTime, "still pending"),
        (kinds.PromisesTooMuch, "waited longer|still pending"),
        (kinds.HidesPending, "is not the number of records without a verdict"),
    ],
)
def test_delay(kind, saying):
    convicted(promise_laws.delay_is_bounded, broken(kind, **LATE), STREAM, time="ts", saying=saying)


def test_a_method_without_a_bound_is_free():
    class Unbounded(kinds.ZAnonymity):
        @property
        def guarantee(self):
            return kinds.replace(super().guarantee, max_delay_ns=None)

    promise_laws.delay_is_bounded(broken(Unbounded, **LATE), STREAM, time="ts")


TUPLES = people(80)
TUPLE_POLICY = next(case.policy for case in TUPLE_CASES if case.name == "fads-plain")


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (kinds.LeavesLate, "more arrivals than the guarantee allows|still pending"),
        (kinds.CountsDelaysWrong, "is not the number of arrivals"),
        (kinds.HidesPendingTuples, "is not the number of records without a verdict"),
        (kinds.HoldsTuplesTooLong, "still pending"),
    ],
)
def test_delay_in_arrivals(kind, saying):
    convicted(promise_laws.arrivals_bound_the_delay, broken_tuples(kind), TUPLES, saying=saying)


def test_tuples_pending():
    convicted(
        promise_laws.pending_is_bounded,
        broken_tuples(kinds.PromisesFewerTuples),
        TUPLES,
        saying="more records are pending",
    )


def test_suppressed_rows_that_are_published_are_counted():
    laws.everything_is_accounted_for(broken_tuples(kinds.Fads, suppressed="root", k=9), TUPLES)
    make = broken_tuples(kinds.HidesSuppressedRows, suppressed="root", k=9, groups=True)
    convicted(laws.everything_is_accounted_for, make, TUPLES, saying="counts and rows disagree")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (kinds.LowersK, {}),
        (kinds.ShowsFewCarriers, {"missing": "covered", "min_carriers": 3}),
        (kinds.ReusesForever, {"reuse": 0}),
    ],
)
def test_auditor_of_tuples(kind, settings):
    policy_ = {**TUPLE_POLICY, "anonymize": {**TUPLE_POLICY["anonymize"], **settings}}
    promise_laws.auditor_finds_nothing(broken_tuples(kinds.Fads, **settings), TUPLES, policy=policy_)
    convicted(
        promise_laws.auditor_finds_nothing,
        broken_tuples(kind, **settings),
        TUPLES,
        policy=policy_,
        saying="the auditor found",
    )


def test_pending():
    convicted(
        promise_laws.pending_is_bounded,
        broken(kinds.PromisesTooMuch, **LATE),
        STREAM,
        saying="more records are pending",
    )


@pytest.mark.compiled
@pytest.mark.parametrize("kind", [kinds.NeverForgets, kinds.NeverForgetsSingles])
def test_memory(kind):
    convicted(promise_laws.memory_is_flat, broken(kind), steady, saying="memory grows")


@pytest.mark.parametrize(
    ("kind", "saying"), [(kinds.KeepsInput, "read after the call"), (kinds.WritesToInput, "written to")]
)
def test_inputs(kind, saying):
    convicted(laws.inputs_are_left_alone, broken(kind), STREAM, saying=saying)


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (kinds.AddsColumn, "does not have the promised schema"),
        (kinds.ForgetsSchemaWhenEmpty, "does not have the promised schema"),
        (kinds.NamesPeople, "identifier"),
    ],
)
def test_output(kind, saying):
    convicted(promise_laws.output_is_as_promised, broken(kind), STREAM, persons=PEOPLE, saying=saying)


@pytest.mark.parametrize(
    ("kind", "saying"),
    [
        (kinds.QuotesValues, "contains a value"),
        (kinds.QuotesInTheChain, "contains a value"),
        (kinds.FailsInItsOwnWay, "not a ShoalError"),
    ],
)
def test_errors(kind, saying):
    odd = [{"user": PEOPLE[0]}]
    convicted(promise_laws.errors_tell_no_values, broken(kind), STREAM, secrets=PEOPLE, odd=odd, saying=saying)


@pytest.mark.parametrize(("kind", "saying"), [(kinds.LowersZ, "below-z"), (kinds.HoldsBackMore, "held-back")])
def test_auditor(kind, saying):
    convicted(promise_laws.auditor_finds_nothing, broken(kind), STREAM, policy=policy(), saying=saying)


def test_the_auditor_must_have_seen_everything(monkeypatch):
    real = promise_laws.audit
    monkeypatch.setattr(promise_laws, "audit", lambda rows, truth, trace, policy: real(rows, truth, None, policy))
    convicted(
        promise_laws.auditor_finds_nothing,
        broken(kinds.ZAnonymity),
        STREAM,
        policy=policy(),
        saying="could not check",
    )


def test_a_push_that_ignores_values_of_other_types_is_convicted(monkeypatch):
    law, everyone = laws.records_are_refused_like_batches, lambda: make_z({"z": 1, "carry": ["device"]}, {})
    law(everyone, STREAM, columns=["site", "device"])
    monkeypatch.setattr(Reader, "_check_values", lambda *_: None)
    convicted(law, everyone, STREAM, columns=["site"], saying="treat a float in column 'site' differently")
    convicted(law, everyone, STREAM, columns=["device"], saying="push publishes a int in column 'device'")
