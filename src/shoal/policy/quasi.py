"""The [anonymize.quasi.<column>] tables: what may help to find a person, and how it is generalized."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.policy.fields import Section
from shoal.policy.hierarchies import HierarchySection
from shoal.policy.method_base import ColumnType, KeyPath, Table
from shoal.schema import Categorical, Numeric

Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_OPEN: Final = ("suffix", "prefix")
_WIDEST: Final = {"low": 1 - 2**53, "high": 2**53 - 1}


class QuasiSection(Section):
    """The table of one quasi-identifier."""

    @abstractmethod
    def role(self, name: str, hierarchy: Hierarchy | None) -> Numeric | Categorical:
        """The column as the schema has it."""

    @abstractmethod
    def column_type(self) -> ColumnType | None:
        """Its type in text files, where text would not do."""


class NumericSection(QuasiSection):
    """A number or a moment; it is published as a range."""

    kind: Literal["numeric"]
    low: Any = Field(description="give the smallest value there can be")
    high: Any = Field(description="give the largest value there can be")
    weight: Weight = 1.0
    grid: Any = None
    outside: Literal["refuse", "clamp"] = "refuse"

    def role(self, name: str, hierarchy: Hierarchy | None = None) -> Numeric:
        return Numeric(name, low=self.low, high=self.high, weight=self.weight, grid=self.grid, outside=self.outside)

    def column_type(self) -> ColumnType:
        return "timestamp" if isinstance(self.low, str | date) else "float64"

    def plain_fields(self) -> dict[str, Any]:
        made = self.role("column")
        numbers = {"low": float(made.low), "high": float(made.high), "grid": made.grid and float(made.grid)}
        return {**super().plain_fields(), **numbers}


class CategoricalSection(QuasiSection):
    """A value of a list; it is published as a label of its hierarchy."""

    kind: Literal["categorical"]
    hierarchy: HierarchySection = Field(description="describe the tree of its values")
    weight: Weight = 1.0

    def role(self, name: str, hierarchy: Hierarchy | None) -> Categorical:
        assert hierarchy is not None, "every categorical column has one"
        return Categorical(name, hierarchy, weight=self.weight)

    def column_type(self) -> None:
        return None

    def plain_fields(self) -> dict[str, Any]:
        # The content of a hierarchy counts, which the policy adds, not its description.
        return {name: value for name, value in super().plain_fields().items() if name != "hierarchy"}


def require_tables(value: object) -> object:
    """Raise ValueError unless there is a table a column."""
    if not isinstance(value, dict):
        raise ValueError("must be a table with one entry a column, such as [anonymize.quasi.age]")
    if not value:
        raise ValueError("names no column; name at least one")
    if not all(name.strip() for name in value):
        raise ValueError("must not be empty; name a column")
    return value


QuasiSections = Annotated[
    dict[str, Annotated[NumericSection | CategoricalSection, Field(discriminator="kind")]],
    BeforeValidator(require_tables),
]


def quasi_tables(table: Table) -> dict[str, Table]:
    """Quasi-identifiers as written; what is not a table is reported elsewhere."""
    quasi = table.get("quasi")
    if not isinstance(quasi, Mapping):
        return {}
    return {name: own for name, own in quasi.items() if isinstance(own, Mapping)}


def quasi_columns(table: Table) -> list[tuple[KeyPath, str]]:
    """Columns that a method on tuples gives a role to, each with the path of its key."""
    quasi, sensitive = table.get("quasi"), table.get("sensitive")
    # A name twice within sensitive is reported where sensitive is.
    listed = [name for name in (sensitive if isinstance(sensitive, list) else []) if isinstance(name, str)]
    return [
        *((("quasi", name), name) for name in (quasi if isinstance(quasi, Mapping) else {})),
        *((("sensitive",), name) for name in dict.fromkeys(listed)),
    ]


def quasi_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """What is wrong within the tables of quasi-identifiers, as far as their models cannot see it."""
    for name, own in quasi_tables(table).items():
        if not name.strip():
            continue
        place = ("quasi", name)
        if own.get("kind") == "numeric":
            yield from (((*place, key), text) for key, text in _domain_problems(name, own))
        described = own.get("hierarchy")
        if own.get("kind") == "categorical" and isinstance(described, Mapping) and described.get("kind") in _OPEN:
            yield (
                (*place, "hierarchy", "kind"),
                f'"{described["kind"]}" does not list its values, so losses in it cannot be measured; '
                'use "csv", "nested" or "flat"',
            )


def _domain_problems(name: str, own: Table) -> Iterator[tuple[str, str]]:
    """What the schema says against low, high and grid; `column 'age': low must be …` names its key first."""
    bounds = {key: own.get(key, widest) for key, widest in _WIDEST.items()}
    try:
        Numeric(name, **bounds, grid=own.get("grid"))
    except PolicyError as error:
        for problem in error.problems:
            key, _, text = problem.removeprefix(f"column {name!r}: ").partition(" ")
            if key == "grid" and not text.startswith("must") and not own.keys() >= _WIDEST.keys():
                continue  # whether it is too fine depends on the domain
            yield key.rstrip(":"), text
