"""What a policy for flexible k-anonymity promises, read from the raw TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from shoal.auditor.hierarchies.hierarchy import Taxonomy
from shoal.auditor.hierarchies.ontology import Concepts, read_ontology
from shoal.auditor.inputs import Policy, is_number, names_of, person_of, whole_of
from shoal.auditor.tuples.promise import LabelRule, Rule, read_rule, weight_of
from shoal.errors import PolicyError


class WithUnknown:
    """A taxonomy that has a label of its own for values it does not list."""

    def __init__(self, listed: Taxonomy) -> None:
        self.listed = listed
        self._leaves = listed.leaf_counts()
        self._is_leaf = listed.is_leaf()
        self.label = self._free_label()

    def _free_label(self) -> str:
        """Return "unknown", or "unknown 2", "unknown 3" and so on where the taxonomy has a label of that name."""
        if "unknown" not in self._leaves:
            return "unknown"
        number = 2
        while f"unknown {number}" in self._leaves:
            number += 1
        return f"unknown {number}"

    @property
    def root(self) -> str:
        """The label above everything."""
        return self.listed.root

    def leaf_counts(self) -> Mapping[str, int]:
        """Return how many values every label stands for; values that are not listed cannot be counted."""
        return {**self._leaves, self.label: 1}

    def is_leaf(self) -> Mapping[str, bool]:
        """Return, for every label, whether it is a value."""
        return {**self._is_leaf, self.label: True}

    def path(self, value: str) -> tuple[str, ...]:
        """Return all labels that cover a value: nothing but this label and the root cover one that is not listed."""
        return self.listed.path(value) if self._is_leaf.get(value) else (self.label, self.root)


def accept_unknown(tree: Taxonomy) -> Taxonomy:
    """Accept values that are not listed; below a single label, which is the only value, there is no room for them."""
    return WithUnknown(tree) if len(tree.leaf_counts()) > 1 else tree


def without_unknown(tree: Taxonomy) -> Taxonomy:
    """Return a taxonomy without the label for values that are not listed."""
    return tree.listed if isinstance(tree, WithUnknown) else tree


METHOD: Final = "flexible-k"


@dataclass(frozen=True, slots=True)
class FlexiblePromise:
    """The promise: K people behind the normal quasi-identifiers of a row, K_s behind all of them, nothing dropped."""

    person: str
    carry: tuple[str, ...]
    sensitive: tuple[str, ...]
    quasi: tuple[Rule, ...]
    k: int
    density: Mapping[str, Mapping[str, int]]
    """By column: labels whose values ask for a k of their own."""
    sparse: tuple[str, ...] | None
    """None: as the ontology and the first records say."""
    window: int
    threshold: float
    """The share of rare records from which on a column is sparse."""
    floor: float
    """The share of rare records below which K_s is K."""
    p_sparse: float | None
    k_s: int | None
    root: bool
    """Whether root labels may leave."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may leave."""
        return (*(rule.name for rule in self.quasi), *self.sensitive, *self.carry)

    @property
    def needs_calibration(self) -> bool:
        """Whether K_s or what is sparse follows from the first records."""
        has_labels = any(isinstance(rule, LabelRule) for rule in self.quasi)
        is_given = self.sparse is not None and (not self.sparse or self.k_s is not None or self.p_sparse is not None)
        return has_labels and not is_given

    @property
    def lowest_k(self) -> int:
        """The least that any row may ask for."""
        return min([self.k, *(k for classes in self.density.values() for k in classes.values())])

    def tag(self, name: str) -> str | None:
        """What the ontology of a column calls it; a column without one is normal unless the policy says otherwise."""
        rule = next(rule for rule in self.quasi if rule.name == name)
        tree = without_unknown(rule.tree) if isinstance(rule, LabelRule) else None
        return tree.tag if isinstance(tree, Concepts) else "normal"


def read_flexible_promise(policy: Policy) -> FlexiblePromise:
    """Read what ``method = "flexible-k"`` promises."""
    stream, rules = policy.section("stream"), policy.section("anonymize")
    quasi = _quasi(rules.get("quasi"), policy.folder)
    if _accepts_unknown(rules):
        quasi = tuple(_accepting(rule) for rule in quasi)
    return FlexiblePromise(
        person=person_of(stream),
        carry=names_of(stream.get("carry", ())),
        sensitive=names_of(rules.get("sensitive", ())),
        quasi=quasi,
        k=whole_of(rules, "k", 6),
        density=_density(rules.get("density", {}), quasi),
        sparse=_sparse(rules.get("sparse", "auto"), quasi),
        window=whole_of(rules, "window", 10_000),
        threshold=_share(rules, "threshold", 0.1),
        floor=_share(rules, "floor", 0.05),
        p_sparse=_share(rules, "p_sparse", 0.0) if "p_sparse" in rules else None,
        k_s=_given_k_s(rules),
        root=bool(rules.get("root", False)),
    )


def _quasi(tables: Any, folder: Path) -> tuple[Rule, ...]:
    if not isinstance(tables, Mapping) or not tables:
        raise PolicyError("[anonymize.quasi]: give a table for every quasi-identifier")
    return tuple(_rule(str(name), table, folder) for name, table in tables.items())


def _rule(name: str, table: Any, folder: Path) -> Rule:
    if isinstance(table, Mapping) and table.get("kind") == "ontology":
        return LabelRule(name, read_ontology(table.get("ontology"), folder=folder, name=name), weight_of(name, table))
    return read_rule(name, table, folder)


def _accepts_unknown(rules: Mapping[str, Any]) -> bool:
    given = rules.get("unknown", "accept")
    if given not in ("accept", "refuse"):
        raise PolicyError('[anonymize] unknown: "accept" or "refuse"')
    return bool(given == "accept")


def _accepting(rule: Rule) -> Rule:
    return replace(rule, tree=accept_unknown(rule.tree)) if isinstance(rule, LabelRule) else rule


def _density(tables: Any, quasi: tuple[Rule, ...]) -> dict[str, dict[str, int]]:
    if not isinstance(tables, Mapping):
        raise PolicyError("[anonymize.density]: give a table for every column")
    labelled = {rule.name for rule in quasi if isinstance(rule, LabelRule)}
    for name, classes in tables.items():
        if name not in labelled or not isinstance(classes, Mapping):
            raise PolicyError(f"[anonymize.density.{name}]: give k by label, for a quasi-identifier that has labels")
    return {
        str(name): {str(label): whole_of(classes, label, 1) for label in classes} for name, classes in tables.items()
    }


def _sparse(given: Any, quasi: tuple[Rule, ...]) -> tuple[str, ...] | None:
    if given == "auto":
        return None
    names = names_of(given)
    if set(names) - {rule.name for rule in quasi}:
        raise PolicyError('[anonymize] sparse: "auto", or names of quasi-identifiers')
    return names


def _share(rules: Mapping[str, Any], key: str, default: float) -> float:
    given = rules.get(key, default)
    if not is_number(given) or not 0 <= given <= 1:
        raise PolicyError(f"[anonymize] {key}: must be a share from 0 to 1")
    return float(given)


def _given_k_s(rules: Mapping[str, Any]) -> int | None:
    if "k_s" not in rules:
        return None
    k_s = whole_of(rules, "k_s", 2)
    if k_s < 2:
        raise PolicyError("[anonymize] k_s: must be a whole number from 2")
    return k_s
