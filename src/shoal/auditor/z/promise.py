"""What a policy for z-anonymity promises, read from the raw TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from shoal.auditor.hierarchies.hierarchy import Hierarchy, NoHierarchy, read_hierarchy
from shoal.auditor.policy import Policy, column_of, share_of, whole_of
from shoal.errors import PolicyError
from shoal.schema import duration_ns

_RELEASES_NOTHING: Final = 2**31 - 1
"""A z that no value reaches."""
_ON_PRIVATE: Final = ("drop", "blank", "generalize")
_RESIDUAL: Final = ("strict", "loose")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute column and its promise: z people within the window, or the value is not released."""

    name: str
    z: int
    window_ns: int
    on_private: str
    hierarchy: Hierarchy
    residual: str
    """Who counts for a label of the hierarchy."""

    @property
    def generalizes(self) -> bool:
        """Whether private values are generalized."""
        return self.on_private == "generalize"


@dataclass(frozen=True, slots=True)
class Target:
    """z follows the stream so that a share p of the people shown in an epoch is k-anonymous."""

    k: int
    p: float
    least: int
    """The lowest z allowed."""
    start: int
    """The z until a window and a whole epoch have been seen."""
    learns: bool
    """Whether z begins with what an earlier stream needed: then from that epoch on, and not only after it."""


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
    """What z is adapted to; None if it is fixed."""
    keeps_rows: bool = False
    """Whether rows are released with a private value blanked."""
    method: str = "z-anonymity"

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be released."""
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
    if "combine" in rules and rules["combine"] != "k":
        raise PolicyError('combine: must be "k"')
    if rules.get("k") is not None and "combine" not in rules:
        raise PolicyError('k: needs combine = "k"')
    return ZPromise(
        person=column_of(stream, "person"),
        time=column_of(stream, "time"),
        carry=tuple(str(name) for name in stream.get("carry", ())),
        attributes=attributes,
        lateness_ns=duration_ns(rules.get("lateness", 0), name="lateness"),
        max_gap_ns=duration_ns(rules.get("max_gap", "24h"), name="max_gap"),
        rotation_ns=rotation,
        k=whole_of(rules, "k", least=2, where="combine: ") if "combine" in rules else None,
        target=target,
        keeps_rows=isinstance(rules.get("attribute"), str) and attributes[0].on_private == "blank",
    )


def _target(rules: Mapping[str, Any]) -> Target | None:
    target = rules.get("target")
    if target is None:
        return None
    if not isinstance(target, Mapping) or "z" in rules or "combine" in rules:
        raise PolicyError("target: must be a table with k and p, and goes without z and combine")
    k, floor = whole_of(target, "k", least=2, where="target: "), whole_of(target, "floor", 1, where="target: ")
    start = whole_of(target, "start", _RELEASES_NOTHING, least=max(k, floor), where="target: ")
    learns = target.get("learn") not in (None, False)
    return Target(k, share_of(target, "p", where="target: "), max(k, floor), start, learns)


def _attributes(rules: Mapping[str, Any], folder: Path) -> tuple[Attribute, ...]:
    named = rules.get("attribute")
    if isinstance(named, str):
        named = {named: {}}
    if not isinstance(named, Mapping) or not named:
        raise PolicyError("[anonymize] attribute: name a column, or give a table with one entry per column")
    return tuple(_attribute(name, {**rules, **own}, folder) for name, own in named.items())


def _attribute(name: str, rules: Mapping[str, Any], folder: Path) -> Attribute:
    z, on_private = whole_of(rules, "z", where=f"{name}: "), rules.get("on_private", "drop")
    if on_private not in _ON_PRIVATE:
        raise PolicyError(f"{name}: on_private is one of {', '.join(_ON_PRIVATE)}")
    residual = rules.get("residual", "strict")
    if residual not in _RESIDUAL:
        raise PolicyError(f"{name}: residual is one of {', '.join(_RESIDUAL)}")
    if "window" not in rules:
        raise PolicyError(f"{name}: window is missing")
    hierarchy: Hierarchy = NoHierarchy()
    if on_private == "generalize":
        hierarchy = read_hierarchy(rules.get("hierarchy"), folder=folder, name=f"hierarchy of {name}")
    return Attribute(name, z, duration_ns(rules["window"], name="window"), on_private, hierarchy, residual)
