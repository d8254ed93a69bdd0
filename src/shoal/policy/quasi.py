"""The [anonymize.quasi.<column>] tables: what may identify a person together, and how it is generalized."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Names
from shoal.policy.fields import Section
from shoal.policy.hierarchies import HierarchySection
from shoal.policy.method_base import KeyPath, MethodSection, Table
from shoal.policy.tables import ColumnType, StreamSection
from shoal.schema import Categorical, Numeric, Schema

Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_OPEN: Final = ("suffix", "prefix", "geo", "bins", "ip", "hosts")
_WIDEST: Final = {"low": 1 - 2**53, "high": 2**53 - 1}


class QuasiSection(Section):
    """The table of one quasi-identifier."""

    @abstractmethod
    def role(self, name: str, hierarchy: Hierarchy | None) -> Numeric | Categorical:
        """The column for the schema."""

    @abstractmethod
    def column_type(self) -> ColumnType | None:
        """Its type in text files, if it cannot be text."""


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
    """One of a list of values; it is published as a label of its hierarchy."""

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
    """Raise ValueError unless there is a table for each column."""
    if not isinstance(value, dict):
        raise ValueError("must be a table with one entry per column, such as [anonymize.quasi.age]")
    if not value:
        raise ValueError("names no column; name at least one")
    if not all(name.strip() for name in value):
        raise ValueError("must not be empty; name a column")
    return value


class QuasiMethodSection(MethodSection):
    """The table of a method with quasi-identifiers."""

    HIERARCHY_KEYS: ClassVar[dict[str, str]] = {"categorical": "hierarchy"}
    """The key that describes the hierarchy of a column, by the kind of the column."""

    method: str
    quasi: dict[str, Any]
    sensitive: Names = ()

    @classmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        quasi, sensitive = table.get("quasi"), table.get("sensitive")
        # A name twice within sensitive is reported where sensitive is.
        listed = [name for name in (sensitive if isinstance(sensitive, list) else []) if isinstance(name, str)]
        return [
            *((("quasi", name), name) for name in (quasi if isinstance(quasi, Mapping) else {})),
            *((("sensitive",), name) for name in dict.fromkeys(listed)),
        ]

    @classmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        return {
            ("quasi", name, key): own[key]
            for name, own in quasi_tables(table).items()
            for kind, key in cls.HIERARCHY_KEYS.items()
            if own.get("kind") == kind and key in own
        }

    def hierarchy_keys(self) -> dict[str, KeyPath]:
        keys = {name: self.HIERARCHY_KEYS.get(own.kind) for name, own in self.quasi.items()}
        return {name: ("quasi", name, key) for name, key in keys.items() if key is not None}

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        yield from quasi_problems(given)
        yield from super().cross_check(given)

    def column_types(self) -> dict[str, ColumnType]:
        kinds = {name: own.column_type() for name, own in self.quasi.items()}
        return {name: kind for name, kind in kinds.items() if kind is not None}

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Any]) -> dict[str, Any]:
        assert stream.person is not None, "a policy without one is refused"
        schema = Schema(
            person=stream.person, time=stream.time, carry=stream.carry, sensitive=self.sensitive,
            quasi=[own.role(name, hierarchies.get(name)) for name, own in self.quasi.items()],
        )  # fmt: skip
        return {"schema": schema, **{name: getattr(self, name) for name in self.SETTINGS.model_fields}}

    def plain_fields(self) -> dict[str, Any]:
        # The order of quasi-identifiers is that of the published columns: it counts, so they are a list.
        listed = [{"name": name, **own.plain_fields()} for name, own in self.quasi.items()]
        return {**super().plain_fields(), "quasi": listed}


def quasi_tables(table: Table) -> dict[str, Table]:
    """The tables of quasi-identifiers as written; anything else is reported elsewhere."""
    quasi = table.get("quasi")
    if not isinstance(quasi, Mapping):
        return {}
    return {name: own for name, own in quasi.items() if isinstance(own, Mapping)}


def quasi_problems(table: Table) -> Iterator[tuple[KeyPath, str]]:
    """Problems in the tables of quasi-identifiers that pydantic does not find."""
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
    """Problems of low, high and grid, as the schema reports them; `column 'age': low must be …` names its key first."""
    bounds = {key: own.get(key, widest) for key, widest in _WIDEST.items()}
    try:
        Numeric(name, **bounds, grid=own.get("grid"))
    except PolicyError as error:
        for problem in error.problems:
            key, _, text = problem.removeprefix(f"column {name!r}: ").partition(" ")
            if key == "grid" and not text.startswith("must") and not own.keys() >= _WIDEST.keys():
                continue  # whether it is too fine depends on the domain
            yield key.rstrip(":"), text
