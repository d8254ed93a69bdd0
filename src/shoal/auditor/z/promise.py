"""What a policy for z-anonymity promises, read from the raw TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shoal.auditor.hierarchies.hierarchy import Hierarchy, NoHierarchy, read_hierarchy
from shoal.auditor.inputs import Policy
from shoal.errors import PolicyError
from shoal.schema import duration_ns

_NOTHING: Final = 2**31 - 1
"""A z at which nothing leaves."""
_ON_PRIVATE: Final = ("drop", "blank", "generalize")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute column and its promise: z people within the window, or the value does not leave."""

    name: str
    z: int
    window_ns: int
    on_private: str
    hierarchy: Hierarchy

    @property
    def generalizes(self) -> bool:
        """Whether private values are generalized."""
        return self.on_private == "generalize"


@dataclass(frozen=True, slots=True)
class Target:
    """A share p of the people shown in an epoch is to be k-anonymous; z is never below ``least``."""

    k: int
    p: float
    least: int
    start: int
    """The z until a window and a whole epoch have been seen."""


@dataclass(frozen=True, slots=True)
class ZPromise:
    """The promise of z-anonymity."""

    person: str
    time: str
    carry: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    lateness_ns: int
    max_gap_ns: int
    rotation_ns: int
    k: int | None = None
    """How many people must share every set of values released of a person in an epoch; None: not promised."""
    target: Target | None = None
    """What z follows the stream for; None where it is fixed."""
    keeps_rows: bool = False
    """Whether rows leave with their value blanked where it is private."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may leave."""
        return (self.time, self.person, *(attribute.name for attribute in self.attributes), *self.carry)


def read_z_promise(policy: Policy) -> ZPromise:
    """Read what ``method = "z-anonymity"`` promises."""
    stream, rules = policy.section("stream"), policy.section("anonymize")
    target = _target(rules)
    attributes = _attributes(rules if target is None else {**rules, "z": target.least}, policy.folder)
    shortest = min(attribute.window_ns for attribute in attributes)
    rotation = duration_ns(rules["rotation"], name="rotation") if "rotation" in rules else shortest
    if rotation <= 0:
        raise PolicyError("rotation: must be longer than 0")
    return ZPromise(
        person=_name(stream, "person"),
        time=_name(stream, "time"),
        carry=tuple(str(name) for name in stream.get("carry", ())),
        attributes=attributes,
        lateness_ns=duration_ns(rules.get("lateness", 0), name="lateness"),
        max_gap_ns=duration_ns(rules.get("max_gap", "24h"), name="max_gap"),
        rotation_ns=rotation,
        k=_company(rules),
        target=target,
        keeps_rows=isinstance(rules.get("attribute"), str) and attributes[0].on_private == "blank",
    )


def _company(rules: Mapping[str, Any]) -> int | None:
    k = rules.get("k")
    if "combine" not in rules and k is None:
        return None
    if rules.get("combine") != "k" or isinstance(k, bool) or not isinstance(k, int) or k < 2:
        raise PolicyError('combine: must be "k", together with k, a whole number from 2')
    return k


def _target(rules: Mapping[str, Any]) -> Target | None:
    target = rules.get("target")
    if target is None:
        return None
    if not isinstance(target, Mapping) or "z" in rules or "combine" in rules:
        raise PolicyError("target: must be a table with k and p, and goes without z and combine")
    k, p, floor = target.get("k"), target.get("p"), target.get("floor", 1)
    if isinstance(k, bool) or not isinstance(k, int) or k < 2:
        raise PolicyError("target: k must be a whole number from 2")
    if isinstance(floor, bool) or not isinstance(floor, int) or floor < 1:
        raise PolicyError("target: floor must be a whole number from 1")
    if isinstance(p, bool) or not isinstance(p, int | float) or not 0 < p <= 1:
        raise PolicyError("target: p must be a share above 0, up to 1")
    start = target.get("start", _NOTHING)
    if isinstance(start, bool) or not isinstance(start, int) or start < max(k, floor):
        raise PolicyError("target: start must be a whole number, not below k and floor")
    return Target(k, float(p), max(k, floor), start)


def _name(section: Mapping[str, Any], key: str) -> str:
    name = section.get(key)
    if not isinstance(name, str):
        raise PolicyError(f"[stream] {key}: name the column")
    return name


def _attributes(rules: Mapping[str, Any], folder: Path) -> tuple[Attribute, ...]:
    named = rules.get("attribute")
    if isinstance(named, str):
        named = {named: {}}
    if not isinstance(named, Mapping) or not named:
        raise PolicyError("[anonymize] attribute: name a column, or give a table with one entry a column")
    return tuple(_attribute(name, {**rules, **own}, folder) for name, own in named.items())


def _attribute(name: str, rules: Mapping[str, Any], folder: Path) -> Attribute:
    z, on_private = rules.get("z"), rules.get("on_private", "drop")
    if isinstance(z, bool) or not isinstance(z, int) or z < 1:
        raise PolicyError(f"{name}: z must be a whole number from 1")
    if on_private not in _ON_PRIVATE:
        raise PolicyError(f"{name}: on_private is one of {', '.join(_ON_PRIVATE)}")
    if "window" not in rules:
        raise PolicyError(f"{name}: window is missing")
    hierarchy: Hierarchy = NoHierarchy()
    if on_private == "generalize":
        hierarchy = read_hierarchy(rules.get("hierarchy"), folder=folder, name=f"hierarchy of {name}")
    return Attribute(name, z, duration_ns(rules["window"], name="window"), on_private, hierarchy)
