"""Parameters of the flexible method, checked; all that is wrong is told at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts, Ontology
from shoal.hierarchies.unknown import concepts_with_unknown, tree_with_unknown, unknown_label
from shoal.methods.schema_arrays import Leaves
from shoal.schema import Categorical, Numeric, Schema

LEAST: Final = 2
_MOST: Final = 2**31 - 1
_MANY: Final = 100
_LARGEST_K: Final = 1_000_000
"""There is a table of K_s by k."""
Density = Mapping[str, Mapping[str, int]]
Unknown = Literal["accept", "refuse"]
"""What happens to a record with a value that its tree or ontology does not list."""


@dataclass(frozen=True, slots=True)
class FlexibleSettings:
    """What was asked for."""

    schema: Schema
    concepts: Mapping[str, Concepts]
    k: int
    sparse: tuple[str, ...] | Literal["auto"]
    threshold: float
    floor: float
    p_sparse: float | None
    k_s: int | None
    window: int
    criteria: int
    density: Density
    root: bool
    compare: bool
    remember: int
    unknown: Unknown = "accept"

    def describe(self) -> dict[str, Any]:
        """The settings as plain values."""
        return {
            "schema": self.schema.describe(),
            "ontology": {name: concepts.to_dict() for name, concepts in sorted(self.concepts.items())},
            "k": self.k, "sparse": self.sparse if self.sparse == "auto" else list(self.sparse),
            "threshold": self.threshold, "floor": self.floor, "p_sparse": self.p_sparse, "k_s": self.k_s,
            "window": self.window, "criteria": self.criteria,
            "density": {name: dict(table) for name, table in self.density.items()},
            "root": self.root, "compare": self.compare, "remember": self.remember, "unknown": self.unknown,
        }  # fmt: skip

    @property
    def crowds(self) -> list[int]:
        """Every k that a record may ask for."""
        return sorted({self.k, *(k for table in self.density.values() for k in table.values())})

    def listed_tree(self, column: str) -> Hierarchy:
        """The hierarchy of a column as it was given."""
        role = next(role for role in self.schema.quasi if role.name == column)
        assert isinstance(role, Categorical)
        assert isinstance(role.hierarchy, Hierarchy)
        return role.hierarchy

    def accepts_unknown(self, column: str) -> bool:
        """Whether values that are not listed are accepted; below a tree of a single label there is no room for them."""
        if self.unknown == "refuse":
            return False
        return column in self.concepts or len(self.listed_tree(column)) > 1

    def unknown_label(self, column: str) -> str | None:
        """The label of values that are not listed; None where they are refused."""
        if not self.accepts_unknown(column):
            return None
        return unknown_label(self.concepts[column] if column in self.concepts else self.listed_tree(column))

    def values_of(self, column: str) -> Sequence[str]:
        """The values of a column in the order of their codes, the label of unlisted values among them."""
        if column in self.concepts:
            return self.concepts_of(column).values
        return list(Leaves(self.tree_of(column)).ranks)

    def unknown_codes(self) -> dict[int, int]:
        """The code of the label of unlisted values, by the number of the quasi-identifier."""
        labels = {a: self.unknown_label(role.name) for a, role in enumerate(self.schema.quasi)
                  if isinstance(role, Categorical)}  # fmt: skip
        return {a: self.values_of(self.schema.quasi[a].name).index(label) for a, label in labels.items()
                if label is not None}  # fmt: skip

    def concepts_of(self, column: str) -> Concepts:
        """The attribute of a column that an ontology describes; its last value stands for those that are not listed."""
        listed = self.concepts[column]
        return concepts_with_unknown(listed) if self.accepts_unknown(column) else listed

    def tree_of(self, column: str) -> Hierarchy:
        """The tree a column is generalized along where it is a normal one."""
        if column in self.concepts:
            return self.concepts_of(column).tree()
        listed = self.listed_tree(column)
        return tree_with_unknown(listed) if self.accepts_unknown(column) else listed


def settings_of(content: Mapping[str, Any]) -> FlexibleSettings:
    """The settings that :meth:`FlexibleSettings.describe` wrote."""
    given = dict(content)
    schema, described = given.pop("schema"), given.pop("ontology")
    concepts = {name: Concepts.from_dict(one) for name, one in described.items()}
    return check_flexible_settings(_schema_of(schema), concepts, **given)


def _schema_of(content: Mapping[str, Any]) -> Schema:
    quasi: list[Numeric | Categorical] = []
    for role in content["quasi"]:
        own = {name: value for name, value in role.items() if name != "kind"}
        if role["kind"] == "categorical":
            own["hierarchy"] = Hierarchy.from_dict(role["hierarchy"]) if role["hierarchy"] else None
        quasi.append(Numeric(**own) if role["kind"] == "numeric" else Categorical(**own))
    return Schema(**{**content, "quasi": quasi})


def check_flexible_settings(schema: Schema, ontology: Any, **given: Any) -> FlexibleSettings:
    """Check all parameters; raise PolicyError with everything that is wrong."""
    problems: list[str] = []
    if not isinstance(schema, Schema):
        raise PolicyError("schema: must be a shoal.Schema")
    concepts = _concepts(schema, ontology, problems)
    problems += _number_problems(given)
    sparse = _sparse(schema, given["sparse"], problems)
    density = _density(schema, concepts, given, problems)
    if problems:
        raise PolicyError(problems)
    return FlexibleSettings(schema, concepts, **{**given, "sparse": sparse, "density": density})


def _concepts(schema: Schema, ontology: Any, problems: list[str]) -> dict[str, Concepts]:
    """The attribute of the ontology for each column that has no hierarchy of its own."""
    columns = [role.name for role in schema.quasi if isinstance(role, Categorical) and role.hierarchy is None]
    found: dict[str, Concepts] = {}
    for column in columns:
        concepts = _attribute(ontology, column)
        if concepts is None:
            problems.append(
                f"column {column!r}: has neither a hierarchy nor an attribute of the ontology; give it a hierarchy, or "
                "name the attribute as the column"
            )
        else:
            found[column] = concepts
    unused = sorted(set(ontology) - set(columns)) if isinstance(ontology, Mapping) else []
    problems += [f"ontology: there is no categorical column {name!r} without a hierarchy" for name in unused]
    if not columns and isinstance(ontology, Ontology):
        problems.append("ontology: no column uses it; name one as shoal.Categorical without a hierarchy")
    return found


def _attribute(ontology: Any, column: str) -> Concepts | None:
    given = ontology.get(column) if isinstance(ontology, Mapping) else ontology
    if isinstance(given, Concepts):
        return given
    if not isinstance(given, Ontology):
        return None
    if column in given.attributes:
        return given.attribute(column)
    return next(iter(given.attributes.values())) if len(given.attributes) == 1 else None


def _number_problems(given: Mapping[str, Any]) -> list[str]:
    found = [
        f"{name}: must be a whole number from {least:,} to {most:,}"
        for name, least, most in (
            ("k", LEAST, _LARGEST_K),
            ("window", 1, _MOST),
            ("remember", 1, _MOST),
            ("criteria", 1, _MANY),
        )
        if not _is_whole(given[name], least, most)
    ]
    most = given["k"] if _is_whole(given["k"], LEAST, _LARGEST_K) else _MOST
    if given["k_s"] is not None and not _is_whole(given["k_s"], LEAST, most):
        found.append("k_s: must be a whole number from 2 to k")
    for name in ("threshold", "floor", "p_sparse"):
        if given[name] is not None and not _is_share(given[name]):
            found.append(f"{name}: must be a number from 0 to 1")
    if given["p_sparse"] is not None and given["k_s"] is not None:
        found.append("p_sparse: k_s is given, so this is not needed; leave one of them out")
    if given["unknown"] not in ("accept", "refuse"):
        found.append('unknown: must be "accept" or "refuse"')
    found += [f"{name}: must be true or false" for name in ("root", "compare") if not isinstance(given[name], bool)]
    return found


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _sparse(schema: Schema, given: Any, problems: list[str]) -> tuple[str, ...] | Literal["auto"]:
    if given == "auto":
        return "auto"
    listed = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else (given,)
    known = {role.name for role in schema.quasi if isinstance(role, Categorical)}
    for name in listed:
        if name not in known:
            problems.append('sparse: must be "auto" or names of categorical quasi-identifiers')
            break
    in_order = tuple(role.name for role in schema.quasi if role.name in listed)
    if len(in_order) == len(schema.quasi) and not problems:
        problems.append("sparse: leaves no normal quasi-identifier; at least one must be left")
    return in_order


def _density(
    schema: Schema, concepts: Mapping[str, Concepts], settings: Mapping[str, Any], problems: list[str]
) -> Density:
    given = settings["density"]
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        problems.append("density: must be a table of columns, each with a table from a label of its tree to its k")
        return {}
    trees = {name: one.tree() for name, one in concepts.items() if name in given}
    trees |= {
        role.name: role.hierarchy for role in schema.quasi
        if isinstance(role, Categorical) and isinstance(role.hierarchy, Hierarchy)
    }  # fmt: skip
    if settings["unknown"] == "accept":
        trees = {name: tree_with_unknown(tree) for name, tree in trees.items()}
    for column, table in given.items():
        if column not in trees or not isinstance(table, Mapping):
            problems.append(f"density: {column!r} must be a categorical quasi-identifier with a table of labels")
            continue
        problems += [f"density: column {column!r} has no label {label!r} in its tree" for label in table
                     if label not in trees[column]]  # fmt: skip
        if not all(_is_whole(k, LEAST, _LARGEST_K) for k in table.values()):
            words = f"every k must be a whole number from {LEAST} to {_LARGEST_K:,}"
            problems.append(f"density: column {column!r}: {words}")
    return {column: dict(table) for column, table in given.items() if isinstance(table, Mapping)}
