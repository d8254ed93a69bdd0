"""The [anonymize] table of z-anonymity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from shoal.hierarchies import Hierarchy
from shoal.methods.settings import AnyDuration, Duration, PositiveDuration
from shoal.models.z.target import KTarget
from shoal.policy.fields import Section
from shoal.policy.hierarchies import HierarchySection
from shoal.policy.method_base import NO_TIME, KeyPath, MethodSection, Table
from shoal.policy.stream import StreamSection

OnPrivate = Literal["drop", "blank", "generalize"]
Crowd = Annotated[int, Field(ge=1, le=2**31 - 1)]
Company = Annotated[int, Field(ge=2, le=2**31 - 1)]


@dataclass(frozen=True, slots=True)
class ZColumn:
    """What holds for one attribute after the defaults are filled in."""

    name: str
    z: int
    window: Duration
    on_private: OnPrivate

    def settings(self, hierarchy: Hierarchy | None) -> dict[str, Any]:
        """Keyword arguments for this column."""
        plain = {"z": self.z, "window": self.window.given, "on_private": self.on_private}
        return {**plain, "hierarchy": hierarchy} if hierarchy is not None else plain


class ZColumnSection(Section):
    """What one attribute does differently from the rest."""

    z: Crowd | None = None
    window: PositiveDuration | None = None
    on_private: OnPrivate | None = None
    hierarchy: HierarchySection | None = None


def _attribute_tables(value: object) -> object:
    if isinstance(value, str):
        value = {value: {}}
    if not isinstance(value, dict):
        raise ValueError("must be the name of a column, or a table with one entry a column")
    if not value:
        raise ValueError("names no column; name at least one")
    if not all(name.strip() for name in value):
        raise ValueError("must not be empty; name a column")
    return value


class ZTargetSection(Section):
    """What z follows the stream for."""

    k: Company = Field(description="give how many people must share all that is released of a person in an epoch")
    p: Annotated[float, Field(gt=0, le=1)] = Field(
        description="give the share of people shown that this is to hold for, such as 0.95"
    )
    floor: Crowd | None = None
    start: Crowd | None = None

    def made(self) -> KTarget:
        """The target itself."""
        return KTarget(k=self.k, p=self.p, floor=self.floor, start=self.start)

    @classmethod
    def cross_check(cls, table: Table) -> list[tuple[KeyPath, str]]:
        least = [value for key in ("k", "floor") if isinstance(value := table.get(key), int)]
        start = table.get("start")
        if isinstance(start, int) and least and start < max(least):
            return [(("start",), f"must be at least {max(least)}, as z is")]
        return []


class ZAnonymitySection(MethodSection):
    """z-anonymity: an attribute leaves when z people had it within the window."""

    METHOD: ClassVar[str] = "z-anonymity"
    ADVICE: ClassVar[str] = "choose a smaller z, a longer window or a hierarchy"
    PUBLISHES_PSEUDONYMS: ClassVar[bool] = True
    PUBLISHES_TIME: ClassVar[bool] = True
    SORTS_ROWS: ClassVar[bool] = True

    method: Literal["z-anonymity"]
    attribute: Annotated[dict[str, ZColumnSection], BeforeValidator(_attribute_tables)] = Field(
        description="name the column that is published only where enough people share its value"
    )
    z: Crowd | None = None
    window: PositiveDuration | None = None
    on_private: OnPrivate = "drop"
    hierarchy: HierarchySection | None = None
    lateness: AnyDuration = Duration("0s")
    max_gap: PositiveDuration = Duration("24h")
    rotation: PositiveDuration | None = None
    target: ZTargetSection | None = None
    combine: Literal["k"] | None = None
    k: Company | None = None

    _is_table: bool = PrivateAttr(default=False)

    @model_validator(mode="wrap")
    @classmethod
    def _remember_form(cls, table: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(table)
        made._is_table = isinstance(table, Mapping) and isinstance(table.get("attribute"), Mapping)  # noqa: SLF001
        return made

    @property
    def is_table(self) -> bool:
        """Whether the policy gives the attributes as a table, even if of one column."""
        return self._is_table

    @property
    def columns(self) -> dict[str, ZColumn]:
        """Every attribute with what holds for it."""
        return {name: self._column(name, own) for name, own in self.attribute.items()}

    def _column(self, name: str, own: ZColumnSection) -> ZColumn:
        z, window = own.z or self.z, own.window or self.window
        if z is None and self.target is not None:
            z = self.target.made().least
        assert z is not None, "cross_check asks for z"
        assert window is not None, "cross_check asks for window"
        return ZColumn(name, z, window, own.on_private or self.on_private)

    @classmethod
    def named_columns(cls, table: Table) -> list[tuple[KeyPath, str]]:
        return [(("attribute",), name) for name in _own_tables(table)]

    @classmethod
    def hierarchy_tables(cls, table: Table) -> dict[KeyPath, Any]:
        places: dict[KeyPath, Table] = {
            ("attribute", name, "hierarchy"): own for name, own in _own_tables(table).items()
        }
        places[("hierarchy",)] = table
        return {place: holder["hierarchy"] for place, holder in places.items() if "hierarchy" in holder}

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
            timing |= {"target": self.target.made()}
        if self.combine is not None:
            timing |= {"combine": self.combine, "k": self.k}
        tables = {name: column.settings(hierarchies.get(name)) for name, column in self.columns.items()}
        if self.target is not None:
            tables = {name: {key: own[key] for key in own if key != "z"} for name, own in tables.items()}
        if self.is_table:
            return {"attribute": tables, **timing}
        (name, settings), *_ = tables.items()
        return {"attribute": name, **settings, **timing}

    @classmethod
    def cross_check(cls, table: Table) -> list[tuple[KeyPath, str]]:
        own_tables = _own_tables(table)
        alone = isinstance(table.get("attribute"), str)
        problems: list[tuple[KeyPath, str]] = []
        for name, own in own_tables.items():
            place = () if alone else ("attribute", name)
            problems += [((*place, key), text) for key, text in _column_problems(table, own, alone=alone)]
        if "hierarchy" in table and own_tables and all(_passes_over(table, own) for own in own_tables.values()):
            problems.append((("hierarchy",), _UNUSED))
        problems += [((key,), text) for key, other, text in _COMBINED if key not in table and other in table]
        if "target" in table:
            problems += _target_problems(table, own_tables)
        return problems

    def plain_fields(self) -> dict[str, Any]:
        # A policy that asks for no combinations is the one it was before there were any: its checkpoints go on.
        said = super().plain_fields()
        return {name: value for name, value in said.items() if name not in ("combine", "k") or value is not None}

    @property
    def advice(self) -> str:
        return _FOLLOWS if self.target is not None else self.ADVICE

    def warnings(self) -> list[str]:
        found = [
            f"{name}: z = 1 releases everything; choose a z that hides a person in a crowd"
            for name, column in self.columns.items()
            if column.z == 1
        ]
        shortest = min(column.window for column in self.columns.values())
        if self.rotation is not None and self.rotation > shortest:
            found.append(_LONG_ROTATION)
        return found


_UNUSED: Final = 'is used only with on_private = "generalize"; set that, or leave the hierarchy out'
_COMBINED: Final = (
    ("k", "combine", "is missing; give how many people must share what is released of a person in an epoch"),
    ("combine", "k", 'is missing; k goes with combine = "k", which holds rows back for an epoch'),
)
_LONG_ROTATION: Final = (
    "rotation is longer than the window: the model of z-anonymity no longer applies, and what a person does "
    "in several windows can be linked; choose a rotation that is at most the window"
)
_FOLLOWS: Final = (
    "z follows the stream and lets nothing leave before it has seen a window and an epoch; a sample may be too short"
)
_KEEPING_LEVEL: Final = (None, "drop", "blank")  # a misspelt one is reported as such
_NEEDED: Final = {
    "z": "is missing; give the number of people that must share a value, or a target that z follows",
    "window": 'is missing; give how far back people count, such as "1h"',
}


def _own_tables(table: Table) -> dict[str, Table]:
    """Attributes and what they set themselves; what is not a table is reported elsewhere."""
    attribute = table.get("attribute")
    if isinstance(attribute, str):
        return {attribute: {}}
    if not isinstance(attribute, Mapping):
        return {}
    return {name: own for name, own in attribute.items() if isinstance(own, Mapping)}


def _target_problems(table: Table, own_tables: Mapping[str, Table]) -> Iterator[tuple[KeyPath, str]]:
    """What does not go with a z that follows the stream."""
    places: dict[KeyPath, Table] = {(): table} | {("attribute", name): own for name, own in own_tables.items()}
    for place, holder in places.items():
        if "z" in holder:
            yield (*place, "z"), "does not go with a target, for which z follows the stream; leave one of them out"
        if holder.get("on_private") == "generalize":
            yield (*place, "on_private"), 'must be "drop" or "blank" with a target, which goes with values as they are'
    if "combine" in table:
        yield ("combine",), "promises what a target aims at; leave one of them out"
    if isinstance(table.get("target"), Mapping):
        yield from ((("target", *key), text) for key, text in ZTargetSection.cross_check(table["target"]))


def _column_problems(table: Table, own: Table, *, alone: bool) -> Iterator[tuple[str, str]]:
    """What one attribute lacks; `own` wins over the method's table."""
    where = "" if alone else ", here or in [anonymize]"
    for key, text in _NEEDED.items():
        if key not in own and key not in table and not (key == "z" and "target" in table):
            yield key, text + where
    on_private = _effective(table, own, "on_private")
    if on_private == "generalize" and "hierarchy" not in own and "hierarchy" not in table:
        yield "hierarchy", f'is missing; on_private = "generalize" needs one{where}'
    if on_private in _KEEPING_LEVEL and "hierarchy" in own:
        yield "hierarchy", _UNUSED


def _passes_over(table: Table, own: Table) -> bool:
    """Whether the column has no use for the hierarchy of the method's table."""
    return "hierarchy" in own or _effective(table, own, "on_private") in _KEEPING_LEVEL


def _effective(table: Table, own: Table, key: str) -> object:
    return own.get(key, table.get(key))
