"""The parameters of the flexible method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationInfo

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts, Ontology
from shoal.hierarchies.unknown import concepts_with_unknown, tree_with_unknown, unknown_label
from shoal.methods.schema_arrays import Leaves
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Count, Given, Names, SchemaSettings, Settings, Share, is_whole, require, schema_from
from shoal.schema import Categorical, Schema

LEAST: Final = 2
_LARGEST_K: Final = 1_000_000
"""There is a table of K_s by k."""
Crowd = Annotated[int, Field(ge=LEAST, le=_LARGEST_K)]
Density = Mapping[str, Mapping[str, int]]
Unknown = Literal["accept", "refuse"]
"""What happens to a record with a value that its tree or ontology does not list."""


def _sparse(value: object, info: ValidationInfo) -> object:
    if value == "auto":
        return value
    listed = list(value) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(name, str) and name.strip() for name in listed) or len(set(listed)) < len(listed):
        raise ValueError('must be "auto" or different names of columns')
    schema = (info.context or {}).get("schema")
    in_order = [role.name for role in schema.quasi if role.name in listed] if isinstance(schema, Schema) else listed
    return tuple(in_order)


class CellClass(Settings):
    """Cells with few people, and the k that their records need."""

    fewer_than: Count = Field(description="people of a cell in the first window")
    k: Crowd = Field(description="people that its records need")


class CellClasses(Settings):
    """How the cells of a column fall into classes by the people who were there."""

    level: Count | None = Field(
        None, description="Cells are the labels this many levels below the root; without it, the values."
    )
    classes: list[CellClass] = Field(description="list classes such as {fewer_than = 50, k = 10}")


class FlexibleSettings(SchemaSettings):
    """The settings of flexible k-anonymity."""

    k: Crowd = Field(6, description="People among whom a row hides by its normal quasi-identifiers.")
    sparse: Annotated[Literal["auto"] | Names, BeforeValidator(_sparse)] = Field(
        "auto",
        description='Names of the sparse quasi-identifiers; `"auto"` takes those tagged sparse in the ontology; where '
        "it does not say, those whose values too few people have in a share of at least `threshold` of the records.",
    )
    threshold: Share = Field(0.1, description="See `sparse`.")
    floor: Share = Field(0.05, description="K_s is `k` where P(s) is below this.")
    p_sparse: Share | None = Field(
        None,
        description="P(s), the share of records whose sparse value fewer than `k` people have; by default measured in "
        "the first `window` records and then fixed. K_s is P(s) times `k`, rounded up, at least 2.",
    )
    k_s: Crowd | None = Field(
        None,
        description="K_s itself, instead of `p_sparse`; at most `k`. Where `density` gives a smaller K, that K counts.",
    )
    window: Count = Field(10_000, description="Groups are formed among pending records each time this many arrived.")
    criteria: Annotated[int, Field(ge=1, le=100)] = Field(
        1, description="Without effect: the labels of a block are chosen together, at the least loss. Still accepted."
    )
    density: dict[str, dict[str, Crowd]] = Field(
        default_factory=dict, description="Another `k` by place: a table of labels and their k for each column."
    )
    density_from_data: dict[str, CellClasses] = Field(
        default_factory=dict,
        description="A larger `k` where few people are: for each column `level` and `classes`; people per cell are "
        "counted in the first `window` records and then fixed.",
    )
    root: bool = Field(
        default=False, description="Whether a root label, or the whole domain of a number, may be published."
    )
    compare: bool = Field(default=False, description="Whether `shoal doctor` compares with least-loss.")
    remember: Count = Field(1_000_000, description="Published groups that are remembered, so that rows may join them.")
    unknown: Unknown = Field(
        "accept",
        description='Values that the hierarchy or ontology does not list: `"accept"` publishes them as the label '
        '`unknown`, `"refuse"` sends the record to the dead letters.',
    )

    _concepts: Mapping[str, Concepts] = PrivateAttr(default_factory=dict)

    def model_post_init(self, context: Any) -> None:
        """Keep the schema and the ontology that the settings were checked with."""
        super().model_post_init(context)
        self._concepts = (context or {}).get("concepts", {})

    @classmethod
    def for_ontology(cls, schema: object, ontology: Any, given: Given) -> Self:
        """The settings for these columns; raises one PolicyError that lists everything that is wrong."""
        if not isinstance(schema, Schema):
            return cls.for_schema(schema, given)
        concepts, problems = _concepts(schema, ontology)
        named = {name: value for name, value in given.items() if value is not None}
        settings, found = cls.read(named, {"schema": schema, "concepts": concepts})
        problems += [*found, *_sparse_problems(schema, named), *_density_problems(schema, concepts, named)]
        return require(settings, problems)

    @classmethod
    def cross_check(cls, given: Given) -> Iterator[Problem]:
        k, k_s = given.get("k", 6), given.get("k_s")
        if isinstance(k, int) and isinstance(k_s, int) and k_s > k:
            yield ("k_s",), f"must be at most k, which is {k:,}"
        if "k_s" in given and "p_sparse" in given:
            yield ("p_sparse",), "k_s is given, so this is not needed; leave one of them out"
        yield from _class_problems(given)

    def warnings(self) -> list[str]:
        found = []
        if self.k_s == LEAST or (self.k_s is None and self.p_sparse is not None and self.p_sparse * self.k <= LEAST):
            found.append(
                "K_s is 2: anyone who knows a person's sparse value finds one of two people; choose a larger k_s"
            )
        if self.criteria != 1:
            found.append("criteria has no effect: the labels of a block are chosen together; remove it")
        if self.root:
            found.append("root = true: rows may be published with labels that say nothing")
        return found

    def to_header(self) -> dict[str, Any]:
        described = {name: concepts.to_dict() for name, concepts in sorted(self.concepts.items())}
        plain = super().to_header()
        return {"schema": plain.pop("schema"), "ontology": described, **plain}

    @classmethod
    def from_header(cls, header: Given) -> Self:
        given = {name: value for name, value in header.items() if name not in ("schema", "ontology")}
        concepts = {name: Concepts.from_dict(one) for name, one in header["ontology"].items()}
        return cls.for_ontology(schema_from(header["schema"]), concepts, given)

    def describe(self) -> dict[str, Any]:
        """What is promised, in plain values, for the guarantee."""
        return self.to_header()

    # ---- what the parameters mean

    @property
    def concepts(self) -> Mapping[str, Concepts]:
        """The attribute of the ontology for each column without a hierarchy of its own."""
        return self._concepts

    @property
    def crowds(self) -> list[int]:
        """Every k that a record may need."""
        listed = (k for table in self.density.values() for k in table.values())
        return sorted({self.k, *listed, *(one.k for rule in self.density_from_data.values() for one in rule.classes)})

    def listed_tree(self, column: str) -> Hierarchy:
        """The hierarchy of a column as it was given."""
        role = next(role for role in self.schema.quasi if role.name == column)
        assert isinstance(role, Categorical)
        assert isinstance(role.hierarchy, Hierarchy)
        return role.hierarchy

    def accepts_unknown(self, column: str) -> bool:
        """Whether values that are not listed are accepted; a tree of a single label has no room for them."""
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


def _concepts(schema: Schema, ontology: Any) -> tuple[dict[str, Concepts], list[Problem]]:
    """The attribute of the ontology for each column that has no hierarchy of its own, and what is wrong."""
    columns = [role.name for role in schema.quasi if isinstance(role, Categorical) and role.hierarchy is None]
    attributes = {column: _attribute(ontology, column) for column in columns}
    problems: list[Problem] = [
        (
            (f"column {column!r}",),
            "has neither a hierarchy nor an attribute of the ontology; give it a hierarchy, or name the attribute as "
            "the column",
        )
        for column, concepts in attributes.items()
        if concepts is None
    ]
    unused = sorted(set(ontology) - set(columns)) if isinstance(ontology, Mapping) else []
    problems += [(("ontology",), f"there is no categorical column {name!r} without a hierarchy") for name in unused]
    if not columns and isinstance(ontology, Ontology):
        problems.append((("ontology",), "no column uses it; name one as shoal.Categorical without a hierarchy"))
    return {column: concepts for column, concepts in attributes.items() if concepts is not None}, problems


def _attribute(ontology: Any, column: str) -> Concepts | None:
    given = ontology.get(column) if isinstance(ontology, Mapping) else ontology
    if isinstance(given, Concepts):
        return given
    if not isinstance(given, Ontology):
        return None
    if column in given.attributes:
        return given.attribute(column)
    return next(iter(given.attributes.values())) if len(given.attributes) == 1 else None


def _sparse_problems(schema: Schema, given: Given) -> Iterator[Problem]:
    sparse = given.get("sparse", "auto")
    if sparse == "auto":
        return
    listed = sparse if isinstance(sparse, list | tuple) else [sparse]
    known = {role.name for role in schema.quasi if isinstance(role, Categorical)}
    if not all(isinstance(name, str) and name in known for name in listed):
        yield ("sparse",), 'must be "auto" or names of categorical quasi-identifiers'
    elif {role.name for role in schema.quasi} <= set(listed):
        yield ("sparse",), "leaves no normal quasi-identifier; at least one must be left"


def _density_problems(schema: Schema, concepts: Mapping[str, Concepts], given: Given) -> Iterator[Problem]:
    density = given.get("density")
    trees: dict[str, Hierarchy] = {name: one.tree() for name, one in concepts.items()}
    trees |= {
        role.name: role.hierarchy for role in schema.quasi
        if isinstance(role, Categorical) and isinstance(role.hierarchy, Hierarchy)
    }  # fmt: skip
    for column, table in density.items() if isinstance(density, Mapping) else ():
        if column not in trees:
            yield ("density",), f"{column!r} must be a categorical quasi-identifier"
        elif isinstance(table, Mapping):
            accepts = given.get("unknown", "accept") == "accept"
            tree = tree_with_unknown(trees[column]) if accepts else trees[column]
            for label in table:
                if label not in tree:
                    yield ("density",), f"column {column!r} has no label {label!r} in its tree"
    measured = given.get("density_from_data")
    for column, rule in measured.items() if isinstance(measured, Mapping) else ():
        if column not in trees or column in concepts:
            yield ("density_from_data",), f"{column!r} must be a categorical quasi-identifier with a hierarchy"
        elif isinstance(rule, Mapping) and isinstance(level := rule.get("level"), int):
            depth = int(trees[column].depths.max())
            if level > depth:
                where = ("density_from_data", column, "level")
                yield where, f"must be at most {depth}, the levels of this column's tree below its root"


def _class_problems(given: Given) -> Iterator[Problem]:
    """Classes rise in people and fall in k; fake people in the first window cannot lower it below `k`."""
    measured, table = given.get("density_from_data"), given.get("density")
    for column, rule in measured.items() if isinstance(measured, Mapping) else ():
        if isinstance(table, Mapping) and column in table:
            yield ("density_from_data", column), "density has a table for this column too; leave one of them out"
        classes = rule.get("classes") if isinstance(rule, Mapping) else None
        if not isinstance(classes, list):
            continue
        where = ("density_from_data", column, "classes")
        if not classes:
            yield where, "must have at least one class, such as {fewer_than = 50, k = 10}"
        read: list[tuple[Any, Any]] = [
            (one.get("fewer_than"), one.get("k")) for one in classes if isinstance(one, Mapping)
        ]
        if len(read) < len(classes) or not all(is_whole(people) and is_whole(k) for people, k in read):
            continue
        if any(people >= more or k <= fewer for (people, k), (more, fewer) in pairwise(read)):
            yield where, "must be in order: fewer_than rises and k falls from one class to the next"
        least = given.get("k", FlexibleSettings.model_fields["k"].default)
        if is_whole(least) and any(k <= least for _, k in read):
            yield where, f"k of a class must be above k, which is {least:,}: k is for cells with the most people"
