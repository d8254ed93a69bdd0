"""Parameters of the tuple methods: everything that is wrong is said at once, and what is right is kept."""

from __future__ import annotations

import inspect
import json
import math
from typing import get_args, get_type_hints

import numpy as np
import pytest

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.methods.registry import METHODS, methods_of
from shoal.methods.tuples.castle import Castle
from shoal.methods.tuples.fads import Fads
from shoal.methods.tuples.fads_varied import FadsVaried
from shoal.methods.tuples.fast import Fast
from shoal.methods.tuples.iot_anonymization import IotAnonymization
from shoal.methods.tuples.k_varp import KVarp
from shoal.methods.tuples.settings import TupleSettings
from shoal.schema import Categorical, Numeric, Schema

AGE = Numeric("age", low=0, high=100, grid=5, weight=2)
TOWN = Categorical("town", Hierarchy.from_nested({"*": {"north": ["a", "b"], "south": ["c"]}}))
SCHEMA = Schema(person="id", time="ts", quasi=[AGE, TOWN], sensitive=["ill"], carry=["note"])
TIMELESS = Schema(person="id", quasi=[AGE])


def checked(schema=SCHEMA, **given):
    return TupleSettings.for_schema(schema, given)


def problems_of(make=checked, **given):
    with pytest.raises(PolicyError) as caught:
        make(**given)
    return caught.value.problems


@pytest.mark.parametrize(
    ("given", "saying"),
    [
        ({"k": 1}, "k: must be at least 2"),
        ({"k": 2.0}, "k: must be a whole number"),
        ({"k": True}, "k: must be a whole number"),
        ({"k": 2**31}, "k: must be at most 2147483647"),
        ({"deadline": 0}, "deadline: must be at least 1 arrival"),
        ({"deadline": 1.5}, "deadline: must be a whole number of arrivals, or a duration"),
        ({"deadline": "0s", "reuse": "0s"}, "deadline: must be longer than 0"),
        ({"deadline": "soon", "reuse": "1s"}, "deadline: not a duration"),
        ({"reuse": -1}, "reuse: must be a number of arrivals from 0"),
        ({"reuse": None}, "reuse: must be a whole number of arrivals, or a duration"),
        ({"deadline": "1s", "reuse": "x"}, "reuse: not a duration"),
        ({"deadline": "soon"}, "deadline: not a duration"),
        ({"deadline": "10s"}, "reuse: is missing; deadline is a duration, so give this as one too"),
        ({"reuse": "10s"}, "deadline: is missing; reuse is a duration, so give this as one too"),
        ({"deadline": "10s", "reuse": 3}, "reuse: must be a duration if deadline is one"),
        ({"missing": "covred"}, 'missing: must be one of "own", "hidden", "covered", "paper"; did you mean "covered"?'),
        ({"missing": None}, "missing: must be one of"),
        ({"min_carriers": 0, "missing": "covered"}, "min_carriers: must be at least 1"),
        ({"min_carriers": 51, "missing": "covered"}, "min_carriers: must be at most k"),
        ({"max_share": 0}, "max_share: must be above 0"),
        ({"max_share": 1.01}, "max_share: must be at most 1"),
        ({"max_share": True}, "max_share: must be a number"),
        ({"max_share": 0.019}, "max_share: must be at least 1/k"),
        ({"max_share": 0.5, "missing": "paper"}, 'max_share: cannot be combined with missing = "paper"'),
        ({"l": 0}, "l: must be at least 1"),
        ({"l": 2.5}, "l: must be a whole number"),
        ({"entropy_l": 0.5}, "entropy_l: must be at least 1"),
        ({"entropy_l": math.nan}, "entropy_l: must be a number that is not infinite"),
        ({"t": 0}, "t: must be above 0"),
        ({"t": 1.5}, "t: must be at most 1"),
        ({"t": "0.2"}, "t: must be a number"),
        ({"t": True}, "t: must be a number"),
        ({"reference": 0}, "reference: must be at least 1 arrival"),
        ({"reference": "1000"}, "reference: must be a whole number of arrivals, or a table of shares"),
        ({"reference": {"ill": {}}}, 'reference: the column "ill" must have a table'),
        ({"reference": {"ill": 3}}, 'reference: the column "ill" must have a table'),
        (
            {"reference": {"ill": {"flu": -1, "gout": 1}}},
            'reference: the shares of the column "ill" must be numbers of',
        ),
        ({"reference": {"ill": {"flu": "x", "gout": 1}}}, 'reference: the shares of the column "ill" must be numbers'),
        ({"reference": {"ill": {"flu": 0}}}, 'reference: the shares of the column "ill" must not all be 0'),
        ({"reference": {"ill": {"flu": 1}, "age": {"1": 1}}}, 'reference: the column "age" is not among the sensitive'),
        (
            {"reference": {"ill": {("flu",): 1}}},
            'reference: the values of the column "ill" must be text, numbers or truth values',
        ),
        ({"groups": 1}, "groups: must be true or false"),
        ({"suppressed": "keep"}, 'suppressed: must be one of "drop", "root"'),
        ({"alpha": -0.1}, "alpha: must be at least 0"),
        ({"max_gap": 0}, "max_gap: must be longer than 0"),
        ({"max_gap": "long"}, "max_gap: not a duration"),
        ({"schema": TIMELESS, "deadline": "1s", "reuse": "1s"}, "deadline: a duration needs a time column"),
        ({"schema": TIMELESS, "l": 2}, "l: needs a sensitive column; name it in the schema"),
        ({"schema": TIMELESS, "entropy_l": 1.5}, "entropy_l: needs a sensitive column"),
        ({"schema": TIMELESS, "t": 0.5}, "t: needs a sensitive column"),
        ({"schema": {"person": "id"}}, "schema: must be a shoal.Schema"),
        ({"schema": None}, "schema: must be a shoal.Schema"),
    ],
)
def test_one_thing_is_wrong(given, saying):
    (problem,) = problems_of(**given)
    assert problem.startswith(saying)


def test_everything_is_wrong_at_once():
    found = problems_of(
        k=0, deadline=0, reuse="x", missing="no", min_carriers=0, l=0, entropy_l=0, t=2, reference={"x": {}},
        groups="yes", suppressed="no", alpha=-1, max_gap=-1,
    )  # fmt: skip
    named = {problem.split(":")[0].split(" ")[0] for problem in found}
    assert named == {"k", "deadline", "reuse", "missing", "min_carriers", "l", "entropy_l", "t", "reference", "groups",
                     "suppressed", "alpha", "max_gap"}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "given", "saying"),
    [
        (KVarp, {"likeness": 1.1}, "likeness: must be at most 1"),
        (KVarp, {"likeness": "x"}, "likeness: must be a number"),
        (FadsVaried, {"late_penalty": -1}, "late_penalty: must be at least 0"),
        (Castle, {"beta": 0}, "beta: must be at least 1"),
        (Castle, {"mu": 0}, "mu: must be at least 1"),
        (Fast, {"threads": 0}, "threads: must be at least 1"),
        (Fast, {"round": 0}, "round: must be at least 1"),
    ],
)
def test_what_only_one_method_knows(kind, given, saying):
    shared, own = problems_of(lambda: kind(SCHEMA, k=1, **given))
    assert own.startswith(saying)
    assert shared.startswith("k: ")


@pytest.mark.parametrize("kind", [Fads, KVarp, IotAnonymization, FadsVaried])
def test_parameters_that_do_not_exist(kind):
    with pytest.raises(TypeError, match=f"{kind.__name__} has no parameter delay, kay"):
        kind(SCHEMA, kay=3, delay=2)
    with pytest.raises(PolicyError, match=r"schema: must be a shoal\.Schema"):
        kind("id", k=2)


@pytest.mark.parametrize("method", methods_of("tuples"))
def test_type_checkers_help_and_settings_know_the_same_parameters(method):
    kind = METHODS[method].load()
    settings = kind.settings_class.model_fields
    (declared,) = get_args(get_type_hints(kind.__init__)["given"])
    assert {*settings, "key"} == set(get_type_hints(declared))
    shown = inspect.signature(kind).parameters
    assert list(shown) == ["schema", *settings, "key"]
    assert all(
        shown[name].default == getattr(settings[name].default, "given", settings[name].default) for name in settings
    )


def test_what_is_right():
    settings = checked(k=5, deadline="1min", reuse="2s", min_carriers=None, max_gap="1h")
    assert (settings.is_timed, settings.deadline, settings.reuse) == (True, 60 * 10**9, 2 * 10**9)
    assert settings.carriers == 3  # half of k, rounded up
    assert checked(k=4).carriers == 2
    assert checked(k=4, missing="covered", min_carriers=4).carriers == 4
    assert checked(k=49, max_share=1 / 49).max_share == 1 / 49  # although 49 times that is less than 1
    assert settings.max_gap_ns == 3600 * 10**9
    assert not settings.is_diverse
    assert not checked(l=1, entropy_l=1).is_diverse
    assert checked(l=2).is_diverse
    assert checked(entropy_l=1.1).is_diverse
    assert checked(t=1).is_diverse


def test_how_much_is_remembered():
    assert checked(t=0.2).remembers == 1000
    assert checked(t=0.2, reference=7).remembers == 7
    assert checked(l=3, reference=7).remembers == 0
    assert checked(t=0.2, reference={"ill": {"flu": 1}}).remembers == 0


def test_numbers_for_the_kernels():
    settings = checked(k=7, deadline=9, reuse=4, missing="hidden", l=3, entropy_l=2, t=0.25, groups=True, alpha=0.5)
    plan, ratios = settings.plan(), settings.ratios()
    places = [t.K, t.TIMED, t.DEADLINE, t.REUSE, t.MISSING_MODE, t.MIN_CARRIERS, t.IN_GROUPS, t.DISTINCT, t.REFERENCE,
              t.IS_DIVERSE]  # fmt: skip
    assert plan[places].tolist() == [7, 0, 9, 4, t.HIDDEN, 4, 1, 3, 1000, 1]
    assert ratios[[t.ENTROPY, t.CLOSENESS, t.ALPHA]].tolist() == [math.log(2), 0.25, 0.5]
    assert checked().ratios()[t.CLOSENESS] == -1.0
    assert checked().plan()[t.MISSING_MODE] == t.OWN
    assert checked(missing="covered").plan()[t.MISSING_MODE] == t.COVERED
    assert checked(missing="paper").plan()[t.MISSING_MODE] == t.PAPER


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"deadline": "3s", "reuse": "0s", "missing": "paper", "groups": True},
        {"t": 0.3, "reference": {"ill": {"gout": 1, "flu": 2.5}}},
        {"t": 0.3, "reference": {"ill": {3: 1, 1: 2.5, False: 1}}},
    ],
)
def test_settings_come_back_from_what_describes_them(given):
    settings = checked(**given)
    again = TupleSettings.from_header(json.loads(json.dumps(settings.to_header())))
    assert again == settings
    assert again.schema == settings.schema
    assert again.describe() == settings.describe()
    assert np.array_equal(again.plan(), settings.plan())


def test_a_header_does_not_depend_on_how_a_duration_is_written():
    assert checked(deadline="1min", reuse="0s").to_header() == checked(deadline="60s", reuse="0ns").to_header()
    assert checked(deadline="1min", reuse="0s").to_header() != checked(deadline="1h", reuse="0s").to_header()


def test_methods_differ_where_they_should():
    def plan_of(kind, **given):
        return kind(SCHEMA, **given)._engine.decider.plan

    fads, varp, iot = plan_of(Fads), plan_of(KVarp), plan_of(IotAnonymization)
    assert [plan[t.IS_PARTED] for plan in (fads, varp, iot, plan_of(FadsVaried))] == [0, 1, 1, 1]
    assert [plan[t.SAME_PATTERN] for plan in (fads, varp, iot, plan_of(FadsVaried))] == [0, 0, 1, 1]
    assert [plan[t.SKIP_MERGED] for plan in (fads, varp, iot, plan_of(FadsVaried))] == [0, 0, 1, 0]
    paper = plan_of(IotAnonymization, missing="paper")
    assert (paper[t.MISSING_MODE], paper[t.MIN_CARRIERS]) == (t.COVERED, 1)
    assert KVarp(SCHEMA, likeness=0.7)._engine.decider.ratios[t.RATIO] == 0.7
    assert FadsVaried(SCHEMA, late_penalty=0.7)._engine.decider.ratios[t.PENALTY] == 0.7
