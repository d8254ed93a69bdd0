"""Policies for streams of tuples: what is read and passed on, and every problem in one sentence of our own."""

from __future__ import annotations

import inspect
import tomllib
from datetime import UTC, date, datetime

import pytest

from shoal.hierarchies import Hierarchy
from shoal.methods.registry import METHODS, methods_of
from shoal.policy import load_policy, parse_policy
from shoal.policy.methods import section_for
from shoal.schema import Categorical, Numeric, Schema
from tests.policy.test_policy import changed
from tests.policy.test_problems import problems_of

TREE = {"any": {"school": ["primary", "secondary"], "college": ["bachelor", "master"]}}
TUPLE_METHODS = methods_of("tuples")
DEFAULTS = dict.fromkeys(("k-varp", "iot-anonymization", "fads-varied"), "covered")
"""What `missing` is by default, where rows that lack different columns are published together."""
FULL = """
[stream]
person = "id"
time = "ts"
carry = ["country", "ts"]
[source]
kind = "csv"
path = "people.csv"
types = {age = "int64"}
[anonymize]
method = "least-loss"
k = 5
deadline = "30min"
reuse = "2min"
missing = "covered"
min_carriers = 3
sensitive = ["occupation", "income"]
l = 2
entropy_l = 1.5
t = 0.4
reference = {occupation = {Sales = 0.25, "Tech-support" = 0.75}, income = {key = 1}}
groups = true
suppressed = "root"
alpha = 0
max_gap = "1h"
candidates = 200
[anonymize.quasi.age]
kind = "numeric"
low = 17
high = 90
weight = 2
grid = 5
outside = "clamp"
[anonymize.quasi.born]
kind = "numeric"
low = 1920-01-01
high = 2020-01-01T00:00:00Z
grid = "1d"
[anonymize.quasi.education]
kind = "categorical"
hierarchy = {kind = "nested", tree = {any = {school = ["primary", "secondary"], college = ["bachelor", "master"]}}}
[sink]
kind = "parquet"
path = "released.parquet"
"""


def base_table(method: str = "least-loss") -> dict:
    return {
        "stream": {"person": "id"},
        "source": {"kind": "csv", "path": "people.csv"},
        "anonymize": {
            "method": method,
            "quasi": {
                "age": {"kind": "numeric", "low": 17, "high": 90},
                "education": {"kind": "categorical", "hierarchy": {"kind": "nested", "tree": TREE}},
            },
            "sensitive": ["occupation"],
        },
        "sink": {"kind": "parquet", "path": "released/"},
    }


@pytest.mark.parametrize("method", TUPLE_METHODS)
def test_a_small_policy_has_the_defaults(method):
    policy = parse_policy(base_table(method))
    given = policy.parameters()
    schema = given.pop("schema")
    assert schema == Schema(
        person="id", sensitive=["occupation"],
        quasi=[Numeric("age", low=17, high=90), Categorical("education", Hierarchy.from_nested(TREE))],
    )  # fmt: skip
    own = {"fast": {"threads": 2}, "k-varp": {"likeness": 0.2}, "castle": {"beta": 50, "mu": 100}}
    own |= {"fads-varied": {"late_penalty": 0.001}, "least-loss": {"candidates": 0, "threads": 1}}
    assert given == {
        "k": 50, "deadline": 2000, "reuse": 200, "missing": DEFAULTS.get(method, "own"), "reference": 1000,
        "groups": False, "suppressed": "drop", "alpha": 0.02, "max_gap": "24h", **own.get(method, {}),
    }  # fmt: skip
    assert not policy.anonymize.runs_on_time
    assert not policy.anonymize.PUBLISHES_PSEUDONYMS


@pytest.mark.parametrize("method", TUPLE_METHODS)
def test_defaults_are_those_in_python(method):
    section, made = section_for(method).model_fields, METHODS[method].load()
    expected = {name: given.default for name, given in inspect.signature(made).parameters.items()}
    for name in set(section) - {"method", "quasi", "sensitive"}:
        default = section[name].default
        assert getattr(default, "given", default) == expected.pop(name), name
    assert set(expected) == {"schema", "key"}


def test_a_full_policy(tmp_path):
    (tmp_path / "p.toml").write_text(FULL)
    policy = load_policy(tmp_path / "p.toml")
    given = policy.parameters()
    schema = given.pop("schema")
    born = Numeric("born", low="1920-01-01", high=datetime(2020, 1, 1, tzinfo=UTC), grid="1d")
    assert schema == Schema(
        person="id", time="ts", sensitive=["occupation", "income"], carry=["country", "ts"],
        quasi=[
            Numeric("age", low=17, high=90, weight=2, grid=5, outside="clamp"), born,
            Categorical("education", Hierarchy.from_nested(TREE)),
        ],
    )  # fmt: skip
    assert given == {
        "k": 5, "deadline": "30min", "reuse": "2min", "missing": "covered", "min_carriers": 3, "l": 2, "entropy_l": 1.5,
        "t": 0.4, "reference": {"occupation": {"Sales": 0.25, "Tech-support": 0.75}, "income": {"key": 1.0}},
        "groups": True, "suppressed": "root", "alpha": 0.0, "max_gap": "1h", "candidates": 200, "threads": 1,
    }  # fmt: skip
    assert policy.anonymize.runs_on_time
    assert policy.anonymize.column_types() == {"age": "float64", "born": "timestamp"}
    assert policy.hierarchies == {"education": Hierarchy.from_nested(TREE)}
    assert policy.warnings == ()


@pytest.mark.parametrize(
    ("method", "own"),
    [
        ("fast", {"threads": 1, "round": 10}),
        ("k-varp", {"likeness": 1}),
        ("fads-varied", {"late_penalty": 0}),
        ("castle", {"beta": 1, "mu": 2}),
        ("least-loss", {"candidates": 0, "threads": 3}),
    ],
)
def test_keys_of_one_method(method, own):
    table = base_table(method)
    table["anonymize"].update(own)
    given = parse_policy(table).parameters()
    assert {key: given[key] for key in own} == own
    table["anonymize"]["method"] = "fads"
    assert len(problems_of(table)) == len(own)


def test_time_may_also_be_a_quasi_identifier():
    table = changed(base_table(), "stream/time", "age")
    assert parse_policy(table).parameters()["schema"].time == "age"
    assert parse_policy(changed(table, "stream/carry", ["ts"])).stream.carry == ("ts",)


# ---- problems

ONE_PROBLEM = [
    ("anonymize/quasi", None, "[anonymize] quasi: is missing; add a table [anonymize.quasi.<column>]"),
    ("anonymize/quasi", {}, "[anonymize] quasi: names no column"),
    ("anonymize/quasi", ["age"], "[anonymize] quasi: must be a table with one entry per column"),
    ("anonymize/quasi/age", 3, "[anonymize.quasi] age: must be a table"),
    ("anonymize/quasi/age", {"low": 1, "high": 2}, '[anonymize.quasi.age] kind: must be one of "numeric", "categor'),
    ("anonymize/quasi/age/kind", "number", 'kind: must be one of "numeric", "categorical"; did you mean "numeric"?'),
    ("anonymize/quasi/age/low", None, "[anonymize.quasi.age] low: is missing; give the smallest value"),
    ("anonymize/quasi/age/high", None, "[anonymize.quasi.age] high: is missing; give the largest value"),
    ("anonymize/quasi/age/low", "young", "[anonymize.quasi.age] low: must be a number below 2^53, or a moment"),
    ("anonymize/quasi/age/low", True, "[anonymize.quasi.age] low: must be a number"),
    ("anonymize/quasi/age/low", 90, "[anonymize.quasi.age] low: must be below high"),
    ("anonymize/quasi/age/high", float("nan"), "[anonymize.quasi.age] high: must be a number"),
    ("anonymize/quasi/age", {"kind": "numeric", "high": 90, "grid": 0.01}, "[anonymize.quasi.age] low: is missing"),
    (
        "anonymize/quasi/age", {"kind": "numeric", "low": 1e15, "high": 1e15 + 1, "grid": 0.001},
        "[anonymize.quasi.age] grid: has too many digits together with low; round low, or choose a coarser grid",
    ),
    ("anonymize/quasi/age/grid", 0, "[anonymize.quasi.age] grid: must be a number above 0, or a duration"),
    ("anonymize/quasi/age/grid", "often", "[anonymize.quasi.age] grid: must be a number above 0, or a dur"),
    ("anonymize/quasi/age/weight", 0, "[anonymize.quasi.age] weight: must be above 0"),
    ("anonymize/quasi/age/weight", "1", "[anonymize.quasi.age] weight: must be a number"),
    ("anonymize/quasi/age/weight", float("inf"), "[anonymize.quasi.age] weight: must be a number that is not"),
    ("anonymize/quasi/age/outside", "drop", '[anonymize.quasi.age] outside: must be one of "refuse", "clamp"'),
    ("anonymize/quasi/age/hierarchy", {"kind": "flat", "values": ["a"]}, "[anonymize.quasi.age] hierarchy: unknown"),
    ("anonymize/quasi/education/hierarchy", None, "[anonymize.quasi.education] hierarchy: is missing; describe"),
    ("anonymize/quasi/education/hierarchy", {"kind": "flat"}, "[anonymize.quasi.education.hierarchy] values: is missi"),
    (
        "anonymize/quasi/education/hierarchy", {"kind": "suffix"},
        '[anonymize.quasi.education.hierarchy] kind: "suffix" does not list its values',
    ),
    (
        "anonymize/quasi/education/hierarchy", {"kind": "csv", "path": "none.csv"},
        "[anonymize.quasi.education] hierarchy: none.csv: cannot be read",
    ),
    ("anonymize/quasi/education/low", 3, "[anonymize.quasi.education] low: unknown key"),
    ("anonymize/k", 1, "[anonymize] k: must be at least 2"),
    ("anonymize/k", 5.0, "[anonymize] k: must be a whole number"),
    ("anonymize/deadline", 0, "[anonymize] deadline: must be at least 1 arrival"),
    ("anonymize/deadline", 1.5, "[anonymize] deadline: must be a whole number of arrivals, or a duration"),
    ("anonymize/deadline", True, "[anonymize] deadline: must be a whole number of arrivals, or a duration"),
    ("anonymize/reuse", -1, "[anonymize] reuse: must be a number of arrivals from 0"),
    ("anonymize/min_carriers", 3, '[anonymize] min_carriers: is used only with missing = "covered"'),
    ("anonymize/max_share", 0, "[anonymize] max_share: must be above 0"),
    ("anonymize/max_share", 1.5, "[anonymize] max_share: must be at most 1"),
    ("anonymize/max_share", "half", "[anonymize] max_share: must be a number"),
    ("anonymize/max_share", 0.01, "[anonymize] max_share: must be at least 1/k = 0.02"),
    ("anonymize/missing", "loose", '[anonymize] missing: must be one of "own", "hidden", "covered", "paper"'),
    ("anonymize/missing", "common", '[anonymize] missing: "common" is called "hidden" now; write missing = "hidden"'),
    ("anonymize/nulls", "strict", '[anonymize] nulls: is called missing now; write missing = "covered"'),
    ("anonymize/nulls", "paper", '[anonymize] nulls: is called missing now; write missing = "paper"'),
    ("anonymize/nulls", 3, "[anonymize] nulls: is called missing now"),
    ("anonymize/l", 0, "[anonymize] l: must be at least 1"),
    ("anonymize/entropy_l", 0.5, "[anonymize] entropy_l: must be at least 1"),
    ("anonymize/t", 0, "[anonymize] t: must be above 0"),
    ("anonymize/t", 1.5, "[anonymize] t: must be at most 1"),
    ("anonymize/reference", 100, "[anonymize] reference: is used only with t"),
    ("anonymize/groups", 1, "[anonymize] groups: must be true or false"),
    ("anonymize/suppressed", "keep", '[anonymize] suppressed: must be one of "drop", "root"'),
    ("anonymize/alpha", -0.1, "[anonymize] alpha: must be at least 0"),
    ("anonymize/max_gap", "0s", "[anonymize] max_gap: must be longer than 0"),
    ("anonymize/candidates", -1, "[anonymize] candidates: must be at least 0"),
    ("anonymize/likeness", 0.2, "[anonymize] likeness: unknown key"),
    ("anonymize/z", 20, "[anonymize] z: unknown key"),
    ("anonymize/sensitive", "occupation", "[anonymize] sensitive: must be a list of texts"),
    ("anonymize/sensitive", ["a", "a"], "[anonymize] sensitive: names something twice"),
    # columns with two roles
    ("stream/carry", ["age"], '[anonymize.quasi] age: the column "age" is already [stream] carry'),
    ("anonymize/sensitive", ["id"], '[anonymize] sensitive: the column "id" is already [stream] person'),
    ("stream/person", "age", '[anonymize.quasi] age: the column "age" is already [stream] person'),
    ("stream/time", "id", '[stream] time: the column "id" is already [stream] person'),
    ("stream/carry", ["age"], '[anonymize.quasi] age: the column "age" is already [stream] carry'),
    ("source/header", ["id", "age", "occupation"], '[anonymize.quasi] education: the column "education" is not in'),
    # secrets, and columns that are called like one
    ("anonymize/password", "abc", "[anonymize] password: secrets do not belong in a policy"),
    ("anonymize/quasi/age/secret", "abc", "[anonymize.quasi.age] secret: secrets do not belong in a policy"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "sentence"), ONE_PROBLEM)
def test_one_problem(path, value, sentence, tmp_path):
    (problem,) = problems_of(changed(base_table(), path, value), folder=tmp_path)
    assert sentence in problem
    assert "abc" not in problem


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"deadline": "30min", "reuse": "2min"},
            "deadline: a duration needs times; name the column in [stream]",
        ),
        ({"deadline": 60, "reuse": 2, "l": 2, "sensitive": []}, "l: needs a sensitive column"),
        ({"deadline": 48}, "deadline: nothing would ever be published: within a deadline of 48 arrivals at most 49"),
        ({"k": 2002}, "k: nothing would ever be published: within a deadline of 2,000 arrivals at most 2,001"),
        ({"entropy_l": 2, "sensitive": []}, "entropy_l: needs a sensitive column"),
        ({"t": 0.2, "sensitive": []}, "t: needs a sensitive column"),
        ({"missing": "covered", "min_carriers": 0}, "min_carriers: must be at least 1"),
        ({"missing": "covered", "min_carriers": 51}, "min_carriers: must be at most k"),
        ({"missing": "hidden", "min_carriers": 3}, 'min_carriers: is used only with missing = "covered"'),
        ({"missing": "paper", "max_share": 0.5}, 'max_share: cannot be combined with missing = "paper"'),
        ({"t": 0.2, "reference": 0}, "reference: must be at least 1 arrival"),
        ({"t": 0.2, "reference": True}, "reference: must be a whole number of arrivals, or a table of shares"),
        ({"t": 0.2, "reference": {"occupation": 3}}, 'reference: the column "occupation" must have a table of shares'),
        ({"t": 0.2, "reference": {"occupation": {"a": 2}}}, "must add up to 1"),
        ({"t": 0.2, "reference": {"occupation": {"a": 0.5, "b": 0.4}}}, "must add up to 1"),
        ({"t": 0.2, "reference": {"occupation": {"a": 1}, "x": {"a": 1}}}, '"x" is not among the sensitive columns'),
        ({"t": 0.2, "reference": {"x": {"a": 1}}, "sensitive": ["x", "y"]}, 'no shares for the sensitive column "y"'),
    ],
)
def test_keys_that_do_not_go_together(given, sentence):
    table = base_table()
    table["anonymize"].update(given)
    (problem,) = problems_of(table)
    assert problem.startswith("[anonymize] ")
    assert sentence in problem


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"deadline": "30min", "reuse": 200}, "[anonymize] reuse: must be a duration if deadline is one"),
        ({"deadline": 200, "reuse": "2min"}, "[anonymize] reuse: must be a duration if deadline is one"),
        ({"deadline": "30min"}, "[anonymize] reuse: is missing; deadline is a duration"),
        ({"reuse": "30min"}, "[anonymize] deadline: is missing; reuse is a duration"),
        ({"deadline": "soon", "reuse": "2min"}, "[anonymize] deadline: not a duration"),
        ({"deadline": "soon", "reuse": 2}, "[anonymize] deadline: not a duration"),
        ({"deadline": "soon"}, "[anonymize] deadline: not a duration"),
        ({"deadline": "0s", "reuse": "0s"}, "[anonymize] deadline: must be longer than 0 seconds"),
    ],
)
def test_counts_and_durations_do_not_mix(given, sentence):
    table = changed(base_table(), "stream/time", "ts")
    table["anonymize"].update(given)
    (problem,) = problems_of(table)
    assert sentence in problem


def test_a_column_may_be_called_like_a_secret():
    table = base_table()
    table["anonymize"]["quasi"]["key"] = {"kind": "numeric", "low": 0, "high": 1}
    table["anonymize"].update(t=0.5, reference={"occupation": {"password": 1}})
    assert "key" in parse_policy(table).anonymize.quasi


def test_all_problems_at_once(tmp_path):
    table = base_table()
    table["stream"]["carry"] = ["education"]
    table["anonymize"] |= {
        "k": 1, "deadlin": 5, "deadline": "1h", "reuse": 3, "t": 2, "sensitive": [],
        "quasi": {
            "age": {"kind": "numeric", "low": 5, "high": 1, "grd": 2},
            "born": {"kind": "numeric", "low": "x", "high": "y"},
            "education": {"kind": "categorical", "hierarchy": {"kind": "csv", "path": "none.csv"}},
        },
    }  # fmt: skip
    text = "\n".join(problems_of(table, folder=tmp_path))
    for sentence in (
        "[anonymize] k: must be at least 2",
        '[anonymize] deadlin: unknown key; did you mean "deadline"?',
        "[anonymize] deadline: a duration needs times",
        "[anonymize] reuse: must be a duration if deadline is one",
        "[anonymize] t: must be at most 1",
        "[anonymize] t: needs a sensitive column",
        "[anonymize.quasi.age] low: must be below high",
        "[anonymize.quasi.age] grd: unknown key",
        "[anonymize.quasi.born] low: must be a number",
        "[anonymize.quasi.born] high: must be a number",
        "[anonymize.quasi.education] hierarchy: none.csv: cannot be read",
        '[anonymize.quasi] education: the column "education" is already [stream] carry',
    ):
        assert sentence in text
    assert len(text.splitlines()) == 12


# ---- warnings


@pytest.mark.parametrize(
    ("method", "given", "sentence"),
    [
        ("k-varp", {"missing": "paper"}, 'missing = "paper" is not k-anonymous'),
        ("least-loss", {"missing": "covered", "min_carriers": 1}, "one person's value may be published"),
        ("least-loss", {"l": 1}, "l = 1 asks for nothing"),
        ("least-loss", {"entropy_l": 1}, "entropy_l = 1 asks for nothing"),
        ("fast", {"deadline": 1700, "threads": 3}, "threads = 3, but only 2 will be used"),
        ("least-loss", {"threads": 2, "deadline": 100}, "threads = 2, but only 1 will be used"),
        ("fads-varied", {"deadline": 2}, "keeps rows beyond their deadline"),
    ],
)
def test_what_is_rarely_meant_warns(method, given, sentence):
    table = base_table(method)
    table["anonymize"].update(given)
    (warning,) = parse_policy(table).warnings
    assert warning.startswith("[anonymize] ")
    assert sentence in warning


# ---- fingerprints


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("anonymize/k", 51),
        ("anonymize/deadline", 1999),
        ("anonymize/missing", "hidden"),
        ("anonymize/quasi/age/low", 16),
        ("anonymize/quasi/age/grid", 5),
        ("anonymize/quasi/age/weight", 2),
        ("anonymize/quasi/age/outside", "clamp"),
        ("anonymize/quasi/education/weight", 2),
        ("anonymize/quasi/education/hierarchy/tree", {"any": {"school": ["primary"], "college": ["bachelor"]}}),
        ("anonymize/sensitive", []),
        ("stream/time", "ts"),
    ],
)
def test_settings_change_the_fingerprint(path, value):
    assert parse_policy(changed(base_table(), path, value)).fingerprint() != parse_policy(base_table()).fingerprint()


def test_how_it_is_written_does_not_change_the_fingerprint(tmp_path):
    (tmp_path / "tree.csv").write_text(
        "primary;school;any\nsecondary;school;any\nbachelor;college;any\nmaster;college;any\n"
    )
    table = base_table()
    first = parse_policy(table, folder=tmp_path).fingerprint()
    for path, value in (
        ("anonymize/k", 50),
        ("anonymize/quasi/age/low", 17.0),
        ("anonymize/quasi/age/weight", 1),
        ("anonymize/quasi/education/hierarchy", {"kind": "csv", "path": "tree.csv"}),
    ):
        table = changed(table, path, value)
        assert parse_policy(table, folder=tmp_path).fingerprint() == first
    moments = {"kind": "numeric", "low": "2020-01-01", "high": "2021-01-01T00:00:00Z"}
    others = {"kind": "numeric", "low": date(2020, 1, 1), "high": datetime(2021, 1, 1, tzinfo=UTC)}
    prints = [
        parse_policy(changed(base_table(), "anonymize/quasi/age", given)).fingerprint() for given in (moments, others)
    ]
    assert prints[0] == prints[1]


def test_the_order_of_quasi_identifiers_counts():
    table, quasi = base_table(), base_table()["anonymize"]["quasi"]
    turned = changed(table, "anonymize/quasi", dict(reversed(quasi.items())))
    assert parse_policy(turned).fingerprint() != parse_policy(table).fingerprint()
    assert [role.name for role in parse_policy(turned).parameters()["schema"].quasi] == ["education", "age"]


def test_a_quasi_identifier_called_hierarchy_counts():
    low, high = (
        changed(base_table(), "anonymize/quasi/hierarchy", {"kind": "numeric", "low": low, "high": 9}) for low in (0, 1)
    )
    assert parse_policy(low).fingerprint() != parse_policy(high).fingerprint()


def test_durations_count_by_their_length():
    table = changed(changed(base_table(), "stream/time", "ts"), "anonymize/deadline", "30min")
    table["anonymize"]["reuse"] = "2min"
    other = changed(table, "anonymize/deadline", "1800s")
    assert parse_policy(other).fingerprint() == parse_policy(table).fingerprint()


def test_the_full_policy_is_toml():
    assert tomllib.loads(FULL)["anonymize"]["quasi"]["born"]["low"] == date(1920, 1, 1)
