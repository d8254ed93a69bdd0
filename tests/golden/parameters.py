"""Each parameter of each method with a value that is not its default, and what it changes.

A change names the settings with the parameter and the same settings without it, `against`. Both outcomes are digested;
they must differ, so that a parameter that stops working shows as well as one that begins to work differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.methods.base import StreamMethod
from shoal.methods.flexible.flexible_k import FlexibleK
from shoal.methods.registry import METHODS, methods_of
from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.models.z.target.target import KTarget
from tests.golden import ways
from tests.golden.fingerprints import Digests
from tests.golden.sets import outcome_of_sets
from tests.laws import cases, flexible_cases, tuple_cases
from tests.laws.cases import KEY

Given = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """A parameter, settings that set it, and the settings to compare with."""

    name: str
    settings: Given
    against: Given = field(default_factory=dict)
    has_effect: bool = True
    """False for a parameter that is accepted and documented to change nothing."""


def to(name: str, *values: Any, has_effect: bool = True, **along: Any) -> Iterator[Change]:
    """Changes of one parameter, `along` with others that it needs."""
    for value in values:
        yield Change(name, {**along, name: value}, along, has_effect)


def words(settings: Given) -> str:
    """Settings as the name of a part."""
    return ", ".join(f"{name} = {value}" for name, value in settings.items()).replace("'", "") or "as it is"


# ---- z-anonymity

GENERALIZE = {"on_private": "generalize", "hierarchy": "suffix"}
TARGET = {"k": 2, "p": 0.9}
LEARN = {**TARGET, "learn": True}
TREES: dict[str, Callable[[], Hierarchy]] = {
    "suffix": Hierarchy.by_suffix,
    "prefix": lambda: Hierarchy.by_prefix("."),
    "nested": lambda: Hierarchy.from_nested(cases.TREE),
    "flat": lambda: Hierarchy.flat(cases.SITES),
}
Z_CHANGES = [
    *to("attribute", "device", {"site": {}, "device": {}}),
    *(Change("attribute", {"attribute": {"site": own}}, {"attribute": {"site": {}}})
      for own in ({"z": 3}, {"window": 20}, GENERALIZE)),
    # private values of a table are blanked whether it says so or not
    Change("attribute", {"attribute": {"site": {"on_private": "blank"}}}, {"attribute": {"site": {}}},
           has_effect=False),
    Change("attribute", {"attribute": {"site": {**GENERALIZE, "z": 3, "residual": "loose"}}},
           {"attribute": {"site": {**GENERALIZE, "z": 3}}}),
    *to("z", 3, 1),
    *to("window", 20),
    *to("on_private", "blank"),
    Change("on_private", GENERALIZE),
    *(Change("hierarchy", {**GENERALIZE, "hierarchy": tree}, GENERALIZE) for tree in TREES if tree != "suffix"),
    *to("residual", "loose", **GENERALIZE, z=3),
    *to("lateness", "3s"),
    *to("max_gap", "200d"),
    *to("rotation", "10s"),
    *to("target", TARGET),
    *(Change("target", {"target": target}, {"target": TARGET})
      for target in ({**TARGET, "k": 3}, {**TARGET, "p": 0.5}, {**TARGET, "floor": 6}, {**TARGET, "start": 3}, LEARN)),
    Change("combine", {"combine": "k", "k": 2}),
    Change("k", {"combine": "k", "k": 3}, {"combine": "k", "k": 2}),
    *to("carry", ["device"]),
]  # fmt: skip


def make_z(settings: Given) -> StreamMethod:
    """A z-anonymity of sites; its hierarchies are named."""
    given = {"z": 2, "window": cases.WINDOW_S, "person": "user", "time": "ts", "attribute": "site", **settings}
    given = _with_tree(given)
    if isinstance(given["attribute"], Mapping):
        given["attribute"] = {name: _with_tree(own) for name, own in given["attribute"].items()}
    if "target" in given:
        given |= {"z": None, "target": KTarget(**given["target"])}
    made = ZAnonymity(**given, key=KEY)
    if settings.get("target", {}).get("learn"):
        made.learn(cases.busy(seed=9))
    return made


def _with_tree(given: Given) -> dict[str, Any]:
    return {**given, "hierarchy": TREES[given["hierarchy"]]()} if "hierarchy" in given else dict(given)


def z_outcome(settings: Given) -> str:
    """What z-anonymity with these settings makes of a stream."""
    stream = cases.busy(400) if "target" in settings else cases.stream(seed=4)
    return ways.outcome(partial(make_z, settings), stream)


# ---- tuples

TIMED = tuple_cases.TIMED
LANES = {"k": 2, "deadline": 64, "reuse": 30}
"""Enough arrivals for two lanes."""
FOR_ALL_TUPLES = [
    *to("k", 4),
    *to("deadline", 20),
    Change("deadline", TIMED),
    Change("deadline", {**TIMED, "deadline": "60s"}, TIMED),
    *to("reuse", 30, 0),
    Change("reuse", {**TIMED, "missing": "covered", "reuse": "5s"}, {**TIMED, "missing": "covered"}),
    *to("l", 3),
    *to("entropy_l", 2.5),
    *to("t", 0.4),
    *to("reference", 5, tuple_cases.DECLARED, t=0.4),
    *to("groups", True),
    *to("max_share", 0.4),
    *to("suppressed", "root", k=6, deadline=6),
    *to("alpha", 0.5),
    *to("max_gap", "200d", **TIMED),
]
OWN_OF_TUPLES = {
    "least-loss": [*to("candidates", 3, missing="covered"), *to("threads", 2, **LANES)],
    "fast": [*to("threads", 1, 3, **{**LANES, "deadline": 96}), *to("round", 20, **LANES)],
    "castle": [*to("beta", 2), *to("mu", 1)],
    "k-varp": [*to("likeness", 0.1, 0.8, k=5, deadline=20)],
    "fads-varied": [*to("late_penalty", 0.5)],
}


def _of_all_tuples(method: str) -> Iterator[Change]:
    yield from FOR_ALL_TUPLES
    if METHODS[method].load().settings_class.model_fields["missing"].default == "own":
        yield from to("missing", "hidden", "covered", "paper")
        yield from to("min_carriers", 3, missing="covered")
        return
    # The clusters of fads-varied lack the same values in all rows: how missing values are shown cannot matter.
    has_effect = method != "fads-varied"
    yield from to("missing", "hidden", "paper", has_effect=has_effect)
    yield from to("min_carriers", 3, has_effect=has_effect)


def tuple_outcome(method: str, settings: Given) -> str:
    """What a tuple method with these settings makes of a stream."""
    given = {"k": 3, "deadline": 12, "reuse": 8, **tuple_cases.OWN.get(method, {}), **settings}
    timed = isinstance(given["deadline"], str)
    stream = tuple_cases.mostly_one(_people()) if "max_share" in settings else _people()
    return ways.outcome(partial(tuple_cases.make_tuples, method, given, timed=timed), stream)


def _people() -> pa.Table:
    return tuple_cases.people(160, seed=36)


# ---- flexible

ONTOLOGIES: dict[str, dict[str, Any]] = {
    "tagged": {"tag": "sparse"}, "untagged": {}, "normal": {"tag": "normal"},
    "flat": {"tag": "sparse", "is_a": ["brand"], "properties": []},
}  # fmt: skip
FLEXIBLE_CHANGES = [
    *to("k", 4),
    *to("sparse", ["network"], ["device", "network"]),
    *to("threshold", 1.0, ontology="untagged"),
    *to("floor", 1.0),
    *to("p_sparse", 1.0),
    *to("k_s", 3),
    *to("window", 20),
    *to("criteria", 2, has_effect=False),
    *to("density", flexible_cases.DENSITY),
    *to("density_from_data", flexible_cases.CELLS),
    *to("root", True),
    *to("compare", True, has_effect=False),
    *to("remember", 2),
    *to("unknown", "refuse"),
    *to("ontology", "normal", "flat"),
]


def make_flexible(settings: Given) -> StreamMethod:
    """A flexible k-anonymity of phones; its ontology is named."""
    given = {"k": 3, "window": 30, **settings}
    described = {
        "is_a": ["family", "brand"],
        "properties": ["os", "country"],
        **ONTOLOGIES[given.pop("ontology", "tagged")],
    }
    ontology = Ontology.from_table(flexible_cases.PHONES, value="model", attribute="device", **described)
    return FlexibleK(flexible_cases.make_flexible({}).settings.schema, ontology, **given, key=KEY)


def flexible_outcome(settings: Given) -> str:
    """What flexible k-anonymity with these settings makes of a stream."""
    return ways.outcome(partial(make_flexible, settings), flexible_cases.measurements(160, seed=11))


# ---- sets

SAMPLED = {"k": 4, "m": 3, "sigma": 0.6, "counted": 0, "trials": 1, "seed": 4}
FOR_ALL_SETS = [
    *to("k", 3, 12),
    *to("k", [6, 4, 2], m=3),
    *to("m", 1, k=3),
    *to("recoding", "local", k=3, m=2),
    *to("generalize", "places", "graph", k=3),
]
K_M_CHANGES = [
    *to("sigma", 0.9, 0.6, k=3, m=3, counted=0, trials=2),
    *to("sigma", [1, 0.9, 0.6], k=3, m=3, counted=0, trials=2),
    *(Change(name, {**SAMPLED, name: value}, SAMPLED) for name, value in (
        ("adversary", "person"), ("adversary", "both"), ("bound", "hoeffding1"), ("bound", "hoeffding2"),
        ("trials", 8), ("seed", 5), ("counted", 1), ("counted", "all"), ("counted", "auto"),
        ("sampler", "chain"), ("sampler", "paper-chain"), ("joint", True),
    )),
    Change("recoding", {"k": 3, "m": 2, "sigma": 1, "recoding": "local"}, {"k": 3, "m": 2, "sigma": 1}),
]  # fmt: skip

# ---- all of them

CHANGES: dict[str, list[Change]] = {
    "z-anonymity": Z_CHANGES,
    **{method: [*_of_all_tuples(method), *OWN_OF_TUPLES.get(method, [])] for method in tuple_cases.TUPLE_METHODS},
    "k^m": [*(one for one in FOR_ALL_SETS if one.name != "recoding"), *K_M_CHANGES],
    "k^m-apriori": FOR_ALL_SETS,
    "flexible-k": FLEXIBLE_CHANGES,
}
OUTCOMES: dict[str, Callable[[Given], str]] = {
    "z-anonymity": z_outcome,
    **{method: partial(tuple_outcome, method) for method in tuple_cases.TUPLE_METHODS},
    **{method: partial(outcome_of_sets, METHODS[method].load()) for method in methods_of("sets")},
    "flexible-k": flexible_outcome,
}


def parameter_digests(method: str) -> Digests:
    """The outcome of a method with each of its parameters changed, and of what it is compared with."""
    settings = {words(given): given for change in CHANGES[method] for given in (change.against, change.settings)}
    return {name: OUTCOMES[method](given) for name, given in settings.items()}
