"""What a policy for sets (k^m-anonymity) promises, read from the raw TOML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from shoal.auditor.promise import Policy
from shoal.auditor.sets.generalization import Ground, read_ground
from shoal.errors import PolicyError

METHODS: Final = ("k^m", "k^m-apriori")
RELEASED_COLUMN: Final = "items"
_SIGMA: Final = {"k^m": 0.99}
"""What is promised where a policy does not say; elsewhere every itemset is."""
_ADVERSARIES: Final = {"itemset": ("itemset",), "person": ("person",), "both": ("itemset", "person")}


@dataclass(frozen=True, slots=True)
class SetPromise:
    """The promise: of the itemsets of size l, at least sigma[l] share their image with k[l] records, for l up to m."""

    method: str
    person: str | None
    item: str
    column: str
    """Where the released sets stand."""
    k: tuple[int, ...]
    """One number for every size, from size 1 on; so is ``sigma``."""
    sigma: tuple[float, ...]
    adversaries: tuple[str, ...]
    """Over whom the share is taken: different itemsets alike, or persons alike and then their subsets."""
    joint: bool
    """Whether the confidences of all sizes are to hold at once."""
    ground: Ground

    @property
    def m(self) -> int:
        """How many items the adversary may know."""
        return len(self.k)

    @property
    def adversary(self) -> str:
        """Return how a policy calls the adversaries."""
        return "both" if len(self.adversaries) > 1 else self.adversaries[0]


def read_set_promise(policy: Policy) -> SetPromise:
    """Read what a method for sets promises."""
    rules = policy.section("anonymize")
    m = rules.get("m")
    if isinstance(m, bool) or not isinstance(m, int) or m < 1:
        raise PolicyError("[anonymize] m: must be a whole number from 1")
    adversary = rules.get("adversary", "itemset")
    if not isinstance(adversary, str) or adversary not in _ADVERSARIES:
        raise PolicyError(f"[anonymize] adversary: is one of {', '.join(_ADVERSARIES)}")
    person = policy.section("stream").get("person")
    return SetPromise(
        method=str(rules.get("method")),
        person=person if isinstance(person, str) else None,
        item=_name(rules, "item"),
        column=_name(rules, "column"),
        k=tuple(_people(value) for value in _per_size(rules, "k", m)),
        sigma=tuple(_share(value) for value in _per_size(rules, "sigma", m, _SIGMA.get(str(rules.get("method")), 1))),
        adversaries=_ADVERSARIES[adversary],
        joint=rules.get("joint") is True,
        ground=read_ground(rules.get("generalize"), policy),
    )


def _name(rules: Mapping[str, Any], key: str) -> str:
    name = rules.get(key, RELEASED_COLUMN)
    if not isinstance(name, str):
        raise PolicyError(f"[anonymize] {key}: name the column")
    return name


def _per_size(rules: Mapping[str, Any], key: str, m: int, default: Any = None) -> list[Any]:
    given = rules.get(key, default)
    values = list(given) if isinstance(given, list | tuple) else [given] * m
    if len(values) != m:
        raise PolicyError(f"[anonymize] {key}: give one value, or one for every size from 1 to m")
    return values


def _people(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PolicyError("[anonymize] k: must be a whole number from 1, or one for every size")
    return value


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 < value <= 1:
        raise PolicyError("[anonymize] sigma: must be a number above 0 and up to 1, or one for every size")
    return float(value)
