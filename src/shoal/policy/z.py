"""The [anonymize] table of z-anonymity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field

from shoal.hierarchies import Hierarchy
from shoal.methods.setting_problems import Problem
from shoal.methods.settings import Count, Crowd, PositiveShare
from shoal.methods.z.setting_checks import own_tables
from shoal.methods.z.settings import ZColumnSettings, ZRule, ZSettings, attribute_tables
from shoal.models.z.target.target import KTarget
from shoal.policy.fields import FilePlace, Section
from shoal.policy.hierarchies import HierarchySection
from shoal.policy.method_base import NO_TIME, KeyPath, MethodSection, Table
from shoal.policy.tables import StreamSection

_FOLLOWS: Final = (
    "z adapts to the stream and publishes nothing before a window and an epoch have passed; a sample may be too short, "
    "and a target can learn from an earlier file: target.learn"
)
_LEARNS: Final = "z adapts to the stream and publishes nothing in the first window; a sample may be too short"


class ZColumnSection(Section, ZColumnSettings):
    """The settings of one attribute that differ from the rest."""

    hierarchy: HierarchySection | None = None

    def plain_fields(self) -> dict[str, Any]:
        fields = super().plain_fields()
        return {name: value for name, value in fields.items() if name != "residual" or value is not None}


class ZTargetSection(Section):
    """The target of an adaptive z."""

    k: Crowd = Field(description="give how many people must share all released values of a person in an epoch")
    p: PositiveShare = Field(description="give the share of released people for which this must hold, such as 0.95")
    floor: Count | None = None
    start: Count | None = None
    learn: FilePlace | None = None

    def made(self) -> KTarget:
        """The target as an object."""
        return KTarget(k=self.k, p=self.p, floor=self.floor, start=self.start, learn=self.learn is not None)

    def plain_fields(self) -> dict[str, Any]:
        fields = super().plain_fields()
        return {name: value for name, value in fields.items() if name != "learn" or value is not None}

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        least = [value for key in ("k", "floor") if isinstance(value := given.get(key), int)]
        start = given.get("start")
        if isinstance(start, int) and least and start < max(least):
            yield ("start",), f"must be at least {max(least)}, as z is"


class ZAnonymitySection(MethodSection, ZSettings):
    """What a policy file adds to the settings of z-anonymity: descriptions of hierarchies and of the target."""

    ADVICE: ClassVar[str] = "choose a smaller z, a longer window or a hierarchy"
    PUBLISHES_PSEUDONYMS: ClassVar[bool] = True
    PUBLISHES_TIME: ClassVar[bool] = True
    SORTS_ROWS: ClassVar[bool] = True
    KEEPS_MOST: ClassVar[bool] = False

    method: str
    attribute: Annotated[dict[str, ZColumnSection], BeforeValidator(attribute_tables)] = Field(
        description=ZSettings.model_fields["attribute"].description
    )
    hierarchy: HierarchySection | None = Field(None, description=ZSettings.model_fields["hierarchy"].description)
    target: ZTargetSection | None = Field(None, description=ZSettings.model_fields["target"].description)

    @property
    def k_target(self) -> KTarget | None:
        return None if self.target is None else self.target.made()

    @classmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        return [(("attribute",), name) for name in own_tables(table)]

    @classmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        places: dict[KeyPath, Table] = {
            ("attribute", name, "hierarchy"): own for name, own in own_tables(table).items()
        }
        places[("hierarchy",)] = table
        return {place: holder["hierarchy"] for place, holder in places.items() if "hierarchy" in holder}

    @classmethod
    def input_files(cls, table: Table) -> dict[KeyPath, Any]:
        target = table.get("target")
        return {("target", "learn"): target.get("learn")} if isinstance(target, Mapping) else {}

    def hierarchy_keys(self) -> dict[str, KeyPath]:
        return {
            name: ("attribute", name, "hierarchy") if self.attribute[name].hierarchy else ("hierarchy",)
            for name, column in self.columns.items()
            if column.on_private == "generalize"
        }

    @classmethod
    def stream_problems(cls, table: Table, stream: Table) -> list[tuple[str, KeyPath, str]]:
        return [] if "time" in stream else [("stream", ("time",), NO_TIME)]

    @property
    def runs_on_time(self) -> bool:
        return True

    def parameters(self, stream: StreamSection, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
        columns = {"person": stream.person, "time": stream.time, "carry": stream.carry}
        return {**columns, **self._own_parameters(hierarchies)}

    def _own_parameters(self, hierarchies: Mapping[str, Hierarchy]) -> dict[str, Any]:
        timing: dict[str, Any] = {
            "lateness": self.lateness.given,
            "max_gap": self.max_gap.given,
            "rotation": self.rotation.given if self.rotation else None,
        }
        if self.target is not None:
            timing |= {"target": self.k_target}
        if self.combine is not None:
            timing |= {"combine": self.combine, "k": self.k}
        tables = {name: _column_parameters(column, hierarchies.get(name)) for name, column in self.columns.items()}
        if self.target is not None:
            tables = {name: {key: own[key] for key in own if key != "z"} for name, own in tables.items()}
        if self.is_table:
            return {"attribute": tables, **timing}
        (name, settings), *_ = tables.items()
        return {"attribute": name, **settings, **timing}

    @classmethod
    def cross_check(cls, given: Table) -> Iterator[Problem]:
        yield from super().cross_check(given)
        if isinstance(given.get("target"), Mapping):
            yield from ((("target", *key), text) for key, text in ZTargetSection.cross_check(given["target"]))

    def plain_fields(self) -> dict[str, Any]:
        # A policy that does not ask for a newer option is the one it was before: its checkpoints go on.
        fields = super().plain_fields()
        if not self.hierarchy_keys():
            del fields["residual"]
        return {name: value for name, value in fields.items() if name not in ("combine", "k") or value is not None}

    @property
    def advice(self) -> str:
        if self.target is None:
            return self.ADVICE
        return _LEARNS if self.target.learn is not None else _FOLLOWS

    @property
    def withheld(self) -> str:
        return "too few people have the same value within the window"


def _column_parameters(column: ZRule, hierarchy: Hierarchy | None) -> dict[str, Any]:
    plain = {"z": column.z, "window": column.window.given, "on_private": column.on_private}
    return {**plain, "hierarchy": hierarchy, "residual": column.residual} if hierarchy is not None else plain
