"""What a policy for flexible k-anonymity promises, read from the raw TOML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shoal.auditor.hierarchies.hierarchy import Taxonomy
from shoal.auditor.hierarchies.ontology import Concepts, read_ontology
from shoal.auditor.policy import Policy, column_of, is_number, names_of, whole_of
from shoal.auditor.rows.rules import LabelRule, Rule, quasi_tables, read_rule, weight_of
from shoal.errors import PolicyError


class WithUnknown:
    """A taxonomy with an extra label for values that it does not list."""

    def __init__(self, listed: Taxonomy) -> None:
        self.listed = listed
        self._leaves = listed.leaf_counts()
        self._is_leaf = listed.is_leaf()
        self.label = self._free_label()

    def _free_label(self) -> str:
        """Return "unknown", or "unknown 2", "unknown 3", … if the taxonomy uses that label itself."""
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
        """Return the number of values under every label; all unlisted values count as one."""
        return {**self._leaves, self.label: 1}

    def is_leaf(self) -> Mapping[str, bool]:
        """Return, for every label, whether it is a value."""
        return {**self._is_leaf, self.label: True}

    def path(self, value: str) -> tuple[str, ...]:
        """Return all labels that cover a value; an unlisted one is covered by the extra label and the root only."""
        return self.listed.path(value) if self._is_leaf.get(value) else (self.label, self.root)


def accept_unknown(tree: Taxonomy) -> Taxonomy:
    """Add a label for unlisted values, unless the taxonomy is a single label, which is its only value."""
    return WithUnknown(tree) if len(tree.leaf_counts()) > 1 else tree


def without_unknown(tree: Taxonomy) -> Taxonomy:
    """Return the taxonomy without the label for unlisted values."""
    return tree.listed if isinstance(tree, WithUnknown) else tree


@dataclass(frozen=True, slots=True)
class MeasuredDensity:
    """Classes of cells by the people counted there in the first records."""

    level: int | None
    """Levels below the root at which cells lie; None: the values are the cells."""
    classes: tuple[tuple[int, int], ...]
    """Pairs: cells with fewer people than the first number need the second."""


@dataclass(frozen=True, slots=True)
class FlexiblePromise:
    """The promise: K people share the normal quasi-identifiers of a row, K_s share all of them; nothing is dropped."""

    person: str
    carry: tuple[str, ...]
    sensitive: tuple[str, ...]
    quasi: tuple[Rule, ...]
    k: int
    density: Mapping[str, Mapping[str, int]]
    """By column and label: the k that values under the label need."""
    measured: Mapping[str, MeasuredDensity]
    """By column: the same, but by the people per cell in the first records."""
    sparse: tuple[str, ...] | None
    """None: decided by the ontology and the first records."""
    window: int
    threshold: float
    """A column with at least this share of rare records is sparse."""
    floor: float
    """With a smaller share of rare records K_s is K."""
    p_sparse: float | None
    k_s: int | None
    root: bool
    """Whether root labels may be published."""
    method: str = "flexible-k"
    rule_of_nulls: str = "exact"
    """A row lacks what its record lacks."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be released."""
        return (*(rule.name for rule in self.quasi), *self.sensitive, *self.carry)

    @property
    def needs_calibration(self) -> bool:
        """Whether K_s or the sparse columns depend on the first records."""
        has_labels = any(isinstance(rule, LabelRule) for rule in self.quasi)
        is_given = self.sparse is not None and (not self.sparse or self.k_s is not None or self.p_sparse is not None)
        return has_labels and not is_given

    @property
    def lowest_k(self) -> int:
        """The smallest k of any row."""
        listed = [k for classes in self.density.values() for k in classes.values()]
        return min([self.k, *listed, *(k for rule in self.measured.values() for _, k in rule.classes)])

    def tag(self, name: str) -> str | None:
        """The tag of a column's ontology; a column without one is normal."""
        rule = next(rule for rule in self.quasi if rule.name == name)
        tree = without_unknown(rule.tree) if isinstance(rule, LabelRule) else None
        return tree.tag if isinstance(tree, Concepts) else "normal"


def read_flexible_promise(policy: Policy) -> FlexiblePromise:
    """Read what ``method = "flexible-k"`` promises."""
    stream, rules = policy.section("stream"), policy.section("anonymize")
    unknown = rules.get("unknown", "accept")
    if unknown not in ("accept", "refuse"):
        raise PolicyError('[anonymize] unknown: "accept" or "refuse"')
    quasi = tuple(_rule(name, table, policy.folder) for name, table in quasi_tables(rules).items())
    if unknown == "accept":
        quasi = tuple(
            replace(rule, tree=accept_unknown(rule.tree)) if isinstance(rule, LabelRule) else rule for rule in quasi
        )
    return FlexiblePromise(
        person=column_of(stream, "person"),
        carry=names_of(stream.get("carry", ())),
        sensitive=tuple(name for name in names_of(rules.get("sensitive", ())) if name not in rules.get("quasi", {})),
        quasi=quasi,
        k=whole_of(rules, "k", 6),
        density=_density(rules.get("density", {}), quasi),
        measured=_measured(rules.get("density_from_data", {}), quasi),
        sparse=_sparse(rules.get("sparse", "auto"), quasi),
        window=whole_of(rules, "window", 10_000),
        threshold=_share(rules, "threshold", 0.1),
        floor=_share(rules, "floor", 0.05),
        p_sparse=_share(rules, "p_sparse", 0.0) if "p_sparse" in rules else None,
        k_s=whole_of(rules, "k_s", least=2, where="[anonymize] ") if "k_s" in rules else None,
        root=bool(rules.get("root", False)),
    )


def _rule(name: str, table: Any, folder: Path) -> Rule:
    if isinstance(table, Mapping) and table.get("kind") == "ontology":
        return LabelRule(name, read_ontology(table.get("ontology"), folder=folder, name=name), weight_of(name, table))
    return read_rule(name, table, folder)


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


def _measured(tables: Any, quasi: tuple[Rule, ...]) -> dict[str, MeasuredDensity]:
    if not isinstance(tables, Mapping):
        raise PolicyError("[anonymize.density_from_data]: give a table for every column")
    trees = {rule.name: without_unknown(rule.tree) for rule in quasi if isinstance(rule, LabelRule)}
    found = {}
    for name, table in tables.items():
        if name not in trees or isinstance(trees[name], Concepts):
            raise PolicyError(f"[anonymize.density_from_data.{name}]: not a quasi-identifier with a hierarchy")
        classes = table.get("classes") if isinstance(table, Mapping) else None
        if not isinstance(classes, list) or not classes or not all(isinstance(one, Mapping) for one in classes):
            raise PolicyError(f"[anonymize.density_from_data.{name}] classes: list tables with fewer_than and k")
        where = f"[anonymize.density_from_data.{name}] "
        pairs = [(whole_of(one, "fewer_than", where=where), whole_of(one, "k", where=where)) for one in classes]
        level = whole_of(table, "level", where=where) if "level" in table else None
        found[str(name)] = MeasuredDensity(level, tuple(pairs))
    return found


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
