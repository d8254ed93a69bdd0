"""The [anonymize] table of flexible k-anonymity: no row is dropped, sparse values share a common criterion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Concepts
from shoal.methods.flexible.settings import FlexibleSettings
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Names
from shoal.policy.hierarchies import OntologySection
from shoal.policy.method_base import KeyPath, Table
from shoal.policy.quasi import (
    CategoricalSection,
    NumericSection,
    QuasiMethodSection,
    QuasiSection,
    Weight,
    quasi_tables,
    require_tables,
)
from shoal.policy.tables import StreamSection
from shoal.schema import Categorical


class OntologyColumn(QuasiSection):
    """A value of an ontology; it is published as itself, its class, or another of its properties."""

    kind: Literal["ontology"]
    ontology: OntologySection = Field(description="describe the ontology of its values")
    weight: Weight = 1.0

    def role(self, name: str, hierarchy: Hierarchy | None = None) -> Categorical:
        return Categorical(name, weight=self.weight)

    def column_type(self) -> None:
        return None

    def plain_fields(self) -> dict[str, Any]:
        # The content of an ontology counts, which the policy adds, not its description.
        return {name: value for name, value in super().plain_fields().items() if name != "ontology"}


Quasi = Annotated[NumericSection | CategoricalSection | OntologyColumn, Field(discriminator="kind")]


class FlexibleSection(QuasiMethodSection, FlexibleSettings):
    """What a policy file adds to the settings of flexible k-anonymity: the quasi-identifiers."""

    ADVICE: ClassVar[str] = "choose a smaller k, fewer quasi-identifiers, or wait for more people"
    HIERARCHY_KEYS: ClassVar[dict[str, str]] = {"categorical": "hierarchy", "ontology": "ontology"}

    quasi: Annotated[dict[str, Quasi], BeforeValidator(require_tables)] = Field(
        description="add a table [anonymize.quasi.<column>] for each quasi-identifier"
    )
    sensitive: Names = Field((), description="Columns published unchanged.")
    compare: bool = Field(default=True, description=FlexibleSettings.model_fields["compare"].description)

    @property
    def runs_on_time(self) -> bool:
        return False

    @classmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        return []

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        yield from super().cross_check(given)
        yield from _column_problems(given)

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Any]) -> dict[str, Any]:
        concepts = {name: found for name, found in hierarchies.items() if isinstance(found, Concepts)}
        found = {**super().parameters(stream, hierarchies), "ontology": concepts}
        return {**found, "density_from_data": self._measured_density()}

    def plain_fields(self) -> dict[str, Any]:
        fields, measured = super().plain_fields(), self._measured_density()
        # A key left out does not count, so that checkpoints made before the key existed stay valid.
        del fields["density_from_data"]
        return {**fields, "density_from_data": measured} if measured else fields

    def _measured_density(self) -> dict[str, Any]:
        return {column: rule.to_header() for column, rule in self.density_from_data.items()}


def _column_problems(table: Table) -> Iterator[Problem]:
    """Columns that sparse, density and density_from_data name must be quasi-identifiers with labels."""
    labelled = [name for name, own in quasi_tables(table).items() if own.get("kind") in ("categorical", "ontology")]
    sparse = table.get("sparse", "auto")
    named = [sparse] if isinstance(sparse, str) else sparse if isinstance(sparse, list) else []
    for name in named:
        if name != "auto" and isinstance(name, str) and name not in labelled:
            yield (
                ("sparse",),
                f'"{name}" is not a quasi-identifier with a hierarchy or an ontology; name one that is',
            )
    if isinstance(sparse, list) and set(quasi_tables(table)) <= set(named):
        yield ("sparse",), "leaves no normal quasi-identifier; at least one must be left"
    density = table.get("density")
    for name in density if isinstance(density, Mapping) else ():
        if name not in labelled:
            yield (
                ("density", name),
                "is not a quasi-identifier with a hierarchy or an ontology; name one that is",
            )
    with_tree = [name for name, own in quasi_tables(table).items() if own.get("kind") == "categorical"]
    measured = table.get("density_from_data")
    for name in measured if isinstance(measured, Mapping) else ():
        if name not in with_tree:
            yield ("density_from_data", name), "is not a quasi-identifier with a hierarchy; name one that is"
