"""What the methods on sets make of generated sets: blocks, records, certificates, other records, local recoding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

import shoal
from tests.golden import ways
from tests.golden.fingerprints import Digests, agreed, digest, plain, table

ITEMS = "abcdefgh"
TREE = {"all": {"left": {"near": ["a", "b"], "far": ["c"]}, "right": {"odd": ["d", "e", "f"], "even": ["g", "h"]}}}
RING = [(ITEMS[at], ITEMS[(at + 1) % 8]) for at in range(8)] + [("a", "e")]
POINTS = {"a": (1, 1), "b": (1, 1), "c": (3, 1), "d": (9, 2), "e": (2, 8), "f": (6, 6), "g": (7, 1), "h": (9, 9)}


def people_with_items(count: int = 60, *, seed: int = 1) -> list[set[str]]:
    """Sets of items, the first of them the commonest."""
    random = np.random.default_rng(seed)
    share = 1 / np.arange(2, 10)
    chosen = [random.choice(8, size=random.integers(1, 6), replace=False, p=share / share.sum()) for _ in range(count)]
    return [{ITEMS[item] for item in one} for one in chosen]


def _tree() -> Any:
    return shoal.Hierarchy.from_nested(TREE)


def _places() -> Any:
    return shoal.Places(
        list(POINTS), [x for x, _ in POINTS.values()], [y for _, y in POINTS.values()], geographic=False
    )


MERGING: dict[str, Callable[[], Any]] = {"tree": _tree, "places": _places, "graph": lambda: RING}

SET_METHODS: dict[str, Callable[[], Any]] = {
    "counted": lambda: shoal.KmAnonymity(3, 2, 1, generalize=_tree(), trials=2),
    "sampled": lambda: shoal.KmAnonymity(3, 3, 0.9, generalize=_tree(), trials=2, seed=5, counted=0),
    "sampled-person": lambda: shoal.KmAnonymity(
        [4, 3], 2, 0.8, generalize=_tree(), trials=1, seed=6, counted=0, adversary="person", joint=True
    ),
    "graph": lambda: shoal.KmAnonymity(3, 2, 1, generalize=RING, trials=3, seed=7),
    "places": lambda: shoal.KmAnonymity(3, 2, 0.9, generalize=_places(), trials=2, seed=8),
    "places-ncp": lambda: shoal.KmAnonymity(3, 2, 0.9, generalize=_places(), error="ncp", trials=2, seed=8),
    "apriori": lambda: shoal.KmApriori(3, 2, generalize=_tree()),
    "apriori-sizes": lambda: shoal.KmApriori([6, 4, 2], 3, generalize=_tree()),
    "apriori-graph": lambda: shoal.KmApriori(4, 2, generalize=RING),
}


def set_digests(name: str) -> Digests:
    """What a method makes of sets, of fewer of them and of others."""
    make = SET_METHODS[name]
    result = make().anonymize(people_with_items())
    fewer = result.without(range(0, 60, 7)).certify()
    others = result.apply(people_with_items(50, seed=2)).certify()
    made = {f"{part} of fewer": value for part, value in _result(fewer).items()}
    made |= {f"{part} of others": value for part, value in _result(others).items()}
    return {**_result(result), **made, "outcome": agreed(_in_and_without_threads(make))}


def local_digests() -> Digests:
    """What local recoding makes of sets."""
    found: Digests = {}
    for k, m in (([6, 4, 2], 3), (3, 2), (2, 1)):
        made = _result(shoal.KmApriori(k, m, generalize=_tree(), recoding="local").anonymize(people_with_items(200)))
        found |= {f"{part} for m = {m}": value for part, value in made.items()}
    return found


def unique_digests() -> Digests:
    """How many sets of items single a person out."""
    records = people_with_items()
    return {
        f"{size} {who}": digest(plain(asdict(shoal.uniqueness(records, m=size, adversary=who))))  # type: ignore[arg-type]
        for size in (1, 2, 3)
        for who in ("itemset", "person")
    }


def outcome_of_sets(method: type[Any], settings: Mapping[str, Any]) -> str:
    """The digest of all that a method with these settings makes of sets, in threads and without."""
    given = dict(settings)
    along = MERGING[given.pop("generalize", "tree")]
    return agreed(_in_and_without_threads(lambda: method(**given, generalize=along())))


def _in_and_without_threads(make: Callable[[], Any]) -> dict[str, Digests]:
    with ways.no_threads():
        alone = _result(make().anonymize(people_with_items()))
    with ways.several_threads():
        return {"without threads": alone, "in threads": _result(make().anonymize(people_with_items()))}


def _result(result: Any) -> Digests:
    return {
        "records": digest([sorted(record) for record in result.records]),
        "blocks": digest(result.blocks),
        "error": digest(plain([result.error, asdict(result.changes)])),
        "certificate": digest(plain(result.certificate.to_dict())),
        "published": digest(table(result.published())),
    }
